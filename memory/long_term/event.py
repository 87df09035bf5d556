"""An event of which only the frame was read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import MAXYEAR, UTC, datetime
from typing import Annotated, Any
from zlib import crc32

import msgspec
import orjson

from memory.long_term.frozen import frozen
from memory.recall.entry import Frames
from processors.models import EventType, MemoryEvent, iso

STRICT = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_SUBCLASS
_FIELDS = frozenset(("event_type", "payload", "importance_score", "timestamp", "event_id"))


class Event(msgspec.Struct, frozen=True, gc=False):
    """An event of which only the frame was read. Stricter than MemoryEvent: what is one of these is one of those."""

    event_type: EventType
    importance_score: Annotated[float, msgspec.Meta(ge=0, le=1)]
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)]
    payload: msgspec.Raw = msgspec.Raw(b"{}")
    event_id: str | None = None

    # What `memory.recall.entry.Findable` asks of it.

    @property
    def id(self) -> str:
        return self.event_id or ""

    @property
    def kind(self) -> str:
        return "event"

    @property
    def text(self) -> str:
        return dated(self.timestamp, self.found_by)

    @property
    def found_by(self) -> str:
        said = _said.decode(self.payload).original_message
        return said if isinstance(said, str) else ""

    @property
    def weight(self) -> float:
        return self.importance_score

    @property
    def at(self) -> datetime:
        return self.timestamp

    @property
    def by(self) -> str:
        return ""

    @property
    def mark(self) -> int:
        return crc32(self.payload)

    @staticmethod
    def frames(some: Sequence[Event]) -> Frames:
        """See `memory.recall.entry.frames`."""
        return Frames(
            [one.event_id or "" for one in some],
            [crc32(one.payload) for one in some],
            [one.importance_score for one in some],
            [one.timestamp.timestamp() for one in some],
        )

    def plain(self) -> dict[str, Any]:
        """The fields of the long-term file."""
        out = {
            "event_type": str(self.event_type),
            "payload": _payload(self.payload),
            "importance_score": self.importance_score,
            "timestamp": iso(self.timestamp),
        }
        return out if self.event_id is None else {**out, "event_id": self.event_id}

    def whole(self) -> MemoryEvent:
        return MemoryEvent.model_construct(
            _fields_set=set(_FIELDS),
            event_type=self.event_type,
            payload=frozen(_payload(self.payload)),
            importance_score=self.importance_score,
            timestamp=self.timestamp.astimezone(UTC),
            event_id=self.event_id,
        )

    @property
    def said(self) -> str:
        """As a MemoryEvent's."""
        return str(_said.decode(self.payload).original_message)


def written(event: MemoryEvent) -> tuple[dict[str, Any], Event] | None:
    """With the fields of the long-term file, the payload as JSON, and as whoever reads that gets it. None where it
    takes the reading to tell: the payload holds more than JSON does, or a reader may find no event in it."""
    kind, score, at, name = event.event_type, event.importance_score, event.timestamp, event.event_id
    if kind.__class__ is not EventType or score.__class__ is not float or not 0 <= score <= 1:
        return None
    if at.tzinfo is not UTC or not 1 < at.year < MAXYEAR:
        return None
    try:
        payload = orjson.dumps(event.payload, option=STRICT)
    except TypeError:
        return None
    fields = {
        "event_type": str(kind),
        "payload": orjson.Fragment(payload),
        "importance_score": score,
        "timestamp": iso(at),
    }
    if name is not None:
        fields["event_id"] = name
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)  # as `iso` tells it
    # Copied: orjson's bytes hold on to all that was set aside for them.
    return fields, Event(kind, score, at, msgspec.Raw(bytes(memoryview(payload))), name)


class _Said(msgspec.Struct):
    original_message: Any = ""


_said = msgspec.json.Decoder(_Said)


def _nothing(name: str) -> None:
    return None


def _number(text: str) -> Any:
    if math.isinf(float(text)):
        return text
    return int(text) if text.lstrip("-").isdigit() else float(text)


# What JSON says, also where orjson refuses: what is no number is nothing, and one that no double holds is text.
LOOSE = json.JSONDecoder(parse_constant=_nothing, parse_int=_number, parse_float=_number)


def _payload(raw: msgspec.Raw) -> Any:
    try:
        return orjson.loads(memoryview(raw))
    except ValueError:  # only its numbers were not looked at when it was passed over
        return LOOSE.decode(bytes(raw).decode())


def dated(at: datetime, said: str) -> str:
    """As it is told: behind its day."""
    return f"{(at if at.tzinfo is UTC else at.astimezone(UTC)).isoformat()[:10]} {said}"
