"""What answers are on LINE: bubbles of text, pictures and stickers, as its message objects. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from config.tenants import Tenant
from gateway.adapters.pictures import shown_in
from gateway.messages import Answer, File, Image, Sticker
from gateway.rendering import render_line_with_pictures, utf16_len

BUBBLES = 5  # a call
LONGEST_TEXT = 5000  # UTF-16 units a bubble

_Piece = str | Image | Sticker
_NAMED = re.compile(r"messages\[(\d)\]")


def bubbles_of(tenant: Tenant, answers: Sequence[Answer], most: int = BUBBLES) -> list[dict[str, Any]]:
    """The message objects in order, more than `most` only where text alone is too much for that: no picture and no
    sticker is worth a further call, which costs quota. Then pictures are links, and stickers are left out."""
    pieces: list[_Piece] = []
    for answer in answers:
        pieces += _pieces(tenant, answer)
    if len(pieces) > most:
        pieces = _fitted(pieces, most)
    while len(pieces) > most and (extra := [at for at, piece in enumerate(pieces) if not isinstance(piece, str)]):
        last = pieces[extra[-1]]
        pieces[extra[-1] : extra[-1] + 1] = [last.link] if isinstance(last, Image) else []
        pieces = _fitted(pieces, most)
    return [_message(piece) for piece in pieces]


def without_media(messages: Sequence[dict[str, Any]], reason: str) -> list[dict[str, Any]] | None:
    """The messages of a refused call with links in place of the pictures, and without the stickers, that LINE's reason
    names; of all where it names none. None: there are none, or nothing would be left."""
    media = {at for at, message in enumerate(messages) if message.get("type") in ("image", "sticker")}
    named = media & set(map(int, _NAMED.findall(reason))) or media
    kept: list[dict[str, Any]] = []
    for at, message in enumerate(messages):
        if at not in named:
            kept.append(message)
        elif message["type"] == "image":
            kept.append(_message(str(message["originalContentUrl"])))
    if not named or not kept:
        return None
    if quick := messages[-1].get("quickReply"):
        kept[-1] = {**kept[-1], "quickReply": quick}
    return kept


def _pieces(tenant: Tenant, answer: Answer) -> list[_Piece]:
    pieces: list[_Piece] = [*render_line_with_pictures(answer.text, shown_in(tenant, answer))]
    for one in answer.media:
        pieces.append(one.link if isinstance(one, File) else one)  # LINE has no messages for files
    return pieces


def _fitted(pieces: Sequence[_Piece], most: int) -> list[_Piece]:
    """The pieces as they are, or neighbouring texts put together where there are more than `most`."""
    if len(pieces) <= most:
        return list(pieces)
    fitted: list[_Piece] = []
    for piece in pieces:
        before = fitted[-1] if fitted else None
        both = f"{before}\n\n{piece}" if isinstance(piece, str) and isinstance(before, str) else None
        if both is not None and utf16_len(both) <= LONGEST_TEXT:
            fitted[-1] = both
        else:
            fitted.append(piece)
    return fitted


def _message(piece: _Piece) -> dict[str, Any]:
    if isinstance(piece, str):
        return {"type": "text", "text": piece}
    if isinstance(piece, Sticker):
        return {"type": "sticker", "packageId": piece.package, "stickerId": piece.id}
    return {"type": "image", "originalContentUrl": piece.url, "previewImageUrl": piece.url}
