"""A person's events as they stand in the file: told apart, put in order and counted without making each of them, which
takes ten times as long. A turn needs a handful of them as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import MAXYEAR, datetime, timedelta
from operator import attrgetter, le
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import orjson
from pydantic import BaseModel, PrivateAttr

from memory.long_term.event import Event
from memory.long_term.many import Many, digest, digests, holds, newer_behind
from memory.models import LongTermMemory
from memory.retention import Retention, keep
from processors.models import MemoryEvent

M = TypeVar("M", bound=BaseModel)

MANY = 64  # from so many on, what a turn asks of all of them is told without going through them; see Many
_FIRST = 50  # go first when more come than are kept; where they are not the oldest, each time others would have to

_FRAME = ("at", "user_id")  # what says of a line whose it is
_OBJECT = ord("{")
_events = msgspec.json.Decoder(list[Event])
_document = msgspec.json.Decoder(dict[str, msgspec.Raw])
_set = object.__setattr__
_when = attrgetter("timestamp")


def apart(raw: bytes, *, spelled: bool = False) -> tuple[dict[str, Any], list[Event]] | None:
    """A file's values without the events, and the events; None where it takes a closer look to tell what it holds.
    `spelled`: it is known to be UTF-8, which takes a third of it to tell.

    Events hold on to what they were read from, so that a file's indentation goes first, a quarter of it, and so does
    what msgspec sets aside beyond its end. A payload is then byte by byte what it was before it was written, and so
    its `mark` is the same."""
    try:
        raw = bytes(memoryview(msgspec.json.format(raw, indent=-1)))
        if not spelled:
            raw.decode("utf-8")  # what is passed over is not looked at that closely
        parts = _document.decode(raw)
        found = read(parts.pop("events"))
        return (
            None if found is None else ({name: orjson.loads(memoryview(value)) for name, value in parts.items()}, found)
        )
    except (msgspec.MsgspecError, KeyError, ValueError, RecursionError):
        return None


def of_line(raw: bytes) -> tuple[dict[str, Any], list[Event]] | None:
    """`apart` of a line that we are about to write. Copied: events hold on to what they were read from, and orjson's
    bytes to all that was set aside for them, eight kilobytes for one event."""
    parts = _document.decode(raw)
    found: list[Event] | None = []
    if "events" in parts:
        found = read(bytes(memoryview(parts.pop("events"))))
    if found is None:
        return None
    return {name: orjson.loads(memoryview(value)) for name, value in parts.items() if name not in _FRAME}, found


def read(raw: bytes | msgspec.Raw) -> list[Event] | None:
    """Of a JSON list; None where not all are plainly events."""
    try:
        found = _events.decode(raw)
    except msgspec.MsgspecError:
        return None
    if not found:
        return found
    if len(found) == 1:  # each turn's
        one = found[0]
        return found if memoryview(one.payload)[0] == _OBJECT and 1 < one.timestamp.year < MAXYEAR else None
    begin = {memoryview(one.payload)[0] for one in found}
    times = list(map(_when, found))
    named = [name for one in found if (name := one.event_id)]
    plainly = begin == {_OBJECT} and min(times).year > 1 and max(times).year < MAXYEAR
    return found if plainly and len(set(named)) == len(named) else None


class InOrder(list[Event]):
    """Events of which none is older than the one before it, as nearly everybody's are. Never changed."""

    __slots__ = ("_ids",)

    def __init__(self, known: Sequence[Event]) -> None:
        super().__init__(known)
        self._ids = digests(known)

    def knows(self, event_id: str | None) -> bool:
        """By what lies together: of the events themselves none is touched for it."""
        return event_id is not None and holds(self._ids, digest(event_id))

    def grown(self, new: Sequence[Event], now: datetime, rules: Retention) -> Sequence[Event] | None:
        """With one that is the newest and not known yet, where nothing has to go for it; else None."""
        if len(new) != 1 or not self or len(self) + 1 >= MANY or len(self) >= (rules.max_events or MANY):
            return None
        one, named = new[0], digests(new)
        if one.timestamp < self[-1].timestamp or (one.event_id is not None and holds(self._ids, named)):
            return None
        if rules.days and self[0].timestamp < now - timedelta(days=rules.days):
            return None
        out = InOrder.__new__(InOrder)
        out.extend(self)
        out.append(one)
        out._ids = self._ids + named
        return out

    def important(self, least: float, most: int) -> list[Event]:
        """The newest of at least that score."""
        found: list[Event] = []
        for one in reversed(self):
            if one.importance_score >= least:
                found.append(one)
                if len(found) == most:
                    break
        return found[::-1]


def in_order(events: Sequence[Event]) -> bool:
    times = list(map(_when, events))
    return all(map(le, times, times[1:]))


class Unread(LongTermMemory):
    """A memory whose events are made when somebody asks for all of them."""

    _told: Sequence[Event] = PrivateAttr(default=())
    _beside: dict[str, Any] = PrivateAttr(default_factory=dict)  # one for all that were copied of each other

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name == "events" and "events" not in self.__dict__:
                self.__dict__["events"] = [one.whole() for one in self._told]
                return self.__dict__["events"]
            return super().__getattr__(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LongTermMemory) and _plain(self) == _plain(other)

    def __iter__(self) -> Iterator[tuple[str, Any]]:  # type: ignore[override]
        return iter(_plain(self))

    def model_dump(self, **how: Any) -> dict[str, Any]:
        return _plain(self).model_dump(**how)

    def model_dump_json(self, **how: Any) -> str:
        return _plain(self).model_dump_json(**how)


