"""What is wrong in a tenant's file, where, and how to mend it. Nothing here ever holds a value from a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

Loc = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake; line and column count from 1."""

    file: Path
    line: int
    column: int
    field: str  # such as channels.line-main.channel_secret, faq[0].answer; (file) for the file as a whole
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.field}: {self.what} — {self.remedy}"


class TenantError(Exception):
    """A tenant's file can't be used. `mistakes` holds every one that was found, in the order of the file."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = tuple(mistakes)


def field_name(loc: Iterable[str | int]) -> str:
    """`("faq", 0, "answer")` as people write it: `faq[0].answer`; `(file)` for the empty one."""
    name = ""
    for part in loc:
        name += f"[{part}]" if isinstance(part, int) else f".{part}" if name else part
    return name or "(file)"


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The right word that is nearest to a wrong one; None when none is near."""
    by_lower = {known.lower(): known for known in words}
    found = get_close_matches(word.lower().replace(" ", "_"), list(by_lower), 1, 0.6)
    return by_lower[found[0]] if found else None
