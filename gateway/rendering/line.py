"""For LINE: plain text, which is all its text messages show."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.rendering.document import read
from gateway.rendering.rich import Look
from gateway.rendering.split import split

_LOOK = Look()
_BUBBLES_PER_CALL = 5


def render_line(markdown: str, limit: int = 5000) -> list[str]:
    """Bubbles of at most `limit` UTF-16 code units, none of them blank; no text, no bubble."""
    return [piece.text for piece in split(read(markdown, _LOOK), limit)]


def pack_line(pieces: Sequence[str]) -> list[list[str]]:
    """Bubbles by the call that sends them: a reply token is good for one, a call takes five."""
    return [list(pieces[at : at + _BUBBLES_PER_CALL]) for at in range(0, len(pieces), _BUBBLES_PER_CALL)]
