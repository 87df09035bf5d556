"""An answer's Markdown, as each platform can show it, within its limits. Pure: strings in, strings out.

document   Markdown -> text and marks, one `Look` a platform
split      text and marks -> parts that fit, cut where a reader would pause
pictures   text and marks -> texts, and the pictures that stand between them
telegram, line, terminal   one platform each
"""

from __future__ import annotations

from gateway.rendering.line import pack_line, render_line, render_line_with_pictures, shows
from gateway.rendering.telegram import TelegramPiece, render_telegram, render_telegram_with_pictures
from gateway.rendering.terminal import render_terminal
from gateway.rendering.text import literal, truncate_graphemes, utf16_len

__all__ = [
    "TelegramPiece",
    "literal",
    "pack_line",
    "render_line",
    "render_line_with_pictures",
    "render_telegram",
    "render_telegram_with_pictures",
    "render_terminal",
    "shows",
    "truncate_graphemes",
    "utf16_len",
]
