"""What a message means: its type, its importance, and what was found in it."""

from __future__ import annotations

from datetime import MAXYEAR, UTC, datetime
from enum import StrEnum
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator

_FIRST, _LAST = datetime(1, 1, 2, tzinfo=UTC), datetime(MAXYEAR, 12, 30, tzinfo=UTC)

Language = Literal["th", "en", "mixed"]


class EventType(StrEnum):
    """The eight kinds of message, independent of the shop's trade."""

    INQUIRY = "INQUIRY"
    FEEDBACK = "FEEDBACK"
    REQUEST = "REQUEST"
    COMPLAINT = "COMPLAINT"
    TRANSACTION = "TRANSACTION"
    SUPPORT = "SUPPORT"
    INFORMATION = "INFORMATION"
    GENERIC_EVENT = "GENERIC_EVENT"


class Band(StrEnum):
    """Bands of importance; see `band`."""

    MINIMAL = "minimal"
    LOW = "low"
    MODERATE = "moderate"
    IMPORTANT = "important"
    CRITICAL = "critical"


# By their class each of them takes a call.
_BANDS = ((0.25, Band.MINIMAL), (0.45, Band.LOW), (0.65, Band.MODERATE), (0.85, Band.IMPORTANT))
_HIGHEST = Band.CRITICAL


def band(score: float) -> Band:
    """The band of a score: below 0.25 minimal, 0.45 low, 0.65 moderate, 0.85 important, else critical."""
    for limit, name in _BANDS:
        if score < limit:
            return name
    return _HIGHEST


def floor(of: Band) -> float:
    """The least score of a band."""
    return {Band.MINIMAL: 0.0, Band.LOW: 0.25, Band.MODERATE: 0.45, Band.IMPORTANT: 0.65, Band.CRITICAL: 0.85}[of]


class MemoryEvent(BaseModel):
    """One classified, scored message.

    `payload` holds at least `original_message`, `language`, `classified_by` (`llm`, `local` or `rules`) and
    `reasoning`, and whatever was found in the text. `event_id` is the message's own id: the same message saved twice
    is one event.
    """

    model_config = ConfigDict(frozen=True)

    event_type: EventType
    payload: dict[str, Any] = Field(default_factory=dict)
    importance_score: float = Field(ge=0.0, le=1.0)
    timestamp: datetime = Field(default_factory=lambda: datetime.now(UTC))
    event_id: str | None = None

    @field_validator("timestamp")
    @classmethod
    def _aware(cls, value: datetime) -> datetime:
        return in_utc(value)

    @field_serializer("timestamp", when_used="json")
    def _z(self, value: datetime) -> str:
        return iso(value)

    @property
    def band(self) -> Band:
        return band(self.importance_score)

    @property
    def said(self) -> str:
        """The message itself."""
        return str(self.payload.get("original_message", ""))


_new, _set, _FIELDS = object.__new__, object.__setattr__, frozenset(MemoryEvent.model_fields)


def known_event(
    event_type: EventType, payload: dict[str, Any], importance: float, timestamp: datetime, event_id: str | None
) -> MemoryEvent:
    """What MemoryEvent(…) gives, in a third of the time: for what was decided here and needs no look."""
    event = _new(MemoryEvent)
    fields = {
        "event_type": event_type,
        "payload": payload,
        "importance_score": importance,
        "timestamp": in_utc(timestamp),
        "event_id": event_id,
    }
    _set(event, "__dict__", fields)
    _set(event, "__pydantic_fields_set__", set(_FIELDS))
    _set(event, "__pydantic_extra__", None)
    _set(event, "__pydantic_private__", None)
    return event


def in_utc(value: datetime) -> datetime:
    """A time without a zone is UTC (files of older versions and files written by hand). One on the calendar's first or
    last day ("for ever", "never") is told as one that every zone has."""
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    if not 1 < value.year < MAXYEAR:
        value = min(max(value, _FIRST), _LAST)
    return value.astimezone(UTC)


def iso(value: datetime) -> str:
    """ISO 8601 in UTC with `Z`, to the millisecond, or the second where that is exact."""
    raw = orjson.dumps(value if value.tzinfo is UTC else value.astimezone(UTC))  # a third of what isoformat takes
    return raw[1 : len('"2026-11-28T09:00:00.000' if value.microsecond else '"2026-11-28T09:00:00')].decode() + "Z"
