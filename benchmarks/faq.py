"""How sure a match of the shop's own answers must be before it is sent as it stands.

    python -m benchmarks.faq [--embeddings local]

Customers' questions in Thai and English over three invented shops' lists (faq_questions.yaml), near misses among them.
For each threshold: of what is answered outright, how much is right (precision); of what the list answers, how much is
answered outright (recall); of the rest, how often the right entry is among the three that are offered. Below it the
same for three shops' files (passages.yaml): how much of a question a passage must tell to be quoted. No language model
is asked.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.recall import table
from gateway.responder import for_everybody
from memory.library.library import SURE as SURE_PASSAGE
from memory.library.library import Found, Library, sure
from memory.recall.finder import Finder
from processors.embeddings import Embeddings, make
from processors.event_processor import EventProcessor
from processors.faq import SURE, FaqIndex, Match, Meanings
from processors.llm import Access

HANDBOOK = Path(__file__).parent / "passages.yaml"
QUESTIONS = Path(__file__).parent / "faq_questions.yaml"
THRESHOLDS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


class Asked(NamedTuple):
    """`want`: the entry's place, None where the list has no answer; `best` is what the index gives, `offered` the
    places that would be shown as buttons."""

    want: int | None
    text: str
    best: Match | None
    offered: tuple[int, ...]

    @property
    def sent(self) -> bool:
        return self.best is not None and self.best.sure

    @property
    def right(self) -> bool:
        return self.sent and self.best is not None and self.best.index == self.want


async def asked(shops: dict[str, Any], names: tuple[str, ...], meanings: Meanings | None, sure: float) -> list[Asked]:
    """As the bot goes about it: an order or a complaint gets no canned answer."""
    processor, found = EventProcessor(), []
    for name in names:
        entries = [(questions, answer) for questions, answer in shops[name]["entries"]]
        index = FaqIndex(entries, lambda: meanings, sure=sure)
        for want, text in shops[name]["asked"]:
            best = index.best(text)
            if best is not None and not for_everybody(await processor.analyze_message(text, ask=False), best, text):
                best = None
            found.append(Asked(want, text, best, tuple(hit.index for hit in index.top(text, 3))))
    return found


def row(answers: list[Asked], sure: float) -> list[str]:
    known = sum(one.want is not None for one in answers)
    sent, right = sum(one.sent for one in answers), sum(one.right for one in answers)
    rest = [one for one in answers if one.want is not None and not one.sent]
    offered = sum(one.want in one.offered for one in rest)
    mark = " *" if sure == SURE else ""
    share = f"{right / sent:.3f}" if sent else "-"
    return [f"{sure:.2f}{mark}", share, f"{right / known:.3f}", str(sent - right), f"{offered} of {len(rest)}"]


async def passages(meanings: str, names: Sequence[str]) -> list[list[str]]:
    """Precision and recall of the passage that would be quoted, by its score."""
    data = yaml.safe_load(HANDBOOK.read_text(encoding="utf-8"))
    found: list[tuple[str | None, Found | None]] = []
    for name in names:
        found += await _quoted(data[name], make(meanings, Access(None)))
    known, out = sum(want is not None for want, _ in found), []
    for least in (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9):
        sent = [(want, one.passage) for want, one in found if one is not None and one.score >= least]
        right = sum(want is not None and (want == one.heading or want in one.text) for want, one in sent)
        mark = " *" if least == SURE_PASSAGE else ""
        share = f"{right / len(sent):.3f}" if sent else "-"
        out.append([f"{least:.2f}{mark}", share, f"{right / known:.3f}", str(len(sent) - right)])
    return out


async def _quoted(shop: dict[str, Any], embeddings: Embeddings | None) -> list[tuple[str | None, Found | None]]:
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base) / "knowledge" / "shop"
        folder.mkdir(parents=True)
        for name, text in shop["files"].items():
            (folder / name).write_text(text, encoding="utf-8")
            os.utime(folder / name, (0, 0))
        library = Library(folder.parent, Path(base) / "index", Finder(None, lambda _: embeddings))
        first = [(want, sure(await library.find("shop", text, 4), 0.01)) for want, text in shop["asked"]]
        await library.close()
    return first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embeddings", choices=["none", "local"], default="none")
    parser.add_argument("--wrong", action="store_true", help="Show what is answered wrongly or not at all.")
    given = parser.parse_args()
    meanings: Meanings | None = None
    if given.embeddings == "local":
        from processors.local.vectors import SentenceVectors

        meanings = SentenceVectors()
    shops = yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))
    for title, names in (("set on", ("clothes", "salon")), ("held out", ("guesthouse",))):
        at = {least: asyncio.run(asked(shops, names, meanings, least)) for least in THRESHOLDS}
        answers = at[SURE]
        known = sum(one.want is not None for one in answers)
        print(f"\n{title}: {', '.join(names)}; {known} with an answer in the list, {len(answers) - known} without")
        rows = [row(answers, least) for least, answers in at.items()]
        print(table(["threshold", "precision", "recall", "sent wrongly", "offered of the rest"], rows))
        for one in answers if given.wrong else ():
            if one.sent != (one.want is not None) or one.sent != one.right:
                print("  ", "sent" if one.sent else "    ", one.want, one.best, one.offered, one.text)
    head = ["score", "precision", "recall", "quoted wrongly"]
    for title, names in (("set on", ("coffee_gear", "cafe")), ("held out", ("pets",))):
        print(f"\nfiles, {title}: {', '.join(names)}")
        print(table(head, asyncio.run(passages(given.embeddings, names))))


if __name__ == "__main__":
    main()
