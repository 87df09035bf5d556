"""Short-term and long-term memory as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator

from memory.episodes import Episode
from memory.facts import Fact
from memory.message import Message as Message
from memory.person import Person
from memory.procedures import Procedure
from processors.models import MemoryEvent, in_utc, iso

SCHEMA_VERSION = 1
_new, _set = object.__new__, object.__setattr__

State = Literal["awaiting_input", "answering", "human"]


def fresh_start(message_id: str) -> Message:
    """The line in a transcript that says: what was said before is not given back to later sessions."""
    return {"role": "bot", "message": "", "message_id": message_id, "metadata": {"fresh_start": True}}


def is_fresh_start(message: Message) -> bool:
    about: Any = message.get("metadata")  # from a file: of any kind
    return isinstance(about, dict) and about.get("fresh_start") is True


class ShortTermMemory(BaseModel):
    """A session: a conversation's stretch until `sm_ttl` after the last message written.

    `history` holds the session's own newest messages (2 × `max_turns`, 20 by default), oldest first.
    `carried` holds the last messages of earlier sessions, given back after expiry or a restart; they are part of the
    context for the model, not of `history`. `rev` counts writes: a save against an older `rev` is refused by the store.
    """

    model_config = ConfigDict(validate_assignment=False)

    rev: int = 0  # stays the first field: the stores read it from the first bytes of the JSON
    tenant_id: str
    user_id: str
    session_id: str
    agent: str = "default"
    conversation_id: str = "main"
    history: list[Message] = Field(default_factory=list)
    carried: list[Message] = Field(default_factory=list)
    recent_ids: list[str] = Field(default_factory=list)  # of messages that left the history: a repeat is still known
    summary: str = ""
    facts: list[Fact] = Field(default_factory=list)  # what holds in this session alone
    state: State = "awaiting_input"
    last_intent: str | None = None
    variables: dict[str, Any] = Field(default_factory=dict)
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    expires_at: datetime | None = None  # None: never by idleness
    schema_version: int = SCHEMA_VERSION

    @field_serializer("created_at", "expires_at", when_used="json")
    def _z(self, value: datetime | None) -> str | None:
        return iso(value) if value else None

    @field_validator("created_at", "expires_at")
    @classmethod
    def _aware(cls, value: datetime | None) -> datetime | None:
        return in_utc(value) if value is not None else None

    def expired(self, now: datetime) -> bool:
        return self.expires_at is not None and now >= self.expires_at

    def changed(self, fields: Mapping[str, Any]) -> ShortTermMemory:
        """What `model_copy(update=fields)` gives, in a fourth of the time: a turn makes several."""
        made = _new(ShortTermMemory)
        _set(made, "__dict__", {**self.__dict__, **fields})
        _set(made, "__pydantic_fields_set__", {*self.__pydantic_fields_set__, *fields})
        _set(made, "__pydantic_extra__", None)
        _set(made, "__pydantic_private__", None)
        return made


class LongTermMemory(BaseModel):
    """All that is known of a person, or under the user id "" what belongs to the tenant itself: its agents' and its own
    facts, its procedures. `attributes` is the view of the user's facts by key. Unknown fields of newer versions are
    kept as they are.
    """

    model_config = ConfigDict(extra="allow")

    tenant_id: str
    user_id: str
    events: list[MemoryEvent] = Field(default_factory=list)
    attributes: dict[str, Any] = Field(default_factory=dict)
    history_summary: str = ""
    facts: list[Fact] = Field(default_factory=list)
    episodes: list[Episode] = Field(default_factory=list)
    person: Person | None = None
    procedures: list[Procedure] = Field(default_factory=list)
    schema_version: int = SCHEMA_VERSION


class Changes(msgspec.Struct, frozen=True):
    """What one step adds to a memory. What has an id that is known takes that one's place (events: is dropped)."""

    events: Sequence[MemoryEvent] = ()
    facts: Sequence[Fact] = ()
    episodes: Sequence[Episode] = ()
    procedures: Sequence[Procedure] = ()
    person: Person | None = None
    history_summary: str | None = None
