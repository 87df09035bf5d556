"""What saves add, before it is anywhere: decided by what is known, and written together where saves come together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
import orjson

from memory import facts
from memory.long_term import document
from memory.long_term import events as told_events
from memory.long_term.document import Document
from memory.models import Changes, LongTermMemory
from memory.retention import Retention
from memory.surrogates import without_surrogates
from processors.models import MemoryEvent, iso

_FRAME = 2  # fields that every line has: when, and of whom

_Lane = tuple[asyncio.AbstractEventLoop, str, str]
_Waiting = tuple["Addition", "asyncio.Future[None]"]


class Addition(msgspec.Struct, frozen=True):
    """What one save adds: a journal line, and what only a look at what is known can tell."""

    line: Document
    summary: Callable[[LongTermMemory], str] | None = None
    decide: Callable[[LongTermMemory], Changes] | None = None  # what else, by what is known at that moment
    ahead: bool = False  # see LongTerm.change

    @property
    def asks(self) -> bool:
        return self.summary is not None or self.decide is not None


def deciding(user: str, now: datetime, decide: Callable[[LongTermMemory], Changes], *, ahead: bool = False) -> Addition:
    return Addition({"at": iso(now), "user_id": user}, decide=decide, ahead=ahead)


def of_events(
    user: str,
    now: datetime,
    events: Sequence[MemoryEvent],
    attributes: Mapping[str, Any] | None,
    history_summary: str | Callable[[LongTermMemory], str] | None,
) -> Addition | None:
    """What LongTerm.save_events adds; None: nothing."""
    line: Document = {"at": iso(now), "user_id": user}
    if events:
        line["events"] = [event.model_dump(mode="json", exclude_none=True) for event in events]
    told = dict(attributes or {})
    summary = history_summary if callable(history_summary) else None
    if isinstance(history_summary, str):
        line["history_summary"] = history_summary
    if not told:
        return Addition(line, summary) if adds(line) or summary else None
    source = events[0].event_id if len(events) == 1 else None

    def decide(memory: LongTermMemory) -> Changes:
        return Changes(facts=facts.from_attributes(memory.facts, told, now, source, user))

    return Addition(line, summary, decide)


def adds(line: Document) -> bool:
    return len(line) > _FRAME


def decided(
    memory: LongTermMemory, additions: Sequence[Addition], now: datetime, rules: Retention
) -> tuple[list[bytes], LongTermMemory]:
    """The lines that add anything, with what was decided in them, and the memory after them."""
    lines: list[bytes] = []
    for addition in additions:
        line = addition.line
        if addition.decide is not None:
            changes = addition.decide(told_events.lent(memory))
            plainly = addition.summary is None and len(line) == _FRAME
            if plainly and (grown := document.grown_by_one(memory, line, changes, now, rules)) is not None:
                raw, memory = grown
                lines.append(raw)
                continue
            line = document.with_changes(line, changes)
        raw = document.dump_once_read(line)
        memory = document.grown(memory, raw, now, rules)
        if addition.summary is not None:
            line = orjson.loads(raw)  # as a reader will see it
            line["history_summary"] = without_surrogates(addition.summary(memory))
            memory = told_events.copied(memory, {"history_summary": line["history_summary"]})
            raw = document.dump(line)
        if adds(line):
            lines.append(raw)
    return lines, memory


class Lanes:
    """Additions to one person that come together share a write, in each event loop. `write` gets the tenant, the user
    and what came, and is called in the moment in which the first of it comes; what it raises comes out of every one of
    them."""

    def __init__(self, write: Callable[[str, str, Sequence[Addition]], Awaitable[None]]) -> None:
        self._write_all = write
        self._waiting: dict[_Lane, list[_Waiting]] = {}  # of each lane with a write under way: what goes next
        self._writes: set[asyncio.Future[None]] = set()

    def add(self, tenant: str, user: str, addition: Addition) -> asyncio.Future[None]:
        """Done once it is written; begun also if nobody waits for it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        lane = (loop, tenant, user)
        if lane in self._waiting:
            self._waiting[lane].append((addition, done))
        else:
            self._waiting[lane] = []
            self._write(lane, [(addition, done)])
        return done

    async def close(self) -> None:
        """Waits for the writes that are under way."""
        loop = asyncio.get_running_loop()
        while writes := [write for write in self._writes if write.get_loop() is loop]:
            await asyncio.wait(writes)
            await asyncio.sleep(0)  # what waited behind them has begun by then

    def _write(self, lane: _Lane, batch: list[_Waiting]) -> None:
        _, tenant, user = lane
        # Nobody's own: a caller who is cancelled must not take the others' writes along.
        additions = [batch[0][0]] if len(batch) == 1 else [addition for addition, _ in batch]
        work = self._write_all(tenant, user, additions)
        write = work if isinstance(work, asyncio.Future) else asyncio.ensure_future(work)
        self._writes.add(write)
        write.add_done_callback(partial(self._written, lane, batch))

    def _written(self, lane: _Lane, batch: list[_Waiting], write: asyncio.Future[None]) -> None:
        self._writes.discard(write)
        if waiting := self._waiting.pop(lane):
            self._waiting[lane] = []
            self._write(lane, waiting)
        error = None if write.cancelled() else write.exception()
        for _, done in batch:
            if done.done():  # its caller was cancelled
                continue
            if write.cancelled():
                done.cancel()
            elif error is not None:
                done.set_exception(error)
            else:
                done.set_result(None)
