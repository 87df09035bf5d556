"""What a Telegram message holds: its kind, words and attachments, and whether it speaks to the bot."""

from __future__ import annotations

from typing import Any

from gateway import kinds
from gateway.adapters.parsing import Object, integer, known, obj, objects, piece, string
from gateway.messages import Kind

_EXTRA = (
    ("file_id", "file_id"),
    ("file_size", "file_size"),
    ("file_name", "file_name"),
    ("mime_type", "mime_type"),
    ("duration", "duration"),
    ("emoji", "emoji"),
    ("set_name", "set_name"),
    ("phone_number", "phone_number"),
    ("first_name", "first_name"),
    ("last_name", "last_name"),
    ("user_id", "user_id"),
    ("title", "title"),
    ("address", "address"),
    ("latitude", "latitude"),
    ("longitude", "longitude"),
)
_RICH_LISTS = ("blocks", "items", "cells")
_DEEPEST = 24  # a rich message nests 16 deep at most
_LONGEST_NAME = 128
_LONGEST_QUOTE = 1000

Content = tuple[Kind, str, list[Object], dict[str, Any]]


def content_of(message: Object) -> Content | str:
    """The message's kind, text, the text's entities and attachments; or the name of the notice that it is."""
    extra: dict[str, Any] = {}
    if album := string(message, "media_group_id"):
        extra["album"] = album
    text = message.get("text")
    if isinstance(text, str) and text:
        return Kind.TEXT, text, objects(message, "entities"), extra
    if rich := "\n".join(_flat(message.get("rich_message"))).strip():
        return Kind.TEXT, rich, [], extra
    caption = message.get("caption")
    caption = caption if isinstance(caption, str) else ""
    entities = objects(message, "caption_entities")
    for name, kind in kinds.TELEGRAM_CONTENT:
        if name in message:
            extra |= _attachment(message, name)
            return kind, caption, entities, extra
    if caption:
        return Kind.OTHER, caption, entities, extra
    if said := string(obj(message, "web_app_data"), "data", 4096):
        return Kind.POSTBACK, said, [], extra
    notice = next((name for name in kinds.TELEGRAM_NOTICES if name in message), None)
    return notice or (Kind.OTHER, "", [], extra)


def _attachment(message: Object, name: str) -> dict[str, Any]:
    thing = obj(message, name)
    if sizes := objects(message, name):  # a photo comes in several sizes, the largest last
        thing = max(sizes, key=lambda size: (integer(size, "width") or 0) * (integer(size, "height") or 0))
    extra = known(obj(thing, "location"), _EXTRA) | known(thing, _EXTRA)
    if emoji := string(thing, "emoji"):
        extra["keywords"] = [emoji]
    return extra


def _flat(value: object, depth: int = 0) -> list[str]:
    """The lines of a rich message's block, a list of blocks or a table."""
    if depth > _DEEPEST:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [line for item in value for line in _flat(item, depth + 1)]
    if not isinstance(value, dict):
        return []
    lines = []
    for key in ("summary", "label", "text", "expression"):
        if line := _inline(value.get(key), depth + 1):
            lines.append(line)
    for key in _RICH_LISTS:
        lines += _flat(value.get(key), depth + 1)
    for key in ("caption", "credit"):
        if line := _inline(value.get(key), depth + 1):
            lines.append(line)
    return lines


def _inline(value: object, depth: int) -> str:
    """A rich text as plain text: a text, a list of them, or one with a style."""
    if depth > _DEEPEST:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_inline(item, depth + 1) for item in value)
    if not isinstance(value, dict):
        return ""
    for key in ("text", "expression", "alternative_text", "button"):
        if key in value:
            return _inline(value[key], depth + 1)
    return ""


def addressed(
    message: Object, text: str, entities: list[Object], bot_id: int | None, username: str | None
) -> tuple[list[tuple[int, int]], bool]:
    """Where a group's text mentions the bot (in characters), and whether the message speaks to the bot: by a mention, a
    reply to it, or a command.

    While the bot's name is unknown, every name that ends as bots' names must counts as its own.
    """
    places = []
    for entity in entities:
        place = piece(text, integer(entity, "offset"), integer(entity, "length"))
        if place is None:
            continue
        if entity.get("type") == "mention":
            name = text[slice(*place)].lower()
            ours = name == f"@{username.lower()}" if username else name.endswith("bot")
        else:
            user = obj(entity, "user")
            ours = entity.get("type") == "text_mention" and user.get("is_bot") is True and _is_bot(user, bot_id)
        if ours:
            places.append(place)
    replied = obj(message, "reply_to_message")
    # Every message of a topic that answers nothing in particular "replies" to the topic's first notice.
    reply = "forum_topic_created" not in replied and _is_bot(obj(replied, "from"), bot_id)
    return places, bool(places) or reply or text.startswith("/")


def _is_bot(user: Object, bot_id: int | None) -> bool:
    return user.get("is_bot") is True if bot_id is None else integer(user, "id") == bot_id


def quoted(message: Object) -> str | None:
    """What the message answers, in words; at most 1000 characters."""
    replied = obj(message, "reply_to_message")
    for parent, key in ((obj(message, "quote"), "text"), (replied, "text"), (replied, "caption")):
        value = parent.get(key)
        if isinstance(value, str) and value:
            return value[:_LONGEST_QUOTE]
    return None


def forwarded_from(message: Object) -> str | None:
    """Who said first what was forwarded; "" where that is not told; None for the writer's own words."""
    if "forward_origin" not in message:
        return None
    origin = obj(message, "forward_origin")
    person, chat = obj(origin, "sender_user"), obj(origin, "sender_chat") or obj(origin, "chat")
    names = (string(person, "first_name"), string(origin, "sender_user_name"), string(chat, "title"))
    return spoken(next(filter(None, names), ""))


def replied_to(message: Object) -> str | None:
    """The platform's id of the message that this one answers."""
    replied = obj(message, "reply_to_message")
    message_id = integer(replied, "message_id")
    return None if message_id is None or "forum_topic_created" in replied else str(message_id)


def spoken(name: str) -> str:
    """A name as it may be shown: on one line, at most 128 characters."""
    return " ".join(name.split())[:_LONGEST_NAME]
