"""The history summary, as pure functions.

It has two parts: what the events say, on the first line, and below it what the last session was about (its gist).
Each is brought up to date on its own. What stood there before there were events counts as gist and is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.long_term import events
from memory.models import LongTermMemory
from processors.models import Language, MemoryEvent
from processors.summary import LONGEST, summarise_events

_BETWEEN = " · "
COUNTED = 100  # events, the newest, that the summary is made from: so that its cost does not grow with a history


def with_events(memory: LongTermMemory, new: Sequence[MemoryEvent], language: Language | None) -> str:
    """The summary now that `new` events have come."""
    told, gist = _parts(memory, events.count(memory))
    counted = [*events.newest(memory, COUNTED - len(new)), *new]
    return _joined(summarise_events(told, counted[-COUNTED:], language), gist)


def with_gist(memory: LongTermMemory, gist: str) -> str:
    """The summary now that a session has ended."""
    told, _ = _parts(memory, events.count(memory))
    return _joined(told, gist)


def rolled(before: str, gist: str) -> str:
    """The gist with the one before it, where no model could make one of both: the oldest part gives way, whole parts
    at a time. The episodes keep each on its own."""
    parts = [part for part in (*before.split(_BETWEEN), gist) if part]
    parts = list(dict.fromkeys(parts))
    while len(parts) > 1 and sum(map(len, parts)) + len(_BETWEEN) * (len(parts) - 1) > LONGEST:
        parts.pop(0)
    return _BETWEEN.join(parts)


def anew(memory: LongTermMemory, left: Sequence[MemoryEvent], language: Language | None, *, keep_gist: bool) -> str:
    """The summary now that only these events are left of what was known."""
    gist = gist_of(memory) if keep_gist else ""
    return _joined(summarise_events("", left[-COUNTED:], language), gist)


def gist_of(memory: LongTermMemory) -> str:
    return _parts(memory, events.count(memory))[1]


def _parts(memory: LongTermMemory, count: int) -> tuple[str, str]:
    if count <= 0:
        return "", memory.history_summary
    told, _, gist = memory.history_summary.partition("\n")
    return told, gist


def _joined(told: str, gist: str) -> str:
    return f"{told}\n{gist}" if told and gist else told or gist
