"""Specifics found in a text: amounts, phone numbers, order numbers, dates, names, allergies and the like. No model.

What is found goes into an event's payload; `attributes_from` says what of it is lasting enough for the person.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

from processors.dates import AWAY, MONTHS_TH, SPOKEN, WEEKDAY
from processors.models import MemoryEvent
from processors.normalise import SCANNED, normalise
from processors.numbers import COUNT, THAI, THAI_WORDS, count_of, thai_number
from processors.sought import Sought, may_match

_CURRENCY = {"บาท": "THB", "บ.": "THB", "฿": "THB", "thb": "THB", "baht": "THB", "$": "USD", "usd": "USD",
             "dollar": "USD", "dollars": "USD", "bucks": "USD", "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR",
             "£": "GBP", "gbp": "GBP", "pounds": "GBP"}  # fmt: skip
_UNITS = (
    "ใบ|แท่ง|ชิ้น|อัน|ขวด|แก้ว|กล่อง|ตัว|ชุด|จาน|ถุง|แพ็ค|ลัง|ดวง|แผ่น|คู่|เซต|เซ็ต|โหล|กก|กิโล|ถ้วย|หลอด|ซอง|เครื่อง|"
    "ที่นั่ง|คน|ท่าน|ห้อง|คืน|คัน|กระป๋อง|ห่อ|ลูก|ผืน|เส้น|ฟอง|ก้อน|ถาด|ไม้|หม้อ|ถัง|ม้วน|เล่ม|ที่(?![ก-๎])|โล(?![ก-๎])|ปอนด์|"
    "ที่(?=ค่ะ|คะ|ครับ|คับ|นะ|จ้า|ด้วย)|มื้อ|เม็ด|เมตร|ดอก(?!เบี้ย)|ต้น(?!เดือน|ปี|ฉบับ|ทุน)|ชาม|มัด(?!จำ)|ช่อ(?!ง)|แผง|พวง|กระปุก|กระถาง|"
    "ตะกร้า|กระสอบ|แกลลอน|ลิตร|กรัม|ขีด|แพค|แพ็ก|เซท"
)
# "ขวดนึง", "กล่องเดียว": with these alone, as "คนหนึ่ง" is somebody and "ที่หนึ่ง" the first.
_ONE_TH = "ใบ|แท่ง|ชิ้น|อัน|ขวด|แก้ว|กล่อง|ตัว|ชุด|จาน|ถุง|แพ็ค|ลัง|แผ่น|คู่|เซต|เซ็ต|ถ้วย|ซอง|เครื่อง|กระป๋อง|ห่อ|ลูก|ผืน|ชาม|เล่ม"
_NUM = r"(?<![\d.,])(\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,4})?|\d{1,12}(?:\.\d{1,4})?)"
_AMOUNT = Sought(
    rf"([$€£฿]|\b(?:thb|usd|eur|gbp)\b)\s?{_NUM}"
    rf"|{_NUM}(?:\.-|\s)*\s?(พัน|หมื่น|แสน|k\b)?\s?(บาท|บ\.|฿|thb\b|baht\b|usd\b|dollars?\b|bucks\b|eur\b|euros?\b|gbp\b|pounds\b)"
    rf"|({THAI})(บาท)"
    rf"|{_NUM}\s?(หมื่น|แสน)(?!\s*(?:{_UNITS}|กิโล|กม|ไมล์|วิว|ราย|ปี))"  # so many are baht, if nothing else is named
    rf"|(?<![\d.,])(\d{{1,3}}(?:,\d{{3}})+|\d{{1,7}})(\.-)"  # 450.- is baht
)
_TIMES = {"พัน": 1000, "k": 1000, "หมื่น": 10_000, "แสน": 100_000, "": 1}
_PHONE = Sought(
    r"(?<![\d,.])0[689]-\d{4}-\d{4}(?![\d,])"
    r"|(?<![\d,.])(?:\+66[- ]?(?:\(0\)[- ]?)?|\(?0)"
    r"(?:[689]\d\)?[- ]?\d{3}[- ]?\d{4}|[2-7]\d?\)?[- ]?\d{3}[- ]?\d{3,4})(?![\d,])"
)
_EMAIL = Sought(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}")
_ORDER = Sought(
    r"(?:ออเดอร์|คำสั่งซื้อ|เลขที่สั่งซื้อ|ใบเสร็จ|บิล|การจอง|order|booking|tracking|receipt|invoice|reference|เลขพัสดุ|พัสดุ)"
    r"\s*(?:number|no\.?|id|ref\.?|code|เลขที่|หมายเลข|ที่)?"
    r"\s*(?:is|คือ|:|#)?\s*#?\s*((?=[a-z-]*\d)[a-z0-9][a-z0-9-]{2,24})|#([a-z]{0,4}-?\d{2,})"
)
_POSTCODE = Sought(r"([1-9](?<!\d[1-9])\d{4})(?!\d|\s*(?:บาท|บ\.|฿|,))")
_PLACE = Sought(
    r"ที่อยู่|บ้านเลขที่|ถนน|ซอย|ตำบล|แขวง|อำเภอ|เขต|จังหวัด|หมู่|ต\.|อ\.|จ\.|กรุงเทพ|กทม|นนทบุรี|ปทุมธานี|เชียงใหม่|ชลบุรี|ภูเก็ต|ขอนแก่น|โคราช"
    r"|address|zip|postcode|postal|road|street|bangkok|nonthaburi|chiang|phuket|pattaya|chonburi|sukhumvit|soi\b"
)
_HOURS = "สิบเอ็ด|หนึ่ง|สอง|สาม|สี่|ห้า|หก|เจ็ด|แปด|เก้า|สิบ"
# From the house number to the postcode.
_ADDRESS = re.compile(
    r"(?<![\d/.,-])(?:บ้านเลขที่\s*|เลขที่\s*)?\d{1,4}(?:/\d{1,4})?(?![\d:.]|-\d)[^\n?]{6,160}?[1-9]\d{4}(?!\d)"
)
_TIME = Sought(
    r"(?<![\d:.])([01]?\d|2[0-3])[:.]([0-5]\d)(?:\s*(?:น\.|น(?![ก-๎])|am|pm))?(?![\d:])|\d(?<!\d\d)\d?+\s*+(?:โมง(?:เช้า|เย็น)?|ทุ่ม)(?:ครึ่ง)?"
    rf"|(?:{_HOURS})\s*(?:โมง(?:เช้า|เย็น)?|ทุ่ม)(?:ครึ่ง)?|ทุ่ม(?<![ก-๎\d]ทุ่ม)(?:ครึ่ง)?"
    rf"|บ่าย\s*(?:\d|{_HOURS})?(?:โมง)?(?:ครึ่ง)?|ตี\s?(?:[1-5]|{_HOURS})(?:ครึ่ง)?|เที่ยง(?:คืน|ตรง)?(?:ครึ่ง)?"
    rf"|\d(?<!\d\d)\d?+\s?(?:am|pm)\b|\b(?:noon|midnight)\b|{SPOKEN}"
)
_EN_MONTHS = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
_DAYS = (
    rf"{WEEKDAY}|{AWAY}|วันนี้|พรุ่งนี้|มะรืน(?:นี้)?|เมื่อวาน(?:ซืน)?|อาทิตย์(?:นี้|หน้า)|สุดสัปดาห์"
    r"|\b(?:(?:the )?day after )?(?:today|tomorrow|tonight|yesterday|tmrw?|tomm?or?row)\b"
)
_MONTH_TH = rf"(?:{MONTHS_TH})(?:\s*(?:พ\.ศ\.\s*)?\d{{2,4}}(?![\d:.]))?"
_DATE = Sought(
    rf"วันที่\s*\d{{1,2}}\s*{_MONTH_TH}|\d(?<!\d\d)\d?+\s*+{_MONTH_TH}"
    rf"|\d(?<!\d\d)\d?+(?:st|nd|rd|th)?(?: of)? (?:{_EN_MONTHS})\b(?:,? \d{{4}})?"
    rf"|\b(?:{_EN_MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}})?|\d(?<![\d-]\d)\d{{3}}-\d{{2}}-\d{{2}}(?![\d-])"
    rf"|(?<![\d/])(?:0?[1-9]|[12]\d|3[01])/(?:0?[1-9]|1[0-2])(?:/\d{{2,4}})?(?![\d/])(?!\s*(?:หมู่|ม\.|ซ\.|ซอย|ถ\.|ถนน))"
    rf"|วันที่\s*\d{{1,2}}|\bon the \d{{1,2}}(?:st|nd|rd|th)\b|{_DAYS}"
)
_EN_UNITS = (
    "pieces?|pcs|boxes|box|bottles?|cups?|glasses|cans?|sets?|packs?|dozen|kg|people|persons?|adults?|kids|children|guests?|rooms?"
    "|nights?|tickets?|bags?|plates?|slices?|pairs?|cartons?|seats?|jars?|rolls?|tubes?|bowls?|trays?|tubs?|bunches|loaves"
    "|kilos?|grams?|lit(?:er|re)s?|portions?|servings?|units?|pax|sheets?|copies"
)
_ONE_EN = "pair|box|bottle|cup|glass|pack|bag|plate|slice|carton|set|ticket|room|jar|roll|tube|bowl|tray|bunch|loaf"
_THAI_ALONE = "|".join(rf"{word}(?<!\d{word})(?<!\d {word})" for word in THAI_WORDS)  # no further word of a number
_QUANTITY = Sought(
    rf"(\d(?<![\d.,ก-๎]\d)\d{{0,3}}+)\s*+({_UNITS}|(?:{_EN_UNITS})\b)"
    rf"|((?:{_THAI_ALONE})(?:{'|'.join(THAI_WORDS)})*)({_UNITS})|({COUNT}) ((?:{_EN_UNITS})\b)"
    rf"|({_ONE_TH})(?:นึง|หนึ่ง|เดียว(?!กัน))|(?<!baht )(?<!\d )\ban? ({_ONE_EN})\b"
)
# A name ends at the next space, particle or mark; questions about names ("ชื่ออะไร") are none.
_NAME_TH = Sought(
    r"(?:ผม|ดิฉัน|หนู|ฉัน|เรา)\s?ชื่อ\s?((?!อะไร|ไร|ว่า)[ก-๎a-z]{2,20}?)(?=ครับ|ค่ะ|คะ|คับ|นะ|จ้า|เบอร์|โทร|\W*\s|\W*$)"
)
# "ชื่อ" without an "I" is the customer's own at the beginning or after a number, and when politely ended.
_NAME_TOLD = Sought(
    r"(?:^|\d\s|(?:ครับ|ค่ะ|คะ|คับ)\s)ชื่อ\s?(?!อะไร|ไร|ว่า|ร้าน|เมนู|สินค้า|บัญชี|ผู้|คน|ของ|นี้|เดิม|เล่น|จริง|เต็ม|ไฟล์)"
    r"([ก-๎a-z]{2,20}?(?: (?!ขอ|จะ|จอง|สั่ง|เอา|อยาก|มา|ไป|รับ|นัด|ส่ง|เบอร์|โทร|ที่|อยู่|แพ้|ไม่|เป็น|วัน|พรุ่ง|เวลา"
    r"|บ่าย|เช้า|กี่|ได้|มี|นะ|ครับ|ค่ะ|คะ|คับ|จ้า|กับ|และ|ไซ|สี|คน)"
    r"[ก-๎]{2,20}?)?)\s?(?=(?:นะ)?(?:ครับ|ค่ะ|คะ|คับ)|จ้า|\s?(?:เบอร์|โทร)|$)"
)
_NAME_OF = Sought(r"(?:ชื่อ)?ผู้รับ\s?(?:คือ|:)?\s?((?:คุณ)?[ก-๎]{2,20}(?: [ก-๎]{2,20})?)(?=\W*(?:\d|เบอร์|โทร|ที่อยู่|$))")
_NAME_EN = Sought(
    r"\b(?:my name(?:'s| is)|this is(?=[a-z' -]{2,40} speaking\b)) ([a-z][a-z'-]{1,20}(?: [a-z][a-z'-]{1,20})?)"
    r"(?= and\b| but\b| speaking\b|\W*$|[,.!])"
)
_ALLERGEN_TH = (
    r"(?:อาหาร)?(?:ถั่ว(?:ลิสง|เหลือง|เขียว|แดง|เปลือกแข็ง|ทุกชนิด)?|กุ้ง|ปู|นม(?:วัว|แพะ)?|ไข่(?:ขาว|แดง)?|แป้ง(?:สาลี)?|กลูเตน|ทะเล|ซีฟู้ด"
    r"|ปลา(?:หมึก)?|หอย|งา(?!น)|ยา[ก-๎a-z]{0,12}?(?=ครับ|ค่ะ|คะ|คับ|นะ|มาก|ด้วย|แล้ว|เลย|และ|กับ|[^ก-๎a-z]|$)|แอลกอฮอล์|น้ำหอม|ฝุ่น)"
)
_ALLERGY_TH = Sought(rf"(?<!ไม่)(?<!ไม่ได้)แพ้\s?({_ALLERGEN_TH}(?:\s?(?:และ|กับ|,|แล้วก็|\s)\s?{_ALLERGEN_TH}){{0,4}})")
_ALLERGENS_TH = re.compile(_ALLERGEN_TH)
_ALLERGY_EN = Sought(
    r"\b(?:(?<!not )allergic to|allergy to) ([a-z]+(?:(?:,? and|,? or|,) [a-z]+){0,3})|\b([a-z]+) allergy\b"
)
_DIET = Sought(r"มังสวิรัติ|กินเจ|ไม่กินเนื้อ|ไม่กินหมู|ไม่กินเผ็ด|ฮาลาล|\b(?:vegan|vegetarian|halal|gluten[- ]free)\b")
_NOT_ALLERGENS = frozenset({"any", "an", "a", "no", "the", "my", "it", "food", "have", "of", "your", "severe"})
# With one of these the sentence goes on about something else.
_NO_MORE_ALLERGENS = re.compile(
    r"(?:also|am|and|are|as|because|but|can|could|did|do|does|for|from|had|has|have|he|how|i|if|in|is|just|let|may"
    r"|maybe|not|now|on|one|or|our|please|she|should|so|sorry|thank|thanks|that|then|there|these|they|this"
    r"|those|to|too|was|we|were|what|when|where|which|who|why|will|would|you)\Z"
)
_QUESTION = Sought(r"\?|ไหม|หรอ|เหรอ|กี่|อะไร|ยังไง")


def specifics(text: str) -> dict[str, Any]:
    """What was found; only the keys that have something: `amounts` [{value, currency}], `phones`, `emails`,
    `order_ids`, `dates`, `times`, `postcodes` (next to words of an address), `address` (from house number to postcode),
    `quantities` [{count, unit}], `name`, `allergies`, `diet`."""
    return dict(_specifics(text[: 2 * SCANNED]))  # all that normalise looks at


@lru_cache(maxsize=256)  # a turn asks twice: for the answer, and for what is remembered
def _specifics(text: str) -> dict[str, Any]:
    plain = normalise(text)
    may = may_match(plain)
    return {key: found for key, bits, find in _FINDERS if may & bits and (found := find(text, plain))}


def _postcodes(_: str, plain: str) -> Sequence[str]:
    return _POSTCODE.findall(plain) if _PLACE.search(plain) else ()


def _address(text: str, plain: str) -> str | None:
    found = _addressed(text, plain)
    return _as_written(text, found) if found else None


def _addressed(text: str, plain: str) -> str | None:
    found = _ADDRESS.search(plain) if _postcodes(text, plain) else None
    return found[0] if found else None


def _dates(text: str, plain: str) -> list[str]:
    # "12/3" before a road is a house, no day of March.
    address = _addressed(text, plain)
    return [m[0] for m in _DATE.finditer(plain.replace(address, " ") if address else plain)]


def _quantities(_: str, plain: str) -> list[dict[str, Any]]:
    return [{"count": count_of(number) if number else 1, "unit": unit} for number, unit in _counted(plain)]


def _diet(_: str, plain: str) -> str | None:
    return None if _QUESTION.search(plain) else next(iter(_DIET.findall(plain)), None)


def _counted(plain: str) -> Iterator[tuple[str, str]]:
    """Each number with what is counted; "" where one is meant and no number said."""
    for a, x, b, y, c, z, one, single in _QUANTITY.findall(plain):
        yield a or b or c, x or y or z or one or single


def _amount(m: re.Match[str]) -> dict[str, Any]:
    sign, signed, number, times, unit, words, _, round_number, power, dashed, _ = m.groups()
    if words:
        return {"value": float(thai_number(words)), "currency": "THB"}
    value = float((signed or number or round_number or dashed).replace(",", "")) * _TIMES[times or power or ""]
    return {"value": value, "currency": _CURRENCY[sign or unit or "บาท"]}


def _name(text: str, plain: str) -> str | None:
    found = (pattern.search(plain) for pattern in (_NAME_TH, _NAME_TOLD, _NAME_OF, _NAME_EN))
    if not (match := next(filter(None, found), None)):
        return None
    return _as_written(text, match[1])


def _as_written(text: str, found: str) -> str:
    """The normalised text is in lower case: what was found in it as the customer wrote it, where that can be told."""
    at = text.lower().find(found)
    return text[at : at + len(found)] if at >= 0 else found


def _allergies(_: str, plain: str) -> list[str]:
    found = [one for m in _ALLERGY_TH.finditer(plain) for one in _ALLERGENS_TH.findall(m[1])]
    for match in _ALLERGY_EN.finditer(plain):
        words = re.split(r",? and |,? or |, ", match[1] or match[2])
        listed = takewhile(lambda one: not _NO_MORE_ALLERGENS.match(one), words)
        found += [one for one in listed if one not in _NOT_ALLERGENS]
    return list(dict.fromkeys(found))


# In the order in which they are told: what of it may be found by the one pass over the text, and how.
_FINDERS: Sequence[tuple[str, int, Callable[[str, str], Any]]] = (
    ("amounts", _AMOUNT.bits, lambda _, plain: [_amount(m) for m in _AMOUNT.finditer(plain)]),
    ("phones", _PHONE.bits, lambda _, plain: [re.sub(r"\(0\)|[- ()]", "", m) for m in _PHONE.findall(plain)]),
    ("emails", _EMAIL.bits, lambda _, plain: _EMAIL.findall(plain)),
    ("order_ids", _ORDER.bits, lambda _, plain: [(a or b).upper() for a, b in _ORDER.findall(plain)]),
    ("dates", _DATE.bits | _POSTCODE.bits, _dates),
    ("times", _TIME.bits, lambda _, plain: [m[0].strip() for m in _TIME.finditer(plain)]),
    ("postcodes", _POSTCODE.bits, _postcodes),
    ("address", _POSTCODE.bits, _address),
    ("quantities", _QUANTITY.bits, _quantities),
    ("name", _NAME_TH.bits | _NAME_TOLD.bits | _NAME_OF.bits | _NAME_EN.bits, _name),
    ("allergies", _ALLERGY_TH.bits | _ALLERGY_EN.bits, _allergies),
    ("diet", _DIET.bits, _diet),
)


def attributes_from(event: MemoryEvent) -> dict[str, Any]:
    """What an event tells of the person for good: `preferred_language`, `name`, `phone`, `email`, `allergies` (a list),
    `diet`. Conservative: the customer's own statements alone, nothing out of questions or out of a model's guess."""
    payload = event.payload
    out: dict[str, Any] = {}
    if (language := payload.get("language")) in ("th", "en"):
        out["preferred_language"] = language
    for key, source in (("phone", "phones"), ("email", "emails")):
        # Two numbers in one message: whose is whose?
        if isinstance(values := payload.get(source), list) and len(values) == 1:
            out[key] = values[0]
    for key in ("name", "allergies", "diet"):
        if value := payload.get(key):
            out[key] = value
    return out
