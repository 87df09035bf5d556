"""Markdown that is still being written, so ended that what has begun already shows as what it will be. Pure."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_FENCE_ITSELF = re.compile(r"(?:\A|\n) {0,3}(?:(?:```|~~~)[^\n]*\n?|``?|~~?)\Z")  # in the middle of the line with it
_LINK = re.compile(r"!?\[[^\[\]\n]{0,300}(?:\](?:\([^()\s]{0,2000})?)?\Z")  # begun, and not ended
_CODE = re.compile(r"`[^`\n]+`")
_ITALIC = re.compile(r"(?<![\w*\\])\*(?=[^\s*])(?!.*[^\s*]\*(?!\*))", re.DOTALL)  # begun, and not ended
_HALF_MARK = re.compile(r"(?<![*~])[*~]\Z")  # may be the first half of ** or ~~


def so_far(markdown: str) -> str:
    """The same text without a link that is not whole, and with the ends of what is still bold, struck out or code.

    Nothing that is shown for one part of a text disappears when more of it comes, but for the rare mark that turns out
    to be none.
    """
    if len(_FENCE.findall(markdown)) % 2:
        return _FENCE_ITSELF.sub("", markdown)  # a block of code ends where the text does
    before, gap, last = markdown.rpartition("\n\n")
    last = _LINK.sub("", last)
    plain = _CODE.sub(lambda code: "x" * len(code[0]), last)
    if plain.count("`") % 2:
        last = _ended(last, plain.rfind("`"), "`")
    else:
        last, plain = _HALF_MARK.sub("", last), _HALF_MARK.sub("", plain)
    begun = [(plain.rfind(mark), mark) for mark in ("**", "~~") if plain.count(mark) % 2]
    if italic := _ITALIC.search(plain):
        begun.append((italic.start(), "*"))
    for at, mark in sorted(begun, reverse=True):
        last = _ended(last, at, mark)
    return before + gap + last


def _ended(text: str, at: int, mark: str) -> str:
    """`text` with `mark`, which begins at `at`, ended; without it where nothing follows."""
    text = text.rstrip()
    return text[:at] if not text[at + len(mark) :].strip("`*~ ") else text + mark
