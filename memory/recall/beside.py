"""What stands beside what: pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

_SAME_TALK = 3600.0  # seconds


class Beside:
    """By numbers: what comes within an hour after an entry, and before it, and which talk it belongs to, named by one
    of its numbers; an entry by itself is in none of the three."""

    def __init__(self) -> None:
        self.after: dict[int, int] = {}
        self.before: dict[int, int] = {}
        self.talk: dict[int, int] = {}

    def chain(self, line: Iterable[tuple[float, int]]) -> None:
        """Of one kind, in the order of their times."""
        for (at, one), (then, other) in pairwise(line):
            if then - at <= _SAME_TALK:
                self.after[one], self.before[other] = other, one
                self.talk[other] = self.talk.setdefault(one, one)

    def drop(self, number: int) -> None:
        after, before = self.after.pop(number, None), self.before.pop(number, None)
        self.talk.pop(number, None)
        if after is not None:
            del self.before[after]
            if after not in self.after:
                del self.talk[after]
        if before is not None:
            del self.after[before]
            if before not in self.before:
                del self.talk[before]
