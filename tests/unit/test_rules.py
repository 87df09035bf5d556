import math
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from processors.models import Band, EventType, band
from processors.normalise import normalise, safe
from processors.rules import Rules, default_rules
from processors.rules.wording import evidence, likely_band

RULES = default_rules()
MESSAGES = Path(__file__).parents[2] / "processors" / "local" / "messages.tsv"

ODD = [
    "", " ", "\n\n", "\x00", "\ud800", "a\udfffb", "👍🏽👨‍👩‍👧", "\u200b\u200d\ufeff", "\u202eمرحبا\u202c",
    "ก" * 5000, "5" * 100,
    "๑๒๓", "?" * 300, "ำ", "็", "{{}}", "<script>", "ＣＦ　２", "\U000e0001", "ๆๆๆ",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "event_type"),
    [
        ("ราคาเท่าไหร่?", "INQUIRY"),
        ("How does this work?", "INQUIRY"),
        ("ดีมาก", "FEEDBACK"),
        ("Not satisfied with service", "FEEDBACK"),
        ("จองโต๊ะ", "REQUEST"),
        ("Please help me with...", "REQUEST"),
        ("สินค้าเสีย", "COMPLAINT"),
        ("This doesn't work", "COMPLAINT"),
        ("ซื้อ", "TRANSACTION"),
        ("จ่ายเงิน", "TRANSACTION"),
        ("Order #123", "TRANSACTION"),
        ("ช่วยได้ไหม", "SUPPORT"),
        ("I need assistance", "SUPPORT"),
        ("ที่อยู่คือ...", "INFORMATION"),
        ("My phone is...", "INFORMATION"),
        ("สวัสดี", "GENERIC_EVENT"),
        ("Thank you", "GENERIC_EVENT"),
    ],
)
def test_the_examples_of_each_type_are_told_apart(text: str, event_type: str) -> None:
    assert RULES.classify(text).event_type == event_type


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("เสื้อ", "TRANSACTION"),  # ซื้อ is not in it, but nearly
        ("ดีเลย์", "FEEDBACK"),  # ดี
        ("ของขวัญ", "REQUEST"),  # ขอ
        ("ไม่เสีย", "COMPLAINT"),
        ("ไม่มีปัญหา", "COMPLAINT"),
        ("no problem", "COMPLAINT"),
        ("not bad", "COMPLAINT"),
        ("เสียงดี", "COMPLAINT"),  # เสีย
        ("ตลาด", "COMPLAINT"),
        ("orderly", "TRANSACTION"),
        ("buyer", "TRANSACTION"),
        ("helpful", "SUPPORT"),
        ("ลงชื่อตรงไหน", "INFORMATION"),
    ],
)
def test_a_word_inside_another_word_does_not_fire(text: str, never: str) -> None:
    assert RULES.classify(text).event_type != never


