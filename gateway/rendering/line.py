"""For LINE: plain text, which is all its text messages show."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.messages import Image
from gateway.rendering.document import read
from gateway.rendering.pictures import Shows, with_pictures
from gateway.rendering.rich import Look
from gateway.rendering.split import split

_LOOK = Look(heading="■ ")
_BUBBLES_PER_CALL = 5


def render_line(markdown: str, limit: int = 5000) -> list[str]:
    """Bubbles of at most `limit` UTF-16 code units, none of them blank; no text, no bubble."""
    return [piece.text for piece in split(read(markdown, _LOOK), limit)]


def render_line_with_pictures(markdown: str, shows: Shows, limit: int = 5000) -> list[str | Image]:
    """The same, with the pictures to be shown in their places between the bubbles."""
    bubbles: list[str | Image] = []
    for part in with_pictures(markdown, _LOOK, shows):
        if isinstance(part, Image):
            bubbles.append(part)
        else:
            for piece in split(part, limit):
                bubbles.append(piece.text)
    return bubbles


def shows(markdown: str) -> bool:
    """Whether anything of it would be seen on a screen: marks alone, and what is invisible, are not."""
    return markdown.lstrip()[:1].isalpha() or bool(render_line(markdown))


def pack_line(pieces: Sequence[str]) -> list[list[str]]:
    """Bubbles by the call that sends them: a reply token is good for one, a call takes five."""
    return [list(pieces[at : at + _BUBBLES_PER_CALL]) for at in range(0, len(pieces), _BUBBLES_PER_CALL)]
