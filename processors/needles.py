"""What a regular expression needs of a text, read off the pattern: strings one of which is in whatever it matches, and
how many digits. For plain patterns without flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

Needles = frozenset[str]  # one of them is in the text

DIGIT = "\0"  # stands for any digit: a text may have dozens, and is looked through once for one. No word is part of it
_BEGINNING = "\1"  # stands for where a text begins, until it is known what a needle has before that: nothing
_DIGIT = re.compile(r"\d")
_MANY = 250  # needles of one kind; what has more is not looked for
_RANGE = 12  # letters of a set that are taken one by one
_AT_ONCE = 3  # kinds of needles that are asked for together
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]", re.DOTALL)
_ANY_DIGIT = (kinds.CATEGORY, kinds.CATEGORY_DIGIT)
_AT_FIRST = (kinds.AT, kinds.AT_BEGINNING)
_REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)


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
    """What each text has, between two spaces, that the pattern matches, of every kind one needle; nothing: it may match
    any text. Knows no flags but those of a plain `re.compile(str)`."""
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


def is_something(pattern: str) -> bool:
    """Is whatever it matches at least one letter long?"""
    least: int = _parsed(pattern).getwidth()[0]
    return least > 0


def begins(pattern: str) -> bool:
    """Does the engine know of it with which letters a match begins, so that it tries nothing elsewhere?"""
    items = _parsed(pattern)
    while items and items[0][0] is kinds.SUBPATTERN:
        items = items[0][1][3]
    if not items:
        return False
    kind, value = items[0]
    if kind is kinds.BRANCH:
        return all(branch and branch[0][0] is kinds.LITERAL for branch in value[1])
    return kind in (kinds.LITERAL, kinds.IN)


def is_strings(pattern: str) -> bool:
    """Does it match whatever has one of its needles?"""
    items = _parsed(pattern)
    if not _no_more_than_strings(items):
        return False
    spelt = next(_useful(_together(_spelt(*item) for item in items) or ()), frozenset())
    return needs(pattern) == [spelt] and DIGIT not in spelt and all(one == one.strip() for one in spelt)


def _no_more_than_strings(items: Iterable[Any]) -> bool:
    for kind, value in items:
        if kind in (kinds.LITERAL, kinds.IN):
            continue
        if kind not in (kinds.BRANCH, kinds.SUBPATTERN, *_REPEATS):
            return False
        within = value[1] if kind is kinds.BRANCH else value[2:] if kind in _REPEATS else value[3:]
        if not all(map(_no_more_than_strings, within)):
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
    if (kind, value) == _AT_FIRST:
        return [_BEGINNING]
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
    for one in sorted({DIGIT if len(one) == 1 and one.isdecimal() else _placed(one) for one in strings}, key=len):
        if len(one) < 2 and not _rare(one):
            return
        if not any(shorter in one for shorter in needles):
            needles.append(one)
    if 0 < len(needles) <= _MANY:
        yield frozenset(needles)


def _placed(one: str) -> str:
    """A text is looked through between two spaces: at its beginning there is one, and before that nothing."""
    return f" {one.rpartition(_BEGINNING)[2]}" if _BEGINNING in one else one


def _rare(one: str) -> bool:
    return one == "฿" or (one != "" and not one.isalnum() and one not in " .," and not "ก" <= one <= "๎")


@lru_cache(maxsize=1)  # one after the other is asked several things about
def _parsed(pattern: str) -> Any:
    return parser.parse(pattern)
