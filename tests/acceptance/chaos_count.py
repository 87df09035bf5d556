"""What became of every message of a chaos run: what the customers have on their screens, against what was accepted.

An answer of the model names its messages by their marks. While the model is away rules answer, without marks: which
messages such an answer was for is read from the transcripts, and that as many were shown from the screens. There late
answers may stand together in one bubble.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from gateway.app import ALIVE
from memory import keys
from memory.redis_client import connect
from tests.acceptance.chaos_customers import Crowd, Customer, Written
from tests.acceptance.chaos_faults import Faults
from tests.acceptance.processes import Stage
from tests.conftest import LASTING

_MARK = re.compile(r"m\d{5}")


@dataclass
class Report:
    seed: int
    sent: int = 0
    faults: int = 0
    answered: int = 0
    by_rules: int = 0  # of the answered
    lost: list[str] = field(default_factory=list)
    doubled: Counter[str] = field(default_factory=Counter)  # what customers see, by cause
    repeated: int = 0  # sends that a retry key kept from showing twice
    disordered: list[str] = field(default_factory=list)
    dead: Counter[str] = field(default_factory=Counter)
    left: list[str] = field(default_factory=list)  # what should not be in the inbox
    slowest: float = 0.0
    median: float = 0.0
    quiet: float | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        return not (self.lost or self.disordered or self.left or self.quiet is None)

    @staticmethod
    def head() -> str:
        columns = (
            "seed | faults | sent | answered (by rules) | lost | doubled on screen: Telegram / LINE | kept by retry key"
            " | out of order | dead | p50 s | slowest s | quiet after s"
        )
        return f"| {columns} |\n|{' --- |' * (columns.count('|') + 1)}"

    def row(self) -> str:
        line = sum(count for cause, count in self.doubled.items() if cause.startswith("LINE"))
        telegram = sum(self.doubled.values()) - line
        quiet = "never" if self.quiet is None else f"{self.quiet:.0f}"
        return (
            f"| {self.seed} | {self.faults} | {self.sent} | {self.answered} ({self.by_rules}) | {len(self.lost)} | "
            f"{telegram} / {line} | {self.repeated} | {len(self.disordered)} | {self.dead.total()} | "
            f"{self.median:.2f} | {self.slowest:.1f} | {quiet} |"
        )

    def details(self) -> list[str]:
        told = [f"doubled, {cause}: {count}" for cause, count in self.doubled.items()]
        told += [f"dead: {count} x {reason}" for reason, count in self.dead.items()]
        return [*told, *self.lost, *self.disordered, *self.left, *self.notes]


async def count(seed: int, crowd: Crowd, stage: Stage, faults: Faults, quiet: float | None) -> Report:
    report = Report(seed, sent=len(crowd.written), faults=faults.done.total(), quiet=quiet)
    line, telegram = await stage.delivered("line"), await stage.delivered("telegram")
    report.repeated = sum(1 for shown in line["raw"].values() for one in shown if one["repeated"])
    # What is no text is the word that the answer takes longer, with its button: no answer.
    texts = {chat: [one for one in shown if "text" in one["message"]] for chat, shown in line["delivered"].items()}
    screens = {chat: [_line(one) for one in shown] for chat, shown in texts.items()}
    screens |= {chat: [_telegram(one) for one in shown] for chat, shown in telegram["delivered"].items()}
    buried = await _dead(stage, crowd, report)
    by_customer: dict[Customer, list[Written]] = defaultdict(list)
    for one in crowd.written:
        if one.accepted_at is None:
            report.notes.append(f"never accepted: {one.mark}")
        by_customer[one.customer].append(one)
    waits: list[float] = []
    words = _Words(stage.folder)
    for customer, written in by_customer.items():
        told = _Told.of(stage.data, customer)
        screen = screens.get(customer.chat, [])
        _count_one(report, customer, written, screen, told, buried, waits, words, faults)
    if waits:
        report.slowest, report.median = max(waits), statistics.median(waits)
    assert stage.redis_url is not None
    report.left = await _left(stage.redis_url)
    report.notes.append(f"webhooks by status: {dict(sorted(crowd.statuses.items()))}; faults: {dict(faults.done)}")
    return report


@dataclass(frozen=True)
class _Shown:
    text: str
    via: str
    at: float

    @property
    def marks(self) -> list[str]:
        return _MARK.findall(self.text)


def _line(one: Mapping[str, Any]) -> _Shown:
    return _Shown(str(one["message"].get("text", "")), f"LINE {one['via']}", one["at"])


def _telegram(one: Mapping[str, Any]) -> _Shown:
    return _Shown(one["text"], "Telegram", one["at"])


CERTAIN = "not sent: SendRetry"  # the platform did not take that call, so it can't have shown it


class _Words:
    """What the workers' logs say of a conversation: why an answer went out once more."""

    BEFORE = 16.0  # seconds: a platform that was stopped shows late what it was sent

    def __init__(self, folder: Path) -> None:
        self._said: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
        for log in folder.glob("worker-*.log"):
            for line in log.read_text("utf-8", "replace").splitlines():
                if '"conversation"' not in line or CERTAIN in line:
                    continue
                with suppress(ValueError):  # a kill cut it off
                    said = json.loads(line)
                    at = datetime.fromisoformat(said["time"]).timestamp()
                    self._said[said["conversation"]].append((at, said["message"].partition(";")[0]))

    def between(self, customer: Customer, first: float, second: float) -> str:
        name = keys.session(keys.ConversationRef(customer.shop.id, f"{customer.platform}:{customer.chat}"))
        words = dict.fromkeys(word for at, word in sorted(self._said[name]) if first - self.BEFORE < at < second)
        return " + ".join(words) or "whoever sent it was killed"


