"""How long events are kept: pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nsmallest
from operator import le
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retention:
    """The newest `max_events` of a user, none older than `days`. 0 switches that limit off."""

    max_events: int = 1000
    days: int = 365


def keep(events: Sequence[T], when: Callable[[T], datetime], now: datetime, rules: Retention) -> list[T]:
    """The events that stay, in their order. Of equally old ones the later in the sequence counts as newer."""
    times = list(map(when, events))
    oldest = now - timedelta(days=rules.days) if rules.days else None
    most = rules.max_events or len(events)
    if all(map(le, times, times[1:])):  # nearly always: events come in the order of their times
        first = bisect_left(times, oldest) if oldest else 0
        return list(events[max(first, len(events) - most) :])
    young = [index for index, time in enumerate(times) if oldest is None or time >= oldest]
    gone = set(nsmallest(len(young) - most, young, key=lambda index: (times[index], index)))
    return [events[index] for index in young if index not in gone]
