"""The ordinary webhook of LINE, read in one step: texts of talks of two. Nearly every webhook is one, and `line.py`,
which reads all that differs in anything, would say the same."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gateway.adapters.base import Received
from gateway.messages import MAX_TEXT, InboundMessage

DUMMY_TOKENS = frozenset(
    ("0" * 32, "f" * 32)
)  # of what the console's "Verify" used to send: nobody waits for an answer
ID = re.compile(r"[A-Za-z0-9_-]{1,128}")

_Name = Annotated[str, Meta(min_length=1, max_length=128)]
_Token = Annotated[str, Meta(min_length=1, max_length=1024)]


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text"]
    id: _Token
    text: Annotated[str, Meta(max_length=MAX_TEXT)]
    quoteToken: _Token | None = None
    markAsReadToken: str | None = None


class _Source(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["user"]
    userId: _Name


class _Delivery(msgspec.Struct, forbid_unknown_fields=True):
    isRedelivery: bool


class _Event(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["message"]
    mode: Literal["active"]
    message: _Text
    source: _Source
    webhookEventId: _Name
    timestamp: Annotated[int, Meta(gt=0, lt=10**14)]  # milliseconds
    deliveryContext: _Delivery
    replyToken: _Token


class _Webhook(msgspec.Struct, forbid_unknown_fields=True):
    destination: _Token
    events: list[_Event]


_read = msgspec.json.Decoder(_Webhook).decode


def texts(body: bytes, tenant: str, channel: str, now: float) -> Received | None:
    """What it holds; None: it is no such webhook. `now` in seconds since 1970."""
    try:
        webhook = _read(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    messages = []
    for event in webhook.events:
        content, person = event.message, event.source.userId
        if event.replyToken in DUMMY_TOKENS or "\x00" in content.text or not ID.fullmatch(person):
            return None
        messages.append(
            InboundMessage(
                tenant=tenant,
                channel=channel,
                platform="line",
                event_id=event.webhookEventId,
                user_id=f"line:{person}",
                chat_id=person,
                text=content.text,
                message_id=content.id,
                sent_at=event.timestamp / 1000,
                received_at=now,
                reply_token=event.replyToken,
                quote_token=content.quoteToken,
                redelivered=event.deliveryContext.isRedelivery,
                extra={},
            )
        )
    return Received(tuple(messages), destination=webhook.destination)
