"""What a turn leaves behind: the lines of the history, and whose memory an event goes into. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from gateway.batch import AMENDS
from gateway.described import called, described
from gateway.inbox.base import event_of
from gateway.media import FILE, KINDS
from gateway.messages import RELAYED, InboundMessage, Kind
from gateway.outbox import Outbox
from memory.amend import SOURCES
from memory.keys import ConversationRef
from memory.models import Message
from processors.models import MemoryEvent, iso

_SAYS_NOTHING = RELAYED | AMENDS | {Kind.FOLLOW, Kind.UNFOLLOW}
_WORDLESS = KINDS | {Kind.OTHER}  # what we call such a thing is no word of the customer's


def said(messages: Sequence[InboundMessage], outbox: Outbox, now: datetime, staff_said: str | None) -> list[Message]:
    """The customer's lines and the answer's. Their `metadata` names them as the platform does, so that an edit, an
    unsend or a quote finds them, and in a group its writer."""
    lines = []
    for message in messages:
        if message.kind not in _SAYS_NOTHING and (words := described(message)):
            lines.append(_line(message, words))
    if outbox.answer.text and (outbox.delivered or outbox.over or outbox.promised):
        told: Message = {
            "role": "bot",
            "message": staff_said or outbox.answer.text,
            "timestamp": iso(now),
            "message_id": f"re:{event_of(messages[-1])}",
        }
        metadata: dict[str, Any] = {"by": "staff"} if staff_said else {}
        if outbox.answer.actions:
            metadata["actions"] = list(outbox.answer.actions)
        if outbox.answer.cut:
            metadata["cut"] = True
        if outbox.message_ids:
            metadata["platform_ids"] = list(outbox.message_ids)
        if metadata:
            told["metadata"] = metadata
        lines.append(told)
    return lines


def _line(message: InboundMessage, words: str) -> Message:
    line: Message = {
        "role": "user",
        "message": words,
        "timestamp": iso(datetime.fromtimestamp(message.received_at, UTC)),
        "message_id": event_of(message),
    }
    metadata: dict[str, Any] = {}
    if message.message_id is not None:
        metadata["platform_id"] = message.message_id
    if message.group:
        metadata["sender"] = message.sender_id
        metadata["sender_name"] = called(message)
    if before := message.extra.get("edited_from"):
        metadata["edited"] = [{"message": before, "until": line["timestamp"]}]
    if FILE in message.extra:
        metadata[FILE] = message.extra[FILE]
    if "forwarded" in message.extra:
        metadata["forwarded"] = message.extra["forwarded"]
    if metadata:
        line["metadata"] = metadata
    return line


def words(messages: Sequence[InboundMessage]) -> str:
    """What is to be understood and remembered of the customer: their own words, no forwarded ones, no command, no other
    person's contact, nothing that a group says among itself; of a picture its caption, of a recording what is said."""
    if len(messages) == 1 and (only := messages[0]).kind is Kind.TEXT and only.mentioned and not only.extra:
        return "" if only.text.startswith("/") else only.text  # nearly always
    own = [
        message
        for message in messages
        if message.kind not in _SAYS_NOTHING
        and message.kind is not Kind.CONTACT
        and message.mentioned
        and not message.text.startswith("/")
        and "forwarded" not in message.extra
    ]
    told = (message.text if message.kind in _WORDLESS else described(message) for message in own)
    return "\n".join(filter(None, told))


def owner(ref: ConversationRef, messages: Sequence[InboundMessage]) -> str | None:
    """In whose long-term memory it goes: in a group the member's own. None: nobody knows whose."""
    last = messages[-1]
    return last.sender_id if last.group else ref.user


def with_sources(event: MemoryEvent, messages: Sequence[InboundMessage]) -> MemoryEvent:
    """The event with the ids of all messages that went into it, so that taking one back finds it."""
    if len(messages) == 1:
        return event
    sources = [event_of(message) for message in messages]
    return event.model_copy(update={"payload": {**event.payload, SOURCES: sources}})
