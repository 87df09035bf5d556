"""When answers get cheaper before they get late."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.pressure import LATE, WINDOW, Pressure


@pytest.mark.parametrize(
    ("waits", "high"),
    [
        ([], False),
        ([0.1] * 30, False),
        ([5.0] * 30, False),
        ([60.0 - second for second in range(30)], False),  # after a restart: long, and getting shorter
        ([float(second) for second in range(30)], True),
        ([15.0] * 30, True),
        ([30.0], False),  # nothing to hold it against yet
    ],
    ids=["nothing", "idle", "busy", "draining", "growing", "as fast as it drains", "one"],
)
def test_pressure_is_a_queue_that_does_not_get_shorter(waits: list[float], high: bool) -> None:
    now = 0.0
    pressure = Pressure(lambda: now)
    for waited in waits:
        now += 1.0
        pressure.note(waited)
    assert pressure.high() == high


def plainly(seen: list[tuple[float, float]], now: float) -> bool:
    lately = [waited for at, waited in seen if now - at <= WINDOW]
    before = [waited for at, waited in seen if WINDOW < now - at <= 2 * WINDOW]
    return bool(lately and before) and max(lately) > LATE and max(lately) >= max(before)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from((0.0, 0.5, 3.0, 10.0, 11.0, 25.0)), st.floats(0.0, 30.0))))
def test_pressure_is_as_a_look_at_all_that_waited_tells(steps: list[tuple[float, float]]) -> None:
    now = 0.0
    seen: list[tuple[float, float]] = []
    pressure = Pressure(lambda: now)
    for pause, waited in steps:
        now += pause
        assert pressure.high() == plainly(seen, now)
        pressure.note(waited)
        seen.append((now, waited))
        assert pressure.high() == plainly(seen, now)
