"""How well the right memory is found, and how fast.

    python -m benchmarks.recall [FILE] [--embeddings local-e5]     all of these, the first where FILE is given
    python -m benchmarks.recall conversations FILE [--only ID …] [--embeddings local-e5]
    python -m benchmarks.recall thai [--embeddings local]
    python -m benchmarks.recall speed [--embeddings local]

`conversations` takes a file of LoCoMo's form (not part of this repository): two people's talks, kept as those of a
group; the lines that a question names as its evidence are to be among the first 5, 10 and 20. `thai` takes pairs of a
question and a memory, or the file named: customers with 60 memories each. recall_thai_later.tsv was written when
ranking and `topics.yaml` were final; the other two were known to who wrote those. No language model is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory.episodes import made_of
from memory.knowledge import Seen
from memory.models import LongTermMemory, Message
from memory.recall.entry import Entry
from memory.recall.finder import Finder
from memory.recall.vector_file import Stored
from processors.embeddings import Embeddings, make
from processors.extraction import read
from processors.llm import Access
from processors.models import iso

KINDS = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
WHAT = ("all", "conversations", "thai", "speed")
PAIRS, SEEN, LATER = (Path(__file__).parent / f"recall_thai{name}.tsv" for name in ("", "_seen", "_later"))
A_CUSTOMER = 20  # pairs: 60 memories
GROUP = "line:group:C1"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_APART = timedelta(hours=3)


async def kept(conversation: dict[str, Any]) -> list[Entry]:
    """Two people's talks as the bot keeps those of a group: a line with its writer for each message, an episode for
    each session with the summary that is made without a model. What can be found of them the memory itself says."""
    names = [name for name in conversation if name.startswith("session_") and isinstance(conversation[name], list)]
    episodes = []
    for day, name in enumerate(sorted(names, key=lambda one: int(one.split("_")[1]))):
        lines: list[Message] = []
        for minute, turn in enumerate(conversation[name]):
            shown = f" (shares a picture: {turn['blip_caption']})" if turn.get("blip_caption") else ""
            lines.append({
                "role": "user",
                "message": f"{turn['text']}{shown}",
                "timestamp": iso(BEGIN + timedelta(days=day, minutes=minute)),
                "message_id": turn["dia_id"],
                "metadata": {"sender": f"line:{turn['speaker']}", "sender_name": turn["speaker"]},
            })  # fmt: skip
        if lines:
            summary = (await read(None, None, lines, "", {}, "en")).summary
            episodes.append(made_of(name, BEGIN + timedelta(days=day), lines, summary=summary))
    memory = LongTermMemory(tenant_id="t", user_id=GROUP, episodes=episodes)
    return Seen([], memory, []).entries(GROUP)


async def conversations(samples: Sequence[dict[str, Any]], only: Sequence[str], embeddings: Embeddings | None) -> None:
    found: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as folder:
        for sample in samples:
            if only and sample["sample_id"] not in only:
                continue
            entries = await kept(sample["conversation"])
            finder = Finder(Path(folder), lambda _: embeddings)
            tenant = sample["sample_id"]
            await finder.fill(tenant, GROUP, entries)
            ids = {said_of(one.id) for one in entries}
            now = max(one.at for one in entries if one.at)
            for asked in sample["qa"]:
                evidence = [one for one in asked["evidence"] if one in ids]
                if not evidence:
                    continue
                hits = await finder.find(tenant, GROUP, entries, asked["question"], 20, around=True, now=now)
                for top in (5, 10, 20):
                    first = {said_of(hit.id) for hit in hits[:top]}
                    share = sum(one in first for one in evidence) / len(evidence)
                    for group in ("all", KINDS[asked["category"]]):
                        found[group][top].append(share)
    rows = [
        [group, str(len(by[5])), *(f"{statistics.mean(by[top]):.3f}" for top in (5, 10, 20))]
        for group, by in sorted(found.items())
    ]
    print(table(["questions", "count", "recall@5", "@10", "@20"], rows))


def said_of(id: str) -> str:
    return id.rpartition("/")[2]


async def thai(lines: Sequence[str], embeddings: Embeddings | None) -> None:
    rows = [line.split("\t") for line in lines[1:]]
    found: dict[str, list[bool]] = defaultdict(list)
    missed = []
    customers = len(rows) // A_CUSTOMER
    for customer in range(customers):
        mine = rows[customer::customers]
        entries = [Entry(text, "fact", text, text) for row in mine for text in row[2:]]
        finder = Finder(None, lambda _: embeddings)
        if embeddings is not None:  # all of them, as `reindex` would
            await finder.find("t", "u", entries, "-", 1)
            await asyncio.gather(*finder._later)
        for kind, asked, wanted, *_ in mine:
            hits = await finder.find("t", "u", entries, asked, 5, around=True)
            there = wanted in [hit.id for hit in hits]
            found[kind].append(there)
            found["all"].append(there)
            if not there:
                missed.append(f"{asked} -> {wanted}")
    print(table(["pairs", "count", "recall@5"], [
        [kind, str(len(one)), f"{statistics.mean(one):.3f}"] for kind, one in sorted(found.items())
    ]))  # fmt: skip
    print("\n".join(["", "missed:", *missed]))


async def speed(embeddings: Embeddings | None) -> None:
    """One owner with that many memories; a question each time a new one, its vector made on the way. Wall time and CPU
    time in milliseconds."""
    texts = [line.split("\t") for line in PAIRS.read_text("utf-8").splitlines()[1:]]
    words = sorted({piece for row in texts for cell in row[2:] for piece in cell.split()})
    rng = random.Random(1)
    rows = []
    for count in (1_000, 10_000, 100_000):
        before = _rss()
        entries = [
            Entry(str(n), "event", "", " ".join(rng.choices(words, k=rng.randint(3, 7))), at=BEGIN + n * _APART)
            for n in range(count)
        ]  # fmt: skip
        finder = Finder(None, lambda _: embeddings)
        start = time.process_time()
        owned, _ = finder._owned(("t", "u", ""), entries, (), frozenset(), None)
        built = time.process_time() - start
        if embeddings is not None:  # made up: what they say does not matter here
            import numpy as np

            size = (await embeddings.encode(["a"])).shape[1]
            made = np.random.default_rng(1).integers(-20, 20, (count, size), dtype=np.int8)
            vectors = zip(entries, made, strict=True)
            owned.start(embeddings.name, {one.id: Stored(one.digest, row.tobytes()) for one, row in vectors})
        wall, cpu = [], []
        questions = [" ".join(rng.choices(words, k=rng.randint(1, 3))) for _ in range(300)]
        for asked in questions:
            start, begun = time.perf_counter(), time.process_time()
            await finder.find("t", "u", entries, asked, 10, around=True, now=BEGIN)
            wall.append((time.perf_counter() - start) * 1000)
            cpu.append((time.process_time() - begun) * 1000)
        rows.append(
            [f"{count:,}", *(f"{one:.1f}" for one in (*_percentiles(wall), *_percentiles(cpu))), f"{built:.1f}",
             f"{_rss() - before:.0f}"]
        )  # fmt: skip
    head = ["memories", "p50 ms", "p99 ms", "p50 CPU", "p99 CPU", "built s", "MB more"]
    print(table(head, rows))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _percentiles(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]


def _rss() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="all")
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--embeddings", default="none")
    given = parser.parse_args()
    embeddings = make(given.embeddings, Access(None))
    if given.embeddings != "none" and embeddings is None:
        parser.error(f"{given.embeddings} is not installed")
    if given.what not in WHAT:  # a file
        given.what, given.file = "all", Path(given.what)
    if given.what == "conversations" and given.file is None:
        parser.error("name the file of conversations")
    if given.what in ("all", "conversations") and given.file is not None:
        asyncio.run(conversations(json.loads(given.file.read_text("utf-8")), given.only, embeddings))
    if given.what in ("all", "thai"):
        for file in [PAIRS, SEEN, LATER] if given.what == "all" or given.file is None else [given.file]:
            print(f"\n{file.name}")
            asyncio.run(thai(file.read_text("utf-8").splitlines(), embeddings))
    if given.what in ("all", "speed"):
        asyncio.run(speed(embeddings))


if __name__ == "__main__":
    main()
