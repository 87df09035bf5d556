"""Counts of a process, added to a hash of Redis: as many fields as there are in one command."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

QUARTER = 900  # seconds: zones are whole quarters of an hour apart, and so are all beginnings of days

# Key; seconds it is kept; how many whole numbers there are; field and number, those first, then fractions.
_ADD = """
local whole = 3 + 2 * tonumber(ARGV[2])
for at = 3, #ARGV, 2 do
  redis.call(at < whole and 'HINCRBY' or 'HINCRBYFLOAT', KEYS[1], ARGV[at], ARGV[at + 1])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
"""


def add(
    pipe: Any,
    key: str,
    kept_for: int,
    counts: Iterable[tuple[str | bytes, int]],
    sums: Iterable[tuple[str | bytes, float]] = (),
) -> None:
    """Puts the command into a pipeline. `kept_for`: seconds from now on; fields are named once each."""
    told: list[str | bytes | float] = [part for pair in counts for part in pair]
    whole = len(told) // 2
    told += [part for pair in sums for part in pair]
    if told:
        pipe.execute_command("EVAL", _ADD, 1, key, kept_for, whole, *told)


def quarter_of(now: datetime) -> tuple[datetime, datetime]:
    """The quarter of an hour in which it is: from when, and until when."""
    since = datetime.fromtimestamp(int(now.timestamp()) // QUARTER * QUARTER, UTC)
    return since, since + timedelta(seconds=QUARTER)


def month_in(zone: str, now: datetime) -> tuple[int, int]:
    """Year and month, as the clock says in that zone."""
    return _month_of(zone, int(now.timestamp()) // QUARTER)


@lru_cache(4096)
def _month_of(zone: str, quarter: int) -> tuple[int, int]:
    local = datetime.fromtimestamp(quarter * QUARTER, ZoneInfo(zone))
    return local.year, local.month
