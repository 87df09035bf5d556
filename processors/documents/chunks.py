"""A file's parts as passages of a size that can be found and told: cut between paragraphs, else sentences, else at
spaces; Thai without any between letters, with a little said twice: so a word on the edge is whole in one of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import regex

from processors.documents.parts import Part, Passage

SIZE = 600  # characters that a passage is filled up to
LONGEST = 900
_TWICE = 60
_PARAGRAPHS = regex.compile(r"\n[ \t]*\n\s*")
_SPACES = regex.compile(r"[ \t ]+")
_ENDS = regex.compile(r"(?<=[.!?…]|ครับ|ค่ะ|คะ|ฯ)\s+|\n")
_EDGE = regex.compile(r"\X")


def passages(title: str, parts: Iterable[Part]) -> list[Passage]:
    """In order; none is empty, nothing of the text is left out, none has more than LONGEST characters."""
    out = []
    for part in parts:
        for text in _texts(part):
            out.append(Passage(text, title, part.heading, part.page))
    return out


def _texts(part: Part) -> Iterator[str]:
    if part.whole:
        yield from _pieces(part.text)
        return
    held = ""
    for paragraph in _PARAGRAPHS.split(part.text):
        for piece in _pieces("\n".join(_SPACES.sub(" ", line).strip() for line in paragraph.split("\n"))):
            if held and len(held) + len(piece) > SIZE:
                yield held
                held = ""
            held = f"{held}\n{piece}" if held else piece
    if held:
        yield held


def _pieces(text: str) -> Iterator[str]:
    """Of no more than LONGEST characters."""
    text = text.strip()
    if len(text) <= LONGEST:
        if text:
            yield text
        return
    held = ""
    for sentence in _ENDS.split(text):
        for piece in _cut(sentence.strip()):
            if held and len(held) + len(piece) >= SIZE:
                yield held
                held = ""
            held = f"{held} {piece}" if held else piece
    if held:
        yield held


def _cut(text: str) -> Iterator[str]:
    while len(text) > SIZE:
        at = text.rfind(" ", SIZE // 2, SIZE)
        if at > 0:
            yield text[:at].rstrip()
            text = text[at:].lstrip()
            continue
        at = _edge(text, SIZE)
        yield text[:at]
        text = text[_edge(text, at - _TWICE) :]
    if text:
        yield text


def _edge(text: str, near: int) -> int:
    """The end of the letter with its marks that stands at `near`."""
    begin = max(0, near - 20)
    ends = [found.end() for found in _EDGE.finditer(text, begin, near + 20)]
    return max((end for end in ends if end <= near), default=near)
