"""What the server answers. Moments are ISO 8601 in UTC. Fields of newer servers are passed over."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct

Item = TypeVar("Item")


class Page(Struct, Generic[Item], frozen=True):
    """`total` counts all pages; `per_day` is for events alone, on their first page."""

    items: list[Item]
    total: int
    next_cursor: str | None = None
    per_day: dict[str, int] | None = None


class Reply(Struct, frozen=True):
    """`model` and `provider` are None where no language model was asked."""

    reply: str
    conversation_id: str
    model: str | None = None
    provider: str | None = None


class Usage(Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Piece(Struct, frozen=True):
    """More of an answer. `text` goes behind what was there, or in place of it with `replace`; `whole` is all there is
    by now. The last piece has the `usage`, and no text."""

    text: str
    whole: str
    conversation_id: str
    replace: bool = False
    usage: Usage | None = None


class Happening(Struct, frozen=True):
    """`kind`: message, event, memory, takeover; `ready` whenever the connection was made, also anew: what happened
    before is not told."""

    kind: str
    data: dict[str, Any]


class Health(Struct, frozen=True):
    """`status`: ok; degraded, while messages can be taken; down."""

    status: str


class Message(Struct, frozen=True, rename="camel"):
    """`message_type`: USER or ASSISTANT."""

    message_type: str
    content: str
    timestamp: str
    metadata: dict[str, Any]


class Conversation(Struct, frozen=True, rename="camel"):
    conversation_id: str
    memory_name: str
    create_time: str
    messages: list[Message]


class Removed(Struct, frozen=True):
    """How many conversations, messages and sessions."""

    deleted: int
    messages: int
    sessions: int


class Deleted(Struct, frozen=True):
    deleted: int


class Memory(Struct, frozen=True):
    """One statement that is known: of a person, or with no `user_id` of the tenant or its agent. `etag` is there where
    one was asked for by its id."""

    id: str
    key: str
    text: str
    type: str
    priority: str
    scope: str
    confidence: float
    created_at: str
    last_used_at: str
    user_id: str | None = None
    value: Any = None
    agent: str | None = None
    times_confirmed: int = 0
    times_contradicted: int = 0
    source: str | None = None
    superseded_by: str | None = None
    pinned: bool = False
    etag: str = ""


class Stats(Struct, frozen=True):
    total: int
    by_type: dict[str, int]
    by_priority: dict[str, int]
    by_scope: dict[str, int]


class Export(Struct, frozen=True):
    tenant_id: str
    exported_at: str
    items: list[Memory]
    episodes: list[dict[str, Any]]
    procedures: list[dict[str, Any]]


class Episode(Struct, frozen=True):
    """A session that ended. `duration` in seconds; `messages` and `tool_calls` are counts."""

    id: str
    session_id: str
    agent: str
    conversation_id: str
    trigger: dict[str, Any]
    outcome: str
    output: str
    started_at: str
    ended_at: str
    duration: float
    summary: str
    messages: int
    tool_calls: int
    user_id: str | None = None
    error: str | None = None
    feedback: dict[str, Any] | None = None


class WholeEpisode(Episode, frozen=True, kw_only=True):
    conversation: list[dict[str, Any]]
    actions: list[dict[str, Any]]


class Procedure(Struct, frozen=True):
    """`average_duration` in seconds."""

    id: str
    trigger: dict[str, Any]
    type: str
    content: str
    enabled: bool
    times_used: int
    times_succeeded: int
    source: str
    created_at: str
    name: str = ""
    success_rate: float | None = None
    average_duration: float | None = None
    derived_from: str | None = None
    last_used_at: str | None = None


class User(Struct, frozen=True):
    """A person over all channels. `merged`: the ids that lead here; `merged_into`: the one that this leads to."""

    id: str
    canonical_id: str
    identities: dict[str, str]
    preferences: dict[str, Any]
    conversations: int
    messages: int
    facts: int
    episodes: int
    events: int
    merged: list[str]
    display_name: str | None = None
    first_seen_at: str | None = None
    last_seen_at: str | None = None
    merged_into: str | None = None


class Event(Struct, frozen=True):
    """What a message meant. `importance` is a band, `importance_score` 0 to 1."""

    user_id: str
    event_type: str
    importance_score: float
    importance: str
    payload: dict[str, Any]
    timestamp: str
    id: str | None = None


class EventStats(Struct, frozen=True):
    """`per_day` in the tenant's time zone."""

    total: int
    by_type: dict[str, int]
    per_day: dict[str, int]


class Checkpoint(Struct, frozen=True):
    """Where a conversation stood behind one turn, when `messages` had been said."""

    id: str
    user_id: str
    agent: str
    conversation_id: str
    created_at: str
    messages: int
    said: str
    answer: str


class Line(Struct, frozen=True):
    role: str
    message: str
    timestamp: str
    metadata: dict[str, Any]
    message_id: str | None = None


class WholeCheckpoint(Checkpoint, frozen=True):
    history: list[Line]


class Resumed(Struct, frozen=True):
    conversation_id: str
    messages: int
