from datetime import UTC, datetime
from typing import Any

import pytest

from config.tenants import Tenant
from gateway.opening import depends_on_the_day, opening, opening_too
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
        ("open กี่โมงคะ", "th", "ตอนนี้ร้านเปิดอยู่ค่ะ วันนี้เปิด 09:00-12:00, 13:00-18:00 น. ค่ะ"),
        ("are you open now?", "en", "We're open right now. Today's hours are 09:00-12:00, 13:00-18:00."),
        ("What time do you close", "en", "We're open right now. Today's hours are 09:00-12:00, 13:00-18:00."),
        ("open till what time?", "en", "We're open right now. Today's hours are 09:00-12:00, 13:00-18:00."),
        ("hours?", "en", "We're open right now. Today's hours are 09:00-12:00, 13:00-18:00."),
        ("time open on wednesday?", "en", "Tomorrow's hours are 09:00-12:00, 13:00-18:00."),
        ("ร้านเปิด วันพุธ", "th", "พรุ่งนี้เปิด 09:00-12:00, 13:00-18:00 น. ค่ะ"),
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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("วันเสาร์เปิดไหมคะ", "วันเสาร์ที่ 7 มี.ค. เปิด 17:00-02:00 น. ค่ะ"),
        ("ร้านเปิดวันเสาร์ไหม", "วันเสาร์ที่ 7 มี.ค. เปิด 17:00-02:00 น. ค่ะ"),
        ("เสาร์นี้เปิดกี่โมงคะ", "วันเสาร์ที่ 7 มี.ค. เปิด 17:00-02:00 น. ค่ะ"),
        ("มะรืนนี้ร้านเปิดตามปกติไหม", "วันพฤหัสบดีที่ 5 มี.ค. เปิด 09:00-12:00, 13:00-18:00 น. ค่ะ"),
        ("วันอาทิตย์หยุดมั้ยคะ", "วันอาทิตย์ที่ 8 มี.ค. ร้านหยุดค่ะ เปิดอีกครั้งวันจันทร์ที่ 9 มี.ค. 09:00 น. ค่ะ"),
        ("เสาร์อาทิตย์เปิดไหม", "วันเสาร์ที่ 7 มี.ค. เปิด 17:00-02:00 น. ค่ะ\nวันอาทิตย์ที่ 8 มี.ค. ร้านหยุดค่ะ"),
        ("วันที่ 13 มีนาเปิดไหม", "วันศุกร์ที่ 13 มี.ค. เปิด 09:00-12:00, 13:00-18:00 น. ค่ะ"),
        ("พน.เปิดไหม", "พรุ่งนี้เปิด 09:00-12:00, 13:00-18:00 น. ค่ะ"),
        ("พรุ่งนี้ร้านเปิดใช่ไหม", "พรุ่งนี้เปิด 09:00-12:00, 13:00-18:00 น. ค่ะ"),
        ("are you open on Sunday?", "We're closed on Sunday, 8 Mar. We open on Monday, 9 Mar, at 09:00."),
        ("do you open on Saturdays", "On Saturday, 7 Mar, our hours are 17:00-02:00."),
        ("will you be open this saturday?", "On Saturday, 7 Mar, our hours are 17:00-02:00."),
        ("what time do you close on friday", "On Friday, 6 Mar, our hours are 09:00-12:00, 13:00-18:00."),
        ("What are your hours on Saturday?", "On Saturday, 7 Mar, our hours are 17:00-02:00."),
        ("open on sunday?", "We're closed on Sunday, 8 Mar. We open on Monday, 9 Mar, at 09:00."),
        ("are you open this weekend", "On Saturday, 7 Mar, our hours are 17:00-02:00.\nWe're closed on Sunday, 8 Mar."),
    ],
)
def test_the_day_asked_about_is_answered(words: str, expected: str) -> None:
    assert asked(words, language="th" if "ก" <= words[0] <= "๛" else "en") == expected


@pytest.mark.parametrize(
    ("words", "language", "expected"),
    [
        (
            "ร้านหยุดวันไหนคะ",
            "th",
            "เวลาเปิดของร้านค่ะ\n- จันทร์-ศุกร์ 09:00-12:00, 13:00-18:00\n- เสาร์ 17:00-02:00\n- อาทิตย์ หยุด",
        ),
        (
            "Which days are you closed?",
            "en",
            "Our opening hours:\n- Monday-Friday 09:00-12:00, 13:00-18:00\n- Saturday 17:00-02:00\n- Sunday closed",
        ),
    ],
)
def test_the_whole_week_is_told_to_those_who_ask_for_it(words: str, language: Tongue, expected: str) -> None:
    assert asked(words, language=language) == expected


