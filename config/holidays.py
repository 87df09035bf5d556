"""The days on which a shop keeps other hours than its week's: public holidays, days of its own, special hours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from config.business_hours import Block, Week, check_block, mistake, sorted_blocks
from config.documented import Documented

_BUDDHIST = 543  # years that the Thai calendar is ahead
_SPAN = re.compile(r"\s*(?:\.\.|–|\bto\b|ถึง|\s-\s)\s*")
_FULL, _YEARLY = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})"), re.compile(r"(\d{1,2})-(\d{1,2})")
_LEAP = 2000  # any leap year: a day of every year is looked at in it
_AHEAD = 400  # days: a shop that does not open within them has closed
_DAY = timedelta(days=1)
_DAY_MINUTES = 24 * 60
_ALL_DAY: Week = (((0, _DAY_MINUTES),),) * 7
_NO_DAY_OFF = "Children's Day"  # stands among the library's public holidays

Span = tuple[date, date, bool]  # first and last day; True: of every year


def span_of(text: str) -> Span:
    """The days of `2026-12-31`, `12-31` (of every year) or two such with `..` between. Years of the Thai calendar are
    understood. Raises with a remedy."""
    ends = [_day(end) for end in _SPAN.split(text.strip())]
    if len(ends) > 2 or any(end is None for end in ends):
        raise mistake(
            "is not a day or a span of days", 'write "2026-12-31", "12-31" for every year, or "2027-04-12..2027-04-17"'
        )
    (first, yearly), (last, last_yearly) = ends[0], ends[-1]  # type: ignore[misc]
    if yearly != last_yearly:
        raise mistake("names the year of one end alone", "write it with both, or with neither")
    if last < first and not yearly:
        raise mistake("ends before it begins", "write the earlier day first")
    return first, last, yearly


def _day(text: str) -> tuple[date, bool] | None:
    full, yearly = _FULL.fullmatch(text), _YEARLY.fullmatch(text)
    try:
        if full:
            year = int(full[1])
            return date(year - _BUDDHIST if year > 2400 else year, int(full[2]), int(full[3])), False
        return (date(_LEAP, int(yearly[1]), int(yearly[2])), True) if yearly else None
    except ValueError:
        return None


def _check(text: str) -> str:
    span_of(text)
    return text


def _text(value: object) -> object:
    return value.isoformat() if isinstance(value, date) and not isinstance(value, datetime) else value


Days = Annotated[str, BeforeValidator(_text), AfterValidator(_check)]
_List = BeforeValidator(lambda value: [value] if isinstance(value, str | date) else value)


class Holidays(Documented):
    """Days that are not as every week's. What stands under `open` goes before the rest."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    public: Literal["TH"] | None = None
    """`TH`: closed on Thailand's public holidays, with those given in lieu."""
    closed: Annotated[tuple[Days, ...], _List] = ()
    """Closed days of the shop's own: 2026-12-31, 12-31 (every year), 2027-04-12..2027-04-17."""
    open: Annotated[
        dict[Days, Annotated[tuple[Annotated[str, AfterValidator(check_block)], ...], _List]],
        AfterValidator(lambda days: _check_open(days)),
    ] = Field(default_factory=dict)
    """Other hours on some days, also on holidays: {2026-12-05: ["10:00-14:00"]}."""


def _check_open(days: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    for name, blocks in days.items():
        sorted_blocks(blocks, name)
    return days


@dataclass(frozen=True)
class OpeningTimes:
    """When a shop is open, day by day. Two are equal when they were made of the same."""

    week: Week | None  # None: every day, all day
    holidays: Holidays | None
    timezone: str
    _open: Sequence[tuple[Span, tuple[Block, ...]]] = field(init=False, compare=False, repr=False)
    _closed: Sequence[Span] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        own = self.holidays or Holidays()
        object.__setattr__(self, "_closed", [span_of(text) for text in own.closed])
        object.__setattr__(self, "_open", [(span_of(text), sorted_blocks(b, text)) for text, b in own.open.items()])
        if own.public:
            _calendar()  # loaded now: tenants are read beside the event loop

    def blocks(self, day: date) -> tuple[Block, ...]:
        """In minutes of the day; an end may pass midnight."""
        for span, blocks in self._open:
            if _holds(span, day):
                return blocks
        public = self.holidays is not None and self.holidays.public is not None
        if any(_holds(span, day) for span in self._closed) or (public and _thai_holiday(day)):
            return ()
        return self._usual(day)

    def is_special(self, day: date) -> bool:
        """Is it unlike that day of every week: a holiday, or one with hours of its own?"""
        return self.blocks(day) != self._usual(day)

    def _usual(self, day: date) -> tuple[Block, ...]:
        return (self.week or _ALL_DAY)[day.weekday()]

    def is_open(self, now: datetime) -> bool:
        """`now` is aware."""
        local = now.astimezone(ZoneInfo(self.timezone))
        minute, today = local.hour * 60 + local.minute, local.date()
        return any(start <= minute < end for start, end in self.blocks(today)) or any(
            start <= minute + _DAY_MINUTES < end for start, end in self.blocks(today - _DAY)
        )

    def opens(self, now: datetime) -> datetime | None:
        """When a block begins next; None: not within a year. Both aware."""
        local = now.astimezone(ZoneInfo(self.timezone))
        for day in _days(local.date(), _AHEAD):
            for start, _ in self.blocks(day):
                begins = datetime(day.year, day.month, day.day, start // 60, start % 60, tzinfo=local.tzinfo)
                if begins > local:
                    return begins
        return None


def _days(first: date, count: int) -> Iterator[date]:
    for step in range(count):
        yield first + step * _DAY


def _holds(span: Span, day: date) -> bool:
    first, last, yearly = span
    if not yearly:
        return first <= day <= last
    at, begin, end = ((one.month, one.day) for one in (day, first, last))
    return begin <= at <= end if begin <= end else at >= begin or at <= end  # over the new year


@lru_cache(maxsize=4096)
def _thai_holiday(day: date) -> bool:
    name = _calendar().get(day)
    return name is not None and _NO_DAY_OFF not in name


def next_public(name: str, today: date) -> date | None:
    """The next day, `today` included, of Thailand's public holiday with this in its English name."""
    ahead = (today + timedelta(days=days) for days in range(_AHEAD))
    return next((day for day in ahead if name in (_calendar().get(day) or "")), None)


@lru_cache(maxsize=1)
def _calendar() -> dict[date, str]:
    from holidays import country_holidays  # a quarter of a second: for those shops alone that ask for it

    return country_holidays("TH", language="en_US")
