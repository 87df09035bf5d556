"""A message in words: for the history, for understanding, and for the model. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.messages import InboundMessage, Kind
from gateway.prompt import escape

_NAMES = {
    Kind.IMAGE: "photo",
    Kind.VIDEO: "video",
    Kind.AUDIO: "voice message",
    Kind.FILE: "file",
    Kind.LOCATION: "location",
    Kind.CONTACT: "contact",
    Kind.STICKER: "sticker",
    Kind.OTHER: "message of a new kind",
}
_LONGEST = 300  # characters of what is told of an attachment


def described(message: InboundMessage) -> str:
    """Its text, and what it is when it is more than text."""
    if message.kind is Kind.POSTBACK:
        picked = message.extra.get("params")
        told = ", ".join(f"{name}: {value}" for name, value in picked.items()) if isinstance(picked, dict) else ""
        return f"{message.text} ({told})" if told else message.text
    what = _NAMES.get(message.kind)
    if what is None:
        return message.text
    if reason := message.extra.get("unread"):
        what = f"{what} that could not be opened ({reason})"
    told = " ".join(_told(message.kind, message.extra).replace("[", "(").replace("]", ")").split())[:_LONGEST]
    return f"[{what}: {told}] {message.text}".strip() if told else f"[{what}] {message.text}".strip()


def _told(kind: Kind, extra: Mapping[str, Any]) -> str:
    if kind is Kind.STICKER:
        keywords = extra.get("keywords")
        return ", ".join(map(str, keywords[:5])) if isinstance(keywords, list) else ""
    if kind is Kind.FILE:
        return str(extra.get("file_name", ""))
    if kind is Kind.CONTACT:
        name = " ".join(str(extra[part]) for part in ("first_name", "last_name") if part in extra)
        return ", ".join(filter(None, (name, str(extra.get("phone_number", "")))))
    if kind is Kind.LOCATION:
        place = [str(extra[part]) for part in ("title", "address") if part in extra]
        if "latitude" in extra and "longitude" in extra:
            place.append(f"{extra['latitude']}, {extra['longitude']}")
        return ", ".join(place)
    return ""


def asked(message: InboundMessage) -> str:
    """The message as the model is asked: with what it quotes, as data, and in a group with its writer's name."""
    if message.kind is Kind.TEXT and not message.extra and not message.group:
        return message.text  # nearly always
    text = described(message)
    if "forwarded" in message.extra:
        origin = message.extra["forwarded"]
        head = f"Forwarded by the customer; first written by {escape(str(origin))}:\n" if origin else ""
        text = f"<forwarded>\n{head}{escape(text)}\n</forwarded>"
    if message.group:
        text = f"{called(message)}: {text}"
    if quote := message.extra.get("quoted_text"):
        text = f"<quoted>\n{escape(str(quote))}\n</quoted>\n{text}"
    return text


def called(message: InboundMessage) -> str:
    """How a group's member is called: by name, else by the end of the id, which tells two apart."""
    if message.sender_name:
        return message.sender_name
    return f"member {message.sender_id[-4:]}" if message.sender_id else "a member"