def test_a_day_with_hours_of_its_own_is_told_with_them() -> None:
    own = {"closed": ["04-13..04-15"], "open": {"2026-03-06": ["10:00-14:00"]}}
    shop = {"id": "shop", "name": "Shop", "channels": {}, "holidays": own}
    whole, days_alone = (Tenant.model_validate({**shop, **hours}) for hours in ({"business_hours": HOURS}, {}))
    for tenant in (whole, days_alone):
        assert opening(tenant, "วันศุกร์เปิดไหม", TUESDAY, "th") == "วันศุกร์ที่ 6 มี.ค. เปิด 10:00-14:00 น. ค่ะ"
    told = opening(whole, "14 เมษาเปิดไหม", TUESDAY, "th")
    assert told == "วันอังคารที่ 14 เม.ย. ร้านหยุดค่ะ เปิดอีกครั้งวันพฤหัสบดีที่ 16 เม.ย. 09:00 น. ค่ะ"
    # What it is like on other days, the second does not say.
    for words in ("พรุ่งนี้เปิดไหม", "วันนี้เปิดไหม", "หยุดวันไหน"):
        assert opening(days_alone, words, TUESDAY, "th") is None


@pytest.mark.parametrize(
    "words",
    [
        "พรุ่งนี้เปิดจองไหม", "วันเสาร์เปิดพรีไหมคะ", "พรุ่งนี้ส่งไหม", "เมื่อวานเปิดไหม", "ว่างวันเสาร์ไหม", "open an account tomorrow?",
        "can I come on Sunday with my dog?",
    ],
)  # fmt: skip
def test_another_matter_on_a_day_is_left_alone(words: str) -> None:
    assert asked(words) is None


def test_general_hours_answer_for_this_day_alone_and_only_if_it_is_as_every_weeks() -> None:
    own = {"closed": ["2026-03-03"]}
    usual, closed = (
        Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {}, "business_hours": HOURS, **more})
        for more in ({}, {"holidays": own})
    )
    told = [depends_on_the_day(usual, words, TUESDAY) for words in ("เปิดกี่โมง", "วันนี้เปิดกี่โมง", "พรุ่งนี้เปิดกี่โมง")]
    assert told == [False, False, True]
    assert depends_on_the_day(closed, "are you open today?", TUESDAY)


FEASTS: dict[str, Any] = {"public": "TH", "closed": ["04-13..04-15"], "open": {"2026-12-05": ["10:00-15:00"]}}
EVERY_DAY: dict[str, Any] = {"mon-sun": ["09:00-18:00"]}


def of_feast(words: str, language: Tongue = "th", now: datetime = TUESDAY, **holidays: Any) -> str | None:
    tenant = Tenant.model_validate(
        {"id": "shop", "name": "Shop", "channels": {}, "business_hours": EVERY_DAY, "holidays": holidays or FEASTS}
    )
    return opening(tenant, words, now, language)


@pytest.mark.parametrize(
    ("words", "language", "expected"),
    [
        ("วันพ่อเปิดมั้ยคะ", "th", "วันเสาร์ที่ 5 ธ.ค. เปิด 10:00-15:00 น. ค่ะ"),
        ("ปีใหม่หยุดวันไหนบ้าง", "th", "วันพฤหัสบดีที่ 31 ธ.ค. ร้านหยุดค่ะ\nวันศุกร์ที่ 1 ม.ค. ร้านหยุดค่ะ"),
        (
            "สงกรานต์เปิดไหม",
            "th",
            "วันจันทร์ที่ 13 เม.ย. ร้านหยุดค่ะ\nวันอังคารที่ 14 เม.ย. ร้านหยุดค่ะ\nวันพุธที่ 15 เม.ย. ร้านหยุดค่ะ",
        ),
        ("คริสต์มาสเปิดกี่โมงคะ", "th", "วันศุกร์ที่ 25 ธ.ค. เปิด 09:00-18:00 น. ค่ะ"),
        ("วันวิสาขะเปิดไหม", "th", "วันอาทิตย์ที่ 31 พ.ค. ร้านหยุดค่ะ เปิดอีกครั้งวันอังคารที่ 2 มิ.ย. 09:00 น. ค่ะ"),
        (
            "are you open on New Year's Day?",
            "en",
            "We're closed on Friday, 1 Jan. We open on Saturday, 2 Jan, at 09:00.",
        ),
    ],
)
def test_a_feast_is_answered_by_its_own_days_not_by_todays_hours(words: str, language: Tongue, expected: str) -> None:
    assert of_feast(words, language) == expected


