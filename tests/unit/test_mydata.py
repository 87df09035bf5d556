from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from gateway.mydata import told
from memory.models import LongTermMemory
from processors.models import EventType, MemoryEvent

BANGKOK = ZoneInfo("Asia/Bangkok")


def memory() -> LongTermMemory:
    event = MemoryEvent(
        event_type=EventType.INFORMATION,
        payload={"original_message": "แพ้ถั่วกับกุ้ง"},
        importance_score=0.8,
        timestamp=datetime(2026, 3, 2, 18, 0, tzinfo=UTC),
    )
    attributes = {"favourite_seat": "garden", "allergies": ["ถั่ว", "กุ้ง"], "name": "พลอย", "preferred_language": "th"}
    return LongTermMemory(
        tenant_id="shop", user_id="line:U1", events=[event], attributes=attributes, history_summary="S"
    )


def test_in_thai_with_known_names_first_and_lists_joined() -> None:
    assert told(memory(), "th", BANGKOK).splitlines() == [
        "ข้อมูลที่เราจำไว้เกี่ยวกับคุณลูกค้าค่ะ",
        "- ชื่อ: พลอย",
        "- แพ้: ถั่ว, กุ้ง",
        "- ภาษา: ไทย",
        "- favourite seat: garden",
        "",
        "**โดยสรุป**",
        "S",
        "",
        "**ข้อความล่าสุดที่เราเก็บไว้**",
        "- 2026-03-03 แพ้ถั่วกับกุ้ง",
        "",
        "ต้องการให้ลบทั้งหมด พิมพ์ /forget ค่ะ",
    ]


def test_in_english() -> None:
    lines = told(memory(), "en", BANGKOK).splitlines()
    assert lines[:4] == [
        "This is what we remember about you:", "- Name: พลอย", "- Allergies: ถั่ว, กุ้ง", "- Language: Thai",
    ]  # fmt: skip


def test_of_somebody_unknown_it_says_so() -> None:
    nobody = LongTermMemory(tenant_id="shop", user_id="line:U1")
    assert told(None, "en", BANGKOK) == told(nobody, "en", BANGKOK) == "We don't remember anything about you yet."
