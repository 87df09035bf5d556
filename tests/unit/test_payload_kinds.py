"""Each kind of thing that a message can name, in Thai and in English, as it stands in an event's payload."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from processors.event_processor import EventProcessor
from processors.products import Products

NOW = datetime(2026, 11, 28, 3, 0, tzinfo=UTC)  # a Saturday, ten in the morning in Bangkok


def baht(value: float) -> dict[str, Any]:
    return {"amounts": [{"value": value, "currency": "THB"}]}


def some(count: int, unit: str) -> dict[str, Any]:
    return {"quantities": [{"count": count, "unit": unit}]}


KINDS = {
    # amounts
    "โอน 1,250 บาทค่ะ": baht(1250),
    "ยอด 450.- นะคะ": baht(450),
    "ราคา ๙๙.๕๐ ฿": baht(99.5),
    "ห้าร้อยบาท": baht(500),
    "สามพันสองร้อยห้าสิบบาท": baht(3250),
    "งบ 3 พันบาท": baht(3000),
    "งบ 2 หมื่น": baht(20_000),
    "ผู้ติดตาม 2 หมื่นคน": {},
    "300 bucks": {"amounts": [{"value": 300, "currency": "USD"}]},
    "transferred 890 baht": baht(890),
    "1,500 THB": baht(1500),
    "that's $45.50": {"amounts": [{"value": 45.5, "currency": "USD"}]},
    "€12 or 20 pounds": {"amounts": [{"value": 12, "currency": "EUR"}, {"value": 20, "currency": "GBP"}]},
    "THB 450": baht(450),
    # days and times
    "พุ่งนี้เอานะคะ": {"dates": ["พรุ่งนี้"], "days": ["2026-11-29"]},
    "tmrw at 5pm": {"dates": ["tmrw"], "times": ["5pm"], "days": ["2026-11-29"], "clock": ["17:00"]},
    "25 ธันวา 69": {"dates": ["25 ธันวา 69"], "days": ["2026-12-25"]},
    "พรุ่งนี้บ่ายสามค่ะ": {"dates": ["พรุ่งนี้"], "times": ["บ่ายสาม"], "days": ["2026-11-29"], "clock": ["15:00"]},
    "19.00 น.": {"times": ["19.00 น."], "clock": ["19:00"]},
    "ทุ่มครึ่ง": {"times": ["ทุ่มครึ่ง"], "clock": ["19:30"]},
    "หกโมงเย็น": {"times": ["หกโมงเย็น"], "clock": ["18:00"]},
    "3 ทุ่ม": {"times": ["3 ทุ่ม"], "clock": ["21:00"]},
    "ตีสอง": {"times": ["ตีสอง"], "clock": ["02:00"]},
    "เที่ยงครึ่ง": {"times": ["เที่ยงครึ่ง"], "clock": ["12:30"]},
    "5 ม.ค. 2570": {"dates": ["5 ม.ค. 2570"], "days": ["2027-01-05"]},
    "วันที่ ๑๕ มกราคม พ.ศ. ๒๕๗๐": {"dates": ["วันที่ 15 มกราคม พ.ศ. 2570"], "days": ["2027-01-15"]},
    "12/12/69": {"dates": ["12/12/69"], "days": ["2026-12-12"]},
    "เสาร์หน้า": {"dates": ["เสาร์หน้า"], "days": ["2026-12-05"]},
    "มะรืนนี้": {"dates": ["มะรืนนี้"], "days": ["2026-11-30"]},
    "tomorrow at 7 pm": {"dates": ["tomorrow"], "times": ["7 pm"], "days": ["2026-11-29"], "clock": ["19:00"]},
    "the day after tomorrow": {"dates": ["the day after tomorrow"], "days": ["2026-11-30"]},
    "12 ธค 69": {"dates": ["12 ธค 69"], "days": ["2026-12-12"]},
    "อีกสองวันค่อยมาเอา": {"dates": ["อีกสองวัน"], "days": ["2026-11-30"]},
    "next friday, half past six pm": {
        "dates": ["next friday"],
        "times": ["half past six pm"],
        "days": ["2026-12-04"],
        "clock": ["18:30"],
    },
    "on the 14th": {"dates": ["on the 14th"], "days": ["2026-12-14"]},
    "5 January 2027, noon": {
        "dates": ["5 january 2027"],
        "times": ["noon"],
        "days": ["2027-01-05"],
        "clock": ["12:00"],
    },
    "2026-12-01": {"dates": ["2026-12-01"], "days": ["2026-12-01"]},
    "Jan 5th": {"dates": ["jan 5th"], "days": ["2027-01-05"]},
    # phone numbers
    "โทร 081-555-0199": {"phones": ["0815550199"]},
    "๐๘๑ ๕๕๕ ๐๑๙๙": {"phones": ["0815550199"]},
    "call 02-555-0123": {"phones": ["025550123"]},
    "+66 81 555 0199": {"phones": ["+66815550199"]},
    "+66 (0)81 555 0199": {"phones": ["+66815550199"]},
    "เบอร์ 08-1555-0199": {"phones": ["0815550199"]},
    # one of a thing
    "น้ำเปล่าขวดนึง": some(1, "ขวด"),
    "แก้วเดียวค่ะ": some(1, "แก้ว"),
    "กล่องเดียวกันไหม": {},
    "คนหนึ่งบอกมา": {},
    "a pair please": some(1, "pair"),
    "50 baht a bottle": baht(50),
    # counted otherwise
    "หนึ่งที่ค่ะ": some(1, "ที่"),
    "กุหลาบ 2 ดอก": some(2, "ดอก"),
    "ดอกเบี้ย 2 ดอกเบี้ย": {},
    "ยา 3 เม็ด": some(3, "เม็ด"),
    "วางมัดจำ 2 มัดจำ": {},
    "สามมื้อ": some(3, "มื้อ"),
    "three jars": some(3, "jars"),
    "(081) 555-0199": {"phones": ["0815550199"]},
    # numbers of orders
    "ออเดอร์ A-20419": {"order_ids": ["A-20419"]},
    "เลขพัสดุ TH47013ABC": {"order_ids": ["TH47013ABC"]},
    "ใบเสร็จเลขที่ 5518": {"order_ids": ["5518"]},
    "order no. 30551": {"order_ids": ["30551"]},
    "receipt no. 2231": {"order_ids": ["2231"]},
    "booking ref XK4512": {"order_ids": ["XK4512"]},
    "#88214": {"order_ids": ["88214"]},
    # addresses
    "ส่งที่ 99/12 หมู่ 3 ต.บางพูด อ.ปากเกร็ด นนทบุรี 11120 นะคะ": {
        "postcodes": ["11120"],
        "address": "99/12 หมู่ 3 ต.บางพูด อ.ปากเกร็ด นนทบุรี 11120",
    },
    "ship to 12/3 Rama 9 Road, Bangkok 10310": {
        "postcodes": ["10310"],
        "address": "12/3 Rama 9 Road, Bangkok 10310",
    },
    "โอน 10500 บาท": baht(10500),
    # quantities
    "เอา 2 แก้ว": some(2, "แก้ว"),
    "เอาสองแก้ว": some(2, "แก้ว"),
    "๓ กล่อง": some(3, "กล่อง"),
    "สิบสองชิ้น": some(12, "ชิ้น"),
    "โต๊ะ 4 ที่": some(4, "ที่"),
    "two boxes": some(2, "boxes"),
    "a dozen bags": some(12, "bags"),
    "table for 6 people": some(6, "people"),
    # names and what is not eaten
    "ชื่อผู้รับ มาลี ใจงาม เบอร์ 081-555-0199": {"name": "มาลี ใจงาม", "phones": ["0815550199"]},
    "this is Nora Field speaking": {"name": "Nora Field"},
    "this is broken": {},
    "ลูกแพ้นมวัวกับไข่ค่ะ": {"allergies": ["นมวัว", "ไข่"]},
    "แพ้กุ้ง ปู และปลาหมึก": {"allergies": ["กุ้ง", "ปู", "ปลาหมึก"]},
}


@pytest.mark.parametrize(("text", "found"), KINDS.items(), ids=range(len(KINDS)))
async def test_what_a_message_names_is_in_its_events_payload(text: str, found: dict[str, Any]) -> None:
    event = await EventProcessor(classifier=lambda: None).analyze_message(text, timestamp=NOW)
    always = {"original_message", "language", "context", "reasoning", "classified_by", "confidence", "rule"}
    assert {key: value for key, value in event.payload.items() if key not in always} == found


GOODS = Products([["ลาเต้", "latte"], ["ครัวซองต์", "croissant"], ["ชา", "tea"], ["เค้กส้ม"]])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("เอาลาเต้ 2 แก้วค่ะ", [("ลาเต้", 2)]),
        ("two lattes and a croissant", [("ลาเต้", 2), ("ครัวซองต์", None)]),
        ("two iced latte please", [("ลาเต้", 2)]),
        ("ลาเต้สองแก้ว ครัวซองต์หนึ่ง", [("ลาเต้", 2), ("ครัวซองต์", 1)]),
        ("ครัวซองต์มีไหมคะ", [("ครัวซองต์", None)]),
        ("ขอชามหนึ่งใบ", []),
        ("steam", []),
        ("LATTE x3", [("ลาเต้", 3)]),
        ("เค้กส้มยังมีไหม", [("เค้กส้ม", None)]),
        ("สวัสดีค่ะ", []),
    ],
)
def test_the_shops_own_goods_are_found_with_their_count(text: str, found: list[tuple[str, int | None]]) -> None:
    assert GOODS.found(text) == [{"name": name, "count": count} for name, count in found]
