"""Cutting a prompt to what a model reads: pure. Oldest goes first, then what fits the message least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory.budget import Budget
from processors.tokens import MESSAGE

MARK = " […]"
BETWEEN = 3  # tokens between two texts of one block
_STEP = 6  # lines
_LETTER = 4  # bytes, at most
_ADDED = 2  # tokens that an estimate of a text may be above its bytes
_OWN = 0.65  # of a prompt that one message may take


@dataclass(frozen=True, slots=True)
class Room:
    """`count` says how many tokens a text is, never too few."""

    budget: Budget
    count: Callable[[str], int]

    def fits(self, texts: Sequence[str]) -> bool:
        """A token is at least a byte, and a letter has no more than four: most prompts need no counting."""
        if _LETTER * sum(map(len, texts)) + MESSAGE * len(texts) <= self.budget.prompt:
            return True
        sizes = [len(text.encode("utf-8", "surrogatepass")) + MESSAGE for text in texts]
        return sum(sizes) <= self.budget.prompt or self.of(texts) <= self.budget.prompt

    def of(self, texts: Sequence[str]) -> int:
        return sum(self.count(text) + MESSAGE for text in texts)

    def shorten(self, text: str, tokens: int) -> str:
        """The beginning of a text, with a mark that something is missing; all of it where it fits."""
        if _LETTER * len(text) + _ADDED <= tokens or self.count(text) <= tokens:
            return text
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self.count(text[:middle] + MARK) <= tokens:
                low = middle
            else:
                high = middle - 1
        return text[:low].rstrip() + MARK if low else ""

    def own(self, text: str) -> str:
        """The customer's message: whole, or where it is longer than most of a prompt, its beginning."""
        return self.shorten(text, int(self.budget.prompt * _OWN))


def chosen(sizes: Sequence[int], tokens: int) -> tuple[list[int], int]:
    """Which fit, taken in the order given, and their sum. One that does not fit is left out; a later, shorter one may
    still be taken."""
    if (all_of_it := sum(sizes)) <= tokens:
        return list(range(len(sizes))), all_of_it
    taken, spent = [], 0
    for at, size in enumerate(sizes):
        if spent + size <= tokens:
            taken.append(at)
            spent += size
    return taken, spent


def newest(sizes: Sequence[int], tokens: int) -> tuple[int, int]:
    """How many of the last ones fit without a gap, and their sum. What goes at the beginning goes by _STEP where most
    of what fits stays, so that not every further line moves it."""
    if (all_of_it := sum(sizes)) <= tokens:
        return len(sizes), all_of_it
    spent = taken = 0
    for size in reversed(sizes):
        if spent + size > tokens:
            more = (taken - len(sizes)) % _STEP
            if 2 * more > taken:
                return taken, spent
            first = len(sizes) - taken
            return taken - more, spent - sum(sizes[first : first + more])
        spent += size
        taken += 1
    return taken, spent
