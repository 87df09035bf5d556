"""Which kind of answer a message gets, without a model and with one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.new_tenant import Answers, write_new
from config.settings import Settings
from config.tenants import Tenant
from gateway.commands import Commands
from gateway.messages import Answer, InboundMessage
from gateway.moment import Done, begun
from gateway.per_tenant import PerTenant
from gateway.rendering import render_line
from gateway.responder import Question, Responder
from gateway.texts import Tongue, wordings
from memory import MemoryConfig, MemoryManager
from memory.keys import ConversationRef
from memory.models import ShortTermMemory
from processors import rewrite
from processors.event_processor import EventProcessor
from processors.llm import ChatRequest, Completion

DEMO = Path(__file__).parents[2] / "config" / "tenants" / "demo.yaml"
NOW = datetime(2026, 3, 3, 3, 0, tzinfo=UTC)
SESSION = ShortTermMemory(tenant_id="shop", user_id="line:U1", session_id="s")


def shop(**sections: Any) -> Tenant:
    demo = yaml.safe_load(DEMO.read_text(encoding="utf-8"))
    return Tenant.model_validate({**demo, "id": "shop", "channels": {}, **sections})


def message(text: str, **extra: Any) -> InboundMessage:
    return InboundMessage(
        tenant="shop",
        channel="c",
        platform="line",
        event_id="1",
        user_id="line:U1",
        chat_id="U1",
        text=text,
        extra=extra,
    )


class Model:
    """Answers everything alike and keeps what it was asked."""

    def __init__(self, says: str = "from the model") -> None:
        self.asked: list[ChatRequest] = []
        self.says = says

    async def complete(self, request: ChatRequest) -> Completion:
        self.asked.append(request)
        return Completion(self.says, request.access.model)

    def stream(self, request: ChatRequest) -> AsyncIterator[str]:
        raise AssertionError("answers are asked for whole")


async def answer(
    text: str,
    language: Tongue = "th",
    said: Sequence[str] = (),
    tenant: Tenant | None = None,
    says: str = "from the model",
    history: Sequence[tuple[str, str]] = (),
    **extra: Any,
) -> tuple[Answer, Model]:
    tenant = tenant or shop()
    agent = tenant.agent()
    assert agent is not None
    model = Model(says)
    responder = Responder(model, PerTenant(lambda _: EventProcessor()))
    earlier = [{"role": "bot", "message": line, "timestamp": "2026-03-03T02:58:00Z"} for line in said]
    earlier += [{"role": who, "message": line, "timestamp": "2026-03-03T02:58:00Z"} for who, line in history]
    standalone = rewrite.by_rules(text, earlier) if rewrite.follows_up(text, earlier) else None
    question = Question(
        tenant=tenant,
        agent=agent,
        messages=[message(text, **extra)],
        language=language,
        context={"recent_messages": earlier},
        now=NOW,
        standalone=standalone,
    )
    return await responder.answer(question), model


@pytest.mark.parametrize(
    ("text", "language", "name"),
    [
        ("ขอลาเต้ 2 แก้วค่ะ", "th", "transaction"),
        ("กาแฟเย็นชืดมาก ผิดหวัง", "th", "complaint"),
        ("โต๊ะที่จองไว้ยืนยันหรือยังคะ", "th", "own_case"),
        ("รวมทั้งหมดกี่บาทคะ", "th", "own_case"),
        ("Is my order ready?", "en", "own_case"),
        ("How much for both?", "en", "own_case"),
        ("I'd like to book a table for 5 on Saturday at 10am", "en", "request"),
        ("ขอบคุณค่ะ", "th", "thanks"),
        ("thx!", "en", "thanks"),
    ],
)
async def test_without_a_model_each_kind_gets_its_own_words(text: str, language: Tongue, name: str) -> None:
    given, _ = await answer(text, language)
    assert given.text == wordings(name, language)[0]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("พรุ่งนี้เปิดไหม", "th", "พรุ่งนี้เปิด 09:00-18:00 น. ค่ะ"),
        ("อาทิตย์นี้วันเสาร์เปิดกี่โมงคะ", "th", "วันเสาร์ที่ 7 มี.ค. เปิด 09:00-18:00 น. ค่ะ"),
        ("Are you open on Sunday?", "en", "We're closed on Sunday, 8 Mar. We open on Monday, 9 Mar, at 09:00."),
        ("ร้านเปิดกี่โมงคะ", "th", "ร้านเปิด 09:00–18:00 น. หยุดวันอาทิตย์ค่ะ"),
        ("What time do you open?", "en", "We're open from 09:00 to 18:00, closed on Sunday."),
    ],
)
async def test_a_new_shop_answers_by_the_day_that_is_asked_about(
    text: str, language: Tongue, expected: str, tmp_path: Path
) -> None:
    file = write_new(Settings(config_dir=tmp_path), Answers("new", closed=("sun",)))
    tenant = Tenant.model_validate({**yaml.safe_load(file.read_text(encoding="utf-8")), "id": "new", "channels": {}})
    given, model = await answer(text, language, tenant=tenant)
    assert (given.text, model.asked) == (expected, [])


async def test_what_is_told_is_not_answered_as_if_it_was_asked() -> None:
    asked, _ = await answer("ขอเบอร์โทรร้านหน่อย")
    told, _ = await answer("เบอร์ 081-234-5678 ค่ะ")
    assert ("02-555-0148" in asked.text, told.text) == (True, wordings("noted", "th")[0])


async def test_details_after_an_apology_are_thanked_for() -> None:
    sorry = wordings("complaint", "en")[0]
    given, _ = await answer("order number A1042", "en", [sorry])
    assert given.text == wordings("details", "en")[0]


@pytest.mark.parametrize("says", ["\u200b", "\u2060 \x00", "![]()", "---", "&nbsp;", "```\n```", "** **"])
async def test_a_model_that_says_nothing_to_be_seen_has_not_answered(says: str) -> None:
    tenant = shop(faq=[], llm={"api_key": "sk-test"})
    got, model = await answer("แนะนำหน่อยว่าเลือกอะไรดี", tenant=tenant, says=says)
    assert (got.model, len(model.asked)) == (None, 1)
    assert render_line(got.text)


@pytest.mark.parametrize("text", ["ผมชื่อสมหมาย", "ขอลาเต้ 2 แก้วค่ะ", "กาแฟเย็นชืดมาก ผิดหวัง"])
async def test_what_was_forwarded_is_neither_the_customers_own_nor_noted(text: str) -> None:
    tenant = shop(faq=[])
    got, _ = await answer(text, tenant=tenant, forwarded="Somebody")
    assert got.text == tenant.reply("unanswered", "th")


async def test_a_question_near_the_shops_own_is_asked_back_with_buttons() -> None:
    given, _ = await answer("I just moved to Ari so how do I find you?", "en")
    assert given.text.startswith(wordings("did_you_mean", "en")[0])
    assert [button.text for button in given.quick_replies] == ["Where are you located?"]


@pytest.mark.parametrize(
    ("text", "language", "told"),
    [
        ("I just moved to Ari, how do I find you?", "en", "Soi Ari 4"),
        ("เพิ่งย้ายมาแถวนี้ค่ะ ร้านอยู่ตรงไหนคะ", "th", "อารีย์ 4"),
        ("perd kee mong ka", "th", "07:00"),
        ("ran yoo nai krub", "th", "อารีย์ 4"),
        ("latte tao rai ka", "th", "70/80"),
        ("mee tee jod rod mai krub", "th", "4 คัน"),
        ("rap bat credit mai ka", "th", "บัตรเครดิต"),
        ("jong toh dai mai krub", "th", "จองได้"),
        ("kho menu noi ka", "th", "อเมริกาโน่"),
        ("song mai ka", "th", "GrabFood"),
        ("มีโอ๊ตมิลค์ปะ", "th", "20 บาท"),
        ("ขอแมพหน่อยครับ", "th", "อารีย์ 4"),
        ("u take visa?", "en", "credit cards"),
    ],
)
async def test_everyday_questions_are_answered_without_a_model(text: str, language: Tongue, told: str) -> None:
    given, model = await answer(text, language)
    assert (told in given.text, model.asked) == (True, [])


@pytest.mark.parametrize("text", ["Is my table confirmed?", "I'd like to book a table for 5 on Saturday at 10am"])
async def test_with_a_model_the_customers_own_case_is_the_models(text: str) -> None:
    with_key = shop(llm={"api_key": "sk-or-test-1", "base_url": "http://127.0.0.1:9/api/v1"})
    given, model = await answer(text, "en", tenant=with_key)
    assert (given.text, len(model.asked)) == ("from the model", 1)


async def test_with_a_model_what_the_shop_wrote_down_is_still_answered_word_for_word() -> None:
    with_key = shop(llm={"api_key": "sk-or-test-1", "base_url": "http://127.0.0.1:9/api/v1"})
    given, model = await answer("any promo now?", "en", tenant=with_key)
    assert (given.text.startswith("Bring your own cup"), model.asked) == (True, [])


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("can u reply in english pls", "en"),
        ("Do you speak English?", "en"),
        ("ตอบเป็นภาษาอังกฤษได้ไหม", "en"),
        ("ช่วยตอบเป็นภาษาไทยหน่อยค่ะ", "th"),
        ("please answer in Thai", "th"),
        ("/language en", "en"),
    ],
)
async def test_a_language_can_be_asked_for_in_plain_words(text: str, chosen: str, tmp_path: Path) -> None:
    done = await command([text], tmp_path)
    assert done is not None
    assert done.change(SESSION).variables["language"] == chosen


async def test_a_wish_among_other_messages_leaves_them_to_be_answered(tmp_path: Path) -> None:
    assert await command(["ขอลาเต้ 2 แก้ว", "reply in english pls"], tmp_path) is None


@pytest.mark.parametrize(
    "text", ["คุยกับพนักงาน", "I write about English tea", "ไทยที่เป็นภาษา", "ชาไทยเย็น 1 แก้ว", "english breakfast tea"]
)
async def test_other_words_are_no_command(text: str, tmp_path: Path) -> None:
    assert await command([text], tmp_path) is None


async def command(texts: Sequence[str], folder: Path) -> Done | None:
    tenant = shop()
    agent = tenant.agent()
    assert agent is not None
    manager = MemoryManager(MemoryConfig(lm_base_path=folder))
    moment = begun(tenant, agent, ConversationRef("shop", "line:U1"), [*map(message, texts)], SESSION, "th", NOW)
    try:
        return await Commands(manager).settle(moment)
    finally:
        await manager.close()


PRICED = {"prices": {"ลาเต้": 65, "โกโก้": 60}, "products": [["ลาเต้", "latte"], ["โกโก้", "cocoa"]], "faq": []}


@pytest.mark.parametrize(
    ("before", "text", "language", "expected"),
    [
        ("ลาเต้เท่าไหร่คะ", "แล้วโกโก้ล่ะ", "th", "โกโก้ 60 บาทค่ะ"),
        ("ลาเต้เท่าไหร่คะ", "โกโก้ละ", "th", "โกโก้ 60 บาทค่ะ"),
        ("how much is a latte?", "and a cocoa?", "en", "cocoa: 60 baht"),
        ("พรุ่งนี้เปิดไหม", "แล้ววันอาทิตย์ล่ะคะ", "th", "วันอาทิตย์ที่ 8 มี.ค. เปิด 08:00-19:00 น. ค่ะ"),
    ],
)
async def test_a_follow_up_asks_what_the_question_before_asked(
    before: str, text: str, language: Tongue, expected: str
) -> None:
    given, _ = await answer(text, language, tenant=shop(**PRICED), history=[("user", before), ("bot", "…")])
    assert given.text == expected
    again = [("user", before), ("bot", "…"), ("user", text), ("bot", expected)]
    given, _ = await answer(text, language, tenant=shop(**PRICED), history=again)
    assert given.text == expected  # asked again it is no less known


@pytest.mark.parametrize("text", ["แล้วชามะนาวล่ะ", "แล้วสีดำล่ะ", "แล้วเค้กอ่ะ"])
async def test_a_follow_up_that_nothing_answers_goes_to_staff(text: str) -> None:
    given, _ = await answer(text, tenant=shop(**PRICED), history=[("user", "ลาเต้เท่าไหร่คะ"), ("bot", "…")])
    assert given.for_staff == "unknown"


@pytest.mark.parametrize(
    ("text", "language"),
    [("คุณเป็นบอทใช่ไหม", "th"), ("คุยกับคนหรือบอทคะ", "th"), ("บอทหรอ", "th"), ("are you a real person?", "en")],
)
async def test_who_asks_whether_it_is_a_bot_hears_that_it_is(text: str, language: Tongue) -> None:
    given, _ = await answer(text, language, tenant=shop(faq=[]))
    assert given.text == wordings("a_bot", language)[0]


async def test_a_payment_that_is_told_of_is_no_question_how_to_pay() -> None:
    cod = {"questions": ["มีเก็บเงินปลายทางไหม"], "answer": {"th": "มีเก็บเงินปลายทางค่ะ"}}
    paid, _ = await answer("โอนแล้วนะคะ", tenant=shop(faq=[cod]))
    asked, _ = await answer("มีเก็บเงินปลายทางมั้ย", tenant=shop(faq=[cod]))
    assert (paid.text, asked.text) == (wordings("transaction", "th")[0], "มีเก็บเงินปลายทางค่ะ")
