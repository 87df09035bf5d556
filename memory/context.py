"""What is known at this point, put together for the model: pure."""

from __future__ import annotations

from typing import Any

from memory.long_term import events
from memory.models import LongTermMemory, Message, ShortTermMemory

IMPORTANT = 0.7  # the score from which an event is told to the model
IMPORTANT_COUNT = 5
_STEP = 8  # lines by which the beginning of what is told moves, at most; a fraction of `session._LET_GO`


def build(
    session: ShortTermMemory | None,
    lm: LongTermMemory | None,
    *,
    include_summary: bool = True,
    max_recent_messages: int = 10,
    unread: bool = False,
) -> dict[str, Any]:
    """The `ctx` of the API: with no session its fields are empty and `error` says so.

    `important_events` are dicts with the fields of the long-term file, oldest first. `unread`: for whoever changes
    nothing and tells few of these; they are the events themselves, and the messages are the session's own.
    """
    recently = shown if unread else recent
    told = events.important(lm, IMPORTANT, IMPORTANT_COUNT) if lm else []
    context: dict[str, Any] = {
        "recent_messages": recently(session, max_recent_messages) if session else [],
        "current_state": session.state if session else None,
        "session_variables": dict(session.variables) if session else {},
        "conversation_summary": session.summary if session and include_summary else None,
        "user_attributes": dict(lm.attributes) if lm else {},
        "history_summary": lm.history_summary if lm else "",
        "important_events": told if unread else events.plain(told),
    }
    if session is None:
        context["error"] = "there is no live session for this user"
    return context


def steady(session: ShortTermMemory, limit: int) -> int:
    """How many of the last `limit` messages to tell a model: up to a quarter less, so that the first of them stays the
    same for some turns, and with it the beginning of the prompt that a provider's cache holds. Every worker comes to
    the same."""
    lines = len(session.carried) + len(session.history)
    step = min(_STEP, limit // 6 * 2)
    if lines < limit or not step:
        return min(limit, lines)
    first = len(session.recent_ids) + lines - limit  # its number, of all that were said
    return limit - (-first % step)


def recent(session: ShortTermMemory, limit: int) -> list[Message]:
    """The last messages, those carried over from earlier sessions included, oldest first."""
    return [message.copy() for message in shown(session, limit)]


def shown(session: ShortTermMemory, limit: int) -> list[Message]:
    """The same messages themselves."""
    messages = [*session.carried, *session.history]
    return messages[-limit:] if limit > 0 else []
