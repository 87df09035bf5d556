"""The history summary, as pure functions.

It has two parts: what the events say, on the first line, and below it what the last session was about (its gist).
Each is brought up to date on its own. What stood there before there were events counts as gist and is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.long_term import events
from memory.long_term.event import Event
from memory.models import LongTermMemory
from processors.models import EventType, Language, MemoryEvent
from processors.summary import LONGEST, Tally, summarise_events

_TALLY = "tally"
_BETWEEN = " · "
COUNTED = 100  # events, the newest, that the summary is made from: so that its cost does not grow with a history


def with_events(memory: LongTermMemory, new: Sequence[MemoryEvent], language: Language | None) -> str:
    """The summary now that `new` events have come."""
    known = events.told(memory)
    told, gist = _parts(memory, len(memory.events if known is None else known))
    if (counts := _tallied(memory, known, new)) is not None:
        return _joined(counts.told(told, language), gist)
    counted = [*events.newest(memory, COUNTED - len(new)), *new]
    return _joined(summarise_events(told, counted[-COUNTED:], language), gist)


def _tallied(memory: LongTermMemory, known: Sequence[Event] | None, new: Sequence[MemoryEvent]) -> Tally | None:
    """All events and the new ones, counted on from the last time; None where not all of them count, or they can't be
    told apart. The counts lie beside the events: of those that there were, and of those that were to come."""
    if not known or not new or len(known) + len(new) > COUNTED:
        return None
    beside = events.beside(memory)
    counts: Tally | None
    # Taken out: whoever else counts now begins anew.
    were, came, counts = beside.pop(_TALLY, ((), (), None))
    # Events come at the end, and retention takes some from anywhere: then none is at its place any more.
    same = bool(were) and len(known) == len(were) + len(came)
    same = same and known[0] is were[0] and known[len(were) - 1] is were[-1]
    if counts is None or not (same and _are(known[len(were) :], came)):
        counts = Tally()
        counts.add(known)
    counts.add(new)
    beside[_TALLY] = known, [(one.event_id, one.event_type) for one in new], counts
    return counts


def _are(some: Sequence[Event], came: Sequence[tuple[str | None, EventType]]) -> bool:
    """Whether they are, as many as they are, those that were to come. A message that is tried again may be taken for
    something else, and what it was taken for first is not kept."""
    for one, (name, kind) in zip(some, came, strict=True):
        if name is None or one.event_id != name or one.event_type != kind:
            return False
    return True


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
