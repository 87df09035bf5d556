"""Regular expressions by the dozen: only those are tried that may match, because something that they need is there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Generic, TypeVar

from ahocorasick_rs import AhoCorasick

T = TypeVar("T")

_SHORT = 2  # characters: shorter ones stand in every other text
_MANY = 60  # alternatives; a pattern with more is tried always
_DIGIT = re.compile(r"\d")


class Patterns(Generic[T]):
    """Patterns with what each leads to."""

    def __init__(self, patterns: Sequence[tuple[re.Pattern[str], T]]) -> None:
        self._patterns = list(patterns)
        self._always: set[int] = set()
        self._with_digits: set[int] = set()  # always, in texts with a digit
        by_needle: dict[str, list[int]] = {}
        for at, (pattern, _) in enumerate(self._patterns):
            if (found := needles(pattern.pattern)) is None:
                (self._with_digits if _needs_digit(parser.parse(pattern.pattern)) else self._always).add(at)
            for needle in found or ():
                by_needle.setdefault(needle, []).append(at)
        words = sorted(by_needle)
        self._of = [by_needle[word] for word in words]
        self._finder = AhoCorasick(words)

    def matching(self, text: str) -> list[T]:
        """What the patterns that match the text lead to, in their order."""
        worth = set(self._always)
        if self._with_digits and _DIGIT.search(text):
            worth |= self._with_digits
        for index, _, _ in self._finder.find_matches_as_indexes(text, overlapping=True):
            worth.update(self._of[index])
        return [lead for pattern, lead in map(self._patterns.__getitem__, sorted(worth)) if pattern.search(text)]


def needles(pattern: str) -> set[str] | None:
    """Strings one of which stands in every text that the pattern matches; None: nothing of use can be told."""
    return _of_sequence(parser.parse(pattern))


def _of_sequence(items: Any) -> set[str] | None:
    best: set[str] | None = None
    run = ""
    for kind, value in [*items, (None, None)]:
        if kind is kinds.LITERAL:
            run += chr(value)
            continue
        found = {run} if len(run) >= _SHORT else None
        run = ""
        best = _better(best, found)
        if kind is not None:
            best = _better(best, _of_item(kind, value))
    return best


def _of_item(kind: Any, value: Any) -> set[str] | None:
    if kind is kinds.SUBPATTERN:
        return _of_sequence(value[3])
    if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT) and value[0] >= 1:
        return _of_sequence(value[2])
    if kind is kinds.BRANCH:
        found = [_of_sequence(branch) for branch in value[1]]
        if all(found) and sum(map(len, found)) <= _MANY:  # type: ignore[arg-type]
            return set().union(*found)  # type: ignore[arg-type]
    return None


def _needs_digit(items: Any) -> bool:
    return any(_is_digit(kind, value) for kind, value in items)


def _is_digit(kind: Any, value: Any) -> bool:
    if kind is kinds.SUBPATTERN:
        return _needs_digit(value[3])
    if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT):
        return bool(value[0] >= 1 and _needs_digit(value[2]))
    if kind is kinds.BRANCH:
        return all(map(_needs_digit, value[1]))
    return bool(kind is kinds.IN and value == [(kinds.CATEGORY, kinds.CATEGORY_DIGIT)])


def _better(one: set[str] | None, other: set[str] | None) -> set[str] | None:
    """Of two that both hold, the one that fires more seldom: fewer and longer."""
    if not one or not other:
        return one or other
    return min(one, other, key=lambda needles: (-min(map(len, needles)), len(needles)))
