"""What stands beside what: pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise

_SAME_TALK = 3600.0  # seconds
_MADE = 8  # numbers of a list that are made while one is looked up twice in an array


class Beside:
    """By numbers: what comes within an hour after an entry, and before it, and which talk it belongs to, named by one
    of its numbers; -1 in all three for an entry by itself. Arrays, as of some people a thousand are held."""

    def __init__(self, count: int = 0) -> None:
        """For the numbers below `count`."""
        self.after, self.before, self.talk = (array("i", [-1]) * count for _ in range(3))

    def add(self) -> None:
        """The next number."""
        self.after.append(-1)
        self.before.append(-1)
        self.talk.append(-1)

    def quickly(self, often: int) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """`after`, `before` and `talk`, to be asked for so many of them: a list tells faster, but has to be made."""
        if len(self.talk) > _MADE * often:
            return self.after, self.before, self.talk
        return self.after.tolist(), self.before.tolist(), self.talk.tolist()

    def chain(self, line: Iterable[tuple[float, int]]) -> None:
        """Of one kind, in the order of their times."""
        after, before, talk = self.after, self.before, self.talk
        for (at, one), (then, other) in pairwise(line):
            if then - at <= _SAME_TALK:
                after[one], before[other] = other, one
                if talk[one] < 0:
                    talk[one] = one
                talk[other] = talk[one]

    def drop(self, number: int) -> None:
        after, before = self.after[number], self.before[number]
        self.after[number] = self.before[number] = self.talk[number] = -1
        if after >= 0:
            self.before[after] = -1
            if self.after[after] < 0:
                self.talk[after] = -1
        if before >= 0:
            self.after[before] = -1
            if self.before[before] < 0:
                self.talk[before] = -1
