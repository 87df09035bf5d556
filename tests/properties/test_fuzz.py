"""The short form of `python -m tests.fuzz`."""

from __future__ import annotations

import pytest

from tests.fuzz.run import tried
from tests.fuzz.targets import targets

NAMES = [target.name for target in targets("redis://localhost")]


@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
def test_nothing_that_is_sent_breaks_anything(number: int, redis_url: str) -> None:
    assert tried(targets(redis_url)[number], 60, 7) == (60, "")
