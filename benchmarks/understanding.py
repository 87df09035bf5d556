"""How well and how fast messages are understood.

`python benchmarks/understanding.py MESSAGES.jsonl [--wrong] [--held-out]`

Each line of the file holds `text`, `language`, `label`, `also_ok` (labels that are right too) and `importance_band`
("0.5-0.6"). Lenient accuracy counts `also_ok` as right. Measured are the rules; the rules without what fires on one of
the messages alone, which is what messages that nobody has seen would get at the least; and, with the extra `local`, the
classifier by cross-validation (`--held-out`: as it is shipped, for messages that it was not trained on). Then what each
policy of asking the language model costs in calls. `--wrong` lists what the rules missed.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from processors import local
from processors.event_processor import Understood
from processors.language import detect
from processors.models import EventType, band
from processors.normalise import normalise
from processors.rules import default_rules
from processors.rules.engine import COST, scores_of

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
    """Calls for classifying, and how often what was not asked is right."""
    print(f"{'policy':14}calls a message  local answers  accuracy of those  lenient")
    for name in ("always", "when_unsure", "never"):
        kept = [
            r
            for r in rows
            if name == "never" or (stands(r) and (name == "when_unsure" or r["actual"] == "GENERIC_EVENT"))
        ]
        exact = sum(r["actual"] == r["label"] for r in kept) / len(kept) if kept else 0.0
        lenient = sum(map(right, kept)) / len(kept) if kept else 0.0
        print(f"{name:14}{1 - len(kept) / len(rows):15.2f} {len(kept):14} {exact:18.3f} {lenient:8.3f}")


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


def by_rules(rows: list[Row], show_wrong: bool) -> None:
    rules = default_rules()
    for row in rows:
        verdict = rules.classify(row["text"])
        row |= {"actual": str(verdict.event_type), "rule": verdict.rule, "band": place(verdict.importance)}
        row["confidence"] = verdict.confidence
    table("rules", rows)
    confidences(rows)
    policies(rows)
    print(f"language as labelled: {sum(detect(r['text']) == r['language'] for r in rows) / len(rows):.3f}")
    print(f"{milliseconds(rules.classify, rows):.3f} ms of CPU a message")
    if show_wrong:
        for r in sorted(rows, key=lambda r: (r["label"], r["actual"])):
            if not right(r):
                print(f"{r['label'][:5]} != {r['actual'][:5]} [{r['rule']}] {r['text'][:150]}")
    hits = [rules.hits(row["text"]) for row in rows]
    fired = Counter((t, name) for found in hits for t, names in found.items() for name in names)
    exact = lenient = 0
    for row, found in zip(rows, hits, strict=True):
        left = {t: {n: w for n, w in names.items() if fired[t, n] > 1} for t, names in found.items()}
        scores = scores_of({t: names for t, names in left.items() if names}, normalise(row["text"]))
        best = max(COST, key=lambda t: scores.get(t, 0.0))
        row["actual"] = str(best if scores.get(best, 0.0) >= 2 else EventType.GENERIC_EVENT)
        exact += row["actual"] == row["label"]
        lenient += right(row)
    print(f"without what fires on one message alone: {exact / len(rows):.3f}, lenient {lenient / len(rows):.3f}")


def by_classifier(path: Path, rows: list[Row], held_out: bool) -> None:
    import numpy as np

    from processors.local.features import TYPES
    from processors.local.training import calibration_error, labelled, measure, written

    classifier = local.shared()
    assert classifier is not None
    if held_out:
        for row in rows:
            guess = classifier.guess(row["text"])
            row |= {"actual": str(guess.event_type), "confidence": guess.confidence, "band": place(guess.importance)}
            row["shares"] = [guess.probabilities[t] for t in TYPES]
    else:
        found = measure(labelled(path), written(), classifier.vectors)
        for row, shares, at in zip(rows, found.shares, found.bands, strict=True):
            row |= {"actual": str(TYPES[int(shares.argmax())]), "confidence": float(shares.max()), "band": int(at)}
            row["shares"] = shares
    table("local classifier, " + ("as shipped" if held_out else "five-fold cross-validation"), rows)
    confidences(rows)
    hit = np.array([r["actual"] == r["label"] for r in rows])
    print(f"expected calibration error: {calibration_error(np.array([r['shares'] for r in rows]), hit):.3f}")
    policies(rows)
    classifier.guess.cache_clear()
    print(f"{milliseconds(classifier.guess.__wrapped__, rows, 1):.2f} ms of CPU a message")


def main(path: Path, show_wrong: bool, held_out: bool) -> None:
    rows: list[Row] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row["expected_band"] = place(float(row["importance_band"][:3]) + 0.05)
    by_rules(rows, show_wrong)
    if local.installed():
        by_classifier(path, rows, held_out)
    else:
        print("\nlocal classifier: the extra `local` is not installed")


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(arguments) != 1:
        sys.exit("usage: python benchmarks/understanding.py MESSAGES.jsonl [--wrong] [--held-out]")
    main(Path(arguments[0]), "--wrong" in sys.argv, "--held-out" in sys.argv)