@pytest.mark.parametrize(
    ("text", "event_type"),
    [
        ("CF 2 สีดำ", "TRANSACTION"),
        ("cf เสื้อดำ 2", "TRANSACTION"),
        ("ＣＦ ๒ แดง", "TRANSACTION"),
        ("ขอ ๒ แก้วนะคะ", "TRANSACTION"),
        ("I'd like to order two iced lattes", "TRANSACTION"),
        ("โอนแล้วนะคะ 350 บาท", "TRANSACTION"),
        ("อร่อยยยยยยมากกกกกก", "FEEDBACK"),
        ("อ\u200bร่\u200bอย", "FEEDBACK"),
        ("เเพงมาก", "FEEDBACK"),  # two sara e for one sara ae
        ("เปิดกี่โมงอ่ะ", "INQUIRY"),
        ("มีไซส์ L มั๊ยคะ", "INQUIRY"),
        ("tao rai krub", "INQUIRY"),
        ("ของที่ได้มาพังค่ะ", "COMPLAINT"),
        ("ทำไมของยังไม่มาส่งสักที", "COMPLAINT"),
        ("I was charged twice for one order", "COMPLAINT"),
        ("my order is late", "COMPLAINT"),
        ("ลืมรหัสผ่านทำไงดี", "SUPPORT"),
        ("how do I reset my password", "SUPPORT"),
        ("please cancel my order 5512", "REQUEST"),
        ("can I change my delivery address", "REQUEST"),
        ("ไม่ใช่ ขอเป็นสามแก้ว", "REQUEST"),  # what was said is put right
        ("ไม่ใช่ค่ะ ขอเป็นวันอาทิตย์", "REQUEST"),
        ("งั้นวันเสาร์สิบโมงก็ได้ค่ะ", "REQUEST"),
        ("เปลี่ยนเป็นกระโปรงดีกว่า", "REQUEST"),
        ("no sorry, make it three lattes", "REQUEST"),
        ("ยกเลิกค่ะ", "REQUEST"),
        ("ไม่เอาแล้วค่ะ ยกเลิก", "REQUEST"),
        ("cancel that", "REQUEST"),
        ("โทรกลับด้วยค่ะ 0891234567", "REQUEST"),
        ("ขอเป็นลาเต้ 2 แก้ว", "TRANSACTION"),
        ("ขอเป็นกำลังใจให้นะคะ", "GENERIC_EVENT"),
        ("ลูกแพ้ไข่ด้วยค่ะ", "INFORMATION"),
        ("ใช้แล้วหน้าแพ้", "COMPLAINT"),
        ("แพ้กุ้งที่ร้าน ผื่นขึ้นเต็มเลย", "COMPLAINT"),
        ("ผมชื่อสมชาย เบอร์ 0812345678", "INFORMATION"),
        ("I'm allergic to peanuts", "INFORMATION"),
        ("555555", "GENERIC_EVENT"),
        ("😀", "GENERIC_EVENT"),
        ("sawasdee krub", "GENERIC_EVENT"),
        ("ครับ", "GENERIC_EVENT"),
    ],
)
def test_chat_spelling_codes_and_plain_sentences_are_understood(text: str, event_type: str) -> None:
    assert RULES.classify(text).event_type == event_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("สวัสดีค่ะ", Band.MINIMAL),
        ("thanks", Band.MINIMAL),
        ("อร่อย", Band.LOW),
        ("ร้านเปิดกี่โมงคะ", Band.MODERATE),
        ("how much is a latte?", Band.MODERATE),
        ("แพ้ถั่วค่ะ", Band.IMPORTANT),
        ("my phone number is 0812345678", Band.IMPORTANT),
        ("จองโต๊ะ 4 คน พรุ่งนี้", Band.IMPORTANT),
        ("เสื้อที่ได้มาขาดค่ะ", Band.IMPORTANT),
        ("CF 2 สีดำ", Band.CRITICAL),
        ("I was charged twice, I want my money back", Band.CRITICAL),
        ("โอนเงินไปแล้วแต่โดนโกง", Band.CRITICAL),
        ("ของเสียหายหมดเลย กินแล้วอาหารเป็นพิษเข้าโรงพยาบาล จะฟ้องร้านแน่นอน", Band.CRITICAL),
        ("my daughter is in hospital from your cake, I will sue you", Band.CRITICAL),
    ],
)
def test_importance_follows_what_would_be_lost(text: str, expected: Band) -> None:
    assert band(RULES.classify(text).importance) == expected


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_any_text_has_a_verdict(text: str) -> None:
    verdict = RULES.classify(text)
    assert verdict.event_type in EventType
    assert 0.0 <= verdict.importance <= 1.0


@pytest.mark.timeout(20)  # what grows with the square of a text takes longer
def test_a_very_long_text_costs_no_more_than_a_long_one() -> None:
    for text in ("ก" * 100_000, "สั่งของ " * 15_000, "a" * 100_000, "\u200b" * 100_000, "0" * 100_000):
        assert RULES.classify(text).event_type in EventType


def test_a_shops_own_keywords_decide() -> None:
    own = Rules({EventType.COMPLAINT: ["น้ำแข็งละลาย", "melted"], EventType.REQUEST: ["ดี"]})
    assert own.classify("น้ำแข็งละลายหมดเลยค่ะ").event_type == EventType.COMPLAINT
    assert own.classify("it is MELTED").event_type == EventType.COMPLAINT
    assert own.classify("smelted iron").event_type != EventType.COMPLAINT
    assert own.classify("ดีเลย์").event_type != EventType.REQUEST
    assert RULES.classify("น้ำแข็งละลาย").event_type != EventType.COMPLAINT


def test_the_verdict_names_what_decided() -> None:
    assert RULES.classify("ของพัง").rule == "COMPLAINT: ของพัง"
    assert re.fullmatch("[A-Z_]+: letters “.{2,4}”", RULES.classify("it was lukewarm").rule)
    assert RULES.classify("").rule == "no rule"


