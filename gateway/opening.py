"""Answers "are you open?" from the shop's hours: by the day that is asked about, where one is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import groupby
from zoneinfo import ZoneInfo

from config.business_hours import Block
from config.tenants import Tenant
from gateway.feast_days import feast_days
from gateway.texts import Tongue, text
from processors.dates import days
from processors.normalise import normalise
from processors.payload import specifics
from processors.sought import Sought

# Over the normalised text without the days in it. Whole questions: "open" and "เปิด" alone are said of boxes, files and
# branches too.
_ASKED = Sought(
    r"(?:เปิด|ปิด|หยุด)(?:ร้าน|ทำการ|บริการ|ให้บริการ)?(?:ตาม)?(?:ปกติ)?(?:ตอนนี้|อยู่|ถึง|ตอน|แล้ว|ใช่|กัน|\s)*(?:ไหม|หรอ|เหรอ|หรือยัง|รึยัง|ยัง|กี่โมง|กี่ทุ่ม|เมื่อไหร่|เวลาไหน|ป่าว|ปะ|ป่ะ)"
    r"|(?:เวลา|วัน)(?:เปิด|ทำการ)|เปิดปิดกี่"
    r"|\b(?:are|r|is|will|would) (?:you|u|you guys|the shop|the store|the cafe|the clinic|it)"
    r" (?:be )?(?:still |already )?(?:open|closed)\b"
    r"|\b(?:opening|business|your) hours\b|^\W*hours\W*$|\b(?:opening|closing) times?\b"
    r"|\bopen (?:till|til|until) (?:what time|when)\b"
    r"|\b(?:do|does|will) (?:you|u|you guys|the shop|the store|it) (?:open|close)\b"
    r"|\b(?:you )?open (?:now|tonight)\b"
    r"|\b(?:opens?|closed?) ?(?:ไหม|หรือยัง|ยัง|กี่โมง|กี่ทุ่ม|ป่าว|ปะ)"
)
# Questions of hours where they name a day: "open on Sunday?", "Saturday hours?", "เสาร์นี้เปิดป่ะ"; and what a follow-up
# means ("time open on sunday", "ร้านเปิด วันอาทิตย์").
_WITH_A_DAY = Sought(
    r"^(?:u |you |still |time )*(?:open|closed)(?: on| this| next| at)*\W*$|^(?:ร้าน)?เปิด\W*$"
    r"|\bhours\b.{0,12}$|(?:เปิด|ปิด|หยุด)(?:ร้าน)?\W*\?"
)
_OTHER = Sought(
    r"สาขา|กล่อง|แอป|แอพ|เครื่อง|บัญชี|ลงทะเบียน|จอง|พรี|ออเดอร์|รับสมัคร|\b(?:branch|account|app|box|file|registration|booking)\b"
)
_WEEKLY = Sought(
    r"(?:เปิด|หยุด|ปิด)(?:ร้าน|ให้บริการ)?(?:วันไหน|วันอะไร|ทุกวัน)|วันไหน(?:เปิด|หยุด|ปิด)|วันหยุด(?:ร้าน|ของร้าน|คือ)|ร้าน(?:มี)?วันหยุด"
    r"|(?:จันทร์|อังคาร|พุธ|พฤหัส|ศุกร์|เสาร์)(?:บดี)?\s?(?:-|ถึง|–)\s?(?:วัน)?(?:พุธ|พฤหัส|ศุกร์|เสาร์|อาทิตย์)\S{0,3}\s?\S{0,4}(?:เปิด|หยุด)"
    r"|\b(?:which|what) days?\b.{0,16}\b(?:open|closed?)\b"
    r"|\b(?:open|closed?) (?:every ?day|daily|7 days|on (?:which|what) days?|on weekdays)\b"
    r"|\byour (?:day off|days off|closing days?)\b"
)
_WEEKEND = Sought(r"เสาร์\s?(?:-|–|และ|กับ)?\s?(?:วัน)?อาทิตย์|สุดสัปดาห์|\bweekends?\b")
# A whole week; "อาทิตย์นี้" may mean its Sunday as well, which stands in it.
_THIS_WEEK = Sought(r"(?:อาทิตย์|สัปดาห์)นี้|\bthis week\b(?! ?end)")
_NEXT_WEEK = Sought(r"(?:อาทิตย์|สัปดาห์)หน้า(?!ร้าน)|\bnext week\b(?! ?end)")
_TOMORROW = Sought(r"(?<![ก-๎])พน\.?(?=ร้าน|เปิด|ปิด|หยุด|\s)")  # as it is shortened in chats
_ENDINGS = Sought(r"\b((?:mon|tues|wednes|thurs|fri|satur|sun)day)s\b")

_SOON: dict[Tongue, tuple[str, ...]] = {
    "th": ("วันนี้ {at} น.", "พรุ่งนี้ {at} น."),
    "en": ("today at {at}", "tomorrow at {at}"),
}
_LATER: dict[Tongue, str] = {"th": "วัน{day} {at} น.", "en": "on {day}, at {at}"}
_DATED: dict[Tongue, str] = {"th": "{day}ที่ {date} {month}", "en": "{day}, {date} {month}"}
_DAYS: dict[Tongue, tuple[str, ...]] = {
    "th": ("จันทร์", "อังคาร", "พุธ", "พฤหัสบดี", "ศุกร์", "เสาร์", "อาทิตย์"),
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}
_MONTHS: dict[Tongue, tuple[str, ...]] = {
    "th": ("ม.ค.", "ก.พ.", "มี.ค.", "เม.ย.", "พ.ค.", "มิ.ย.", "ก.ค.", "ส.ค.", "ก.ย.", "ต.ค.", "พ.ย.", "ธ.ค."),
    "en": ("Jan", "Feb", "Mar", "Apr", "May", "June", "July", "Aug", "Sep", "Oct", "Nov", "Dec"),
}
_HOURS_ASKED = "เปิดกี่โมง"  # in any language: it is read, not said
_MOST = 7  # days in one answer


def opening(tenant: Tenant, words: str, now: datetime, language: Tongue) -> str | None:
    """The answer; None: nothing of the kind was asked, or the shop gives no hours. `now` is aware."""
    times = tenant.times
    if times is None or _OTHER.search(plain := _plain(words)):
        return None
    local = now.astimezone(ZoneInfo(tenant.timezone))
    feasts = feast_days(plain, local.date(), tenant.holidays)
    if _WEEKLY.search(plain) and not feasts and not _NEXT_WEEK.search(plain):
        return _week(tenant, language) if feasts is not None else None
    named, bare = _named(plain, local, feasts or ()), _bare(plain)
    if not (_ASKED.search(bare) or (named and (_WITH_A_DAY.search(bare) or _WEEKLY.search(bare)))):
        return None
    if feasts is None and not named:
        return None
    asked = [day for day in named if day >= local.date()] if named else [local.date()]
    if not tenant.business_hours:  # such a shop says of some days alone what they are like
        asked = [day for day in asked if times.is_special(day)]
    if not asked:
        return None
    if len(asked) > 1:
        return "\n".join(_of_day(tenant, day, local.date(), language) for day in asked[:_MOST])
    [day] = asked
    told = _of_day(tenant, day, local.date(), language)
    if not times.blocks(day):
        after = datetime(day.year, day.month, day.day, tzinfo=local.tzinfo)
        opens = opens_at(tenant, now, language, after=max(after, local))
        return f"{told} {text('opens_again', language, when=opens)}" if opens else told
    if day != local.date():
        return told
    return f"{text('open_now' if tenant.is_open(now) else 'closed_now', language)} {told}"


def opening_too(tenant: Tenant, words: str, before: str, now: datetime, language: Tongue) -> str | None:
    """The answer to a follow-up that names days alone: "and on Sunday?", where `before` asked for the hours."""
    local = now.astimezone(ZoneInfo(tenant.timezone))
    plain = _plain(words)
    if not _named(plain, local, feast_days(plain, local.date(), tenant.holidays) or ()):
        return None
    return opening(tenant, f"{words} {_HOURS_ASKED}", now, language) if opening(tenant, before, now, language) else None


def depends_on_the_day(tenant: Tenant, words: str, now: datetime) -> bool:
    """Is one day asked about that general hours would answer wrongly, or not at all? Another day than this one, or this
    one where it is not as every week's."""
    if tenant.times is None:
        return False
    local = now.astimezone(ZoneInfo(tenant.timezone))
    plain = _plain(words)
    named = _named(plain, local, feast_days(plain, local.date(), tenant.holidays) or ())
    return any(day != local.date() or tenant.times.is_special(day) or not tenant.times.blocks(day) for day in named)


