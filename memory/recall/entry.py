"""What can be found, and what is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Protocol
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Hit:
    """`score` 0.0-1.0, never above the one before it; `kind` one of `memory.search.KINDS`."""

    id: str
    kind: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that can be found. `weight` (0.0-1.0: confidence, importance) and `at` let the better and the newer go
    first among those that fit alike; `by` is who said it, where that may be asked; entries of one kind that follow each
    other and are close in time belong to one talk. `owner` is whose vectors its own is kept with: a user, "" for what
    is the tenant's, None where it is not kept."""

    id: str
    kind: str
    text: str
    found_by: str
    weight: float = 1.0
    at: datetime | None = None
    by: str = ""
    owner: str | None = None

    @property
    def digest(self) -> bytes:
        """Of what it is found by: another one needs another vector."""
        return blake2b(self.found_by.encode("utf-8", "surrogatepass"), digest_size=8).digest()

    @property
    def mark(self) -> int:
        """See Many."""
        return crc32(self.found_by.encode("utf-8", "surrogatepass"))


class Many(Protocol):
    """Entries of one owner and one kind that are many, and nearly the same each time: each is made when it is needed.
    Another of `marks` (32 bits) under the same one of `ids`, and there is something else to be found."""

    ids: Sequence[str]
    marks: Sequence[int]
    times: Sequence[datetime]
    kind: str

    def weight(self, at: int) -> float: ...

    def entry(self, at: int) -> Entry | None:
        """None: there is nothing in it that could be found."""
        ...


class _None:
    ids: Sequence[str] = ()
    marks: Sequence[int] = ()
    times: Sequence[datetime] = ()
    kind = ""

    def weight(self, at: int) -> float:
        raise IndexError(at)

    def entry(self, at: int) -> Entry | None:
        raise IndexError(at)


NONE: Many = _None()


def anything(entry: Entry) -> bool:
    """Lets whatever fits through: a search then looks at none but the best."""
    return True
