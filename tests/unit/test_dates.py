from datetime import date, datetime

import pytest

from processors.dates import days, times

NOW = datetime(2026, 3, 3, 10, 0)  # noqa: DTZ001 - the shop's own clock; a Tuesday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("จองพรุ่งนี้ค่ะ", [date(2026, 3, 4)]),
        ("book it for tomorrow", [date(2026, 3, 4)]),
        ("มะรืนนี้", [date(2026, 3, 5)]),
        ("โอนเมื่อวานค่ะ", [date(2026, 3, 2)]),
        ("5 ม.ค. 2569", [date(2026, 1, 5)]),
        ("๕ มกราคม พ.ศ. ๒๕๖๙", [date(2026, 1, 5)]),
        ("12 เมษายน", [date(2026, 4, 12)]),
        ("10 ก.พ. 70", [date(2027, 2, 10)]),
        ("1 มกราคม", [date(2027, 1, 1)]),
        ("the 21st of june", [date(2026, 6, 21)]),
        ("on March 5, 2027 please", [date(2027, 3, 5)]),
        ("14/2/2569", [date(2026, 2, 14)]),
        ("25/12", [date(2026, 12, 25)]),
        ("วันที่ 2 ค่ะ", [date(2026, 4, 2)]),
        ("วันศุกร์นี้ว่างไหม", [date(2026, 3, 6)]),
        ("Tuesday or Friday", [date(2026, 3, 3), date(2026, 3, 6)]),
        ("นัด 12 ธค 69 ครับ", [date(2026, 12, 12)]),
        ("5 พค ค่ะ", [date(2026, 5, 5)]),
        ("14 เมษา", [date(2026, 4, 14)]),
        ("วันที่ 9 ตุลานะคะ", [date(2026, 10, 9)]),
        ("1 กรกฏาคม 2570", [date(2027, 7, 1)]),
        ("ศุกร์หน้าได้ไหม", [date(2026, 3, 13)]),
        ("วันอังคารหน้า", [date(2026, 3, 10)]),
        ("วันพฤหัสบดีนี้", [date(2026, 3, 5)]),
        ("next friday please", [date(2026, 3, 13)]),
        ("สั่งไปวันจันทร์ที่แล้ว", [date(2026, 3, 2)]),
        ("it came last friday", [date(2026, 2, 27)]),
        ("เจอกันวันศุกร์หน้าร้าน", [date(2026, 3, 6)]),
        ("อีกสามวันค่อยส่ง", [date(2026, 3, 6)]),
        ("สั่งไป 2 อาทิตย์ที่แล้ว", [date(2026, 2, 17)]),
        ("in two days or a week", [date(2026, 3, 5)]),
        ("ordered 10 days ago", [date(2026, 2, 21)]),
        ("อยู่ต่ออีก 2 วัน", []),
        ("สิ้นเดือนนี้จ่ายค่ะ", [date(2026, 3, 31)]),
        ("at the end of next month", [date(2026, 4, 30)]),
        ("อีก 999999 วัน", []),
        ("12 พยางค์", []),
        ("31/2 และ 45/13", []),
        ("ไม่มีวัน", []),
        ("", []),
    ],
)
def test_days_are_told_by_the_calendar(text: str, expected: list[date]) -> None:
    assert days(text, NOW) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("บ่ายสามค่ะ", ["15:00"]),
        ("บ่าย 2 โมงครึ่ง", ["14:30"]),
        ("19.00 น.", ["19:00"]),
        ("ทุ่มนึงหรือสองทุ่ม", ["19:00", "20:00"]),
        ("สองทุ่มครึ่ง", ["20:30"]),
        ("สิบโมงเช้า", ["10:00"]),
        ("ห้าโมงเย็น", ["17:00"]),
        ("ตีห้า", ["05:00"]),
        ("เที่ยงตรง", ["12:00"]),
        ("เที่ยงคืน", ["00:00"]),
        ("at 7 pm or 7:30pm", ["19:00", "19:30"]),
        ("12 am", ["00:00"]),
        ("half past six pm", ["18:30"]),
        ("quarter to nine in the morning", ["08:45"]),
        ("at 7 in the evening", ["19:00"]),
        ("ten o'clock", ["10:00"]),
        ("บ่าย 2 โมง 15 นาที", ["14:15"]),
        ("สองทุ่ม 45 ค่ะ", ["20:45"]),
        ("บ่ายสองโมง 15 แก้ว", ["14:00"]),
        ("one in the box, two of ten", []),
        ("ราคา 19.50 บาท", []),
        ("hello", []),
    ],
)
def test_times_are_told_by_the_clock(text: str, expected: list[str]) -> None:
    assert times(text) == expected
