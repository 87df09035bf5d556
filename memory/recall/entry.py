"""What can be found, and what is found."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple, Protocol, TypeGuard, TypeVar
from zlib import crc32

import msgspec


class Findable(Protocol):
    """What an Entry has. Another `mark` (32 bits) under the same `id`, and there is something else to be found;
    `found_by` is empty where there is nothing."""

    @property
    def id(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def found_by(self) -> str: ...

    @property
    def weight(self) -> float: ...

    @property
    def at(self) -> datetime | None: ...

    @property
    def by(self) -> str: ...

    @property
    def mark(self) -> int: ...


F = TypeVar("F", bound=Findable, covariant=True)


class Line(Sequence[F]):
    """Findables of which nobody has to compare those that were there before. What stands at a place in it stands there
    for good; `first` is the place of the first one that is left."""

    __slots__ = ()
    first: int

    @abstractmethod
    def follows(self, other: object) -> bool:
        """Whether it is the other one, with some gone from the beginning and some come at the end."""

    @abstractmethod
    def placed(self, place: int, name: str) -> Findable:
        """The one so far from the first, of which the id is known."""


def in_line(some: Sequence[Findable]) -> TypeGuard[Line[Findable]]:
    """Whether it is a Line: to ask an abstract class for that takes ten times as long."""
    return hasattr(some, "follows")


class Frames(NamedTuple):
    """Of several, what of each is needed where nothing is new: in one pass, as asking each takes ten times as long.
    `times` are seconds."""

    ids: Sequence[str]
    marks: Sequence[int]
    weights: Sequence[float]
    times: Sequence[float]


def frames(some: Sequence[Findable]) -> Frames:
    """A class may have a `frames` of its own, of those that are all of it."""
    kinds = {*map(type, some)}
    if len(kinds) == 1 and (theirs := getattr(kinds.pop(), "frames", None)) is not None:
        return theirs(some)  # type: ignore[no-any-return]
    return Frames(
        [one.id for one in some],
        [one.mark for one in some],
        [one.weight for one in some],
        [at.timestamp() if (at := one.at) is not None else math.inf for one in some],
    )


Keep = Callable[[Findable], bool]


class Hit(msgspec.Struct, frozen=True, gc=False):
    """`score` 0.0-1.0, never above the one before it; `kind` one of `memory.search.KINDS`. The text is made when it is
    asked for."""

    of: Findable
    score: float

    @property
    def id(self) -> str:
        return self.of.id

    @property
    def kind(self) -> str:
        return self.of.kind

    @property
    def text(self) -> str:
        return self.of.text


class Entry(msgspec.Struct, frozen=True, gc=False):
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
        """See Findable."""
        return crc32(self.found_by.encode("utf-8", "surrogatepass"))


class Made(NamedTuple):
    """Entries that are made where what they are made of is not the same as at the search before."""

    of: Sequence[object]
    make: Callable[[], Sequence[Entry]]


def entry_of(one: Findable, owner: str) -> Entry:
    """The same with whose it is."""
    return Entry(one.id, one.kind, one.text, one.found_by, one.weight, one.at, one.by, owner)


def anything(entry: Findable) -> bool:
    """Lets whatever fits through: a search then looks at none but the best."""
    return True
