"""Pictures in an answer's Markdown, taken out of its text: platforms show them as messages of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby

import regex

from gateway.messages import Image
from gateway.rendering.document import read
from gateway.rendering.rich import Look, Rich, Span
from gateway.rendering.text import visible

Shows = Callable[[str], bool]  # is the picture at this address one that is to be shown?

_MARKER = regex.compile(r"(?:\A|(?<=\n))[ >]*(?:[•◦▪]|\d+[.)])?[ ]*\Z")  # of a list's item that has nothing else


def with_pictures(markdown: str, look: Look, shows: Shows) -> list[Rich | Image]:
    """The document in order, each picture below the line it stands in. What a line ends in pictures with is not told
    there a second time; in the midst of a line a picture's name stays."""
    rich = read(markdown, replace(look, shows=shows) if "![" in markdown else look)
    if not rich.pictures:
        return [rich]
    pieces: list[Rich | Image] = []
    start = 0
    for end, group in groupby(rich.pictures, lambda picture: _line_end(rich.text, picture.end)):
        pictures = list(group)
        cut = end
        for picture in reversed(pictures):
            if visible(rich.text[picture.end : cut]):
                break
            cut = picture.start
        pieces += _slice(rich, start, cut, drop_marker=cut < end)
        pieces += [Image(picture.url, picture.alt) for picture in pictures]
        start = end
    return [*pieces, *_slice(rich, start, len(rich.text))]


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _slice(rich: Rich, start: int, end: int, *, drop_marker: bool = False) -> Iterator[Rich]:
    """The text in between, if there is any to see."""
    text = rich.text[start:end]
    text = (_MARKER.sub("", text) if drop_marker else text).rstrip()
    skipped = len(text) - len(text.lstrip("\n"))
    text, start = text[skipped:], start + skipped
    if visible(text):
        clipped = (Span(max(s.start - start, 0), min(s.end - start, len(text)), s.mark) for s in rich.spans)
        yield Rich(text, tuple(span for span in clipped if span.start < span.end))
