"""How well and how fast the rules understand messages: `python benchmarks/understanding.py MESSAGES.jsonl [--wrong]`.

Each line of the file holds `text`, `language`, `label`, `also_ok` (labels that are right too) and `importance_band`
("0.5-0.6"). Lenient accuracy counts `also_ok` as right. `--wrong` lists what was missed.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from processors.language import detect
from processors.models import EventType, band
from processors.normalise import normalise
from processors.rules import default_rules


def f1(pairs: Sequence[tuple[str, str]], label: str) -> tuple[float, float, float]:
    """Precision, recall and F1 of one label over (expected, actual) pairs."""
    hit = sum(e == a == label for e, a in pairs)
    said, were = sum(a == label for _, a in pairs), sum(e == label for e, _ in pairs)
    p, r = hit / said if said else 0.0, hit / were if were else 0.0
    return p, r, 2 * p * r / (p + r) if p + r else 0.0


def main(path: str, show_wrong: bool) -> None:
    rows: list[dict[str, Any]] = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    rules = default_rules()
    for row in rows:
        verdict = rules.classify(row["text"])
        row["actual"], row["rule"] = str(verdict.event_type), verdict.rule
        row["band"] = band(verdict.importance)
        row["expected_band"] = band(float(row["importance_band"][:3]) + 0.05)
        row["detected"] = detect(row["text"])
    by_language = defaultdict(list)
    for row in rows:
        by_language[row["language"]].append(row)
    print(f"{'':8}{'n':>5} accuracy  macro-F1  lenient  band")
    for name, group in [*sorted(by_language.items()), ("all", rows)]:
        pairs = [(r["label"], r["actual"]) for r in group]
        labels = sorted({e for e, _ in pairs})
        accuracy = sum(e == a for e, a in pairs) / len(pairs)
        lenient = sum(r["actual"] in (r["label"], *r["also_ok"]) for r in group) / len(group)
        bands = sum(r["band"] == r["expected_band"] for r in group) / len(group)
        macro = sum(f1(pairs, label)[2] for label in labels) / len(labels)
        print(f"{name:8}{len(group):>5} {accuracy:8.3f} {macro:9.3f} {lenient:8.3f} {bands:5.3f}")
    pairs = [(r["label"], r["actual"]) for r in rows]
    print(f"\n{'':14}precision recall   F1  taken for")
    for label in EventType:
        p, r, f = f1(pairs, label)
        confused = Counter(a for e, a in pairs if e == label and a != label).most_common(4)
        print(f"{label:14}{p:9.2f} {r:6.2f} {f:5.2f}  {', '.join(f'{k} {v}' for k, v in confused)}")
    print(f"\nlanguage as labelled: {sum(r['detected'] == r['language'] for r in rows) / len(rows):.3f}")
    rounds = 5
    started = time.process_time()
    for _ in range(rounds):
        normalise.cache_clear()
        for row in rows:
            rules.classify(row["text"])
    print(f"{(time.process_time() - started) / rounds / len(rows) * 1e3:.3f} ms of CPU a message")
    if show_wrong:
        for r in sorted(rows, key=lambda r: (r["label"], r["actual"])):
            if r["actual"] not in (r["label"], *r["also_ok"]):
                print(f"{r['label'][:5]} != {r['actual'][:5]} [{r['rule']}] {r['text'][:150]}")


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--wrong"]
    if len(arguments) != 1:
        sys.exit("usage: python benchmarks/understanding.py MESSAGES.jsonl [--wrong]")
    main(arguments[0], "--wrong" in sys.argv)
