"""When a shop is open: its week, holidays, special days, over midnight, in its own time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from config.holidays import Holidays, span_of
from config.tenants import Tenant

BANGKOK = ZoneInfo("Asia/Bangkok")
WEEK = {"mon-fri": ["09:00-12:00", "13:00-18:00"], "sat": ["18:00-02:00"]}


def shop(**sections: Any) -> Tenant:
    return Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {}, **sections})


def at(day: int, hour: int, minute: int = 0, month: int = 12, year: int = 2026) -> datetime:
    """A time in Bangkok, as UTC."""
    return datetime(year, month, day, hour, minute, tzinfo=BANGKOK).astimezone(UTC)


def test_closed_at_lunch_and_open_after_midnight() -> None:
    tenant = shop(business_hours=WEEK)
    days = [at(2, 8, 59), at(2, 9), at(2, 12), at(2, 13), at(5, 23), at(6, 1, 59), at(6, 2)]
    assert list(map(tenant.is_open, days)) == [False, True, False, True, True, True, False]


def test_public_holidays_and_the_days_in_lieu_are_closed_but_for_what_is_opened() -> None:
    tenant = shop(
        business_hours={"mon-sun": ["09:00-18:00"]}, holidays={"public": "TH", "open": {"2026-12-10": "10:00-12:00"}}
    )
    # 5 December 2026 is a Saturday, so the Monday after it is a holiday too; 10 December is one, and opened.
    open_at_11 = [day for day in range(1, 14) if tenant.is_open(at(day, 11))]
    assert open_at_11 == [1, 2, 3, 4, 6, 8, 9, 10, 11, 12, 13]
    assert not tenant.is_open(at(10, 13))


def test_childrens_day_is_no_day_off() -> None:
    tenant = shop(business_hours={"mon-sun": ["09:00-18:00"]}, holidays={"public": "TH"})
    assert tenant.is_open(at(9, 11, month=1, year=2027))
    assert not tenant.is_open(at(1, 11, month=1, year=2027))


def test_own_closed_days_of_one_year_of_every_year_and_over_the_new_year() -> None:
    tenant = shop(holidays={"closed": ["2026-12-10", "12-25", "12-30..01-02", "2570-01-15"]})
    closed = [
        (m, d) for m in (12, 1) for d in range(1, 32) if not tenant.is_open(at(d, 11, month=m, year=2027 - m // 12))
    ]
    assert closed == [(12, 10), (12, 25), (12, 30), (12, 31), (1, 1), (1, 2), (1, 15)]


def test_the_eve_goes_on_after_midnight_of_a_holiday() -> None:
    tenant = shop(business_hours=WEEK, holidays={"closed": ["2026-12-06"]})
    assert tenant.is_open(at(6, 1))


def test_when_it_opens_next() -> None:
    tenant = shop(business_hours=WEEK, holidays={"closed": ["2026-12-07..2026-12-08"]})
    assert tenant.times is not None
    told = [tenant.times.opens(now) for now in (at(4, 8), at(4, 12, 30), at(4, 19), at(6, 3))]
    assert told == [at(4, 9), at(4, 13), at(5, 18), at(9, 9)]
    assert shop(holidays={"closed": ["01-01..12-31"]}).times.opens(at(1, 9)) is None  # type: ignore[union-attr]


def test_a_shop_in_another_zone_keeps_its_own_day() -> None:
    tenant = shop(
        timezone="America/New_York", business_hours={"mon-sun": ["09:00-18:00"]}, holidays={"closed": ["2026-12-10"]}
    )
    assert not tenant.is_open(datetime(2026, 12, 11, 2, 0, tzinfo=UTC))
    assert [tenant.is_open(datetime(2026, 12, d, 15, 0, tzinfo=UTC)) for d in (9, 10, 11)] == [True, False, True]


def test_a_file_that_was_saved_again_unchanged_makes_an_equal_tenant() -> None:
    assert shop(business_hours=WEEK, holidays={"public": "TH"}) == shop(business_hours=WEEK, holidays={"public": "TH"})
    assert shop(business_hours=WEEK) != shop(business_hours=WEEK, holidays={"closed": "2026-12-10"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-31", (date(2026, 12, 31), date(2026, 12, 31), False)),
        ("2569-12-31", (date(2026, 12, 31), date(2026, 12, 31), False)),
        ("12-31", (date(2000, 12, 31), date(2000, 12, 31), True)),
        ("2027-04-12 - 2027-04-17", (date(2027, 4, 12), date(2027, 4, 17), False)),
        ("2027-4-12 ถึง 2027-4-17", (date(2027, 4, 12), date(2027, 4, 17), False)),
    ],
)
def test_ways_to_write_a_day(text: str, expected: object) -> None:
    assert span_of(text) == expected


@pytest.mark.parametrize(
    "text", ["31/12/2026", "2026-02-30", "12-31..2027-01-02", "2026-12-31..2026-12-01", "soon", ""]
)
def test_what_is_no_day_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="write"):
        Holidays.model_validate({"closed": [text]})
