"""How long events are kept: pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retention:
    """The newest `max_events` of a user, none older than `days`. 0 switches that limit off."""

    max_events: int = 1000
    days: int = 365


def keep(events: Sequence[T], when: Callable[[T], datetime], now: datetime, rules: Retention) -> list[T]:
    """The events that stay, in their order. Of equally old ones the later in the sequence counts as newer."""
    kept = list(events)
    if rules.days:
        oldest = now - timedelta(days=rules.days)
        kept = [event for event in kept if when(event) >= oldest]
    if rules.max_events and len(kept) > rules.max_events:
        newest = sorted(range(len(kept)), key=lambda index: (when(kept[index]), index))[-rules.max_events :]
        kept = [kept[index] for index in sorted(newest)]
    return kept