def opens_at(tenant: Tenant, now: datetime, language: Tongue, *, after: datetime | None = None) -> str:
    """When the shop opens next, after `after` or now, as people say it at `now`: "tomorrow at 09:00"; "" where nobody
    knows. Times are aware."""
    opens = tenant.times.opens(after or now) if tenant.times else None
    if opens is None:
        return ""
    ahead = (opens.date() - now.astimezone(opens.tzinfo).date()).days
    at = f"{opens:%H:%M}"
    if ahead < len(_SOON[language]):
        return _SOON[language][ahead].format(at=at)
    return _LATER[language].format(day=_dated(opens.date(), language), at=at)


def _plain(words: str) -> str:
    return _TOMORROW.sub("พรุ่งนี้", _ENDINGS.sub(r"\1", normalise(words)))


def _named(plain: str, local: datetime, feasts: Sequence[date]) -> list[date]:
    found = list(dict.fromkeys([*days(plain, local), *feasts]))
    if _WEEKEND.search(plain):
        saturday = local.date() + timedelta(days=(5 - local.weekday()) % 7 if local.weekday() != 6 else -1)
        weekend = [saturday, saturday + timedelta(days=1)]
        found = sorted({*found, *weekend})
    if not found and (_THIS_WEEK.search(plain) or _NEXT_WEEK.search(plain)):
        monday = local.date() - timedelta(days=local.weekday())
        if _NEXT_WEEK.search(plain):
            monday += timedelta(days=7)
        found = [monday + timedelta(days=ahead) for ahead in range(7)]
    return found


