from datetime import UTC, datetime
from typing import Any

import pytest

from config.tenants import Tenant
from gateway.opening import opening
from gateway.texts import Tongue

HOURS: dict[str, Any] = {"mon-fri": ["09:00-12:00", "13:00-18:00"], "sat": ["17:00-02:00"]}
TUESDAY = datetime(2026, 3, 3, 3, 0, tzinfo=UTC)  # 10:00 in Bangkok
SATURDAY = datetime(2026, 3, 7, 3, 0, tzinfo=UTC)


def asked(words: str, now: datetime = TUESDAY, language: Tongue = "th", hours: dict[str, Any] = HOURS) -> str | None:
    tenant = Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {}, "business_hours": hours})
    return opening(tenant, words, now, language)


@pytest.mark.parametrize(
    ("words", "language", "expected"),
    [
        ("วันนี้เปิดไหมคะ", "th", "ตอนนี้ร้านเปิดอยู่ค่ะ วันนี้เปิด 09:00-12:00, 13:00-18:00 น. ค่ะ"),
        ("ร้านเปิดกี่โมง", "th", "ตอนนี้ร้านเปิดอยู่ค่ะ วันนี้เปิด 09:00-12:00, 13:00-18:00 น. ค่ะ"),
        ("เปิดยังอะ", "th", "ตอนนี้ร้านเปิดอยู่ค่ะ วันนี้เปิด 09:00-12:00, 13:00-18:00 น. ค่ะ"),
        ("are you open now?", "en", "We're open right now. Today's hours are 09:00-12:00, 13:00-18:00."),
        ("What time do you close", "en", "We're open right now. Today's hours are 09:00-12:00, 13:00-18:00."),
        ("พรุ่งนี้เปิดมั้ย", "th", "พรุ่งนี้เปิด 09:00-12:00, 13:00-18:00 น. ค่ะ"),
    ],
)
def test_the_hours_answer_whether_the_shop_is_open(words: str, language: Tongue, expected: str) -> None:
    assert asked(words, language=language) == expected


def test_a_closed_day_is_said_to_be_one() -> None:
    assert (
        asked("are you open tomorrow?", SATURDAY, "en") == "We're closed tomorrow. We open on Monday, 9 Mar, at 09:00."
    )
    closed = "วันนี้ร้านหยุดค่ะ เปิดอีกครั้งพรุ่งนี้ 09:00 น. ค่ะ"
    assert asked("วันนี้เปิดไหม", datetime(2026, 3, 8, 5, 0, tzinfo=UTC)) == closed


def test_a_holiday_is_a_closed_day() -> None:
    tenant = Tenant.model_validate(
        {
            "id": "shop",
            "name": "Shop",
            "channels": {},
            "business_hours": HOURS,
            "holidays": {"closed": ["03-03..03-04"]},
        }
    )
    told = opening(tenant, "เปิดไหมวันนี้", TUESDAY, "th") or opening(tenant, "วันนี้เปิดไหม", TUESDAY, "th")
    assert told == "วันนี้ร้านหยุดค่ะ เปิดอีกครั้งวันพฤหัสบดีที่ 5 มี.ค. 09:00 น. ค่ะ"


def test_before_the_first_hour_the_shop_is_closed_and_an_end_after_midnight_is_told_by_the_clock() -> None:
    assert asked("เปิดไหม", SATURDAY) == "ตอนนี้ร้านปิดอยู่ค่ะ วันนี้เปิด 17:00-02:00 น. ค่ะ"


@pytest.mark.parametrize(
    "words", ["เปิดกล่องแล้วของแตก", "สาขาสยามเปิดไหม", "how do I open the app", "เปิดบัญชีกี่โมง", "สวัสดีค่ะ", ""]
)
def test_what_is_not_asked_of_the_shops_hours_is_left_alone(words: str) -> None:
    assert asked(words) is None


def test_a_shop_without_hours_promises_none() -> None:
    assert asked("วันนี้เปิดไหม", hours={}) is None
