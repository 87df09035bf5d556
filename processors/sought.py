"""Regular expressions by the hundred over one normalised text: one pass tells which of them may match, because what
they need stands in it, and only those are tried.

What a pattern needs is read off the pattern itself: strings one of which is in every text that it matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import product
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Generic, TypeVar

from ahocorasick_rs import AhoCorasick

T = TypeVar("T")
Needles = frozenset[str]  # one of them is in the text

DIGIT = "\0digit"  # stands for any digit: a text may have dozens, and is looked through once for one
_DIGIT = re.compile(r"\d")
_MANY = 250  # needles of one kind; what has more is not looked for
_RANGE = 12  # letters of a set that are taken one by one
_AT_ONCE = 3  # kinds of needles that are asked for together
_LONG = 200  # characters of a pattern from which leaving out alternatives is worth compiling what is left
_KEPT = 50  # of one pattern, ways of leaving out alternatives that are kept compiled
_NEVER = "(?!)"
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]", re.DOTALL)


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
                    one if live >> (self._first + at) & 1 else _NEVER + "()" * (_parsed(one).state.groups - 1)
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
            strings = "|".join(filter(is_strings, parts))
            if strings and len(needs(strings)) != 1:  # too many together
                strings = ""
            others = "|".join(part for part in parts if not (strings and is_strings(part)))
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
    found = _found(text)
    assert _seeker is not None  # made with what was found
    return _seeker.look(text, found)


def groups_in(text: str) -> list[int]:
    """The numbers of those strings of `beside` that are in the text between two spaces, each once."""
    last = len(_groups)
    return [at for at in _found(text) if at < last]


@lru_cache(maxsize=2)  # of the message in hand
def _found(text: str) -> set[int]:
    global _seeker
    if _seeker is None:
        _seeker = _Seeker(_all, _groups)
    return {at for at, _, _ in _seeker.finder.find_matches_as_indexes(f" {text} ", overlapping=True)}


class _Seeker:
    """A bit for each pattern, and above those one for each kind of needles that a pattern needs beside others."""

    def __init__(self, patterns: Sequence[str], groups: Sequence[str]) -> None:
        digits = [digits_of(pattern) for pattern in patterns]
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
        for at, pattern in enumerate(patterns):
            needed = needs(pattern)
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


def alternatives(pattern: str) -> list[str]:
    """What stands between the bars that are in no group."""
    parts, depth, begun = [], 0, 0
    for token in _TOKEN.finditer(pattern):
        depth += {"(": 1, ")": -1}.get(token[0], 0)
        if token[0] == "|" and depth == 0:
            parts.append(pattern[begun : token.start()])
            begun = token.end()
    return [*parts, pattern[begun:]]


def needs(pattern: str) -> list[Needles]:
    """What each text has that the pattern matches, of every kind one needle; nothing: it may match any text. Knows no
    flags but those of a plain `re.compile(str)`."""
    return _few(_of_sequence(_parsed(pattern)))


def digits_of(pattern: str) -> int:
    """How many digits there are at least in what the pattern matches."""
    return _digits(_parsed(pattern))


def _digits(items: Iterable[Any]) -> int:
    return sum(_digits_of_item(kind, value) for kind, value in items)


def _digits_of_item(kind: Any, value: Any) -> int:
    if kind is kinds.LITERAL:
        return _is_digit(chr(value))
    if kind is kinds.IN:
        return value == [_ANY_DIGIT] or all(map(_is_digit, _letters(value) or ["?"]))
    if kind is kinds.SUBPATTERN:
        return _digits(value[3])
    if kind is kinds.ATOMIC_GROUP:
        return _digits(value)
    if kind is kinds.BRANCH:
        return min(map(_digits, value[1]))
    return value[0] * _digits(value[2]) if kind in _REPEATS else 0


def _is_digit(one: str) -> bool:
    return _DIGIT.fullmatch(one) is not None


def is_strings(pattern: str) -> bool:
    """Does it match whatever has one of its needles?"""
    items = _parsed(pattern)
    if not _no_more_than_strings(items):
        return False
    spelt = next(_useful(_together(_spelt(*item) for item in items) or ()), frozenset())
    # A text is looked through between two spaces.
    return needs(pattern) == [spelt] and DIGIT not in spelt and all(one == one.strip() for one in spelt)


def _no_more_than_strings(items: Iterable[Any]) -> bool:
    for kind, value in items:
        inner = {kinds.SUBPATTERN: lambda v: [v[3]], kinds.BRANCH: lambda v: v[1]}.get(kind)
        if inner is not None:
            if not all(map(_no_more_than_strings, inner(value))):
                return False
        elif kind in _REPEATS:
            if not _no_more_than_strings(value[2]):
                return False
        elif kind not in (kinds.LITERAL, kinds.IN):
            return False
    return True


def _few(kinds: Iterable[Needles]) -> list[Needles]:
    """The most telling ones; none twice."""
    return sorted(dict.fromkeys(kinds), key=_telling, reverse=True)[:_AT_ONCE]


def _telling(needles: Needles) -> tuple[int, int]:
    return min(0 if one is DIGIT else len(one) for one in needles), -len(needles)


def _of_sequence(items: Iterable[Any]) -> Iterator[Needles]:
    """The kinds of needles of what stands side by side. Parts that are few strings each make longer ones together."""
    run = [""]
    for kind, value in items:
        if kind is kinds.ASSERT:
            yield from _of_sequence(value[1])
        spelt = _spelt(kind, value)
        if (longer := _joined(run, spelt)) is not None:
            run = longer
            continue
        yield from _useful(_joined(run, spelt or _beginnings(kind, value)) or run)
        run = spelt or [""]
        if spelt is None:
            yield from _of_item(kind, value)
    yield from _useful(run)


def _of_item(kind: Any, value: Any) -> Iterator[Needles]:
    if kind is kinds.SUBPATTERN:
        yield from _of_sequence(value[3])
    elif kind is kinds.ATOMIC_GROUP:
        yield from _of_sequence(value)
    elif kind in _REPEATS and value[0] >= 1:
        yield from _of_sequence(value[2])
    elif kind is kinds.IN and value == [_ANY_DIGIT]:
        yield frozenset({DIGIT})
    elif kind is kinds.BRANCH:
        found = [_few(_of_sequence(branch))[:1] for branch in value[1]]
        if all(found):
            yield from _useful([needle for [needles] in found for needle in needles])


def _spelt(kind: Any, value: Any) -> list[str] | None:
    """All strings that a part of a pattern can be; None: they are too many, or can't be told."""
    if kind is kinds.LITERAL:
        return [chr(value)]
    if kind in (kinds.AT, kinds.ASSERT, kinds.ASSERT_NOT):
        return [""]
    if kind is kinds.IN:
        return _letters(value)
    if kind is kinds.SUBPATTERN and not any(value[1:3]):
        return _together(_spelt(*item) for item in value[3])
    if kind is kinds.BRANCH:
        told = [_together(_spelt(*item) for item in branch) for branch in value[1]]
        if all(one is not None for one in told):
            return _limited([string for one in told for string in one or ()])
    if kind in _REPEATS and value[1] == 1 and (once := _together(_spelt(*item) for item in value[2])) is not None:
        return once if value[0] else _limited(["", *once])
    return None


