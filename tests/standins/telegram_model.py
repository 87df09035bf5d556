"""Telegram's words: faults, what was shown, forms. Each rule names its section in the platform's documentation."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import HTTP
from typing import Any

from tests.standins.model import Answer, Fault, Json
from tests.standins.telegram_text import Refused

# Telegram 2.2: 403, by kind
BLOCKED = "Forbidden: bot was blocked by the user"
DEACTIVATED = "Forbidden: user is deactivated"
KICKED = "Forbidden: bot was kicked from the supergroup chat"
NOT_A_MEMBER = "Forbidden: bot is not a member of the supergroup chat"

ACTIONS = {
    "typing", "upload_photo", "record_video", "upload_video", "record_voice", "upload_voice", "upload_document",
    "choose_sticker", "find_location", "record_video_note", "upload_video_note",
}  # fmt: skip


def too_many(retry_after: int = 1, *, parameters: bool = True, **more: Any) -> Fault:
    """Telegram 2.2: 429 with description, `parameters.retry_after` and a Retry-After header; or without parameters."""
    body = {"ok": False, "error_code": 429, "description": f"Too Many Requests: retry after {retry_after}"}
    if parameters:
        body["parameters"] = {"retry_after": retry_after}
    return Fault(429, body, {"Retry-After": str(retry_after)}, **more)


def refusal(code: int, description: str, **more: Any) -> Fault:
    """Any other `ok: false`."""
    return Fault(code, {"ok": False, "error_code": code, "description": description}, **more)


def bad_gateway(**more: Any) -> Fault:
    """Telegram 2.3: a 502 that is not JSON."""
    return Fault(502, "<html><head><title>502 Bad Gateway</title></head></html>", **more)


@dataclass(frozen=True, slots=True)
class TelegramShown:
    """A message of a bot on a chat's screen; `text` as it reads after edits."""

    chat: str
    text: str
    message_id: int
    at: float
    bot: int
    method: str
    entities: tuple[Mapping[str, Json], ...] = ()
    markup: Json = None
    thread_id: int | None = None
    edits: int = 0
    media: str | None = None  # the address or file_id of what it shows; None: text, or an upload


@dataclass(slots=True)
class Bot:
    token: str
    id: int
    username: str
    webhook: dict[str, Json] = field(default_factory=lambda: {"url": ""})
    commands: list[Json] = field(default_factory=list)
    updates: deque[dict[str, Json]] = field(default_factory=deque)
    allowed: list[str] = field(default_factory=list)
    poller: asyncio.Event | None = None
    last_update: int = 310_000_000


# Telegram 2.3: in forms nested objects come as JSON strings, booleans as true|false
_NESTED = {
    "reply_markup", "reply_parameters", "entities", "caption_entities", "link_preview_options", "commands",
    "allowed_updates", "scope", "ephemeral_message_parameters",
}  # fmt: skip
_BOOLEANS = {
    "drop_pending_updates",
    "disable_notification",
    "protect_content",
    "show_alert",
    "can_stop",
    "keep_on_stop",
}


def unfolded(given: dict[str, Json]) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for name, value in given.items():
        if name in _NESTED and isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                raise Refused(f"Bad Request: can't parse {name.replace('_', ' ')} JSON object") from None
        elif name in _BOOLEANS and isinstance(value, str):
            value = value.lower() in ("true", "1", "yes")
        made[name] = value
    return made


def checked_markup(markup: Json) -> Json:
    if not markup:
        return None
    if not isinstance(markup, dict):
        raise Refused("Bad Request: object expected as reply markup")
    for row in markup.get("inline_keyboard", ()):
        for button in row:
            if not button.get("text"):
                raise Refused(
                    "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
                )
            # Telegram 2.2: callback_data 1-64 bytes
            if "callback_data" in button and not 1 <= len(button["callback_data"].encode()) <= 64:
                raise Refused("Bad Request: BUTTON_DATA_INVALID")
    return markup


def multipart(raw: bytes, content_type: str) -> dict[str, Json]:
    form = message_from_bytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + raw, policy=HTTP)
    made: dict[str, Json] = {}
    for part in form.iter_parts():
        name = part.get_param("name", header="content-disposition")
        data = bytes(part.get_payload(decode=True) or b"")
        file = part.get_filename()
        made[str(name)] = {"filename": file, "size": len(data)} if file else data.decode()
    return made


def user_of(bot: Bot) -> dict[str, Json]:
    return {"id": bot.id, "is_bot": True, "first_name": f"Bot {bot.id}", "username": bot.username}


def chat_of(chat: str) -> dict[str, Json]:
    if chat.startswith("-"):
        kind = "supergroup" if chat.startswith("-100") else "group"
        return {"id": int(chat), "type": kind, "title": f"Group {chat}"}
    if chat.startswith("@"):
        return {"id": -1009999999999, "type": "channel", "title": chat, "username": chat[1:]}
    return {"id": int(chat), "type": "private", "first_name": "Test"}


def refusal_of(error: Refused) -> Answer:
    body: dict[str, Json] = {"ok": False, "error_code": error.code, "description": error.description}
    headers = {}
    if error.parameters:
        body["parameters"] = error.parameters
        if "retry_after" in error.parameters:
            headers["Retry-After"] = str(error.parameters["retry_after"])
    return Answer(error.code, body, headers)
