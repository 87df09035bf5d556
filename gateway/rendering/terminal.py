"""For the terminal: columns, wrapped lines and, where wanted, colours."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import regex

from gateway.rendering.document import Writer, read
from gateway.rendering.rich import Look, Mark, Pen, Rich, Table
from gateway.rendering.text import cluster_ends

if TYPE_CHECKING:
    from markdown_it.token import Token

_STYLES = {"bold": "1", "italic": "3", "strikethrough": "9", "code": "36", "pre": "36"}
_HANGING = regex.compile(r"[ │]*(?:[•◦▪] |\d+[.)] )?")


def render_terminal(markdown: str, width: int | None, colour: bool) -> str:
    """Text without a newline at its end, lines of at most `width` columns where they can be broken (None: as they
    are); `colour` adds ANSI styles, none of which reaches over a line's end. "" where there is nothing to see."""
    marks = frozenset(_STYLES) if colour else frozenset(_STYLES) - {"strikethrough"}
    rich = read(markdown, Look(marks=marks, quote="│ ", table=lambda writer, rows: _columns(writer, rows, width)))
    return _paint(rich, _wrapped(rich, width) if width else {}, colour)


def _columns(writer: Writer, rows: Table, width: int | None) -> bool:
    """Draws a table in columns, unless it is too wide or a cell has lines."""
    count = max(map(len, rows))
    cells = [[_plain(writer.look, row[at]) if at < len(row) else "" for at in range(count)] for row in rows]
    widths = [max(_width(row[at]) for row in cells) for at in range(count)]
    room = width - _width(writer.indent) if width else None
    if any("\n" in cell for row in cells for cell in row) or (room and sum(widths) + 3 * (count - 1) > room):
        return False
    for nth, (row, texts) in enumerate(zip(rows, cells, strict=True)):
        if nth:
            writer.newline()
        for at in range(count):
            gap = " " * (widths[at] - _width(texts[at]))
            right = at < len(rows[0]) and "right" in rows[0][at].meta.get("style", "")
            writer.decorate((" │ " if at else "") + (gap if right else ""))
            if at < len(row):
                with writer.marked(Mark("bold")) if nth == 0 else nullcontext():
                    writer.inline(row[at].children or [])
            writer.decorate("" if right or at == count - 1 else gap)
        if nth == 0:
            writer.newline()
            writer.decorate("─┼─".join("─" * width for width in widths))
    return True


def _plain(look: Look, cell: Token) -> str:
    pen = Pen(look)
    pen.inline(cell.children or [])
    return "".join(pen.parts)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth  # only what is shown in a terminal needs its tables

    return max(wcswidth(text), 0)


def _wrapped(rich: Rich, width: int) -> dict[int, str]:
    """Where lines are broken, and what the next one begins with. Code keeps its lines."""
    breaks: dict[int, str] = {}
    start = 0
    code = [span for span in rich.spans if span.mark.kind == "pre"][::-1]
    for line in rich.text.split("\n"):
        while code and code[-1].end <= start:
            code.pop()
        inside = bool(code) and code[-1].start < start + len(line)
        if not inside and _width(line) > width:
            hanging = _HANGING.match(line)
            indent = regex.sub(r"[^ │]", " ", hanging[0]) if hanging else ""
            for at in _breaks(line, width, len(indent)):
                breaks[start + at] = indent
        start += len(line) + 1
    return breaks


def _breaks(line: str, width: int, indent: int) -> list[int]:
    """Where `line` is broken: after a space, else between letters that are not Latin, never before the text begins."""
    found: list[int] = []
    column, space, letter, start = 0, 0, 0, indent
    position, columns = 0, {0: 0}
    for end in cluster_ends(line):
        cluster = line[position:end]
        size = _width(cluster)
        if position > start and not (line[position - 1].isascii() and cluster[0].isascii()):
            letter = position
        if column + size > width and not cluster.isspace():
            at = space if space > start and columns[space] > width * 0.4 else max(letter, space)
            if at > start:
                found.append(at)
                column = indent + column - columns[at]
                columns = {place: indent + seen - columns[at] for place, seen in columns.items() if place >= at}
                start, space, letter = at, 0, 0
        column += size
        position = end
        if cluster.isspace():
            space = end
        columns[position] = column
    return found


def _paint(rich: Rich, breaks: dict[int, str], colour: bool) -> str:
    codes: dict[int, list[str]] = {}
    ends: dict[int, int] = {}
    for span in rich.spans if colour else ():
        codes.setdefault(span.start, []).append(_STYLES[span.mark.kind])
        ends[span.end] = ends.get(span.end, 0) + 1
    parts: list[str] = []
    active: list[str] = []
    newlines = {at for at, character in enumerate(rich.text) if character == "\n"}
    trailing = dict(match.span() for match in regex.finditer(r"[^\S\n]+(?=\n|\Z)", rich.text))
    position = 0
    for at in sorted({*codes, *ends, *breaks, *newlines, *trailing, len(rich.text)}):
        text = rich.text[position:at].lstrip("\n") if position in newlines else rich.text[position:at]
        if position in newlines or position in breaks:
            parts.append("\n" + breaks.get(position, ""))
        if text.isspace() and (at in newlines or at == len(rich.text)):
            text = ""
        style = ";".join(dict.fromkeys(active))
        parts.append(f"\x1b[{style}m{text}\x1b[0m" if style and text else text)
        del active[len(active) - ends.get(at, 0) :]
        active += codes.get(at, [])
        position = at
    return "\n".join(line.rstrip() for line in "".join(parts).split("\n"))
