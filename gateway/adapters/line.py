"""LINE, the receiving half: verifies a webhook and reads its events. The sending half is in `line_sender.py`.

Whatever LINE may add, drop or rename, a person's words get through: only what is needed is read, and an event that
makes no sense is counted and leaves its neighbours alone.
"""

from __future__ import annotations

import base64
import hmac
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

from config.tenants import LineChannel, Tenant
from gateway import kinds
from gateway.adapters.base import Received
from gateway.adapters.line_texts import DUMMY_TOKENS, ID, texts
from gateway.adapters.parsing import (
    Object,
    derived_id,
    integer,
    known,
    load_json,
    moment,
    obj,
    objects,
    piece,
    shorten,
    string,
    without,
)
from gateway.errors import BadSignature
from gateway.messages import InboundMessage, Kind

SIGNATURE_HEADER = "x-line-signature"

_EXTRA = (
    ("packageId", "package_id"),
    ("stickerId", "sticker_id"),
    ("fileName", "file_name"),
    ("fileSize", "file_size"),
    ("title", "title"),
    ("address", "address"),
    ("latitude", "latitude"),
    ("longitude", "longitude"),
    ("quotedMessageId", "quoted_message_id"),
)
_BLOCK = 64  # bytes that SHA-256 takes at once
_INNER, _OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))
_EXTRA_NAMES = frozenset(name for name, _ in _EXTRA)


class LineReceiver:
    """Verifies and parses LINE's webhooks. It knows no state: one serves all tenants."""

    platform = "line"

    def receive(self, tenant: Tenant, channel: str, body: bytes, headers: Mapping[str, str], now: float) -> Received:
        """As the Receiver says; `channel` is one of the tenant's LINE channels."""
        settings = tenant.channels[channel]
        if not isinstance(settings, LineChannel):
            raise BadSignature("The channel is not on LINE.")
        _verify(settings.channel_secret.get_secret_value(), body, headers.get(SIGNATURE_HEADER))
        return texts(body, tenant.id, channel, now) or read(body, tenant.id, channel, now)


def read(body: bytes, tenant: str, channel: str, now: float) -> Received:
    """What a webhook holds that is known to be LINE's. Raises NotJson."""
    payload = load_json(body)
    if not isinstance(payload, dict):
        return Received((), {"unknown": 1})
    destination = string(payload, "destination")
    messages: list[InboundMessage] = []
    passed_over: Counter[str] = Counter()
    events = payload.get("events")
    for event in events if isinstance(events, list) else ():
        found = _read(event, destination, tenant, channel, now) if isinstance(event, dict) else "unknown"
        if isinstance(found, str):
            passed_over[found] += 1
        else:
            messages.append(found)
    return Received(tuple(messages), passed_over, destination)


def signed(secret: str, body: bytes) -> bytes:
    """HMAC-SHA256. The library would look up its algorithm and make a key of the secret each time, which takes longer
    than a webhook's bytes."""
    inner, outer = _keyed(secret)
    inside, outside = inner.copy(), outer.copy()
    inside.update(body)
    outside.update(inside.digest())
    digest: bytes = outside.digest()
    return digest


@lru_cache(4096)
def _keyed(secret: str) -> tuple[Any, Any]:
    key = secret.encode()
    key = (key if len(key) <= _BLOCK else sha256(key).digest()).ljust(_BLOCK, b"\0")
    return sha256(key.translate(_INNER)), sha256(key.translate(_OUTER))


def _verify(secret: str, body: bytes, signature: str | None) -> None:
    if not secret or not signature:
        raise BadSignature("The signature is missing.")
    right = base64.b64encode(signed(secret, body))
    if not hmac.compare_digest(right, signature.encode("utf-8", "replace")):
        raise BadSignature("The signature is wrong.")


