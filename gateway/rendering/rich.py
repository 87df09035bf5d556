"""Text with marks: what a customer reads, and which part of it is bold, a link, …"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

import msgspec

from gateway.rendering.text import scrub, visible

if TYPE_CHECKING:
    from markdown_it.token import Token

    from gateway.rendering.document import Writer

_BREAK_TAG = re.compile(r"<br ?/?>", re.IGNORECASE)
_LINKABLE = re.compile(r"https?://[^\s/.]+\.\S{1,2000}")
_STYLES = {"strong": "bold", "em": "italic", "s": "strikethrough"}


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """One marked stretch of the document; two of the same kind are not equal."""

    kind: str  # bold | italic | strikethrough | code | pre | text_link | blockquote
    url: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of the text; spans nest, they never overlap in part."""

    start: int
    end: int
    mark: Mark


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that is shown as one; its `alt` stands in characters [start, end) of the text."""

    start: int
    end: int
    url: str
    alt: str


class Rich(msgspec.Struct, frozen=True):
    """A document as text and marks, outer before inner; "" where there was nothing to see."""

    text: str = ""
    spans: tuple[Span, ...] = ()
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True)
class _Link:
    url: str = ""
    title: str = ""
    first: int = 0  # of the pen's parts, in its label
    marked: bool = False


# Rows of `inline` tokens, the header's first; a row may be longer than the header.
Table: TypeAlias = "Sequence[Sequence[Token]]"


@dataclass(frozen=True, slots=True)
class Look:
    """What a platform can show."""

    marks: frozenset[str] = frozenset()  # kinds it shows itself; the others are written with characters, or not at all
    heading: str = ""  # before a heading, where bold can't tell it from what follows
    quote: str = "> "  # before each line of a quote that no mark shows
    indent_code: bool = True  # in lists; False where a code block can be copied with a tap
    shows: Callable[[str], bool] = lambda url: False  # is the picture at this address shown as one?
    table: Callable[[Writer, Table], bool] | None = None  # draws a table, or says no: then it is one line a row


@dataclass(slots=True)
class Pen:
    """Writes text from left to right, and marks parts of it."""

    look: Look
    parts: list[str] = field(default_factory=list)
    length: int = 0
    seen: bool = False  # anything visible that is not our own decoration
    indent: str = ""  # of each further line
    spans: list[Span] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    linked: bool = False  # within a link, marked or not
    open: list[tuple[Mark, int]] = field(default_factory=list)

    def decorate(self, text: str) -> None:
        """Writes what is not the document's own."""
        self.parts.append(text)
        self.length += len(text)

    def write(self, text: str) -> None:
        text = scrub(text)  # character references may stand for what has no place in a message
        self.seen = self.seen or visible(text)
        self.decorate(text.replace("\n", "\n" + self.indent))

    def begin(self, mark: Mark) -> None:
        self.open.append((mark, self.length))

    def end(self) -> None:
        mark, start = self.open.pop()
        if start < self.length:
            self.spans.append(Span(start, self.length, mark))

    def is_open(self, kind: str) -> bool:
        return any(mark.kind == kind for mark, _ in self.open)

    @contextmanager
    def marked(self, mark: Mark) -> Iterator[None]:
        """Marks what is written within, where the platform shows such a mark and none of its kind is open."""
        shown = mark.kind in self.look.marks and not self.is_open(mark.kind)
        if shown:
            self.begin(mark)
        yield
        if shown:
            self.end()

    def code(self, mark: Mark, text: str) -> None:
        """Code stands in no mark but a quote: those around it are interrupted. Within a link it is plain text."""
        if self.is_open("text_link"):
            self.write(text)
            return
        around = []
        while self.open and self.open[-1][0].kind != "blockquote":
            around.append(self.open[-1][0])
            self.end()
        with self.marked(mark):
            self.write(text)
        for outer in reversed(around):
            self.begin(outer)

    def inline(self, tokens: Sequence[Token]) -> None:
        """The content of one block."""
        depth = dict.fromkeys(_STYLES, 0)
        shown = {name: kind in self.look.marks and not self.is_open(kind) for name, kind in _STYLES.items()}
        link = _Link()
        for token in tokens:
            name, _, side = token.type.partition("_")
            if name in _STYLES:
                outermost = depth[name] == (side == "close")
                depth[name] += token.nesting
                if outermost:
                    self._style(name, opens=side == "open", shown=shown[name])
            elif token.type == "link_open":
                link = self._begin_link(str(token.attrs.get("href", "")), token)
                self.linked = True
            elif token.type == "link_close":
                self._end_link(link)
                self.linked = False
            elif token.type == "image":
                self._image(token)
            elif token.type == "code_inline":
                self.code(Mark("code"), token.content)
            elif token.type in ("softbreak", "hardbreak"):
                self.write("\n")
            else:
                self.write(_BREAK_TAG.sub("\n", token.content))

    def _style(self, name: str, *, opens: bool, shown: bool) -> None:
        if shown and opens:
            self.begin(Mark(_STYLES[name]))
        elif shown:
            self.end()
        elif name == "s":
            self.decorate("~")  # an old price must not read like a price

    def _begin_link(self, url: str, token: Token) -> _Link:
        marked = "text_link" in self.look.marks and _LINKABLE.fullmatch(url) is not None
        if marked:
            self.begin(Mark("text_link", url=url))
        return _Link(url, str(token.attrs.get("title", "")), len(self.parts), marked)

    def _end_link(self, link: _Link) -> None:
        label = "".join(self.parts[link.first :])
        shown = _shown(link.url)
        if not visible(label):
            self.write(shown)
        elif not link.marked and shown and _bare(label) != _bare(shown):
            self.write(f" ({shown})")
        if link.marked:
            self.end()
        if link.title:
            self.write(f" ({link.title})")

    def _image(self, token: Token) -> None:
        parts = token.children or []
        alt = token.content  # as written where it holds more than words
        if not any(part.type in ("link_open", "image") for part in parts):
            alt = " ".join("".join(part.content or " " for part in parts).split())
        source = str(token.attrs.get("src", ""))
        if self.is_open("text_link"):  # links don't nest
            self.write(f"{alt} ({source})" if alt else source)
            return
        if not self.linked and self.look.shows(source):
            start = self.length
            self.write(alt)
            self.seen = True
            title = str(token.attrs.get("title", ""))
            shown = f"{alt} ({title})" if alt and title else alt or title
            self.pictures.append(Picture(start, self.length, source, scrub(shown)))
            return
        link = self._begin_link(source, token)
        self.write(alt)
        self._end_link(link)


def _shown(url: str) -> str:
    """An address as people read it; a web address as it can be tapped."""
    return url if _LINKABLE.fullmatch(url) else unquote(url).removeprefix("mailto:").removeprefix("tel:")


def _bare(address: str) -> str:
    """What two ways to write one address have in common."""
    bare = unquote(_shown(address)).strip().split("://")[-1].rstrip("/").casefold()
    return re.sub(r"[\s()-]", "", bare) if re.fullmatch(r"[\d\s()+-]+", bare) else bare
