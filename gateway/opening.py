"""Answers "are you open?" from the shop's hours, where its own list of answers has nothing on it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from config.tenants import Tenant
from gateway.texts import Tongue, text
from processors.normalise import normalise

# Over the normalised text. Whole questions: "open" and "เปิด" alone are said of boxes, files and branches too.
_ASKED = re.compile(
    r"(?:เปิด|ปิด)(?:ร้าน|ทำการ|บริการ|ให้บริการ)?(?:วันนี้|พรุ่งนี้|ตอนนี้|อยู่|ถึง|ตอน|แล้ว)*(?:ไหม|หรอ|เหรอ|หรือยัง|รึยัง|ยัง|กี่โมง|กี่ทุ่ม|เมื่อไหร่|เวลาไหน|ป่าว|ปะ|ป่ะ)"
    r"|(?:เวลา|วัน)(?:เปิด|ทำการ)|เปิดปิดกี่|หยุด(?:วันนี้|พรุ่งนี้|วันไหน)?ไหม"
    r"|\b(?:are|r|is) (?:you|u|the shop|the store|it) (?:still |already )?(?:open|closed)\b"
    r"|\b(?:opening|business|your) hours\b|\b(?:what time|when) (?:do|does|will) (?:you|u|the shop|it) (?:open|close)\b"
    r"|\b(?:you )?open (?:now|today|tomorrow|tonight)\b"
)
_OTHER = re.compile(r"สาขา|กล่อง|แอป|แอพ|เครื่อง|บัญชี|ลงทะเบียน|\b(?:branch|account|app|box|file|registration)\b")
_TOMORROW = re.compile(r"พรุ่งนี้|\btomorrow\b")

_SOON: dict[Tongue, tuple[str, ...]] = {
    "th": ("วันนี้ {at} น.", "พรุ่งนี้ {at} น."),
    "en": ("today at {at}", "tomorrow at {at}"),
}
_LATER: dict[Tongue, str] = {"th": "วัน{day}ที่ {date} {month} {at} น.", "en": "on {day}, {date} {month}, at {at}"}
_DAYS: dict[Tongue, tuple[str, ...]] = {
    "th": ("จันทร์", "อังคาร", "พุธ", "พฤหัสบดี", "ศุกร์", "เสาร์", "อาทิตย์"),
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}
_MONTHS: dict[Tongue, tuple[str, ...]] = {
    "th": ("ม.ค.", "ก.พ.", "มี.ค.", "เม.ย.", "พ.ค.", "มิ.ย.", "ก.ค.", "ส.ค.", "ก.ย.", "ต.ค.", "พ.ย.", "ธ.ค."),
    "en": ("Jan", "Feb", "Mar", "Apr", "May", "June", "July", "Aug", "Sep", "Oct", "Nov", "Dec"),
}


def opening(tenant: Tenant, words: str, now: datetime, language: Tongue) -> str | None:
    """The answer; None: nothing of the kind was asked, or the shop gives no hours. `now` is aware."""
    plain = normalise(words)
    times = tenant.times
    if times is None or not _ASKED.search(plain) or _OTHER.search(plain):
        return None
    tomorrow = bool(_TOMORROW.search(plain))
    day = now.astimezone(ZoneInfo(tenant.timezone)) + timedelta(days=tomorrow)
    blocks = times.blocks(day.date())
    when = "tomorrow" if tomorrow else "today"
    if not blocks:
        closed, opens = text(f"closed_{when}", language), opens_at(tenant, now, language, after=day)
        return f"{closed} {text('opens_again', language, when=opens)}" if opens else closed
    hours = ", ".join(f"{_clock(start)}-{_clock(end)}" for start, end in blocks)
    told = text(f"hours_{when}", language, hours=hours)
    if tomorrow:
        return told
    return f"{text('open_now' if tenant.is_open(now) else 'closed_now', language)} {told}"


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
    day, month = _DAYS[language][opens.weekday()], _MONTHS[language][opens.month - 1]
    return _LATER[language].format(day=day, date=opens.day, month=month, at=at)


def _clock(minute: int) -> str:
    return "24:00" if minute == 24 * 60 else f"{minute // 60 % 24:02d}:{minute % 60:02d}"
