"""How well and how fast messages are understood.

`python benchmarks/understanding.py MESSAGES.jsonl [--held-out] [--wrong]`

Each line of the file holds `text`, `language`, `label`, `also_ok` (labels that are right too) and `importance_band`
("0.5-0.6"). Lenient accuracy counts `also_ok` as right. With `--held-out` rules and classifier are measured as they are
shipped, on messages that they were not made from (tests/data/shop_talk/held_out.jsonl). Without, both are measured by
five-fold cross-validation: what was learned is learned again without the fold, and of the rules' phrases those are left
out that fire on one message alone, as they may have been written for it. Last comes what each policy of asking the
language model costs in calls, and how right all answers are if the model labels what it is asked as the file does.
`--wrong` lists what the shipped rules missed.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from processors import local
from processors.event_processor import Understood
from processors.language import detect
from processors.models import EventType, band
from processors.normalise import normalise
from processors.rules import default_rules

DEVELOPING = Path(__file__).parent.parent / "tests" / "data" / "shop_talk" / "developing.jsonl"
Row = dict[str, Any]


def f1(pairs: Sequence[tuple[str, str]], label: str) -> tuple[float, float, float]:
    """Precision, recall and F1 of one label over (expected, actual) pairs."""
    hit = sum(e == a == label for e, a in pairs)
    said, were = sum(a == label for _, a in pairs), sum(e == label for e, _ in pairs)
    p, r = hit / said if said else 0.0, hit / were if were else 0.0
    return p, r, 2 * p * r / (p + r) if p + r else 0.0


def table(title: str, rows: Sequence[Row]) -> None:
    """Each row holds `actual`, `confidence` and `band` beside what the file says."""
    by_language = defaultdict(list)
    for row in rows:
        by_language[row["language"]].append(row)
    print(f"\n{title}\n{'':8}{'n':>5} accuracy  macro-F1  lenient  band  within one")
    for name, group in [*sorted(by_language.items()), ("all", rows)]:
        pairs = [(r["label"], r["actual"]) for r in group]
        labels = sorted({e for e, _ in pairs})
        accuracy = sum(e == a for e, a in pairs) / len(pairs)
        lenient = sum(map(right, group)) / len(group)
        bands = sum(r["band"] == r["expected_band"] for r in group) / len(group)
        near = sum(abs(r["band"] - r["expected_band"]) <= 1 for r in group) / len(group)
        macro = sum(f1(pairs, label)[2] for label in labels) / len(labels)
        print(f"{name:8}{len(group):>5} {accuracy:8.3f} {macro:9.3f} {lenient:8.3f} {bands:5.3f} {near:8.3f}")
    pairs = [(r["label"], r["actual"]) for r in rows]
    print(f"{'':14}precision recall   F1  taken for")
    for label in EventType:
        p, r, f = f1(pairs, label)
        confused = Counter(a for e, a in pairs if e == label and a != label).most_common(4)
        print(f"{label:14}{p:9.2f} {r:6.2f} {f:5.2f}  {', '.join(f'{k} {v}' for k, v in confused)}")


def right(row: Row) -> bool:
    return row["actual"] in (row["label"], *row["also_ok"])


def stands(row: Row) -> bool:
    verdict = default_rules().classify(row["text"])
    told = Understood(EventType(row["actual"]), verdict.importance, row["confidence"], "", verdict)
    return told.stands(row["text"])


def policies(rows: Sequence[Row]) -> None:
    """Calls for classifying; how right what was told without a call is; and all together, with a model that labels as
    the file does."""
    print(f"{'policy':14}calls a message  told locally  right  lenient  with the model's")
    for name in ("always", "when_unsure", "never"):
        kept = [
            r
            for r in rows
            if name == "never" or (stands(r) and (name == "when_unsure" or r["actual"] == "GENERIC_EVENT"))
        ]
        hits, asked = sum(r["actual"] == r["label"] for r in kept), len(rows) - len(kept)
        exact = hits / len(kept) if kept else 0.0
        lenient = sum(map(right, kept)) / len(kept) if kept else 0.0
        every = (hits + asked) / len(rows)
        print(f"{name:14}{asked / len(rows):15.2f} {len(kept):13} {exact:6.3f} {lenient:8.3f} {every:17.3f}")


def confidences(rows: Sequence[Row]) -> None:
    print("confidence said: right (of)", end="")
    for low in (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        group = [r for r in rows if low <= r["confidence"] < low + (0.3 if low == 0 else 0.1) + (low == 0.9)]
        if group:
            share = sum(r["actual"] == r["label"] for r in group) / len(group)
            print(f"  {low:.1f}+: {share:.2f} ({len(group)})", end="")
    print()


def milliseconds(classify: Callable[[str], Any], rows: Sequence[Row], rounds: int = 3) -> float:
    started = time.process_time()
    for _ in range(rounds):
        normalise.cache_clear()
        for row in rows:
            classify(row["text"])
    return (time.process_time() - started) / rounds / len(rows) * 1e3


def place(score: float) -> int:
    return ["minimal", "low", "moderate", "important", "critical"].index(band(score))


def by_rules(path: Path, rows: list[Row], show_wrong: bool, held_out: bool) -> None:
    rules = default_rules()
    rules.classify("hello")  # what is read at the first message is read
    for row in rows:
        verdict = rules.classify(row["text"])
        row |= {"actual": str(verdict.event_type), "rule": verdict.rule, "band": place(verdict.importance)}
        row["confidence"] = verdict.confidence
    missed = [r for r in rows if not right(r)]
    print(f"rules as shipped: {1 - len(missed) / len(rows):.3f} lenient", "" if held_out else "(made from these)")
    if show_wrong:
        for r in sorted(missed, key=lambda r: (r["label"], r["actual"])):
            print(f"{r['label'][:5]} != {r['actual'][:5]} [{r['rule']}] {r['text'][:150]}")
    if held_out:
        table("rules", rows)
        confidences(rows)
        policies(rows)
    elif find_spec("numpy"):
        from processors.local.training import labelled, measure_wording, written

        found = measure_wording(labelled(path), [*written(), *beside(path)])
        crossed("rules, five-fold cross-validation", rows, found)
    print(f"language as labelled: {sum(detect(r['text']) == r['language'] for r in rows) / len(rows):.3f}")
    print(f"{milliseconds(rules._classify, rows):.3f} ms of CPU a message")


def beside(path: Path) -> list[Any]:
    """The other messages that are trained with."""
    from processors.local.training import labelled

    return [] if path.samefile(DEVELOPING) else labelled(DEVELOPING)


def crossed(title: str, rows: list[Row], found: Any) -> None:
    """Fills in what cross-validation found, and prints it."""
    import numpy as np

    from processors.local.features import TYPES
    from processors.local.training import calibration_error

    for row, shares, at in zip(rows, found.shares, found.bands, strict=True):
        row |= {"actual": str(TYPES[int(shares.argmax())]), "confidence": float(shares.max()), "band": int(at)}
    table(title, rows)
    confidences(rows)
    hit = np.array([r["actual"] == r["label"] for r in rows])
    print(f"expected calibration error: {calibration_error(found.shares, hit):.3f}")
    policies(rows)


def by_classifier(path: Path, rows: list[Row], held_out: bool) -> None:
    from processors.local.classifier import Classifier
    from processors.local.training import labelled, measure, written
    from processors.local.vectors import SentenceVectors

    classifier = local.shared()
    assert classifier is not None
    if held_out:
        for row in rows:
            guess = classifier.guess(row["text"])
            row |= {"actual": str(guess.event_type), "confidence": guess.confidence, "band": place(guess.importance)}
        table("local classifier", rows)
        confidences(rows)
        policies(rows)
    else:
        found = measure(labelled(path), [*written(), *beside(path)], classifier.vectors)
        crossed("local classifier, five-fold cross-validation", rows, found)
    fresh = Classifier(classifier.weights, SentenceVectors())  # nothing kept from above
    fresh.guess("hello")
    print(f"{milliseconds(fresh.guess.__wrapped__, rows, 1):.2f} ms of CPU a message")


def main(path: Path, show_wrong: bool, held_out: bool) -> None:
    rows: list[Row] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["expected_band"] = place(float(row["importance_band"][:3]) + 0.05)
    by_rules(path, rows, show_wrong, held_out)
    if local.installed():
        by_classifier(path, rows, held_out)
    else:
        print("\nlocal classifier: the extra `local` is not installed")


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(arguments) != 1:
        sys.exit("usage: python benchmarks/understanding.py MESSAGES.jsonl [--held-out] [--wrong]")
    main(Path(arguments[0]), "--wrong" in sys.argv, "--held-out" in sys.argv)