@pytest.mark.parametrize("words", ["ตรุษจีนเปิดมั้ย", "วันหยุดนักขัตฤกษ์เปิดไหมคะ", "are you open on public holidays?"])
def test_a_feast_whose_days_nobody_knows_is_not_answered_by_todays_hours(words: str) -> None:
    assert of_feast(words) is None
    assert of_feast("วันวิสาขบูชาเปิดไหม", closed=["04-13"]) is None  # the shop does not go by the calendar


def test_a_feast_of_several_days_is_told_until_it_is_over() -> None:
    new_year = datetime(2027, 1, 1, 5, 0, tzinfo=UTC)
    closed = "วันนี้ร้านหยุดค่ะ เปิดอีกครั้งพรุ่งนี้ 09:00 น. ค่ะ"
    assert of_feast("ปีใหม่เปิดไหม", now=new_year) == closed
    songkran = of_feast("สงกรานต์เปิดไหม", now=datetime(2026, 4, 15, 5, 0, tzinfo=UTC), closed=["04-13..04-15"])
    assert songkran == closed


def test_a_week_asked_about_is_told_day_by_day() -> None:
    told = of_feast("อาทิตย์หน้าเปิดวันไหนบ้าง", now=datetime(2026, 12, 2, 5, 0, tzinfo=UTC))
    assert told is not None
    assert [line.split(" ")[0] for line in told.splitlines()] == [
        *("วันจันทร์ที่", "วันอังคารที่", "วันพุธที่", "วันพฤหัสบดีที่", "วันศุกร์ที่", "วันเสาร์ที่", "วันอาทิตย์ที่")
    ]
    assert "วันพฤหัสบดีที่ 10 ธ.ค. ร้านหยุดค่ะ" in told
    left = of_feast("อาทิตย์นี้เปิดไหม")
    assert left is not None
    assert left.splitlines()[0] == "วันนี้ร้านหยุดค่ะ"  # Makha Bucha; the Monday is over
    assert len(left.splitlines()) == 6


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("วันศุกร์อาทิตย์หน้าเปิดไหม", "วันศุกร์ที่ 13 มี.ค. เปิด 09:00-18:00 น. ค่ะ"),
        ("ศุกร์สัปดาห์หน้าเปิดไหม", "วันศุกร์ที่ 13 มี.ค. เปิด 09:00-18:00 น. ค่ะ"),
        ("are you open on friday next week?", "วันศุกร์ที่ 13 มี.ค. เปิด 09:00-18:00 น. ค่ะ"),
        ("วันศุกร์อาทิตย์นี้เปิดไหม", "วันศุกร์ที่ 6 มี.ค. เปิด 09:00-18:00 น. ค่ะ"),
    ],
)
def test_a_day_of_next_week_is_no_day_of_this_one(words: str, expected: str) -> None:
    assert of_feast(words) == expected


def test_a_follow_up_that_names_a_day_is_answered_for_that_day_alone() -> None:
    tenant = Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {}, "business_hours": HOURS})
    sunday = "วันอาทิตย์ที่ 8 มี.ค. ร้านหยุดค่ะ เปิดอีกครั้งวันจันทร์ที่ 9 มี.ค. 09:00 น. ค่ะ"
    assert opening_too(tenant, "แล้ววันอาทิตย์ล่ะคะ", "วันเสาร์ปิดกี่โมง", TUESDAY, "th") == sunday
    assert opening_too(tenant, "แล้ววันอาทิตย์ล่ะคะ", "ขอจองโต๊ะวันเสาร์", TUESDAY, "th") is None
    assert opening_too(tenant, "แล้วสีดำล่ะ", "วันเสาร์ปิดกี่โมง", TUESDAY, "th") is None
