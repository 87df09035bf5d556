"""Regular expressions by the hundred over one normalised text: one pass tells which of them may match, because what
they need stands in it, and only those are tried.

What a pattern needs is read off the pattern itself (`processors/needles.py`).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from typing import Any, Generic, TypeVar

from ahocorasick_rs import AhoCorasick

from processors.needles import DIGIT, Needles, alternatives, digits_of, is_strings, needs

T = TypeVar("T")

_DIGIT = re.compile(r"\d")
_LONG = 200  # characters of a pattern from which leaving out alternatives is worth compiling what is left
_KEPT = 50  # of one pattern, ways of leaving out alternatives that are kept compiled
_NEVER = "(?!)"
# Messages: what one means is asked before the answer and behind it, and hundreds may wait for a slow model in between.
_IN_HAND = 512


class Sought:
    """As a compiled pattern, without flags, for texts that `may_match` looks through. Made once, when a module is
    loaded: all there are share one automaton. Of a pattern only those of its alternatives are tried that may match."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._alternatives = alternatives(pattern) if len(pattern) > _LONG else [pattern]
        self._first = _known(self._alternatives)
        self.bits = ((1 << len(self._alternatives)) - 1) << self._first
        self.tried: dict[int, re.Pattern[str]] = {}

    def may(self, text: str) -> bool:
        return may_match(text) & self.bits != 0

    def search(self, text: str) -> re.Match[str] | None:
        return self.of(live).search(text) if (live := may_match(text) & self.bits) else None

    def finditer(self, text: str) -> Iterable[re.Match[str]]:
        return self.of(live).finditer(text) if (live := may_match(text) & self.bits) else ()

    def findall(self, text: str) -> Sequence[Any]:
        return self.of(live).findall(text) if (live := may_match(text) & self.bits) else ()

    def sub(self, put: str, text: str) -> str:
        return self.of(live).sub(put, text) if (live := may_match(text) & self.bits) else text

    def of(self, live: int) -> re.Pattern[str]:
        """The pattern without the alternatives that are not among these bits; its groups keep their numbers."""
        if (compiled := self.tried.get(live)) is None:
            if len(self.tried) < _KEPT:
                parts = (
                    one if live >> (self._first + at) & 1 else _NEVER + "()" * re.compile(one).groups
                    for at, one in enumerate(self._alternatives)
                )
                pattern = "|".join(one for one in parts if one != _NEVER)
            else:
                live, pattern = self.bits, self.pattern
            compiled = self.tried[live] = re.compile(pattern)
        return compiled


class Patterns(Generic[T]):
    """Patterns with what each leads to. Of those alternatives that are nothing but strings it is known from the one
    pass that they match."""

    def __init__(self, patterns: Iterable[tuple[str, T]]) -> None:
        self.patterns = list(patterns)
        self._bits = 0
        self._of: dict[int, tuple[int, Sought | None, int, T]] = {}  # with the bit of the strings, and all bits
        for pattern, lead in self.patterns:
            parts = alternatives(pattern)
            plain = list(filter(is_strings, parts))
            if plain and len(needs("|".join(plain))) != 1:  # too many together
                plain = []
            strings = "|".join(plain)
            others = "|".join(part for part in parts if part not in plain)
            surely = 1 << _known([strings]) if strings else 0
            sought = Sought(others) if others else None
            bits = surely | (sought.bits if sought else 0)
            self._bits |= bits
            self._of |= dict.fromkeys(_each(bits), (surely, sought, bits, lead))

    def matching(self, text: str) -> list[T]:
        """What the patterns that match the text lead to, in their order."""
        may, found = may_match(text) & self._bits, []
        while may:
            surely, sought, bits, lead = self._of[may & -may]
            live = may & bits
            if live & surely or (sought and (sought.tried.get(live) or sought.of(live)).search(text)):
                found.append(lead)
            may ^= live
        return found


