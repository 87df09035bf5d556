"""What a turn came to, against what was expected of it, in lines to read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gateway.simulation.script import Expected
from gateway.simulation.stage import Seen

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda one, other: one >= other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    "<": lambda one, other: one < other,
    "=": lambda one, other: abs(one - other) < 0.005,
}


@dataclass(frozen=True, slots=True)
class Unmet:
    """One expectation that did not hold: what was wanted, and what there was."""

    what: str
    wanted: str
    was: str


def checked(seen: Seen) -> list[Unmet]:
    return list(_unmet(seen, seen.turn.expect))


def counted(expected: Expected) -> int:
    """How many expectations these are."""
    lists = (expected.answer, expected.never, expected.buttons, expected.remembers)
    return (
        sum(map(len, lists))
        + bool(expected.type)
        + (expected.importance is not None)
        + (expected.asks_model is not None)
        + expected.silent
    )


def _unmet(seen: Seen, expected: Expected) -> Iterator[Unmet]:
    answer = seen.answer or "(no answer)"
    for text in expected.answer:
        if _plain(text) not in _plain(seen.answer):
            yield Unmet("answer", text, answer)
    for text in expected.never:
        if _plain(text) in _plain(seen.answer):
            yield Unmet("answer", f"nothing of {text!r}", answer)
    if expected.silent and seen.answer:
        yield Unmet("answer", "none", answer)
    if expected.type and seen.type not in expected.type:
        yield Unmet("type", " or ".join(expected.type), seen.type or "(not understood as a message)")
    if expected.importance is not None and not _holds(expected.importance, seen.importance):
        yield Unmet(
            "importance", expected.importance, "(none)" if seen.importance is None else f"{seen.importance:.2f}"
        )
    for text in expected.buttons:
        if not any(_plain(text) in _plain(button) for button in seen.buttons):
            yield Unmet("buttons", text, ", ".join(seen.buttons) or "(no buttons)")
    for text in expected.remembers:
        if not any(_plain(text) in _plain(one) for one in seen.known):
            yield Unmet("memory", text, "; ".join(seen.known) or "(nothing is known)")
    if expected.asks_model is not None and expected.asks_model != bool(seen.asked):
        wanted = "the language model is asked" if expected.asks_model else "the language model is not asked"
        yield Unmet("model", wanted, "it was asked" if seen.asked else "it was not asked")


def _holds(bound: str, value: float | None) -> bool:
    found = re.fullmatch(r"(>=|<=|>|<|=)?\s*(.+)", bound)
    return found is not None and value is not None and _OPERATORS[found[1] or "="](value, float(found[2]))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def told(number: int, seen: Seen, unmet: Sequence[Unmet], customer: str) -> list[str]:
    """A turn as it is printed."""
    lines = [f"{number:>2}  {seen.at:%a %H:%M}  {seen.turn.by or customer}: {seen.turn.say}"]
    if seen.type:
        lines.append(f"      understood   {seen.type} {seen.importance:.2f}")
    lines += _block("answer", seen.answer or "(none)")
    if seen.buttons:
        lines.append(f"      buttons      {'  '.join(f'[{button}]' for button in seen.buttons)}")
    if seen.asked:
        lines.append(f"      model        asked{' (the script has no answer for it)' if seen.unscripted else ''}")
    lines += [f"      remembered   {one}" for one in seen.learnt]
    for one in unmet:
        lines.append(f"    ✗ {one.what}")
        lines += _block("expected", one.wanted, "- ")
        lines += _block("but it is", one.was, "+ ")
    count = counted(seen.turn.expect)
    if count and not unmet:
        lines.append(f"    ✓ {count} expectation{'s' * (count > 1)} met")
    return lines


def _block(name: str, text: str, mark: str = "") -> list[str]:
    first, *rest = text.splitlines() or [""]
    return [f"      {name:<12} {mark}{first}", *(f"      {'':<12} {mark}{line}".rstrip() for line in rest)]
