"""The ordinary update of Telegram, read in one step: a text in a talk of two. Nearly every update is one, and
`telegram.py`, which reads all that differs in anything, would say the same."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gateway.adapters.base import Received
from gateway.adapters.telegram_content import spoken
from gateway.messages import MAX_TEXT, InboundMessage

_Id = Annotated[int, Meta(gt=0, lt=2**53)]
_Name = Annotated[str, Meta(min_length=1, max_length=1024)]


class _Person(msgspec.Struct, forbid_unknown_fields=True):
    id: _Id
    is_bot: bool
    first_name: _Name
    last_name: _Name | None = None
    username: str | None = None
    language_code: Annotated[str, Meta(min_length=1, max_length=35)] | None = None
    is_premium: bool | None = None


class _Chat(msgspec.Struct, forbid_unknown_fields=True):
    id: _Id
    type: Literal["private"]
    first_name: str | None = None
    last_name: str | None = None
    username: str | None = None


class _Message(msgspec.Struct, forbid_unknown_fields=True, rename={"person": "from"}):
    message_id: _Id
    person: _Person
    chat: _Chat
    date: Annotated[int, Meta(gt=0, lt=10**11)]
    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]


class _Update(msgspec.Struct, forbid_unknown_fields=True):
    update_id: _Id
    message: _Message


_read = msgspec.json.Decoder(_Update).decode


def texts(body: bytes, tenant: str, channel: str, now: float) -> Received | None:
    """What it holds; None: it is no such update. `now` in seconds since 1970."""
    try:
        update = _read(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    message = update.message
    person, chat_id, text = message.person, str(message.chat.id), message.text
    if person.is_bot or text.startswith("/") or "\x00" in text:  # a command may be another bot's
        return None
    name = person.first_name if person.last_name is None else f"{person.first_name} {person.last_name}"
    said = InboundMessage(
        tenant=tenant,
        channel=channel,
        platform="telegram",
        event_id=str(update.update_id),
        user_id=f"telegram:{chat_id}",
        chat_id=chat_id,
        text=text,
        sender_name=spoken(name) or None,
        language_code=person.language_code,
        message_id=str(message.message_id),
        sent_at=float(message.date),
        received_at=now,
        extra={},
    )
    return Received((said,))