_all: list[str] = []
_groups: Sequence[str] = ()
_seeker: _Seeker | None = None


def _known(patterns: Sequence[str]) -> int:
    """The number of the first bit of new ones."""
    _begin_anew()
    _all.extend(patterns)
    return len(_all) - len(patterns)


def beside(groups: Sequence[str]) -> None:
    """Has these strings found in the same pass, which costs little more: see `groups_in`. There is one such list."""
    global _groups
    _begin_anew()
    _groups = groups


def _begin_anew() -> None:
    global _seeker
    _seeker = None
    may_match.cache_clear()
    _found.cache_clear()


@lru_cache(maxsize=256)
def may_match(text: str) -> int:
    """The bits of all patterns that may match the text: one that is not among them does not."""
    return _found(text)[0]


def groups_in(text: str) -> Sequence[int]:
    """The numbers of those strings of `beside` that are in the text between two spaces, each once."""
    return _found(text)[1]


@lru_cache(maxsize=_IN_HAND)
def _found(text: str) -> tuple[int, array[int]]:
    """What `may_match` and `groups_in` tell, packed. Another thread may load a module with patterns at any time."""
    global _seeker
    if (seeker := _seeker) is None:
        seeker = _seeker = _Seeker(_all, _groups)
    found = {at for at, _, _ in seeker.finder.find_matches_as_indexes(f" {text} ", overlapping=True)}
    last = seeker.last
    return seeker.look(text, found), array("I", [at for at in found if at < last])


class _Seeker:
    """A bit for each pattern, and above those one for each kind of needles that a pattern needs beside others."""

    def __init__(self, patterns: Sequence[str], groups: Sequence[str]) -> None:
        looked_at = [(needs(pattern), digits_of(pattern)) for pattern in patterns]
        digits = [needed for _, needed in looked_at]
        # By how many digits there are: those that need no more.
        self._within = [
            sum(1 << at for at, needed in enumerate(digits) if needed <= there)
            for there in range(max(digits, default=0) + 1)
        ]
        self._always = 0
        # What is needed together, and whose that is, by the most telling part of it.
        self._together: dict[int, list[tuple[int, int]]] = {}
        of_needle: dict[str, int] = {}
        kinds_of: dict[Needles, int] = {}
        for at, (needed, _) in enumerate(looked_at):
            if not needed:
                self._always |= 1 << at
            elif len(needed) == 1:
                for needle in needed[0]:
                    of_needle[needle] = of_needle.get(needle, 0) | 1 << at
            else:
                bits = [1 << (len(patterns) + kinds_of.setdefault(kind, len(kinds_of))) for kind in needed]
                self._together.setdefault(bits[0], []).append((sum(bits), 1 << at))
        self._first = sum(self._together)
        for kind, number in kinds_of.items():
            for needle in kind:
                of_needle[needle] = of_needle.get(needle, 0) | 1 << (len(patterns) + number)
        self._with_digits = of_needle.pop(DIGIT, 0)
        words = list(dict.fromkeys([*groups, *sorted(of_needle)]))
        self.last = len(groups)  # the number behind theirs
        self._bits = [of_needle.get(word, 0) for word in words]
        self._needles = frozenset(at for at, bits in enumerate(self._bits) if bits)
        self.finder = AhoCorasick(words)

    def look(self, text: str, found: Set[int]) -> int:
        bits, seen = self._bits, self._always
        if digits := len(_DIGIT.findall(text)):
            seen |= self._with_digits
        for at in self._needles & found:
            seen |= bits[at]
        first = seen & self._first
        while first:
            bit = first & -first
            first ^= bit
            for needed, pattern in self._together[bit]:
                if seen & needed == needed:
                    seen |= pattern
        return seen & self._within[min(digits, len(self._within) - 1)]


def _each(bits: int) -> Iterator[int]:
    while bits:
        yield bits & -bits
        bits &= bits - 1
