"""When the sign that the bot types is shown, and whatever else nearly never has to be done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.soon import Soon
from gateway.turn import TOGETHER, TYPING_AFTER


class _Clock:
    """As much of an event loop as a sign takes."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.timers: list[tuple[float, Callable[[Any], None]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[Any], None], _: Any) -> object:
        self.timers.append((when, call))
        return object()

    def run(self, until: float) -> None:
        while self.timers and self.timers[0][0] <= until:
            timer = self.timers.pop(0)  # there is one at a time
            self.now = max(self.now, timer[0])
            timer[1](self)


def _shown_at(*began: float) -> list[float]:
    clock, soon, shown = _Clock(0.0), Soon(TOGETHER), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "get_running_loop", lambda: clock)
        for at in began:
            clock.run(at)
            clock.now = at
            soon.call_later(TYPING_AFTER, lambda: shown.append(clock.now))
        clock.run(1e9)
    return shown


@settings(deadline=None)
@given(began=st.lists(st.floats(0, 1e6), min_size=1, max_size=5).map(sorted))
def test_a_sign_is_shown_when_it_was_to_be_or_a_tenth_of_a_second_later(began: list[float]) -> None:
    shown = _shown_at(*began)
    assert len(shown) == len(began)
    for at, when in zip(began, shown, strict=True):
        assert -2e-3 <= when - at - TYPING_AFTER <= TOGETHER + 1e-6


def test_signs_of_turns_that_began_within_a_tenth_of_a_second_are_shown_together() -> None:
    assert len(set(_shown_at(*(7.01 + at / 1000 for at in range(0, 90, 10))))) == 1
    assert _shown_at(7.11) > _shown_at(7.09)


async def test_what_is_taken_back_is_not_done_and_holds_up_nothing() -> None:
    soon, done = Soon(), []
    waiting = [soon.call_later(0.01, lambda at=at: done.append(at)) for at in range(6)]  # type: ignore[misc]
    for one in (*waiting[:2], waiting[4]):
        one.cancel()
    await asyncio.sleep(0.05)
    assert done == [2, 3, 5]
    soon.call_later(0.01, lambda: done.append(6)).cancel()
    await asyncio.sleep(0.02)
    soon.call_later(0.01, lambda: done.append(7))
    await asyncio.sleep(0.05)
    assert done == [2, 3, 5, 7]


async def test_what_is_to_come_earlier_than_what_waits_comes_before_it() -> None:
    soon, done = Soon(), []
    for seconds in (0.03, 0.01, 0.05, 0.02):
        soon.call_later(seconds, lambda seconds=seconds: done.append(seconds))  # type: ignore[misc]
    soon.call_later(0.0, lambda: soon.call_later(0.04, lambda: done.append(0.04)))  # type: ignore[arg-type, return-value]
    await asyncio.sleep(0.1)
    assert done == [0.01, 0.02, 0.03, 0.04, 0.05]