def with_events(
    memory: LongTermMemory, told: Sequence[Event], update: Mapping[str, Any] | None = None
) -> LongTermMemory:
    """The memory with these in the place of its own; `update`: other fields as well."""
    if type(memory) is Unread and "events" not in memory.__dict__:
        out = copied(memory, update or {})
        out.__pydantic_private__["_told"] = told  # type: ignore[index]
        return out
    fields = {**memory.__dict__, **(update or {})}
    fields.pop("events", None)
    out = Unread.__new__(Unread)  # `model_construct` asks for defaults, of which it needs none
    _set(out, "__dict__", fields)
    _set(out, "__pydantic_fields_set__", set(memory.__pydantic_fields_set__))
    _set(out, "__pydantic_extra__", memory.__pydantic_extra__)
    _set(out, "__pydantic_private__", {"_told": told, "_beside": {}})
    return out


def copied(memory: M, fields: Mapping[str, Any], strange: Mapping[str, Any] | None = None) -> M:
    """`model_copy` with these fields, and with `strange` among those that are not ours, for less."""
    out = memory.__class__.__new__(memory.__class__)
    private = memory.__pydantic_private__
    _set(out, "__dict__", {**memory.__dict__, **fields})
    _set(out, "__pydantic_fields_set__", {*memory.__pydantic_fields_set__, *fields, *(strange or ())})
    _set(out, "__pydantic_extra__", {**(memory.__pydantic_extra__ or {}), **(strange or {})})
    _set(out, "__pydantic_private__", None if private is None else dict(private))
    return out


def lent(memory: M) -> M:
    """For whoever looks at it for a moment and changes nothing: another one with the same values. What is made when it
    is asked for is made in this one alone."""
    out = memory.__class__.__new__(memory.__class__)
    _set(out, "__dict__", memory.__dict__.copy())
    for name in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        _set(out, name, getattr(memory, name))
    return out


def told(memory: LongTermMemory) -> Sequence[Event] | None:
    """None: they were made, and may have been changed since. Past pydantic's way to private fields, which takes ten
    times as long."""
    if type(memory) is not Unread or "events" in memory.__dict__:
        return None
    own: dict[str, Any] = memory.__pydantic_private__  # type: ignore[assignment]
    return own["_told"]  # type: ignore[no-any-return]


def beside(memory: LongTermMemory) -> dict[str, Any]:
    """What was worked out of the events that are `told`, for whoever makes sure that it is of the same ones."""
    found: dict[str, Any] = (memory.__pydantic_private__ or {})["_beside"]
    return found


def knows(memory: LongTermMemory) -> Callable[[str | None], bool]:
    """Tells whether an event with this id is among them."""
    events = told(memory)
    if type(events) is Many or type(events) is InOrder:
        return events.knows
    ids = {one.event_id for one in (memory.events if events is None else events) if one.event_id is not None}
    return ids.__contains__


def count(memory: LongTermMemory) -> int:
    events = told(memory)
    return len(memory.events if events is None else events)


def newest(memory: LongTermMemory, most: int) -> Sequence[Event | MemoryEvent]:
    """The last ones, as they come."""
    events = told(memory)
    if type(events) is Many:
        return events.newest(most)
    return (memory.events if events is None else events)[-most:] if most > 0 else []


def important(memory: LongTermMemory, least: float, most: int) -> Sequence[Event | MemoryEvent]:
    """The newest of at least that score."""
    events = told(memory)
    if type(events) is Many or type(events) is InOrder:
        return events.important(least, most)
    some: Sequence[Event | MemoryEvent] = memory.events if events is None else events
    return sorted([one for one in some if one.importance_score >= least], key=_when)[-most:]


def plain(some: Sequence[Event | MemoryEvent]) -> list[dict[str, Any]]:
    """With the fields of the long-term file."""
    return [one.plain() if isinstance(one, Event) else one.model_dump(mode="json", exclude_none=True) for one in some]


def longer(known: Sequence[Event], new: Sequence[Event], now: datetime, rules: Retention) -> Sequence[Event]:
    """With those of `new` that it does not know, and without what retention takes."""
    if type(known) is Many:
        added, ids = [], set()
        for one in new:
            if one.event_id is None or not (one.event_id in ids or known.knows(one.event_id)):
                ids.add(one.event_id)
                added.append(one)
        if (out := known.grown(added, now, rules)) is not None:
            return out
        known, new = list(known), added
    if type(known) is InOrder and (grown := known.grown(new, now, rules)) is not None:
        return grown
    held = {one.event_id for one in known}
    out_of_order = list(known)
    for one in new:
        if one.event_id is None or one.event_id not in held:
            held.add(one.event_id)
            out_of_order.append(one)
    kept = keep(out_of_order, _when, now, rules)
    if len(kept) < MANY:
        return InOrder(kept) if in_order(kept) else kept
    times = [one.timestamp.timestamp() for one in kept]
    return Many(kept, times) if newer_behind(times, _FIRST) else kept


def _plain(memory: LongTermMemory) -> LongTermMemory:
    if not isinstance(memory, Unread):
        return memory
    values = {name: getattr(memory, name) for name in LongTermMemory.model_fields}
    out = LongTermMemory.model_construct(_fields_set=set(memory.model_fields_set), **values)
    object.__setattr__(out, "__pydantic_extra__", memory.__pydantic_extra__)
    return out
