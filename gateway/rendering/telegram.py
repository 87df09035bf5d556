"""For Telegram: text with entities, which unlike its HTML and Markdown can't be malformed."""

from __future__ import annotations

from typing import Any

import msgspec

from gateway.messages import Image
from gateway.rendering.document import read
from gateway.rendering.pictures import Shows, with_pictures
from gateway.rendering.rich import Look, Rich, Span
from gateway.rendering.split import split
from gateway.rendering.text import utf16_len

_LOOK = Look(
    marks=frozenset({"bold", "italic", "strikethrough", "code", "pre", "text_link", "blockquote"}),
    indent_code=False,
)
_MAX_ENTITIES = 100  # Telegram ignores the rest
# A request's text and entities are refused above about 32 KiB: 4096 units of Thai are 12 KiB, entities may be as much.
_MAX_ENTITY_BYTES = 12_288


class TelegramPiece(msgspec.Struct, frozen=True):
    """One `sendMessage`: `entities` as the Bot API takes them, offsets and lengths in UTF-16 code units of `text`."""

    text: str
    entities: list[dict[str, Any]] = []


def render_telegram(markdown: str, limit: int = 4096) -> list[TelegramPiece]:
    """Messages of at most `limit` UTF-16 code units, none of them blank; no text, no message."""
    return _pieces(read(markdown, _LOOK), limit)


def render_telegram_with_pictures(markdown: str, shows: Shows, limit: int = 4096) -> list[TelegramPiece | Image]:
    """The same, with the pictures to be shown in their places between the messages."""
    messages: list[TelegramPiece | Image] = []
    for part in with_pictures(markdown, _LOOK, shows):
        messages += [part] if isinstance(part, Image) else _pieces(part, limit)
    return messages


def _pieces(rich: Rich, limit: int) -> list[TelegramPiece]:
    pieces = split(rich, limit, max_spans=_MAX_ENTITIES, max_cost=_MAX_ENTITY_BYTES, cost=_cost)
    return [TelegramPiece(piece.text, _entities(piece)) for piece in pieces]


def _cost(span: Span) -> int:
    """An entity's size in JSON, in bytes."""
    return 80 + len(span.mark.url) + len(span.mark.language)


def _entities(piece: Rich) -> list[dict[str, Any]]:
    entities: list[dict[str, Any]] = []
    at, offset = 0, 0
    for span in piece.spans[:_MAX_ENTITIES]:
        offset += utf16_len(piece.text[at : span.start])
        at = span.start
        length = utf16_len(piece.text[span.start : span.end])
        entity: dict[str, Any] = {"type": span.mark.kind, "offset": offset, "length": length}
        if span.mark.url:
            entity["url"] = span.mark.url
        if span.mark.language:
            entity["language"] = span.mark.language
        entities.append(entity)
    return entities
