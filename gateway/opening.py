"""Answers "are you open?" from the shop's hours, where its own list of answers has nothing on it."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from config.business_hours import week_of
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


def opening(tenant: Tenant, words: str, now: datetime, language: Tongue) -> str | None:
    """The answer; None: nothing of the kind was asked, or the shop gives no hours. `now` is aware."""
    plain = normalise(words)
    if not tenant.business_hours or not _ASKED.search(plain) or _OTHER.search(plain):
        return None
    tomorrow = bool(_TOMORROW.search(plain))
    day = (now.astimezone(ZoneInfo(tenant.timezone)) + timedelta(days=tomorrow)).weekday()
    blocks = week_of(tenant.business_hours)[day]
    when = "tomorrow" if tomorrow else "today"
    if not blocks:
        return text(f"closed_{when}", language)
    hours = ", ".join(f"{_clock(start)}-{_clock(end)}" for start, end in blocks)
    told = text(f"hours_{when}", language, hours=hours)
    if tomorrow:
        return told
    return f"{text('open_now' if tenant.is_open(now) else 'closed_now', language)} {told}"


def _clock(minute: int) -> str:
    return "24:00" if minute == 24 * 60 else f"{minute // 60 % 24:02d}:{minute % 60:02d}"
