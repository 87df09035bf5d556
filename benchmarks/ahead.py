"""Whether it helps to guess what a customer will ask, and to look at customers who are like them. Nothing of this is
part of the bot: see docs/memory.md for what came of it.

    python -m benchmarks.ahead [FILE]

Scripted dialogues (tests/story/dialogues): the next message's kind, and the next of the shop's answers that it needs,
guessed from what came before by transitions that other dialogues show, beside guessing what is most common. FILE, of
LoCoMo's form: memories chosen before the question is known, beside those that are searched for. Invented customers:
what others with the same wishes asked, where there are such groups, and where there are none.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from benchmarks.recall import BEGIN, GROUP, kept, said_of, table
from memory.recall.finder import Finder
from processors.faq import FaqIndex

HERE = Path(__file__).parent.parent
_NOTHING = "-"


def dialogues() -> list[tuple[list[str], list[str]]]:
    """Of each dialogue the kinds of its messages, and the shop's answers they need, in their order."""
    shop = yaml.safe_load((HERE / "config" / "tenants" / "demo.yaml").read_text("utf-8"))
    index = FaqIndex([(entry["questions"], " ".join(entry["answer"].values())) for entry in shop["faq"]])
    out = []
    for path in sorted((HERE / "tests" / "story" / "dialogues").glob("*.yaml")):
        lines = [line for one in yaml.safe_load(path.read_text("utf-8"))["sittings"] for line in one["turns"]]
        needed = [found[0].index if (found := index.top(line["say"], 1)) else _NOTHING for line in lines]
        out.append(
            ([line["means"][0] for line in lines if "means" in line], [str(one) for one in needed if one != _NOTHING])
        )
    return out


def guessed(sequences: Sequence[Sequence[str]], most: int) -> tuple[float, float, int]:
    """How often the next one is among `most` guesses: by transitions and what this customer did before, and by what is
    most common; each dialogue is guessed from the others. And how many there were."""
    ahead, common = [], []
    for at, sequence in enumerate(sequences):
        others = [one for number, one in enumerate(sequences) if number != at]
        usual = Counter(kind for one in others for kind in one)
        follows: dict[str, Counter[str]] = defaultdict(Counter)
        for one in others:
            for before, after in pairwise(one):
                follows[before][after] += 1
        for place in range(1, len(sequence)):
            mine, last = Counter(sequence[:place]), follows[sequence[place - 1]]
            total = sum(usual.values())
            score = {
                kind: usual[kind] / total + last[kind] / max(1, sum(last.values())) + mine[kind] / place
                for kind in {*usual, *last, *mine}
            }
            best = sorted(score, key=lambda kind: (-score[kind], kind))[:most]
            ahead.append(sequence[place] in best)
            common.append(sequence[place] in [kind for kind, _ in usual.most_common(most)])
    return statistics.mean(ahead), statistics.mean(common), len(ahead)


async def prepared(samples: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Recall among ten memories of long talks: the newest, those most like the last session, the search's, and the
    search's first eight with two that were prepared."""
    found: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        entries, finder = await kept(sample["conversation"]), Finder()
        entries.sort(key=lambda one: one.at or BEGIN)
        ids, last = {said_of(one.id) for one in entries}, " ".join(one.text for one in entries[-12:])
        like = [said_of(hit.id) for hit in await finder.find("t", GROUP, entries, last, 10, around=True)]
        newest = [said_of(one.id) for one in entries[-10:]]
        for asked in sample["qa"]:
            evidence = [one for one in asked["evidence"] if one in ids]
            if not evidence:
                continue
            hits = [
                said_of(hit.id)
                for hit in await finder.find(
                    "t", GROUP, entries, asked["question"], 10, around=True, now=entries[-1].at
                )
            ]
            ways = {"newest": newest, "like the last session": like, "searched": hits, "8 + 2": hits[:8] + like[:2]}
            for name, first in ways.items():
                found[name].append(sum(one in first for one in evidence) / len(evidence))
    return [[name, f"{statistics.mean(shares):.3f}"] for name, shares in found.items()]


def alike(groups: int, rng: random.Random) -> tuple[float, float]:
    """Hit rate at 3 of the next topic: by the twenty customers whose topics are nearest, and by what all ask. 400
    customers, 40 topics, eight questions each, of which six are known; each customer is of one of `groups` with
    favourite topics, 0: nobody has any."""
    topics = range(40)
    favourite = [rng.sample(topics, 6) for _ in range(groups)]
    people = []
    for _ in range(400):
        own = rng.choice(favourite) if favourite else list(topics)
        people.append([rng.choice(own) if rng.random() < 0.6 else rng.choice(topics) for _ in range(8)])
    usual = [topic for topic, _ in Counter(one for said in people for one in said[:6]).most_common(3)]
    near, all_of_them = [], []
    for at, said in enumerate(people):
        known = set(said[:6])
        others = sorted(
            (one for number, one in enumerate(people) if number != at), key=lambda one: -len(known & set(one[:6]))
        )
        told = [topic for topic, _ in Counter(one for other in others[:20] for one in other[:6]).most_common(3)]
        near += [one in told for one in said[6:]]
        all_of_them += [one in usual for one in said[6:]]
    return statistics.mean(near), statistics.mean(all_of_them)


def main() -> None:
    kinds, answers = zip(*dialogues(), strict=True)
    rows = []
    for name, sequences, most in (("kind, first guess", kinds, 1), ("shop's answer, three guesses", answers, 3)):
        ahead, common, count = guessed(sequences, most)
        rows.append([name, str(count), f"{ahead:.2f}", f"{common:.2f}"])
    print(table(["next message", "count", "guessed from the sequence", "the most common"], rows))
    if len(sys.argv) > 1:
        samples = json.loads(Path(sys.argv[1]).read_text("utf-8"))
        print("\n" + table(["ten memories", "recall"], asyncio.run(prepared(samples))))
    rng = random.Random(1)
    rows = []
    for groups in (4, 12, 0):
        near, usual = alike(groups, rng)
        rows.append([str(groups) if groups else "none", f"{near:.2f}", f"{usual:.2f}"])
    print("\n" + table(["groups among invented customers", "like customers' topics", "everybody's"], rows))


if __name__ == "__main__":
    main()