def _beginnings(kind: Any, value: Any) -> list[str]:
    """How all strings begin that a part of a pattern can be, which are more than can be spelt."""
    if kind is kinds.BRANCH:
        return [one for branch in value[1] for one in _beginning(branch)]
    if kind is kinds.SUBPATTERN and not any(value[1:3]):
        return _beginning(value[3])
    return _beginning(value[2]) if kind in _REPEATS and value[0] else [""]


def _beginning(items: Iterable[Any]) -> list[str]:
    run = [""]
    for kind, value in items:
        spelt = _spelt(kind, value)
        if (longer := _joined(run, spelt)) is None:
            return _joined(run, spelt or _beginnings(kind, value)) or run
        run = longer
    return run


def _joined(run: list[str], more: list[str] | None) -> list[str] | None:
    if more is None or len(run) * len(more) > _MANY:
        return None
    if len(more) == 1:
        return [one + more[0] for one in run]
    return ["".join(pair) for pair in product(run, more)]


def _letters(value: Any) -> list[str] | None:
    letters: list[str] = []
    for kind, one in value:
        if kind is kinds.LITERAL:
            letters.append(chr(one))
        elif kind is kinds.RANGE and one[1] - one[0] < _RANGE:
            letters += map(chr, range(one[0], one[1] + 1))
        else:
            return None
    return letters if len(letters) <= _RANGE else None


def _together(parts: Iterable[list[str] | None]) -> list[str] | None:
    run: list[str] | None = [""]
    for spelt in parts:
        if run is None:
            return None
        run = _joined(run, spelt)
    return run


def _limited(strings: list[str]) -> list[str] | None:
    return strings if len(strings) <= _MANY else None


def _useful(strings: Iterable[str]) -> Iterator[Needles]:
    """The strings as needles, where they tell anything: no single letter, which stands in every other text."""
    needles: list[str] = []
    for one in sorted({DIGIT if len(one) == 1 and one.isdigit() else one for one in strings}, key=len):
        if len(one) < 2 and not _rare(one):
            return
        if not any(shorter in one for shorter in needles):
            needles.append(one)
    if 0 < len(needles) <= _MANY:
        yield frozenset(needles)


def _rare(one: str) -> bool:
    return one == "฿" or (one != "" and not one.isalnum() and one not in " .," and not "ก" <= one <= "๎")


def _parsed(pattern: str) -> Any:
    return parser.parse(pattern)


def _each(bits: int) -> Iterator[int]:
    while bits:
        yield bits & -bits
        bits &= bits - 1


_ANY_DIGIT = (kinds.CATEGORY, kinds.CATEGORY_DIGIT)
_REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
