"""Days and times as customers write them, told by the calendar: พรุ่งนี้ บ่ายสาม, 5 ม.ค. 2569, next friday, 7 pm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import Any

from processors.normalise import normalise
from processors.numbers import COUNT, count_of
from processors.sought import Sought, may_match

_BUDDHIST = 543
_FAR = 3660  # days: further ahead or back nobody counts
_MONTHS_TH = (
    ("มกราคม", "ม.ค."), ("กุมภาพันธ์", "ก.พ."), ("มีนาคม", "มี.ค."), ("เมษายน", "เม.ย."), ("พฤษภาคม", "พ.ค."),
    ("มิถุนายน", "มิ.ย."), ("กรกฎาคม", "ก.ค."), ("สิงหาคม", "ส.ค."), ("กันยายน", "ก.ย."), ("ตุลาคม", "ต.ค."),
    ("พฤศจิกายน", "พ.ย."), ("ธันวาคม", "ธ.ค."),
)  # fmt: skip
# As they are said, without their ending; the seventh is often misspelled.
_SAID_TH = {
    "มกรา": 1, "กุมภา": 2, "มีนา": 3, "เมษา": 4, "พฤษภา": 5, "มิถุนา": 6, "กรกฎา": 7, "กรกฏา": 7, "กรกฏาคม": 7, "สิงหา": 8,
    "กันยา": 9, "ตุลา": 10, "พฤศจิกา": 11, "ธันวา": 12,
}  # fmt: skip
_MONTHS_EN = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = {name.replace(".", ""): number for number, names in enumerate(_MONTHS_TH, 1) for name in names}
_MONTH |= _SAID_TH | {name: number for number, name in enumerate(_MONTHS_EN, 1)}
# Short ones also as people type them, "12 ธค": then nothing Thai may follow.
_SHORT_TH = "|".join(
    rf"{short[:-1].replace('.', '[.]?')}[.]|{short.replace('.', '')}(?![ก-๎])" for _, short in _MONTHS_TH
)
MONTHS_TH = "|".join((*(name for name, _ in _MONTHS_TH), *sorted(_SAID_TH, key=len, reverse=True), _SHORT_TH))
_NAMES_EN = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_DAY_MONTH = Sought(
    rf"(\d(?<!\d\d)\d?+)(?:st|nd|rd|th)?(?: of)?\s*({MONTHS_TH}|(?:{_NAMES_EN})\b)"
    r"(?:,?\s*(?:พ\.ศ\.\s*)?(\d{4}|\d{2})(?![\d:.]))?"
)
_MONTH_DAY = Sought(rf"\b({_NAMES_EN}) (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}}))?")
_NUMBERS = Sought(r"(\d(?<![\d/]\d)\d?)/(\d{1,2})(?:/(\d{4}|\d{2}))?(?![\d/])(?!\s*(?:หมู่|ม\.|ซ\.|ซอย|ถ\.|ถนน))")
_OF_MONTH = Sought(r"วันที่\s*(\d{1,2})(?![\d/])(?!\s*(?:" + MONTHS_TH + r"))|\bon the (\d{1,2})(?:st|nd|rd|th)\b(?! of)")
_NEAR = {
    "เมื่อวาน": -1, "yesterday": -1, "วันนี้": 0, "today": 0, "tonight": 0, "คืนนี้": 0, "พรุ่งนี้": 1, "tomorrow": 1,
    "tmr": 1, "tmrw": 1, "tomorow": 1, "tommorow": 1, "tommorrow": 1,
    "มะรืน": 2, "day after tomorrow": 2, "เมื่อวานซืน": -2,
}  # fmt: skip
_NEAR_BY = Sought("|".join(sorted(_NEAR, key=len, reverse=True)))
_WEEKDAYS = {
    "จันทร์": 0, "อังคาร": 1, "พุธ": 2, "พฤหัส": 3, "ศุกร์": 4, "เสาร์": 5, "อาทิตย์": 6,
    "mon": 0, "tues": 1, "wednes": 2, "thurs": 3, "fri": 4, "satur": 5, "sun": 6,
}  # fmt: skip
_WHICH = r"(?:(?:ของ)?(?:อาทิตย์|สัปดาห์))?(นี้|หน้า(?!ร้าน|บ้าน|ตึก|คอนโด)|ที่แล้ว|ก่อน(?![ก-๎]))"
WEEKDAY = (
    rf"วัน(จันทร์|อังคาร|พุธ|พฤหัส|ศุกร์|เสาร์|อาทิตย์)(?:บดี)?{_WHICH}?"
    rf"|(?<!วัน)(จันทร์|อังคาร|พุธ|พฤหัส|ศุกร์|เสาร์)(?:บดี)?{_WHICH}"
    r"|\b(?:(next|last) )?(mon|tues|wednes|thurs|fri|satur|sun)day\b(?: (?:of )?(next|last) week\b)?"
)
_WEEKDAY = Sought(WEEKDAY)
_BACK = ("ที่แล้ว", "ก่อน", "last")
AWAY = (
    rf"(?<!ต่อ)(?<!เพิ่ม)(?:อีก(?:สัก)?|\bin)\s*({COUNT}|\ba\b)\s*(วัน(?!ละ)|สัปดาห์|อาทิตย์|days?\b|weeks?\b)(?!ต่อ)"
    rf"|({COUNT})\s*(วัน|สัปดาห์|อาทิตย์|days?\b|weeks?\b)\s*(?:ก่อน|ที่แล้ว|ที่ผ่านมา|ago\b)"
    r"|สิ้นเดือน(หน้า)?|\bend of (?:the|this|(next)) month\b"
)
_AWAY = Sought(AWAY)
_ISO = Sought(r"(\d(?<![\d-]\d)\d{3})-(\d{2})-(\d{2})(?![\d-])")
_HOUR_TH = {"หนึ่ง": 1, "สอง": 2, "สาม": 3, "สี่": 4, "ห้า": 5, "หก": 6, "เจ็ด": 7, "แปด": 8, "เก้า": 9, "สิบ": 10, "สิบเอ็ด": 11}
_NAMED = {"เที่ยงคืน": 0, "midnight": 0, "ทุ่ม": 19}
_HOUR_SAID = "|".join(sorted(_HOUR_TH, key=len, reverse=True))
_ANY_HOUR = rf"(\d{{1,2}}|{_HOUR_SAID})"
_CLOCK = Sought(r"(?<![\d:.])([01]?\d|2[0-3])[:.]([0-5]\d)(?!\d)(?!\s*(?:บาท|บ\.|฿))\s*(am\b|pm\b)?")
_AM_PM = Sought(r"(?<![\d:.])(1[0-2]|[1-9])\s?(am|pm)\b")
_HOUR_EN = "1[0-2]|[1-9]|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_PART_EN = "in the (?:morning|afternoon|evening)|at night|[ap]m"
SPOKEN = (
    rf"\b(?=(?:half|quarter) |(?:{_HOUR_EN}) ?(?:o'?clock|{_PART_EN})\b)(?:(half|quarter) (past|to) )?"
    rf"({_HOUR_EN})(?: ?o'?clock)?(?: in the (morning|afternoon|evening)| ?(am|pm)| at (night))?\b"
)
_SPOKEN = Sought(SPOKEN)
_MINUTES = r"(ครึ่ง|\d\d(?=\s*(?:นาที|น\.|ครับ|ค่ะ|คะ|คับ|นะ|$)))?"
# Hours in digits and in words stand apart, so that it is known with which letters each begins.
_THAI_TIME = Sought(
    rf"บ่าย\s*{_ANY_HOUR}?(?:\s*โมง)?\s*{_MINUTES}|ตี\s*{_ANY_HOUR}\s*{_MINUTES}"
    rf"|(\d\d?)\s*ทุ่ม\s*{_MINUTES}|({_HOUR_SAID})\s*ทุ่ม\s*{_MINUTES}"
    rf"|(\d\d?)\s*โมง\s*(เช้า|เย็น)?\s*{_MINUTES}|({_HOUR_SAID})\s*โมง\s*(เช้า|เย็น)?\s*{_MINUTES}"
    rf"|(เที่ยงคืน|เที่ยง|ทุ่ม(?<![ก-๎]ทุ่ม)|noon(?<!\wnoon)\b|midnight(?<!\wmidnight)\b)\s*{_MINUTES}"
)

_A_DATE = sum(one.bits for one in (_DAY_MONTH, _MONTH_DAY, _NUMBERS, _ISO))
_A_DAY = _A_DATE + sum(one.bits for one in (_OF_MONTH, _NEAR_BY, _WEEKDAY, _AWAY))
_A_TIME = sum(one.bits for one in (_CLOCK, _AM_PM, _THAI_TIME, _SPOKEN))


def days(text: str, now: datetime) -> list[date]:
    """The days that a text names, as seen from the shop's own `now`; each once, in order. A day without a year is the
    next such day; a weekday is the next of that name, today included, "next" or หน้า one of next week; what is no day of
    the calendar is left out."""
    return list(_in_order(normalise(text), now.date()))


@lru_cache(maxsize=256)  # a turn asks twice: for the answer, and for what is remembered
def _in_order(plain: str, today: date) -> Sequence[date]:
    if not (may := may_match(plain) & _A_DAY):
        return ()
    found = sorted(_days(plain, today, may), key=itemgetter(0))
    return tuple(dict.fromkeys([day for _, day in found]))


def _days(plain: str, today: date, may: int) -> Iterator[tuple[int, date]]:
    """`may`: the bits of the patterns that may match."""
    if may & _A_DATE:
        numbered: list[tuple[int, Any, int, Any]] = []
        if may & _DAY_MONTH.bits:
            numbered += [(m.start(), m[1], _MONTH[_key(m[2])], m[3]) for m in _DAY_MONTH.finditer(plain)]
        if may & _MONTH_DAY.bits:
            numbered += [(m.start(), m[2], _MONTH[_key(m[1])], m[3]) for m in _MONTH_DAY.finditer(plain)]
        if may & _NUMBERS.bits:
            numbered += [(m.start(), m[1], int(m[2]), m[3]) for m in _NUMBERS.finditer(plain)]
        if may & _ISO.bits:
            numbered += [(m.start(), m[3], int(m[2]), m[1]) for m in _ISO.finditer(plain)]
        for at, day, month, year in numbered:
            if (known := _day(int(day), month, year, today)) is not None:
                yield at, known
    for m in _OF_MONTH.finditer(plain) if may & _OF_MONTH.bits else ():
        day = int(m[1] or m[2])
        month = today.month + (day < today.day)
        if (known := _day(day, (month - 1) % 12 + 1, None, today)) is not None:
            yield m.start(), known
    for m in _NEAR_BY.finditer(plain) if may & _NEAR_BY.bits else ():
        yield m.start(), today + timedelta(days=_NEAR[m[0]])
    for m in _WEEKDAY.finditer(plain) if may & _WEEKDAY.bits else ():
        place, which = _WEEKDAYS[m[1] or m[3] or m[6]], m[2] or m[4] or m[5] or m[7]
        ahead = (place - today.weekday()) % 7
        if which in _BACK:
            ahead -= 7
        elif which in ("หน้า", "next"):
            ahead = 7 - today.weekday() + place
        yield m.start(), today + timedelta(days=ahead)
    for m in _AWAY.finditer(plain) if may & _AWAY.bits else ():
        if (known := _away(m, today)) is not None:
            yield m.start(), known


def _away(m: re.Match[str], today: date) -> date | None:
    """อีกสามวัน, two weeks ago, the end of the month."""
    if count := m[1] or m[3]:
        days = (1 if count == "a" else count_of(count)) * (1 if (m[2] or m[4]).startswith(("วัน", "day")) else 7)
        return today + timedelta(days=days if m[1] else -days) if days <= _FAR else None
    month = today.month + bool(m[5] or m[6])
    return date(today.year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def _key(month: str) -> str:
    month = month.replace(".", "")
    return month if month in _MONTH else month[:3]


def _day(day: int, month: int, year: str | None, today: date) -> date | None:
    try:
        if year is None:
            known = date(today.year, month, day)
            return known if known >= today else date(today.year + 1, month, day)
        full = int(year) if len(year) == 4 else _century(int(year), today)
        return date(full - _BUDDHIST if full > today.year + 300 else full, month, day)
    except ValueError:
        return None


def _century(year: int, today: date) -> int:
    """Of two digits the year that lies nearer: 69 is 2569, 26 is 2026."""
    return min((2000 + year, 2500 + year), key=lambda y: abs((y - _BUDDHIST if y > 2400 else y) - today.year))


def times(text: str) -> list[str]:
    """The times of day that a text names, as `15:00`; each once. Thai: บ่ายสาม 15, สองทุ่ม 20, ตีห้า 5, ห้าโมงเย็น 17."""
    return list(_times(normalise(text)))


@lru_cache(maxsize=256)
def _times(plain: str) -> Sequence[str]:
    if not (may := may_match(plain) & _A_TIME):
        return ()
    found: list[tuple[int, int, int]] = []
    if may & _CLOCK.bits:
        found += [(m.start(), _twelve(int(m[1]), m[3]), int(m[2])) for m in _CLOCK.finditer(plain)]
    if may & _AM_PM.bits:
        found += [(m.start(), _twelve(int(m[1]), m[2]), 0) for m in _AM_PM.finditer(plain)]
    if may & _THAI_TIME.bits:
        found += [(m.start(), *_thai(m)) for m in _THAI_TIME.finditer(plain)]
    if may & _SPOKEN.bits:
        found += [(m.start(), *_spoken(m)) for m in _SPOKEN.finditer(plain)]
    told = [f"{hour:02d}:{minute:02d}" for _, hour, minute in sorted(found) if 0 <= hour < 24]
    return tuple(dict.fromkeys(told))


def _twelve(hour: int, half: str | None) -> int:
    return hour if half is None or hour > 12 else hour % 12 + 12 * (half == "pm")


def _spoken(m: re.Match[str]) -> tuple[int, int]:
    """half past six, seven in the evening, quarter to eight."""
    part, side, word, day, half, night = m.groups()
    hour, minute = count_of(word), {"half": 30, "quarter": 15, None: 0}[part]
    if day or half or night:
        hour = _twelve(hour, half or ("am" if day == "morning" or (night and hour in (12, 1, 2, 3)) else "pm"))
    if side == "to":
        hour, minute = (hour - 1) % 24, 60 - minute
    return hour, minute


def _thai(m: re.Match[str]) -> tuple[int, int]:
    afternoon, half1, night, half2, *at, noon, half7 = m.groups()
    evening1, half3, evening2, half4, hour1, part1, half5, hour2, part2, half6 = at
    evening, hour, part = evening1 or evening2, hour1 or hour2, part1 or part2
    after = half1 or half2 or half3 or half4 or half5 or half6 or half7
    minute = 0 if after is None else 30 if after == "ครึ่ง" else int(after)
    if minute > 59:
        return -1, 0  # no time
    if noon:
        return _NAMED.get(noon, 12), minute
    if night:
        return _number(night), minute
    if evening:
        return 18 + _number(evening), minute
    if hour:
        number = _number(hour)
        return number + 12 * (part == "เย็น" and number < 12), minute
    return 12 + (_number(afternoon) if afternoon else 1), minute


def _number(word: str) -> int:
    return _HOUR_TH.get(word) or int(word)
