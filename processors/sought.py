"""Regular expressions by the hundred over one normalised text: one pass tells which of them may match, because what
they need stands in it, and only those are tried.

What a pattern needs is read off the pattern itself (`processors/needles.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

from ahocorasick_rs import AhoCorasick

from processors.needles import DIGIT, Needles, alternatives, begins, digits_of, is_something, is_strings, needs

T = TypeVar("T")

_DIGIT = re.compile(r"\d")
_LONG = 120  # characters of a pattern from which leaving out alternatives is worth compiling what is left
_KEPT = 50  # of one pattern, ways of leaving out alternatives that are kept compiled
_NEVER = "(?!)"
# Messages: what one means is asked before the answer and behind it, and hundreds may wait for a slow model in between.
_IN_HAND = 512


class Sought:
    """As a compiled pattern, without flags, for texts that `may_match` looks through. Made once, when a module is
    loaded: all there are share one automaton. Of a pattern only those of its alternatives are tried that may match.
    One with `other_spaces` is for `is_in`."""

    def __init__(self, pattern: str, *, other_spaces: bool = False) -> None:
        self.pattern = pattern
        self._alternatives = alternatives(pattern) if len(pattern) > _LONG else [pattern]
        self._first = _known(list(map(_spaceless, self._alternatives)) if other_spaces else self._alternatives)
        self.bits = ((1 << len(self._alternatives)) - 1) << self._first
        self.tried: dict[int, re.Pattern[str] | _OneByOne] = {}
        self._by_itself: dict[str, re.Pattern[str]] = {}  # those of the alternatives that were tried so

    def may(self, text: str) -> bool:
        return may_match(text) & self.bits != 0

    def is_in(self, text: str, whole: str) -> bool:
        """Whether it matches a text of which each word stands in `whole`, which is looked through in its place; there
        may be something else between these words."""
        return (live := may_match(whole) & self.bits) != 0 and self.of(live).search(text) is not None

    def search(self, text: str) -> re.Match[str] | None:
        return self.of(live).search(text) if (live := may_match(text) & self.bits) else None

    def finditer(self, text: str) -> Iterable[re.Match[str]]:
        return self.of(live).finditer(text) if (live := may_match(text) & self.bits) else ()

    def findall(self, text: str) -> Sequence[Any]:
        return self.of(live).findall(text) if (live := may_match(text) & self.bits) else ()

    def sub(self, put: str, text: str) -> str:
        return self.of(live).sub(put, text) if (live := may_match(text) & self.bits) else text

    def of(self, live: int) -> re.Pattern[str] | _OneByOne:
        """The pattern without the alternatives that are not among these bits; its groups keep their numbers."""
        if (compiled := self.tried.get(live)) is None:
            if len(self.tried) < _KEPT:
                compiled = self._without(live)
            else:
                live, compiled = self.bits, re.compile(self.pattern)
            self.tried[live] = compiled
        return compiled

    def _without(self, live: int) -> re.Pattern[str] | _OneByOne:
        parts: list[str] = []
        those: list[str] = []
        for at, one in enumerate(self._alternatives):
            if live >> (self._first + at) & 1:
                parts.append(one)
                those.append(one)
            elif groups := re.compile(one).groups:
                parts.append(_NEVER + "()" * groups)
        whole = re.compile("|".join(parts))
        apart = not begins("|".join(parts)) and all(begins(one) and is_something(one) for one in those)
        if not apart:
            return whole
        before = re.compile("|".join(parts[: parts.index(those[0])])).groups
        known = self._by_itself
        known |= {one: re.compile(one) for one in those if one not in known}
        return _OneByOne(whole, [known[one] for one in those], before)


class _OneByOne:
    """As the pattern `whole`, each of whose `alternatives` is looked for by itself: of one alone the engine knows with
    which letters it begins, and tries nothing at others. None of them matches nothing. `before`: groups before those
    of the first."""

    def __init__(self, whole: re.Pattern[str], alternatives: Sequence[re.Pattern[str]], before: int) -> None:
        self._match = whole.match
        self._groups = whole.groups
        self._searches = [one.search for one in alternatives]
        self._alone = alternatives[0].finditer if len(alternatives) == 1 else None
        self._before = ("",) * before
        self._behind = ("",) * (whole.groups - before - alternatives[0].groups)

    def search(self, text: str) -> re.Match[str] | None:
        starts = self._starts(text)
        return self._match(text, min(starts.values())) if starts else None

    def finditer(self, text: str) -> Sequence[re.Match[str]]:
        if self._alone is not None:
            return [found for one in self._alone(text) if (found := self._match(text, one.start())) is not None]
        out: list[re.Match[str]] = []
        starts = self._starts(text)
        while starts and (found := self._match(text, min(starts.values()))) is not None:
            out.append(found)
            end = found.end()
            for search, start in [*starts.items()]:
                if start >= end:
                    continue
                if (one := search(text, end)) is None:
                    del starts[search]
                else:
                    starts[search] = one.start()
        return out

    def _starts(self, text: str) -> dict[Callable[..., re.Match[str] | None], int]:
        """Where each alternative that is there stands first."""
        return {search: one.start() for search in self._searches if (one := search(text)) is not None}

    def findall(self, text: str) -> Sequence[Any]:
        if self._groups > 1 and self._alone is not None:
            return [self._before + one.groups("") + self._behind for one in self._alone(text)]
        found = self.finditer(text)
        if self._groups < 2:
            return [one[self._groups] or "" for one in found]
        return [one.groups("") for one in found]

    def sub(self, put: str, text: str) -> str:
        parts: list[str] = []
        at = 0
        for found in self.finditer(text):
            parts += text[at : found.start()], found.expand(put)
            at = found.end()
        return "".join(parts) + text[at:]


class Patterns(Generic[T]):
    """Patterns with what each leads to. Of those alternatives that are nothing but strings it is known from the one
    pass that they match."""

    def __init__(self, patterns: Iterable[tuple[str, T]]) -> None:
        self.patterns = list(patterns)
        self._bits = 0
        self._of: dict[int, tuple[int, Sought | None, int, T]] = {}  # with the bit of the strings, and all bits
        self._alone: dict[int, tuple[Callable[[str], object], T]] = {}  # those of one bit that were tried before
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
            bit = may & -may
            if (alone := self._alone.get(bit)) is not None:
                may ^= bit
                if alone[0](text):
                    found.append(alone[1])
                continue
            surely, sought, bits, lead = self._of[bit]
            live = may & bits
            may ^= live
            if live & surely or (sought and sought.of(live).search(text)):
                found.append(lead)
            if sought and bits == bit:  # as nearly all are
                self._alone[bit] = _quickest(sought.of(bit)), lead
        return found


def _quickest(pattern: re.Pattern[str] | _OneByOne) -> Callable[[str], object]:
    """What tells whether it is in a text: where a match can only begin with the text, the engine tries it at each of
    its letters nevertheless."""
    if isinstance(pattern, re.Pattern) and all(one.startswith("^") for one in alternatives(pattern.pattern)):
        return pattern.match
    return pattern.search


def _spaceless(pattern: str) -> str:
    """A pattern that matches as much and more, and needs no space and no beginning."""
    return re.sub(r"(?<!\[)\^", r"\\A", pattern.replace(" ", r"\W"))


_all: list[str] = []
_weights: Mapping[str, int] = {}
_seeker: _Seeker | None = None


def _known(patterns: Sequence[str]) -> int:
    """The number of the first bit of new ones."""
    _begin_anew()
    _all.extend(patterns)
    return len(_all) - len(patterns)


def beside(weights: Mapping[str, int]) -> None:
    """Has these strings found in the same pass, which costs little more: see `weighed`. There is one such list."""
    global _weights
    _begin_anew()
    _weights = weights


def _begin_anew() -> None:
    global _seeker
    _seeker = None
    may_match.cache_clear()
    _found.cache_clear()


@lru_cache(maxsize=256)
def may_match(text: str) -> int:
    """The bits of all patterns that may match the text: one that is not among them does not."""
    return _found(text)[0]


def weighed(text: str) -> int:
    """The sum of those weights of `beside` whose strings are in the text between two spaces, each once."""
    return _found(text)[1]


def digits_in(text: str) -> int:
    """How many there are."""
    return _found(text)[2]


@lru_cache(maxsize=_IN_HAND)
def _found(text: str) -> tuple[int, int, int]:
    """What `may_match`, `weighed` and `digits_in` tell. Another thread may load a module with patterns at any time."""
    global _seeker
    if (seeker := _seeker) is None:
        seeker = _seeker = _Seeker(_all, _weights)
    return seeker.look(text)


class _Seeker:
    """A bit for each pattern, and above those one for each kind of needles that a pattern needs beside others."""

    def __init__(self, patterns: Sequence[str], weights: Mapping[str, int]) -> None:
        looked_at = [(needs(pattern), digits_of(pattern)) for pattern in patterns]
        digits = [needed for _, needed in looked_at]
        # By how many digits there are: those that need no more.
        self._within = [
            sum(1 << at for at, needed in enumerate(digits) if needed <= there)
            for there in range(max(digits, default=0) + 1)
        ]
        self._most = len(self._within) - 1
        self._always = 0
        of_needle: dict[str, int] = {}
        kinds_of: dict[Needles, int] = {}
        # What is needed together, and whose that is, by the most telling part of it.
        together: dict[str, list[tuple[int, int]]] = {}
        for at, (needed, _) in enumerate(looked_at):
            if not needed:
                self._always |= 1 << at
            elif len(needed) == 1:
                for needle in needed[0]:
                    of_needle[needle] = of_needle.get(needle, 0) | 1 << at
            else:
                bits = sum(1 << (len(patterns) + kinds_of.setdefault(kind, len(kinds_of))) for kind in needed)
                for needle in needed[0]:
                    together.setdefault(needle, []).append((bits, 1 << at))
        for kind, number in kinds_of.items():
            for needle in kind:
                of_needle[needle] = of_needle.get(needle, 0) | 1 << (len(patterns) + number)
        self._with_digits, self._digits_first = of_needle.pop(DIGIT, 0), together.pop(DIGIT, [])
        # First what is weighed alone, last what leads to more: so a number tells what there is to do.
        words = sorted({**weights, **of_needle}, key=lambda one: (one in of_needle, one in together, one))
        self._needles = sum(one not in of_needle for one in words)
        self._leads = sum(one not in together for one in words)
        self._weights = [weights.get(word, 0) for word in words]
        # One object for all that are equal: a message touches less.
        same: dict[Any, Any] = {}
        self._bits = [same.setdefault(bits, bits) for bits in [of_needle.get(word, 0) for word in words]]
        pairs = [tuple(together.get(word, ())) for word in words[self._leads :]]
        self._together: list[tuple[tuple[int, int], ...]] = [same.setdefault(one, one) for one in pairs]
        self._finder = AhoCorasick(words)

    def look(self, text: str) -> tuple[int, int, int]:
        weights, bits, needles, leads = self._weights, self._bits, self._needles, self._leads
        seen, weight, first = self._always, 0, []
        for at in {at for at, _, _ in self._finder.find_matches_as_indexes(f" {text} ", overlapping=True)}:
            weight += weights[at]
            if at >= needles:
                seen |= bits[at]
                if at >= leads:
                    first.append(at - leads)
        if digits := len(_DIGIT.findall(text)):
            seen |= self._with_digits
            for needed, pattern in self._digits_first:
                if seen & needed == needed:
                    seen |= pattern
        for at in first:
            for needed, pattern in self._together[at]:
                if seen & needed == needed:
                    seen |= pattern
        return seen & self._within[min(digits, self._most)], weight, digits


def _each(bits: int) -> Iterator[int]:
    while bits:
        yield bits & -bits
        bits &= bits - 1
