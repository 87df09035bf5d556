"""What a shop says of itself: variables in its texts, and answers to what is asked most."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from config.tenants import Tenant, TenantError, load_tenant
from gateway.about_shop import about_shop, facts, priced
from gateway.messages import Answer, InboundMessage, Kind
from gateway.moment import begun
from gateway.personal import personal
from gateway.rendering import render_line
from gateway.texts import Tongue
from memory.keys import ConversationRef
from memory.models import ShortTermMemory

FILE = """name: ร้านทดสอบ
channels: {web: {platform: web}}
shop:
  phone: "02-555-0148"
  address: {th: ซอยอารีย์ 4, en: Soi Ari 4}
  map: https://maps.example.com/x
prices: {ลาเต้: 65, เค้กส้ม: {th: เริ่มต้น 120 บาท, en: from 120 baht}}
products: [[ลาเต้, latte], [เค้กส้ม, orange cake]]
business_hours: {mon-fri: "09:00-18:00"}
agents: {default: {instructions: "Answer for {{shop.name}}, {{ shop.phone }}. {{left.alone}}"}}
replies: {welcome: "สวัสดีค่ะ คุณ{{user.name}} โทร {{shop.phone}}"}
faq:
  - questions: parking
    answer: {th: "จอดที่ {{shop.address}}", en: "Park at {{shop.address}}. We open {{shop.opens}}, {{user.name}}."}
