"""Draws an answer as LINE and Telegram show it, made of the very calls that are planned for them.

`python -m tests.story.screens [answer.md] > screens.html`; a browser makes a picture of it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from config.settings import Settings
from config.tenants import Tenant
from gateway.adapters.base import Call
from gateway.adapters.line_sender import LineSender
from gateway.adapters.telegram_sender import TelegramSender
from gateway.buttons import buttons_of
from gateway.messages import Answer, Target
from tests.house import shop

EXAMPLE = Path(__file__).with_name("long_answer.md")
STYLE = """
body { display: flex; gap: 24px; margin: 16px; align-items: flex-start; background: #ddd; }
.phone { width: 390px; padding: 12px; border-radius: 12px; overflow: hidden; box-sizing: border-box; }
.phone, .buttons { font: 16px/1.38 "Noto Sans", "Noto Sans Thai", "Noto Sans Thai Looped", "Loma", "Waree",
  "Noto Color Emoji", sans-serif; }
.bubble { padding: 8px 12px; margin: 4px 0; border-radius: 14px; background: #fff; width: fit-content; max-width: 300px;
  white-space: pre-wrap; overflow-wrap: anywhere; }
.line { background: #8cabd8; } .telegram { background: #c7d9b7; }
.telegram .bubble { max-width: 330px; }
blockquote { margin: 0; padding: 2px 8px; border-left: 3px solid #3a95d5; background: #eef6fc; }
pre { margin: 0; padding: 6px 8px; background: #f2f2f2; white-space: pre-wrap; overflow-wrap: anywhere; }
pre, code { font-family: "DejaVu Sans Mono", "Noto Sans Thai", monospace; font-size: 14px; } code { color: #a33; }
.button { display: inline-block; margin: 3px; padding: 5px 10px; border-radius: 14px; background: #fffc; }
a { color: #2678b6; }
"""
TAGS = {
    "bold": "b", "italic": "i", "strikethrough": "s", "underline": "u", "code": "code", "pre": "pre",
    "blockquote": "blockquote", "text_link": "a",
}  # fmt: skip


def page(answer: Answer) -> str:
    """HTML of both screens."""
    tenant = Tenant.model_validate({"id": "shop", **shop()})
    line = Target(tenant="shop", channel="line-main", platform="line", chat_id="U1", reply_token="t")
    telegram = Target(tenant="shop", channel="telegram-main", platform="telegram", chat_id="1")
    screens = {
        "line": _line(LineSender(Settings()).plan(tenant, line, answer, 0.0)),
        "telegram": _telegram(TelegramSender(Settings()).plan(tenant, telegram, answer, 0.0)),
    }
    parts = [f'<div class="phone {name}">{"".join(shown)}</div>' for name, shown in screens.items()]
    return f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style>{"".join(parts)}'


def _line(calls: Sequence[Call]) -> Iterator[str]:
    for message in (message for call in calls for message in call.body["messages"]):
        shown = message.get("text") or message.get("originalContentUrl") or message.get("altText") or message["type"]
        yield f'<div class="bubble">{escape(shown)}</div>'
        yield _buttons([item["action"]["label"] for item in message.get("quickReply", {}).get("items", ())])


def _telegram(calls: Sequence[Call]) -> Iterator[str]:
    for body in (call.body for call in calls):
        text = body.get("text") or body.get("caption") or body.get("photo") or ""
        yield f'<div class="bubble">{_marked(text, body.get("entities", ()))}</div>'
        keyboard = body.get("reply_markup", {})
        rows = keyboard.get("inline_keyboard") or keyboard.get("keyboard") or ()
        yield _buttons([button["text"] for row in rows for button in row])


def _buttons(labels: Sequence[str]) -> str:
    return f'<div class="buttons">{"".join(f"<span class=button>{escape(one)}</span>" for one in labels)}</div>'


def _marked(text: str, entities: Sequence[Mapping[str, Any]]) -> str:
    """The text with its entities as tags; offsets are UTF-16 code units."""
    units = text.encode("utf-16-le")
    begins: dict[int, list[str]] = {}
    ends: dict[int, list[str]] = {}
    for entity in entities:  # outer before inner
        start, end, tag = entity["offset"], entity["offset"] + entity["length"], TAGS[entity["type"]]
        begins.setdefault(start, []).append(f'<a href="{escape(entity["url"])}">' if "url" in entity else f"<{tag}>")
        ends.setdefault(end, []).insert(0, f"</{tag}>")
    cuts = sorted({0, len(units) // 2, *begins, *ends})
    out: list[str] = []
    for at, until in zip(cuts, [*cuts[1:], cuts[-1]], strict=True):
        out += [*ends.get(at, ()), *begins.get(at, ()), escape(units[2 * at : 2 * until].decode("utf-16-le"))]
    return "".join(out).replace("</blockquote>\n", "</blockquote>").replace("</pre>\n", "</pre>")


if __name__ == "__main__":
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLE
    sys.stdout.write(page(Answer(source.read_text("utf-8"), buttons_of(("ดูเมนูทั้งหมด", "จองโต๊ะ", "Opening hours")))))