def test_normalising_keeps_sara_am_whole_and_digits_plain() -> None:
    assert normalise("น้ำ ๑๒๓") == "น้ำ 123"
    assert normalise("น้ํา") == "น้ำ"
    assert normalise("มากกกก!!!") == "มาก!"
    assert normalise("ราคา 555 บาท") == "ราคา 555 บาท"
    assert safe("a\ud800b\x00c") == "a\ufffdbc"


@pytest.mark.parametrize("text", ["what is your favorite color", "What's your favourite food?", "คุณชอบสีอะไร"])
def test_a_question_about_the_bots_own_taste_is_small_talk(text: str) -> None:
    assert default_rules().classify(text).event_type == EventType.GENERIC_EVENT


def test_of_the_patterns_none_that_matches_is_passed_over() -> None:
    texts = [line.split("\t")[3] for line in MESSAGES.read_text(encoding="utf-8").splitlines()[1:]]
    texts += ["oan laew krub 300", "#99 please", "a@b.co", "0812345678", "jong toh 4 khon ka", "Order #5 from you"]
    for patterns in RULES._patterns.values():
        for plain in map(normalise, texts):
            all_tried = [lead for pattern, lead in patterns.patterns if re.search(pattern, plain)]
            assert patterns.matching(plain) == all_tried


@pytest.mark.parametrize(
    ("text", "event_type"),
    [
        ("ขอเงินคืนได้มั้ย", "REQUEST"),
        ("ขอคุยกับผู้จัดการได้มั้ยคะ", "REQUEST"),
        ("บ่ายโมงครึ่งค่ะ เดินไปรับเอง", "TRANSACTION"),
        ("receipt no. 2231, around 4 pm", "INFORMATION"),
        ("oan ngern laew ka 300 baht", "TRANSACTION"),
        ("ao latte 2 kaew krub", "TRANSACTION"),
        ("jong to 4 khon phrung nee ka", "REQUEST"),
        ("khong yang mai ma loei ka", "COMPLAINT"),
        ("leum password tham yang ngai", "SUPPORT"),
        ("chue Nok ber 0812220001", "INFORMATION"),
        ("perd kee mong ka", "INQUIRY"),
        ("aroi mak ka", "FEEDBACK"),
        ("khob khun krub", "GENERIC_EVENT"),
    ],
)
def test_shop_talk_is_understood_also_in_latin_letters(text: str, event_type: str) -> None:
    assert RULES.classify(text).event_type == event_type


def test_confidence_is_a_share_of_one_and_a_keyword_of_the_shops_is_sure() -> None:
    own = Rules({EventType.COMPLAINT: ["น้ำแข็งละลาย"]})
    assert own.classify("น้ำแข็งละลายหมดเลยค่ะ").confidence == 1.0
    assert own.classify("น้ำแข็งละลายหมดเลยค่ะ").own
    assert 0.125 <= RULES.classify("แล้วอันนั้นล่ะ").confidence < RULES.classify("สวัสดีค่ะ").confidence <= 1.0


@pytest.mark.parametrize(
    ("shares", "near", "expected"),
    [
        ((0.4, 0.1, 0.2, 0.2, 0.1), 0.0, 0),  # the likeliest
        ((0.4, 0.1, 0.2, 0.2, 0.1), 6.0, 1),  # four are at most one off
        ((0.5, 0.0, 0.0, 0.1, 0.4), 6.0, 0),  # nothing lies between
        ((0.05, 0.05, 0.1, 0.7, 0.1), 6.0, 3),
    ],
)
def test_the_band_named_is_seldom_far_off(shares: Sequence[float], near: float, expected: int) -> None:
    each_as_it_is = [[float(at == band) for at in range(5)] for band in range(5)]
    told = [math.log(share + 1e-9) for share in shares]
    assert likely_band(told, each_as_it_is, near) == expected


def test_what_speaks_for_a_band_is_what_types_and_bands_say() -> None:
    types = [0.75, 0.25, *[0.0] * 6]
    usual = [[[float(band == at) for band in range(5)] for _ in range(5)] for at in (4, 2, 0, 0, 0, 0, 0, 0)]
    told = evidence(types, [0.2] * 5, lambda _: 0, usual)
    assert [round(math.exp(one), 2) for one in told[:10]] == [0.0, 0.0, 0.25, 0.0, 0.75, *[0.2] * 5]
    assert told[10:] == [*types, 1.0]
