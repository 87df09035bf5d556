"""Runs one target for so many inputs."""

from __future__ import annotations

import traceback
from typing import Any

from hypothesis import HealthCheck, given, seed, settings

from tests.fuzz.targets import Target


def tried(target: Target, inputs: int, number: int) -> tuple[int, str]:
    """How many inputs were tried, and what went wrong with the smallest one found: "" for nothing."""
    count = 0

    @seed(number)
    @settings(max_examples=inputs, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(target.inputs)
    def one(value: Any) -> None:
        nonlocal count
        count += 1
        target.check(value)

    try:
        one()
    except Exception:  # noqa: BLE001 - whatever it is, it is what we look for
        return count, traceback.format_exc()
    return count, ""
