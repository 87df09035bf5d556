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
        ("ราคา 19.50 บาท", []),
        ("hello", []),
    ],
)
def test_times_are_told_by_the_clock(text: str, expected: list[str]) -> None:
    assert times(text) == expected
