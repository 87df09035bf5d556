"""What happened in a session, kept as a whole: pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator

from memory.message import Message
from processors.models import EventType, in_utc, iso

Outcome = Literal["success", "failure", "unknown"]


class Feedback(BaseModel):
    """What a person thought of it. `rating` 1 (bad) to 5 (good)."""

    model_config = ConfigDict(frozen=True, extra="allow")

    rating: int = Field(ge=1, le=5)
    comment: str = ""
    at: datetime

    @field_validator("at")
    @classmethod
    def _aware(cls, value: datetime) -> datetime:
        return in_utc(value)

    @field_serializer("at", when_used="json")
    def _z(self, value: datetime) -> str:
        return iso(value)


class Episode(BaseModel):
    """A session from its first message to its last. `duration` in seconds; `understood`: what it told of the person has
    gone into the facts, else it is read again, `tries` times so far."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    session_id: str
    agent: str = "default"
    conversation_id: str = "main"
    trigger: dict[str, Any] = Field(default_factory=dict)  # `input`, the first words; `intent` where it is known
    conversation: list[Message] = Field(default_factory=list)
    actions: list[dict[str, Any]] = Field(default_factory=list)  # tool calls with their results, in order
    outcome: Outcome = "unknown"
    output: str = ""  # the last answer
    error: str | None = None
    started_at: datetime
    ended_at: datetime
    duration: float = Field(ge=0.0)
    feedback: Feedback | None = None
    summary: str = ""
    understood: bool = True
    tries: int = 0
    origin: str | None = None  # whose it was before two persons' ids were merged

    @field_validator("started_at", "ended_at")
    @classmethod
    def _aware(cls, value: datetime) -> datetime:
        return in_utc(value)

    @field_serializer("started_at", "ended_at", when_used="json")
    def _z(self, value: datetime) -> str:
        return iso(value)

    @property
    def text(self) -> str:
        return self.summary or str(self.trigger.get("input", ""))


def made_of(
    session_id: str,
    created_at: datetime,
    messages: Sequence[Message],
    *,
    agent: str = "default",
    conversation_id: str = "main",
    last_intent: str | None = None,
    summary: str = "",
    understood: bool = True,
) -> Episode:
    """The same session gives the same id, so that ending it twice makes one episode. `messages` is never empty."""
    times = [time for message in messages if (time := moment(message)) is not None]
    start, end = min(times, default=created_at), max(times, default=created_at)
    first = next((message["message"] for message in messages if message["role"] == "user"), "")
    last = next((message["message"] for message in reversed(messages) if message["role"] == "bot"), "")
    actions = [action for message in messages for action in actions_of(message)]
    errors = [str(action["error"]) for action in actions if action.get("error")]
    unanswered = messages[-1]["role"] == "user"
    failed = unanswered or last_intent == EventType.COMPLAINT.value or (bool(errors) and len(errors) == len(actions))
    return Episode(
        id=_id(agent, conversation_id, session_id, iso(created_at)),
        session_id=session_id,
        agent=agent,
        conversation_id=conversation_id,
        trigger={"input": first, **({"intent": last_intent} if last_intent else {})},
        conversation=list(messages),
        actions=actions,
        outcome="failure" if failed else "success",
        output=last,
        error=errors[-1] if errors else "the last message had no answer" if unanswered else None,
        started_at=start,
        ended_at=end,
        duration=(end - start).total_seconds(),
        summary=summary,
        understood=understood,
    )


def actions_of(message: Message) -> list[dict[str, Any]]:
    about: Any = message.get("metadata")
    found = about.get("actions") if isinstance(about, Mapping) else None
    return [dict(one) for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def moment(message: Message) -> datetime | None:
    """When it was written; None where that is not known."""
    try:
        at = datetime.fromisoformat(message["timestamp"])
    except (KeyError, TypeError, ValueError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _id(*parts: str) -> str:
    raw = "\0".join(parts).encode("utf-8", "surrogatepass")
    return f"ep_{hashlib.sha256(raw).hexdigest()[:20]}"