def _read(event: Object, destination: str | None, tenant: str, channel: str, now: float) -> InboundMessage | str:
    """The event as a message, or the name under which it is counted and passed over."""
    type_ = event.get("type")
    content = obj(event, "message")
    if type_ == "message" or (not isinstance(type_, str) and content):
        kind = None
    else:
        kind = kinds.LINE_EVENTS.get(type_) if isinstance(type_, str) else None
        if kind is None:
            return type_ if isinstance(type_, str) and type_ in kinds.LINE_COUNTED else "unknown"
    if event.get("mode") == "standby" and kind not in (Kind.UNFOLLOW, Kind.UNSEND):
        return "standby"  # another module owns the chat: we don't answer
    reply_token = string(event, "replyToken")
    if reply_token in DUMMY_TOKENS:
        return "verify"
    chat = _chat(obj(event, "source"))
    if chat is None:
        return "no_source"
    user_id, chat_id, sender_id = chat

    extra: dict[str, Any] = {}
    text, mentioned = "", True
    message_id = string(content, "id")
    if kind is None or kind is Kind.EDITED:
        text = _text(content)
        of = _kind(content, text)
        extra = _extra(content, of)
        if kind is Kind.EDITED:
            extra["kind"] = str(of)
        kind = kind or of
        if sender_id is not user_id:
            text, mentioned = _mention(text, content, destination)
    elif kind is Kind.POSTBACK:
        postback = obj(event, "postback")
        text = _text(postback, "data")
        params = obj(postback, "params")
        if "newRichMenuAliasId" in params:
            return "richMenuSwitch"
        if picked := {name: value for name in ("date", "time", "datetime") if (value := string(params, name))}:
            extra["params"] = picked
    elif kind is Kind.UNSEND:
        message_id = string(obj(event, "unsend"), "messageId")
    elif obj(event, "follow").get("isUnblocked") is True:
        extra["unblocked"] = True

    return InboundMessage(
        tenant=tenant,
        channel=channel,
        platform="line",
        event_id=string(event, "webhookEventId", 128) or derived_id(event, without="deliveryContext"),
        user_id=user_id,
        chat_id=chat_id,
        kind=kind,
        text=shorten(text, extra),
        sender_id=None if sender_id is user_id else sender_id,
        message_id=message_id,
        sent_at=moment(event, "timestamp", 1000, now),
        received_at=now,
        reply_token=reply_token,
        quote_token=string(content, "quoteToken"),
        redelivered=obj(event, "deliveryContext").get("isRedelivery") is True,
        mentioned=mentioned,
        extra=extra,
    )


def _chat(source: Object) -> tuple[str, str, str | None] | None:
    """Whose talk it is, where the answer goes, who wrote. In a talk of two the first and the last are one object."""
    person = _id(source, "userId")
    group = _id(source, "groupId") or _id(source, "roomId")
    if group is not None:
        return f"line:group:{group}", group, f"line:{person}" if person else None
    if person is None or source.get("type") in ("group", "room"):
        return None  # what was said in a group isn't answered in private
    user_id = f"line:{person}"
    return user_id, person, user_id


def _id(source: Object, key: str) -> str | None:
    value = source.get(key)
    return value if isinstance(value, str) and ID.fullmatch(value) else None


def _text(parent: Object, key: str = "text") -> str:
    value = parent.get(key)
    return value if isinstance(value, str) else ""


def _kind(content: Object, text: str) -> Kind:
    type_ = content.get("type")
    if isinstance(type_, str):
        return kinds.LINE_MESSAGES.get(type_, Kind.OTHER)
    return Kind.TEXT if text else Kind.OTHER


def _extra(content: Object, kind: Kind) -> dict[str, Any]:
    extra = known(content, _EXTRA) if not _EXTRA_NAMES.isdisjoint(content) else {}
    if kind is Kind.TEXT:
        return extra
    if keywords := content.get("keywords"):
        extra["keywords"] = [word for word in keywords if isinstance(word, str)] if isinstance(keywords, list) else []
    if (milliseconds := integer(content, "duration")) is not None:
        extra["duration"] = milliseconds / 1000
    provider = obj(content, "contentProvider")
    if provider.get("type") == "external" and (url := string(provider, "originalContentUrl", 2000)):
        extra["url"] = url
    album = obj(content, "imageSet")
    if (album_id := string(album, "id")) is not None:
        extra["album"] = album_id
        extra |= known(album, (("index", "album_index"), ("total", "album_total")))
    return extra


def _mention(text: str, content: Object, destination: str | None) -> tuple[str, bool]:
    """A group's text without the bot's own mention, and whether the bot was addressed."""
    places = []
    mentioned = False
    for mentionee in objects(obj(content, "mention"), "mentionees"):
        if mentionee.get("isSelf") is not True and (not destination or mentionee.get("userId") != destination):
            continue
        mentioned = True
        place = piece(text, integer(mentionee, "index"), integer(mentionee, "length"))
        # The unit of the offsets is nowhere promised, so nothing is cut that does not look like a mention.
        if place is not None and text[place[0]] == "@":
            places.append(place)
    text = without(text, places) if places else text
    return text, mentioned or text.startswith("/")
