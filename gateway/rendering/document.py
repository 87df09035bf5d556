"""Markdown -> text and marks, block by block."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING

from gateway.rendering.rich import Look, Mark, Pen, Picture, Rich, Span, Table
from gateway.rendering.text import scrub, visible

if TYPE_CHECKING:
    from markdown_it.token import Token

RULE = "──────────"
_BULLETS = "•◦▪"
_MAX_INDENT = 16  # columns; a phone shows about forty, and every line of the source repeats it
_MAX_NAMES = 2_000  # characters of a table's names, repeated
# What may be Markdown: a mark, a line that begins with one or with space, or ends with space, more than one empty line.
_MARKED = re.compile(r"[\\`*_\[\]&<|]|~~|^(?:[-+#>=\s]|\d+[.)])|\s$|\n{3}", re.MULTILINE)
_MARK = re.compile(r"[\\`*_\[\]&<|]")
_BEGINS = re.compile(r"[-+#>=\s]|\d+[.)]")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,32}")


def read(markdown: str, look: Look) -> Rich:
    """The document as `look` shows it, with no space at its end and none but an indent at its beginning."""
    source = scrub(markdown)
    if not _may_be_marked(source):  # most answers: parsing them would cost more than all else that shows them
        return Rich(source if visible(source) else "")
    return parsed(source, look)


def _may_be_marked(source: str) -> bool:
    if "\n" in source:
        return _MARKED.search(source) is not None
    # Of a single line the same, without trying each of its places for each of the ways.
    return (
        _MARK.search(source) is not None or "~~" in source or _BEGINS.match(source) is not None or source[-1:].isspace()
    )


def parsed(source: str, look: Look) -> Rich:
    """The same of a scrubbed text by the parser, whether it needs that or not."""
    from gateway.rendering.markdown import parse  # most answers do without

    writer = Writer(look, lines=source.split("\n"))
    writer.blocks(parse(source))
    return writer.finish()


@dataclass(eq=False, slots=True)
class _Prefix:
    """What stands before each line of a list item or quote, and the mark its first line opens."""

    text: str
    mark: Mark | None = None


@dataclass(slots=True)
class Writer(Pen):
    """Writes blocks one below the other, apart where the source has a blank line."""

    lines: Sequence[str] = ()
    prefixes: list[_Prefix] = field(default_factory=list)
    last_prefixes: list[_Prefix] = field(default_factory=list)
    at_marker: bool = False  # a list item's marker stands there: its first block goes on the same line
    rule_due: bool = False  # a rule is drawn between two blocks, never first or last
    after_heading: bool = False
    after_table: bool = False
    lists: list[Iterator[str]] = field(default_factory=list)  # the markers to come

    def finish(self) -> Rich:
        if not self.seen:
            return Rich()
        text = "".join(self.parts).rstrip()
        spans = [Span(span.start, min(span.end, len(text)), span.mark) for span in self.spans]
        spans.reverse()  # noted as they ended, inner before outer: of two alike the later is the outer
        spans.sort(key=lambda span: (span.start, -span.end))
        end = len(text)
        pictures = [Picture(min(one.start, end), min(one.end, end), one.url, one.alt) for one in self.pictures]
        return Rich(text, tuple(span for span in spans if span.start < span.end), tuple(pictures))

    def blocks(self, tokens: Sequence[Token]) -> None:
        position = 0
        while position < len(tokens):
            token = tokens[position]
            match token.type:
                case "paragraph_open":
                    self.block(token)
                case "heading_open":
                    self.block(token)
                    if tokens[position + 1].content and not self.prefixes:
                        self.decorate(self.look.heading)
                    with self.marked(Mark("bold")):
                        self.inline(tokens[position + 1].children or [])
                    self.after_heading = True
                    position += 1
                case "inline":
                    self.inline(token.children or [])
                case "fence":
                    self._fence(token)
                case "hr":
                    self.rule_due = True
                case "bullet_list_open":
                    depth = sum(isinstance(markers, repeat) for markers in self.lists)
                    self.lists.append(repeat(_BULLETS[min(depth, len(_BULLETS) - 1)]))
                case "ordered_list_open":
                    self.lists.append(_numbers(tokens, position))
                case "bullet_list_close" | "ordered_list_close":
                    self.lists.pop()
                case "list_item_open":
                    self.block(token)
                    marker = next(self.lists[-1]) + " "
                    self.decorate(marker)
                    self._push(_Prefix(" " * min(len(marker), 4)))
                    self.at_marker = True
                case "list_item_close":
                    self._pop()
                    self.at_marker = False
                case "blockquote_open":
                    self._quote()
                case "blockquote_close":
                    mark = self._pop().mark
                    if any(entry[0] is mark for entry in self.open):
                        self.end()
                case "table_open":
                    end = next(at for at in range(position, len(tokens)) if tokens[at].type == "table_close")
                    self._table(token, tokens[position:end])
                    position = end
            position += 1

    # Where a block begins

    def block(self, token: Token, *, at_margin: bool = False) -> None:
        """Goes to where the block's first character stands."""
        if self.at_marker and not at_margin:
            self._enter()
            return
        if self.length:
            first = token.map[0] if token.map else 0
            blank = first > 0 and not self.lines[first - 1].strip("> \t") and not self.at_marker
            apart = (blank or self.after_table or token.type == "heading_open") and not self.after_heading
            if self.rule_due and self.seen:
                common = self._common_indent()
                self.decorate(f"\n{common.rstrip()}\n{common}{RULE}")
                apart = True
            self.newline(apart=apart)
        else:
            self.decorate(self.indent)
        self.rule_due = False
        self._enter()

    def newline(self, *, apart: bool = False) -> None:
        if apart:
            self.decorate("\n" + self._common_indent().rstrip())
        self.decorate("\n" + self.indent)

    def _common_indent(self) -> str:
        """Of this block and the last: what stands on an empty line between them."""
        pairs = zip(self.prefixes, self.last_prefixes, strict=False)
        return "".join(new.text for new, old in pairs if new is old)

    def _enter(self) -> None:
        self.at_marker = self.after_heading = self.after_table = False
        self.last_prefixes = list(self.prefixes)
        for prefix in self.prefixes:
            if prefix.mark and not self.is_open("blockquote"):
                self.begin(prefix.mark)

    def _push(self, prefix: _Prefix) -> None:
        if len(self.indent) >= _MAX_INDENT:
            prefix.text = ""
        self.prefixes.append(prefix)
        self.indent += prefix.text

    def _pop(self) -> _Prefix:
        prefix = self.prefixes.pop()
        self.indent = "".join(outer.text for outer in self.prefixes)
        return prefix

    # Blocks with a form of their own

    def _quote(self) -> None:
        shown = "blockquote" in self.look.marks and not any(prefix.mark for prefix in self.prefixes)
        prefix = _Prefix("", Mark("blockquote")) if shown else _Prefix(self.look.quote)
        self._push(prefix)
        if self.at_marker:
            self.decorate(prefix.text)

    def _fence(self, token: Token) -> None:
        info = token.info.strip()
        language = info if token.content.strip() and _LANGUAGE.fullmatch(info) else ""
        # A fence that shares its line with a sentence would take it for the language's name.
        content = (token.content if language or not info else f"{info}\n{token.content}").rstrip("\n")
        if not content:
            return
        indent, self.indent = self.indent, self.indent if self.look.indent_code else ""
        self.block(token, at_margin=not self.look.indent_code)
        self.code(Mark("pre", language=language), content)
        self.indent = indent

    def _table(self, token: Token, tokens: Sequence[Token]) -> None:
        rows: list[list[Token]] = []
        for inner in tokens:
            if inner.type == "tr_open":
                rows.append([])
            elif inner.type in ("th_open", "td_open"):
                style = inner.attrs.get("style", "")
            elif inner.type == "inline":
                inner.meta["style"] = style
                rows[-1].append(inner)
        self.block(token)
        if self.look.table is None or not self.look.table(self, rows):
            self._records(rows)
        self.after_table = True

    def _records(self, rows: Table) -> None:
        """One line a row, as columns don't fit a phone: `• Latte — hot: 60 · iced: 70`, and `• Latte — 60` of two."""
        header, body = rows[0], rows[1:]
        # Names are repeated with each row, within reason.
        plain = len(header) <= 2 or sum(len(name.content) for name in header) * len(body) > _MAX_NAMES or not body
        filled_columns = {at for row in body for at, cell in enumerate(row) if cell.content}
        title = [
            name for at, name in enumerate(header) if name.content and (plain or at == 0 or at not in filled_columns)
        ]
        with self.marked(Mark("bold")):
            for at, cell in enumerate(title):
                self.decorate(" — " if at else "")
                self.inline(cell.children or [])
        first = not title
        names = [None, *([None] * len(header) if plain else header[1:])]
        for row in body:
            filled = [(at, cell) for at, cell in enumerate(row) if cell.content]
            if not filled:
                continue
            if not first:
                self.newline()
            first = False
            self.decorate("• ")
            for nth, (at, cell) in enumerate(filled):
                self.decorate(("", " — ")[nth] if nth < 2 else " · ")
                name = names[at] if at < len(names) else None
                if name and name.content:
                    self.inline(name.children or [])
                    self.decorate(":\u00a0")  # a name and its value stay on one line
                self.inline(cell.children or [])


def _numbers(tokens: Sequence[Token], position: int) -> Iterator[str]:
    """An ordered list's markers: the numbers as written, but counted on where a number is merely repeated."""
    level = tokens[position].level
    shown = written = -1
    while tokens[(position := position + 1)].level != level:
        item = tokens[position]
        if item.type == "list_item_open" and item.level == level + 1:
            number = int(item.info)
            restarts = number < written
            shown = number if restarts else max(number, shown + 1)
            written = number
            yield f"{shown}{item.markup}"
