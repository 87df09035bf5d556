from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from memory.retention import Retention, keep

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def kept(events: list[datetime], rules: Retention) -> list[datetime]:
    return keep(events, lambda event: event, NOW, rules)


def test_the_limit_in_days_is_inclusive() -> None:
    assert kept([ago(366), ago(365), ago(364)], Retention()) == [ago(365), ago(364)]


def test_the_newest_stay_in_their_order_even_when_they_came_out_of_order() -> None:
    assert kept([ago(1), ago(3), ago(0), ago(2)], Retention(max_events=2)) == [ago(1), ago(0)]


def test_of_equally_old_events_the_later_ones_stay() -> None:
    events = [("a", NOW), ("b", NOW), ("c", NOW)]
    assert keep(events, lambda event: event[1], NOW, Retention(max_events=2)) == [("b", NOW), ("c", NOW)]


def test_zero_switches_a_limit_off() -> None:
    events = [ago(days) for days in range(2000, 0, -1)]
    assert kept(events, Retention(max_events=0, days=0)) == events


@given(st.lists(st.integers(-10, 800)), st.integers(1, 20), st.integers(1, 400))
def test_what_stays_is_newest_young_and_stays_again(days: list[int], most: int, oldest: int) -> None:
    rules = Retention(max_events=most, days=oldest)
    events = [ago(one) for one in days]
    stays = kept(events, rules)
    assert sorted(stays) == sorted(event for event in events if event >= ago(oldest))[-most:]
    assert kept(stays, rules) == stays
