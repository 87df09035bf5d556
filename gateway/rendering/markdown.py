"""The Markdown we read: CommonMark with tables and strikethrough, bent to how language models write Thai and English.

- HTML, reference definitions and indented code are text: a model that writes them means them to be read, and the
  standard would hide or disfigure them. A line of dashes under a paragraph is a rule, not a heading.
- `**"ลาเต้"**ค่ะ` is bold: the standard wants a space or punctuation after the mark, which Thai does not write.
- `30*20*15` is a product, not an emphasised 20.
- Nothing is lost, nothing is slow: too deep nesting becomes text, hopeless brackets are given up.
"""

from __future__ import annotations

from collections.abc import Callable

import regex
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit, getLine
from markdown_it.rules_inline import StateInline, image, link
from markdown_it.rules_inline.state_inline import Delimiter
from markdown_it.token import Token

_DEEPEST = 12  # levels: a list counts two, a quote one
_BRACKET_MISSES = 500  # in one document; each may cost a look at the whole paragraph

# Scripts that put no space between words.
_UNSPACED = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Han}\p{Hiragana}\p{Katakana}]")
_PUNCTUATION = regex.compile(r"[\p{P}\p{S}]")


def parse(markdown: str) -> list[Token]:
    """Block tokens; `markdown` has been scrubbed."""
    return _parser.parse(markdown, {})


def _flanks(inner: str, outer: str) -> bool:
    """Whether a row of marks may open (close) emphasis, by the characters within and without."""
    if inner.isspace():
        return False
    if not _PUNCTUATION.match(inner):
        return True
    return outer.isspace() or bool(_PUNCTUATION.match(outer) or _UNSPACED.match(outer))


def _emphasis(state: StateInline, silent: bool) -> bool:
    marker = state.src[state.pos]
    if silent or marker not in "*_":
        return False
    end = state.pos
    while end < state.posMax and state.src[end] == marker:
        end += 1
    before = state.src[state.pos - 1] if state.pos else " "
    after = state.src[end] if end < state.posMax else " "
    opens, closes = _flanks(after, before), _flanks(before, after)
    if marker == "_":
        opens, closes = (
            opens and (not closes or bool(_PUNCTUATION.match(before))),
            closes and (not opens or bool(_PUNCTUATION.match(after))),
        )
    elif before.isdecimal() and after.isdecimal():
        opens = closes = False
    for _ in range(end - state.pos):
        state.push("text", "", 0).content = marker
        state.delimiters.append(
            Delimiter(ord(marker), end - state.pos, len(state.tokens) - 1, -1, open=opens, close=closes)
        )
    state.pos = end
    return True


def _bounded(rule: Callable[[StateInline, bool], bool], mark: str) -> Callable[[StateInline, bool], bool]:
    """`rule`, tried only where it can succeed, and no longer once it has failed too often."""

    def bounded(state: StateInline, silent: bool) -> bool:
        if not state.src.startswith(mark, state.pos) or state.env.get("misses", 0) >= _BRACKET_MISSES:
            return False
        if state.src.find("](", state.pos) >= 0 and rule(state, silent):
            return True
        state.env["misses"] = state.env.get("misses", 0) + 1
        return False

    return bounded


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The parser drops what is nested deeper than it goes: show it as a paragraph instead."""
    if silent or state.level < _DEEPEST:
        return False
    state.line = end
    state.push("paragraph_open", "p", 1).map = [start, end]
    inline = state.push("inline", "", 0)
    inline.content = state.getLines(start, end, state.blkIndent, False).strip()
    inline.map = [start, end]
    inline.children = []
    state.push("paragraph_close", "p", -1)
    return True


def _not_quoted(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A line without `>` ends a quote. The standard takes it in, level by level, which also takes long."""
    return silent and state.parentType == "blockquote"


def _whole_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """The standard drops cells beyond the header's and takes the sentence below the table for a row."""
    if not table(state, start, end, True):
        return False
    if silent:
        return True
    after = next((line for line in range(start + 2, end) if "|" not in getLine(state, line)), end)
    first = len(state.tokens)
    table(state, start, after, False)
    tokens, state.tokens[first:] = state.tokens[first:], []
    width = 0
    for token in tokens:
        if token.type == "tr_open":
            row, filled = token, 0
        elif token.type == "inline":
            filled += 1
        elif token.type == "tr_close":
            width = width or filled
            for content in _cells(state, row)[width:]:
                state.push("td_open", "td", 1)
                cell = state.push("inline", "", 0)
                cell.map, cell.content, cell.children = row.map, content, []
                state.push("td_close", "td", -1)
        state.tokens.append(token)
    return True


def _cells(state: StateBlock, row: Token) -> list[str]:
    assert row.map is not None
    cells = escapedSplit(getLine(state, row.map[0]).strip())
    if cells and not cells[0]:
        del cells[0]
    if cells and not cells[-1]:
        del cells[-1]
    return [cell.strip() for cell in cells]


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST + 10})
    parser.enable(["table", "strikethrough"])
    parser.disable(["reference", "lheading", "code", "html_block", "html_inline"])
    parser.block.ruler.before("table", "too_deep", _too_deep)
    parser.block.ruler.before("table", "not_quoted", _not_quoted, {"alt": ["blockquote"]})
    parser.block.ruler.at("table", _whole_table, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.at("emphasis", _emphasis)
    parser.inline.ruler.at("link", _bounded(link, "["))
    parser.inline.ruler.at("image", _bounded(image, "!["))
    return parser


_parser = _make_parser()
