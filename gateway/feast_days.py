"""Feasts and public holidays by the names that customers give them: วันพ่อ, สงกรานต์, New Year's Eve."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import reduce
from operator import or_

from config.holidays import Holidays, next_public
from processors.sought import Sought, may_match

_OF_EVERY_YEAR: tuple[tuple[Sought, tuple[tuple[int, int], ...]], ...] = tuple(
    (Sought(pattern), days)
    for pattern, days in (
        (r"ส่งท้ายปี|วันสิ้นปี|\bnew ?years?'? eve\b|\bnew year's eve\b", ((12, 31),)),
        (r"(?<!ท้าย)วันขึ้นปีใหม่|\bnew ?years?'? day\b|\bnew year's day\b", ((1, 1),)),
        (r"(?<!ขึ้น)ปีใหม่(?!ไทย|จีน)|(?<!chinese )(?<!thai )(?<!happy )\bnew year\b(?!'s|s)", ((12, 31), (1, 1))),
        (r"วาเลนไทน์|\bvalentine'?s?\b", ((2, 14),)),
        (r"วันจักรี|\bchakri\b", ((4, 6),)),
        (r"สงกรานต์|ปีใหม่ไทย|\bsongkh?ran\b|\bthai new year\b", ((4, 13), (4, 14), (4, 15))),
        (r"วันแรงงาน|\blabou?r day\b", ((5, 1),)),
        (r"วันฉัตรมงคล|\bcoronation day\b", ((5, 4),)),
        (r"วันแม่(?![ก-๎]*น้ำ)|\bmother'?s day\b", ((8, 12),)),
        (r"วันปิยะ|\bchulalongkorn day\b", ((10, 23),)),
        (r"วันพ่อ|\bfather'?s day\b", ((12, 5),)),
        (r"วันรัฐธรรมนูญ|\bconstitution day\b", ((12, 10),)),
        (r"คริสต์?มาส|\bchristmas eve\b|\bchristmas\b|\bxmas\b", ((12, 25),)),
    )
)
# By the moon: told where the shop closes on Thailand's public holidays. The names are the calendar's.
_BY_THE_MOON: tuple[tuple[Sought, str], ...] = tuple(
    (Sought(pattern), name)
    for pattern, name in (
        (r"มาฆบูชา|วันมาฆะ|\bma[gk]ha? (?:bucha|puja)\b", "Makha Bucha"),
        (r"วิสาขบูชา|วันวิสาขะ|\bvi?sakha? (?:bucha|puja)\b", "Visakha Bucha"),
        (r"อาสาฬหบูชา|วันอาสาฬห|\basa[lr]n?ha? (?:bucha|puja)\b", "Asarnha Bucha"),
        (r"เข้าพรรษา|\bbuddhist lent\b", "Buddhist Lent"),
    )
)
_SOME_DAY = Sought(
    r"ตรุษจีน|สารทจีน|ออกพรรษา|ลอยกระทง|วันพระ|วันไหว้|นักขัตฤกษ์|วันหยุดราชการ|หยุดยาว|ปีใหม่จีน|\bchinese new year\b"
    r"|\bloy krathong\b|\beaster\b|\b(?:public|bank|national) holidays?\b|\blong weekend\b"
)

_TOLD = [one for one, _ in (*_OF_EVERY_YEAR, *_BY_THE_MOON)]
_A_FEAST = reduce(or_, (one.bits for one in (*_TOLD, _SOME_DAY)))


def feast_days(plain: str, today: date, holidays: Holidays | None) -> Sequence[date] | None:
    """The next days of the feasts that a normalised text names, in order. None: one is named whose days nobody here
    knows; then today's hours are no answer."""
    if not may_match(plain) & _A_FEAST:
        return ()
    found: set[date] = set()
    for pattern, days in _OF_EVERY_YEAR:
        if pattern.search(plain):
            found.update(_next(days, today))
    unknown = _SOME_DAY.search(plain) is not None
    for pattern, name in _BY_THE_MOON:
        if pattern.search(plain):
            day = next_public(name, today) if holidays is not None and holidays.public else None
            unknown = unknown or day is None
            found.update([day] if day else [])
    return None if unknown and not found else sorted(found)


def _next(days: Sequence[tuple[int, int]], today: date) -> Sequence[date]:
    """A feast's days that are not over, this year's or the next's; those of the new year belong together."""
    first, *later = days
    began = date(today.year, *first)
    if later and later[-1] < first and today <= date(today.year, *later[-1]):
        began = date(today.year - 1, *first)  # on New Year's Day the feast is today's
    all_days = [began, *(date(began.year + (one < first), *one) for one in later)]
    left = [day for day in all_days if day >= today]
    return left or [date(day.year + 1, day.month, day.day) for day in all_days]
