"""When a shop is open: `{mon-fri: ["09:00-12:00", "13:00-18:00"], sat: ["10:00-16:00"]}`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise

from pydantic_core import PydanticCustomError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_THAI_DAYS = {  # people write them; the files' own words are English
    **dict(zip(("จันทร์", "อังคาร", "พุธ", "พฤหัส", "ศุกร์", "เสาร์", "อาทิตย์"), DAYS, strict=True)),
    **dict(zip(("จ", "อ", "พ", "พฤ", "ศ", "ส", "อา"), DAYS, strict=True)),
    "พฤหัสบดี": "thu",
}
_DAY_MINUTES = 24 * 60
_BLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*(?:([01]?\d|2[0-3]):([0-5]\d)|24:00)")

Block = tuple[int, int]  # minutes of the day, the end may pass midnight
Week = tuple[tuple[Block, ...], ...]  # Monday first


def mistake(what: str, remedy: str) -> PydanticCustomError:
    """A validation error that carries its own remedy. Neither may hold the value: it may be a misplaced secret."""
    return PydanticCustomError("mistake", "{what}; {remedy}", {"what": what, "remedy": remedy})


def days_of(text: str) -> list[int]:
    """The days (Monday: 0) of `mon`, `mon-fri`, `fri-mon` or `tue,thu`. Raises with a remedy."""
    days: list[int] = []
    for part in text.lower().replace(" ", "").split(","):
        ends = part.split("-")
        if len(ends) > 2 or not all(end in DAYS for end in ends):
            meant = [_THAI_DAYS.get(end.removeprefix("วัน").rstrip("."), end[:3]) for end in ends]
            near = [m for end in meant for m in get_close_matches(end, DAYS, 1, 0.6)]
            hint = (
                f"did you mean {'-'.join(near)}?" if near and len(near) == len(ends) <= 2 else "such as mon-fri or sat"
            )
            raise mistake("is not a day or a range of days", f"write {', '.join(DAYS)}: {hint}")
        first, last = DAYS.index(ends[0]), DAYS.index(ends[-1])
        days += [(first + step) % 7 for step in range((last - first) % 7 + 1)]
    return days


def check_days(text: str) -> str:
    """For the key of a row: unchanged. Raises with a remedy."""
    days_of(text)
    return text


def block_of(text: str) -> tuple[int, int]:
    """The minutes of `09:00-18:00`; an end at or before the beginning is on the next day. Raises with a remedy."""
    found = _BLOCK.fullmatch(text.strip())
    if not found:
        raise mistake("is not a block of hours", 'write the opening and closing time, such as "09:00-18:00"')
    start = int(found[1]) * 60 + int(found[2])
    end = int(found[3]) * 60 + int(found[4]) if found[3] else _DAY_MINUTES
    if end == start:
        raise mistake("opens and closes at the same minute", 'write "00:00-24:00" for the whole day')
    return start, end if end > start else end + _DAY_MINUTES


def check_block(text: str) -> str:
    """For one block: unchanged. Raises with a remedy."""
    block_of(text)
    return text


def sorted_blocks(texts: Sequence[str], day: str) -> tuple[Block, ...]:
    """The blocks of one day, the earliest first. Raises with a remedy for blocks that overlap."""
    blocks = sorted(block_of(text) for text in texts)
    if any(end > start for (_, end), (start, _) in pairwise(blocks)):
        raise mistake(f"the blocks of {day} overlap", "let each block end before the next begins")
    return tuple(blocks)


def check_hours(hours: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """For the whole section: unchanged. Raises with a remedy."""
    week_of(hours)
    return hours


def week_of(hours: Mapping[str, Sequence[str]]) -> Week:
    """Raises with a remedy for a day that stands twice and for blocks that overlap."""
    week: list[list[tuple[int, int]] | None] = [None] * 7
    for text, blocks in hours.items():
        for day in days_of(text):
            if week[day] is not None:
                raise mistake(f"{DAYS[day]} stands in more than one row", "give each day one row")
            week[day] = sorted(block_of(block) for block in blocks)
    filled = tuple(tuple(spans or ()) for spans in week)
    for day, spans in enumerate(filled):
        following = filled[(day + 1) % 7]
        ends = [start for start, _ in spans[1:]] + [_DAY_MINUTES + following[0][0] if following else 2 * _DAY_MINUTES]
        for (_, end), limit in zip(spans, ends, strict=False):  # a closed day has no span to check
            if end > limit:
                raise mistake(f"the blocks of {DAYS[day]} overlap", "let each block end before the next begins")
    return filled