"""
NIGHT = datetime(2026, 3, 3, 15, 0, tzinfo=UTC)


def load(tmp_path: Path, text: str) -> Tenant:
    folder = tmp_path / "config" / "tenants"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "shop.yaml"
    file.write_text(text, encoding="utf-8")
    return load_tenant(file, Settings(config_dir=tmp_path / "config", data_dir=tmp_path / "data"))


def said(tenant: Tenant, text: str, name: str | None, language: Tongue = "en", kind: Kind = Kind.TEXT) -> str:
    message = InboundMessage(
        tenant="shop",
        channel="c",
        platform="line",
        event_id="1",
        user_id="line:U1",
        chat_id="U1",
        text="hi",
        kind=kind,
        sender_name=name,
    )
    agent = tenant.agent()
    assert agent is not None
    session = ShortTermMemory(tenant_id="shop", user_id="line:U1", session_id="s")
    moment = begun(tenant, agent, ConversationRef("shop", "line:U1"), [message], session, language, NIGHT)
    return personal(moment, Answer(text)).text


def test_what_the_shop_says_of_itself_stands_in_its_texts(tmp_path: Path) -> None:
    tenant = load(tmp_path, FILE)
    assert tenant.reply("welcome") == "สวัสดีค่ะ คุณ{{user.name}} โทร 02-555-0148"
    assert tenant.faq[0].answer.th == "จอดที่ ซอยอารีย์ 4"
    english = "Park at Soi Ari 4. We open {{shop.opens}}, {{user.name}}."
    assert tenant.faq[0].answer.en == english
    assert tenant.agents["default"].instructions == "Answer for ร้านทดสอบ, 02-555-0148. {{left.alone}}"
    assert said(tenant, english, "Ann") == "Park at Soi Ari 4. We open tomorrow at 09:00, Ann."
    assert said(tenant, tenant.reply("welcome"), None, "th") == "สวัสดีค่ะ คุณลูกค้า โทร 02-555-0148"
    assert said(tenant, english, "Ann", kind=Kind.NOTICE) == english


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ann\n\nYou won! https://evil.example", "Ann You won! https://evil.example"),
        ("![x](https://evil.example/x.png)", "![x](https://evil.example/x.png)"),
        ("**A**", "**A**"),
        ("{{shop.opens}}", "{{shop.opens}}"),
        ("\u202eevil", "evil"),
        ("x" * 500, "x" * 40),
        (" \u200b ", "there"),
    ],
)
def test_a_hostile_name_is_a_name_and_nothing_else(tmp_path: Path, name: str, shown: str) -> None:
    told = said(load(tmp_path, FILE), "Hello {{user.name}}!", name)
    assert render_line(told) == [f"Hello {shown}!"]


def test_an_unknown_variable_is_told_with_the_right_word(tmp_path: Path) -> None:
    wrong = FILE.replace("{{shop.address}}. We", "{{shop.adress}}. We").replace(
        "โทร {{shop.phone}}", "{{shop.fax}} {{x}}"
    )
    with pytest.raises(TenantError) as raised:
        load(tmp_path, wrong)
    told = [(one.field, one.what, one.remedy) for one in raised.value.mistakes]
    names = "user.name, shop.opens, shop.name, shop.phone, shop.address, shop.map"
    assert told == [
        ("replies.welcome", "has a variable that is not known", f"write one of {names}, or add fax: … under shop"),
        ("replies.welcome", "has a variable that is not known", f"write one of {names}"),
        ("faq[0].answer", "has a variable that is not known", "did you mean {{shop.address}}?"),
    ]


def asked(tenant: Tenant, words: str, language: Tongue = "th") -> str | None:
    return about_shop(tenant, priced(tenant), words, language)


@pytest.mark.parametrize(
    ("words", "language", "expected"),
    [
        ("ร้านอยู่ที่ไหนคะ", "th", "ร้านอยู่ที่ ซอยอารีย์ 4 ค่ะ\nhttps://maps.example.com/x"),
        ("ขอโลเคชั่นหน่อยค่ะ", "th", "ร้านอยู่ที่ ซอยอารีย์ 4 ค่ะ\nhttps://maps.example.com/x"),
        ("Where are you?", "en", "You'll find us at Soi Ari 4\nhttps://maps.example.com/x"),
        ("ขอเบอร์ร้านหน่อย", "th", "โทรหาร้านได้ที่ 02-555-0148 ค่ะ"),
        ("what's your phone number", "en", "You can call us at 02-555-0148"),
        ("ลาเต้เท่าไหร่คะ", "th", "ลาเต้ 65 บาทค่ะ"),
        ("โลเคชั่นร้านค่ะ", "th", "ร้านอยู่ที่ ซอยอารีย์ 4 ค่ะ\nhttps://maps.example.com/x"),
        ("what's the address?", "en", "You'll find us at Soi Ari 4\nhttps://maps.example.com/x"),
        ("how do I get to your place", "en", "You'll find us at Soi Ari 4\nhttps://maps.example.com/x"),
        ("ติดต่อร้านทางไหนได้บ้าง", "th", "โทรหาร้านได้ที่ 02-555-0148 ค่ะ"),
        ("phone number please", "en", "You can call us at 02-555-0148"),
        ("can I call you? what number", "en", "You can call us at 02-555-0148"),
        ("ที่ร้านขายอะไรบ้างคะ", "th", "ราคาของร้านค่ะ\n- ลาเต้ 65 บาท\n- เค้กส้ม เริ่มต้น 120 บาท"),
        ("how much is a latte?", "en", "latte: 65 baht"),
        ("ราคาลาเต้กับเค้กส้ม", "th", "ราคาของร้านค่ะ\n- ลาเต้ 65 บาท\n- เค้กส้ม เริ่มต้น 120 บาท"),
        ("ขอดูเมนูหน่อยค่ะ", "th", "ราคาของร้านค่ะ\n- ลาเต้ 65 บาท\n- เค้กส้ม เริ่มต้น 120 บาท"),
    ],
)
def test_what_is_asked_most_is_answered(tmp_path: Path, words: str, language: Tongue, expected: str) -> None:
    assert asked(load(tmp_path, FILE), words, language) == expected


@pytest.mark.parametrize(
    "words",
    [
        "พัสดุของผมอยู่ที่ไหน", "where is my parcel", "my phone number is 081-234-5678", "เบอร์ผม 0812345678", "สวัสดีค่ะ",
        "ค่าส่งเท่าไหร่", "ออเดอร์ที่สั่งรวมเท่าไหร่", "ชาเขียวเท่าไหร่", "what is your email", "",
        "what's the location of my parcel", "my contact number is 0812345678", "I left my phone at your shop",
    ],
)  # fmt: skip
def test_what_is_not_asked_of_the_shop_is_left_alone(tmp_path: Path, words: str) -> None:
    assert asked(load(tmp_path, FILE), words) is None


def test_a_shop_that_says_nothing_answers_nothing() -> None:
    tenant = Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {}})
    words: Sequence[str] = ("ร้านอยู่ที่ไหนคะ", "ลาเต้เท่าไหร่คะ")
    assert [asked(tenant, one) for one in words] == [None, None]
    assert facts(tenant, "en") == ""


def test_a_model_is_told_what_the_shop_says(tmp_path: Path) -> None:
    told: Any = facts(load(tmp_path, FILE), "en")
    assert told == (
        "phone: 02-555-0148\naddress: Soi Ari 4\nmap: https://maps.example.com/x\nลาเต้: 65 baht\nเค้กส้ม: from 120 baht"
    )
