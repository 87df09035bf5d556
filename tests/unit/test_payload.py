"""What customers tell of themselves in a chat, as they write it."""

from __future__ import annotations

from typing import Any

import pytest

from processors.language import answer_language
from processors.payload import specifics
from processors.rules import default_rules


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ชื่อ Beam นะคะ ทำ freelance อยู่แถวนี้", {"name": "Beam"}),
        ("089-876-5432 ชื่อนัทค่ะ", {"phones": ["0898765432"], "name": "นัท"}),
        ("ชื่อสมหญิง เบอร์ 0812345678", {"phones": ["0812345678"], "name": "สมหญิง"}),
        ("ชื่อร้านค่ะ", {}),
        ("ชื่อเมนูอะไรคะ", {}),
        ("ไม่ทราบชื่อบัญชีค่ะ", {}),
        ("แก้วของคนแพ้ถั่วแยกถุงให้ด้วยนะคะ", {"allergies": ["ถั่ว"]}),
        ("แพ้ถั่วลิสงค่ะ", {"allergies": ["ถั่วลิสง"]}),
        ("แพ้อาหารทะเลครับ", {"allergies": ["อาหารทะเล"]}),
        ("แพ้ยาพาราค่ะ", {"allergies": ["ยาพารา"]}),
        ("แพ้ยาชาด้วยค่ะ", {"allergies": ["ยาชา"]}),
        ("ชื่อ สมหญิง ใจดี", {"name": "สมหญิง ใจดี"}),
        ("ชื่อ สมหญิง ใจดีค่ะ", {"name": "สมหญิง ใจดี"}),
        ("ชื่อ นุ่น ขอจองโต๊ะ", {}),
        ("แพ้งานหนัก", {}),
        ("I'm allergic to peanuts, and this order is late", {"allergies": ["peanuts"]}),
        ("I'm allergic to peanuts and I want my money back", {"allergies": ["peanuts"]}),
        ("allergic to shrimp, so please leave it out", {"allergies": ["shrimp"]}),
        ("I am allergic to milk, eggs, and soy and nuts please", {"allergies": ["milk", "eggs", "soy", "nuts"]}),
        ("081 555 0199", {"phones": ["0815550199"]}),
    ],
)
def test_a_name_an_allergy_a_number(text: str, found: dict[str, Any]) -> None:
    assert specifics(text) == found


def test_a_number_with_fives_in_it_is_no_laughter() -> None:
    assert (answer_language("081 555 0199", "en"), answer_language("555", "en"), answer_language("555")) == (
        "en",
        "en",
        "th",
    )
    assert default_rules().classify("081 555 0199").event_type == "INFORMATION"


@pytest.mark.parametrize(
    ("text", "event_type"),
    [
        ("สั่งมัทฉะแต่ได้ชาไทยมา ทำไมเป็นแบบนี้คะ", "COMPLAINT"),
        ("จองโต๊ะ 4 คนแต่ได้โต๊ะ 2 คน", "COMPLAINT"),
        ("ไม่มีใครโทรมาเลย", "COMPLAINT"),
        ("เรื่องที่แจ้งไว้ถึงไหนแล้วคะ", "INQUIRY"),
        ("can we make it 11 instead?", "REQUEST"),
        ("sawasdee ka mee cake mai ka", "INQUIRY"),
        ("555 วันนี้ร้อนมากเลย", "GENERIC_EVENT"),
    ],
)
def test_what_customers_mean_in_a_chat(text: str, event_type: str) -> None:
    assert default_rules().classify(text).event_type == event_type
