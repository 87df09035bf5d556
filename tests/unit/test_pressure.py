"""When answers get cheaper before they get late."""

from __future__ import annotations

import pytest

from gateway.pressure import Pressure


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
