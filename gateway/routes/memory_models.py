"""What the routes over memory take and answer."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from gateway.routes.lists import Page
from memory.episodes import Outcome
from memory.facts import ALIASES, FactType, Priority, Scope
from memory.procedures import ProcedureType
from processors.models import Band, EventType

Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"}, description="ISO 8601 in UTC")]
RecordId = Annotated[str, StringConstraints(min_length=1, max_length=512)]

MOST_IDS = 1000  # in one batch

MemoryType = StrEnum("MemoryType", {name.upper(): name for name in (*FactType, *ALIASES)})  # type: ignore[misc]
_ALSO_CALLED = {kind: name for name, kind in ALIASES.items()}


class Memory(BaseModel):
    """One statement that is known: of a person, of one of the tenant's agents, or of the tenant itself (then `user_id`
    is null). `content` is its text by another name, `fact_type` its type in the words `user_preference` and
    `world_knowledge`."""

    id: str
    user_id: str | None
    key: str
    value: Any
    text: str
    content: str
    type: FactType
    fact_type: str
    priority: Priority
    scope: Scope
    agent: str | None = None
    confidence: float
    times_confirmed: int
    times_contradicted: int
    created_at: Moment
    last_used_at: Moment
    source: str | None = None
    superseded_by: str | None = None
    pinned: bool = False

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "f_ddd8da9125bbe84fee00", "user_id": "line:U4af", "key": "size", "value": "M", "text": "size: M",
                "content": "size: M", "type": "preference", "fact_type": "user_preference", "priority": "medium",
                "scope": "user", "agent": None, "confidence": 1.0, "times_confirmed": 2, "times_contradicted": 0,
                "created_at": "2026-11-28T02:10:59.903Z", "last_used_at": "2026-11-28T02:10:59.903Z",
                "source": "555000111", "superseded_by": None, "pinned": False,
            }
        }
    )  # fmt: skip


def shown_memory(record: dict[str, Any]) -> dict[str, Any]:
    """A fact's record and `user_id`, as the API answers it."""
    kind = FactType(record["type"])
    return {
        "value": None,
        **record,
        "user_id": record["user_id"] or None,
        "content": record["text"],
        "fact_type": _ALSO_CALLED.get(kind, kind.value),
    }


class Stats(BaseModel):
    """Of what holds now; what has no member is left out."""

    total: int
    by_type: dict[str, int]
    by_priority: dict[str, int]
    by_scope: dict[str, int]

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "total": 3, "by_type": {"fact": 1, "preference": 2}, "by_priority": {"high": 1, "medium": 2},
                "by_scope": {"user": 3},
            }
        }
    )  # fmt: skip


