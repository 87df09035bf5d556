"""Points in a conversation to which it can go back: behind each answer, and behind words that got none. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from memory.keys import ConversationRef
from memory.models import Message, is_fresh_start


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One turn's end. `lines` are that turn's own; `before` counts the lines of earlier turns."""

    ref: ConversationRef
    lines: tuple[Message, ...]
    before: int

    @property
    def id(self) -> str:
        """Names the conversation and its point; only known ids of messages can be gone back to."""
        return encoded(self.ref, self.lines[-1].get("message_id") or "")

    @property
    def at(self) -> str:
        """ISO 8601, UTC."""
        return str(self.lines[-1].get("timestamp") or "")


def checkpoints(tenant: str, user: str, lines: Iterable[Mapping[str, Any]]) -> list[Checkpoint]:
    """Of everything that was said to or by a person, oldest first; the points of each conversation in order."""
    talks: dict[ConversationRef, list[Message]] = {}
    for line in lines:
        ref = ConversationRef(tenant, user, str(line.get("agent")), str(line.get("conversation")))
        message = cast(
            "Message", {name: value for name, value in line.items() if name not in ("agent", "conversation")}
        )
        if not is_fresh_start(message):
            talks.setdefault(ref, []).append(message)
    return [point for ref, said in talks.items() for point in _points(ref, once(said))]


def once(said: Sequence[Message]) -> list[Message]:
    """Each message once, where it first stood."""
    seen: set[str] = set()
    kept = []
    for message in said:
        name = message.get("message_id")
        if name is None or name not in seen:
            kept.append(message)
        if name is not None:
            seen.add(name)
    return kept


def _points(ref: ConversationRef, said: Sequence[Message]) -> list[Checkpoint]:
    points: list[Checkpoint] = []
    turn: list[Message] = []
    before = 0
    for at, message in enumerate(said):
        turn.append(message)
        ends = at + 1 == len(said) or (message["role"] == "bot" and said[at + 1]["role"] == "user")
        if ends and message.get("message_id"):
            points.append(Checkpoint(ref, tuple(turn), before))
            before, turn = at + 1, []
    return points


def encoded(ref: ConversationRef, message_id: str) -> str:
    """As hex: it stands in paths, where any other sign might mean something."""
    return orjson.dumps([ref.user, ref.agent, ref.conversation, message_id]).hex()


def decoded(tenant: str, checkpoint_id: str) -> tuple[ConversationRef, str] | None:
    """The conversation and the message's id; None for what is no checkpoint's id."""
    try:
        user, agent, conversation, message_id = orjson.loads(bytes.fromhex(checkpoint_id))
    except (ValueError, TypeError):
        return None
    if not all(isinstance(part, str) and part for part in (user, agent, conversation, message_id)):
        return None
    return ConversationRef(tenant, user, agent, conversation), message_id