@dataclass
class _Told:
    """From a person's transcript: which events an answer without marks was for."""

    unmarked: dict[str, list[str]] = field(default_factory=dict)  # the answer's id: events
    texts: dict[str, str] = field(default_factory=dict)  # the answer's id: what it says

    @staticmethod
    def of(data: Path, customer: Customer) -> _Told:
        user = f"{customer.platform}:{customer.chat}"
        made, events = _Told(), []
        for path in sorted(keys.transcript_dir(data / "transcripts", customer.shop.id, user).glob("*.jsonl")):
            for raw in path.read_text("utf-8").splitlines():
                said = json.loads(raw)
                if said["role"] == "user":
                    events.append(said["message_id"].rpartition(":")[2])
                    continue
                if not _MARK.search(said["message"]):
                    made.unmarked.setdefault(said["message_id"], events)
                    made.texts.setdefault(said["message_id"], said["message"])
                else:  # thought of anew before the other one was sent
                    made.texts.pop(said["message_id"], None)
                events = []
        return made


def _count_one(
    report: Report,
    customer: Customer,
    written: Sequence[Written],
    screen: Sequence[_Shown],
    told: _Told,
    buried: set[str],
    waits: list[float],
    words: _Words,
    faults: Faults,
) -> None:
    first: dict[str, int] = {}
    for place, shown in enumerate(screen):
        again = [mark for mark in shown.marks if mark in first]
        if again:
            before = screen[first[again[0]]]
            cause = before.via if before.via == shown.via else f"{before.via} then {shown.via}"
            cause += f", {words.between(customer, before.at, shown.at)}"
            report.doubled[cause] += 1
            report.notes.append(
                f"doubled: {again} of {customer.chat}, {cause}, shown {before.at:.1f} and {shown.at:.1f}; "
                f"meanwhile {faults.around(before.at)}"
            )
        for mark in shown.marks:
            first.setdefault(mark, place)
    by_rules = {event for events in told.unmarked.values() for event in events}
    unknown = sum(1 for one in written if one.event_id in buried)  # of these nobody knows whether they were answered
    for text, times in Counter(told.texts.values()).items():
        places = [shown for shown in screen for _ in range(shown.text.count(text))]
        if len(places) < times:
            report.lost.append(f"lost: {times - len(places)} answers without marks of {customer.chat}")
        elif len(places) > times + unknown:
            cause = f"{places[-1].via} without marks, {words.between(customer, places[-2].at, places[-1].at)}"
            report.doubled[cause] += len(places) - times - unknown
            report.notes.append(
                f"doubled without marks: {customer.chat}, {cause}, shown {[f'{one.at:.1f}' for one in places]}; "
                f"meanwhile {faults.around(places[-2].at)}"
            )
    for one in written:
        if one.mark in first:
            report.answered += 1
            waits.append(screen[first[one.mark]].at - one.sent_at)
        elif one.event_id in by_rules:
            report.answered += 1
            report.by_rules += 1
        elif one.event_id not in buried and one.accepted_at is not None:
            report.lost.append(
                f"lost: {one.mark} of {customer.chat}, sent {one.sent_at:.1f}, taken {one.accepted_at:.1f}"
            )
    for later in written:
        for earlier in written:
            if (
                earlier.accepted_at is not None
                and earlier.accepted_at < later.sent_at
                and first.get(earlier.mark, -1) > first.get(later.mark, len(screen))
            ):
                report.disordered.append(
                    f"out of order: {earlier.mark} (taken {earlier.accepted_at:.1f}, shown "
                    f"{screen[first[earlier.mark]].at:.1f}) after {later.mark} (sent {later.sent_at:.1f}, shown "
                    f"{screen[first[later.mark]].at:.1f}) of {customer.chat}"
                )


async def _dead(stage: Stage, crowd: Crowd, report: Report) -> set[str]:
    assert stage.redis_url is not None
    buried = set()
    async with connect(stage.redis_url) as client:
        for tenant in sorted({customer.shop.id for customer in crowd.customers}):
            letters: Any = await client.xrange(f"cc:dead:{tenant}")
            for _, letter in letters:
                report.dead[letter[b"reason"].decode()] += 1
                buried.add(json.loads(letter[b"message"])["event_id"])
    return buried


async def _left(url: str) -> list[str]:
    """What is in the inbox although nothing waits, and keys that would stay for ever."""
    found = []
    async with connect(url) as client:
        async for key in client.scan_iter(count=1000):
            if key.startswith((b"cc:q:", b"cc:c:")):
                found.append(f"left in the inbox: {key.decode()}")
            elif await client.ttl(key) == -1 and not key.startswith((*LASTING, ALIVE.encode())):
                found.append(f"without a TTL: {key.decode()}")
    return found
