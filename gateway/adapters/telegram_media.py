"""Pictures, files and stickers on Telegram, which fetches the first two from their addresses itself. Pure."""

from __future__ import annotations

from typing import Any

from gateway.adapters.base import Call
from gateway.messages import Image, Media, Sticker
from gateway.rendering import literal, render_telegram, utf16_len
from gateway.rendering.text import scrub

LONGEST_CAPTION = 1024  # UTF-16 units
_ADDRESS = {"sendPhoto": "photo", "sendDocument": "document"}
_TEXT: dict[str, Any] = {"link_preview_options": {"is_disabled": True}}


def calls_for(media: Media, place: dict[str, Any]) -> list[Call]:
    """The calls that show it; none for a sticker that Telegram does not know. A caption that is too long goes before
    it, as text."""
    if isinstance(media, Sticker):
        return [Call("sendSticker", {**place, "sticker": media.telegram})] if media.telegram else []
    method, caption = ("sendPhoto", media.alt) if isinstance(media, Image) else ("sendDocument", media.name)
    caption = scrub(caption).strip()
    body = {**place, _ADDRESS[method]: media.url}
    if utf16_len(caption) > LONGEST_CAPTION:
        before = [
            Call("sendMessage", {**place, "text": piece.text, **_TEXT}) for piece in render_telegram(literal(caption))
        ]
        return [*before, Call(method, body)]
    return [Call(method, {**body, "caption": caption} if caption else body)]


def as_text(call: Call) -> Call | None:
    """The link in place of a picture or file that Telegram does not take; None: the call shows neither."""
    name = _ADDRESS.get(call.method)
    if name is None:
        return None
    kept = {key: value for key, value in call.body.items() if key not in (name, "caption")}
    caption, url = call.body.get("caption"), call.body[name]
    return Call("sendMessage", {**kept, "text": f"{caption} ({url})" if caption else url, **_TEXT})
