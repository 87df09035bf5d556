"""The CPU of a message as an SVG picture: a bar for each bot and case, a part for each process."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

_COLOURS = {"serve": "#7f9cf5", "worker": "#2b6cb0", "redis": "#e2a03f"}
_BOT = "#9aa5b1"  # a bot that is one process
_ROW, _LABELS, _WIDTH, _TOP = 22, 250, 560, 56  # pixels


def drawn(rows: Sequence[dict[str, Any]], at: str) -> str:
    """`rows` as `benchmarks.turns` gives them."""
    most = max(sum(row["cpu_ms_each"].values()) for row in rows)
    scale = _WIDTH / most
    parts, y = [], _TOP
    for row in rows:
        case = f"{row['bot']}, history {row['history']}, model {row['model_ms']:.0f} ms"
        parts.append(_text(_LABELS - 8, y + 14, case, "end"))
        x = float(_LABELS)
        for name, ms in row["cpu_ms_each"].items():
            width = max(0.0, ms * scale)
            colour = _COLOURS.get(name, _BOT)
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_ROW - 6}" fill="{colour}"/>')
            x += width
        parts.append(_text(x + 6, y + 13, f"{sum(row['cpu_ms_each'].values()):.1f}", "start"))
        y += _ROW
    legend, x = [], float(_LABELS)
    for name, colour in {**_COLOURS, "a bot of one process": _BOT}.items():
        legend.append(f'<rect x="{x:.0f}" y="30" width="12" height="12" fill="{colour}"/>')
        legend.append(_text(x + 17, 40, name, "start"))
        x += 34 + 7 * len(name)
    size = f'width="{_LABELS + _WIDTH + 60}" height="{y + 10}"'
    head = _text(_LABELS, 18, f"CPU a message, ms ({at})", "start")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>{head}{"".join(legend)}{"".join(parts)}</svg>\n'
    )


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(words)}</text>'
