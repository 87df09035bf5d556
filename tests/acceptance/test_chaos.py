"""The chaos run, short. By hand, longer: `python -m tests.acceptance.chaos --seed N`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.chaos import Plan, run


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_nothing_is_lost_or_out_of_order_while_everything_is_killed_and_stopped(tmp_path: Path) -> None:
    plan = Plan(seed=7, messages=200, users=60, seconds=20.0, fault_every=1.5, longest_stop=6.0)
    report = await run(plan, tmp_path)
    assert report.well, "\n".join([report.head(), report.row(), *report.details()])
    assert [cause for cause in report.doubled if cause.startswith("LINE")] == [], report.details()
