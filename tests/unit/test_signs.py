"""When the sign that the bot types is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.turn import TOGETHER, TYPING_AFTER, _Soon


class _Clock:
    """As much of an event loop as a sign takes."""

    def __init__(self, now: float) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, _: Callable[[], None]) -> None:
        self.at = when


def _shown_at(began: float) -> float:
    clock = _Clock(began)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "get_running_loop", lambda: clock)
        _Soon(TYPING_AFTER, _nothing)
    return clock.at


async def _nothing() -> Any:
    return None


@settings(deadline=None)
@given(began=st.floats(0, 1e8))
def test_a_sign_is_shown_when_it_was_to_be_or_a_tenth_of_a_second_later(began: float) -> None:
    assert -1e-6 <= _shown_at(began) - began - TYPING_AFTER <= TOGETHER + 1e-6


def test_signs_of_turns_that_began_within_a_tenth_of_a_second_are_shown_together() -> None:
    assert len({_shown_at(7.01 + at / 1000) for at in range(0, 90, 10)}) == 1
    assert _shown_at(7.11) > _shown_at(7.09)