class Mend(BaseModel):
    """What is to be changed of a memory: its text (or `content`, the same), its priority, whether it is `pinned` (then
    it never fades), or several of these."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"minProperties": 1})

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=10_000)] | None = None
    content: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=10_000)] | None = None
    priority: Priority | None = None
    pinned: bool | None = None

    @model_validator(mode="after")
    def _something(self) -> Mend:
        if (self.text, self.content, self.priority, self.pinned) == (None, None, None, None):
            raise ValueError("give a text, a priority, or pinned")
        if None not in (self.text, self.content) and self.text != self.content:
            raise ValueError("text and content are two names of one thing: give one")
        return self


class Deleted(BaseModel):
    """How many were deleted; one and what it had taken the place of count once."""

    deleted: int

    model_config = ConfigDict(json_schema_extra={"example": {"deleted": 2}})


class Batch(BaseModel):
    """The ids of what is to be deleted; those that are not there count for nothing. `user` says whose they are, which
    is needed where several persons have a record of one id."""

    model_config = ConfigDict(extra="forbid")

    ids: Annotated[list[RecordId], Field(max_length=MOST_IDS)]
    user: RecordId | None = None


class Feedback(BaseModel):
    rating: int
    comment: str = ""
    at: Moment


class Episode(BaseModel):
    """A session from its first message to its last. `duration` in seconds; `messages` and `tool_calls` are counts."""

    id: str
    user_id: str | None
    session_id: str
    agent: str
    conversation_id: str
    trigger: dict[str, Any]
    outcome: Outcome
    output: str
    error: str | None = None
    started_at: Moment
    ended_at: Moment
    duration: float
    feedback: Feedback | None = None
    summary: str
    understood: bool = True
    messages: int
    tool_calls: int

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "ep_5b1f0c2d3e4f5a6b7c8d", "user_id": "line:U4af", "session_id": "b7f1", "agent": "default",
                "conversation_id": "main", "trigger": {"input": "Where is my order?", "intent": "SUPPORT"},
                "outcome": "success", "output": "It left our shop this morning.", "error": None,
                "started_at": "2026-11-28T02:10:00Z", "ended_at": "2026-11-28T02:14:30Z", "duration": 270.0,
                "feedback": {"rating": 5, "comment": "", "at": "2026-11-28T02:15:00Z"},
                "summary": "asked where an order is", "understood": True, "messages": 4, "tool_calls": 1,
            }
        }
    )  # fmt: skip


class WholeEpisode(Episode):
    """With what was said, and the tools that were called, with their results."""

    conversation: list[dict[str, Any]]
    actions: list[dict[str, Any]]


class Procedure(BaseModel):
    """How something is done here. `content` is text for the model and never run; `average_duration` in seconds."""

    id: str
    name: str = ""
    trigger: dict[str, Any]
    type: ProcedureType
    content: str
    enabled: bool
    times_used: int
    times_succeeded: int
    success_rate: float | None = None
    average_duration: float | None = None
    source: str
    derived_from: str | None = None
    created_at: Moment
    last_used_at: Moment | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "p_0f2d6a", "name": "", "trigger": {"goal_contains": ["delivery"]}, "type": "prompt_template",
                "content": "ask for the postcode first", "enabled": True, "times_used": 8, "times_succeeded": 6,
                "success_rate": 0.75, "average_duration": 1.9, "source": "human", "derived_from": None,
                "created_at": "2026-11-01T03:00:00Z", "last_used_at": "2026-11-28T02:10:00Z",
            }
        }
    )  # fmt: skip


class MemoryUser(BaseModel):
    """A person over all channels. `identities` by their kind; `preferences` what holds, by key; `conversations` that
    ended and `messages` said in them; `merged` the ids that lead here, `merged_into` the one that this leads to."""

    id: str
    canonical_id: str
    identities: dict[str, str]
    display_name: str | None = None
    preferences: dict[str, Any]
    conversations: int
    messages: int
    facts: int
    episodes: int
    events: int
    first_seen_at: Moment | None = None
    last_seen_at: Moment | None = None
    merged: list[str]
    merged_into: str | None = None

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "line:U4af", "canonical_id": "line:U4af", "identities": {"line_id": "U4af"},
                "display_name": "Ann", "preferences": {"size": "M"}, "conversations": 3, "messages": 14, "facts": 5,
                "episodes": 3, "events": 9, "first_seen_at": "2026-11-01T03:00:00Z",
                "last_seen_at": "2026-11-28T02:10:00Z", "merged": ["telegram:12345"], "merged_into": None,
            }
        }
    )  # fmt: skip


class Event(BaseModel):
    """A classified, scored message. `payload` holds the message and what was found in it."""

    id: str | None
    user_id: str
    event_type: EventType
    importance_score: float
    importance: Band
    payload: dict[str, Any]
    timestamp: Moment

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "555000111", "user_id": "line:U4af", "event_type": "COMPLAINT", "importance_score": 0.9,
                "importance": "critical", "payload": {"original_message": "It came broken", "language": "en"},
                "timestamp": "2026-11-28T02:10:00Z",
            }
        }
    )  # fmt: skip


class EventPage(Page[Event]):
    """`per_day`, on the first page: how many there are on each day in the tenant's time zone."""

    per_day: dict[str, int] | None = None


class EventStats(BaseModel):
    """`per_day` in the tenant's time zone; days without any are left out."""

    total: int
    by_type: dict[str, int]
    per_day: dict[str, int]

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"total": 4, "by_type": {"INQUIRY": 3, "COMPLAINT": 1}, "per_day": {"2026-11-28": 4}}
        }
    )