def _bare(plain: str) -> str:
    """Without the days: "เปิดวันเสาร์ไหม" asks what "เปิดไหม" does."""
    plain = _WEEKEND.sub("", plain)
    for one in specifics(plain).get("dates", ()):
        plain = plain.replace(one, "", 1)
    return " ".join(plain.split())


def _of_day(tenant: Tenant, day: date, today: date, language: Tongue) -> str:
    ahead = (day - today).days
    blocks = tenant.times.blocks(day) if tenant.times else ()
    hours = _hours(blocks)
    if ahead in (0, 1):
        when = ("today", "tomorrow")[ahead]
        return text(f"hours_{when}", language, hours=hours) if blocks else text(f"closed_{when}", language)
    said = _dated(day, language)
    return text("hours_of_day", language, day=said, hours=hours) if blocks else text("closed_day", language, day=said)


def _week(tenant: Tenant, language: Tongue) -> str | None:
    """Every day of the week, those with the same hours together; None: the shop does not say."""
    week = tenant.times.week if tenant.times else None
    if week is None:
        return None
    lines = [text("hours_of_week", language)]
    for blocks, numbers in groupby(range(7), week.__getitem__):
        first, *rest = (_DAYS[language][number] for number in numbers)
        span = f"{first}-{rest[-1]}" if rest else first
        lines.append(f"- {span} {_hours(blocks) if blocks else text('closed', language)}")
    return "\n".join(lines)


def _dated(day: date, language: Tongue) -> str:
    name, month = _DAYS[language][day.weekday()], _MONTHS[language][day.month - 1]
    return _DATED[language].format(day=name, date=day.day, month=month)


def _hours(blocks: Sequence[Block]) -> str:
    return ", ".join(f"{_clock(start)}-{_clock(end)}" for start, end in blocks)


def _clock(minute: int) -> str:
    return "24:00" if minute == 24 * 60 else f"{minute // 60 % 24:02d}:{minute % 60:02d}"
