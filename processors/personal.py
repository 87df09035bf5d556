"""What somebody says of themselves for good, found without a model in plain Thai and English sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any

from msgspec import Struct

from processors.models import MemoryEvent
from processors.normalise import normalise
from processors.payload import attributes_from
from processors.sought import Sought, may_match
from processors.whose import of_speaker, told_of_others

_END_TH = r"(?=\s*(?:ครับ|ค่ะ|คะ|คับ|นะ|จ้า|แล้ว|ด้วย|ก็|[,.!\n]|แต่|และ|$)|\s)"
_END_EN = r"(?=\s*(?:[,.!;\n]|$| and | but | please| thanks| now\b| from\b))"
_TH_MONTHS = (
    "มกราคม|กุมภาพันธ์|มีนาคม|เมษายน|พฤษภาคม|มิถุนายน|กรกฎาคม|สิงหาคม|กันยายน|ตุลาคม|พฤศจิกายน|ธันวาคม"
    r"|ม\.?ค\.|ก\.?พ\.|มี\.?ค\.|เม\.?ย\.|พ\.?ค\.|มิ\.?ย\.|ก\.?ค\.|ส\.?ค\.|ก\.?ย\.|ต\.?ค\.|พ\.?ย\.|ธ\.?ค\."
)
_EN_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAY = (
    rf"\d{{1,2}}\s?(?:{_TH_MONTHS})(?:\s?\d{{2,4}})?|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_EN_MONTHS})(?:,? \d{{4}})?"
    rf"|(?:{_EN_MONTHS}) \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    rf"|\d{{1,2}}/\d{{1,2}}(?:/\d{{2,4}})?|\d{{4}}-\d{{2}}-\d{{2}}"
)
_SIZE = r"(?:\d{0,2}x{0,3}[sml](?![a-z])|\d{1,3}(?:\.5)?)"
_THING_TH = rf"([ก-๎a-z0-9][ก-๎a-z0-9 ]{{0,39}}?){_END_TH}"
_THING_EN = rf"((?!to |it\b|that\b|this\b|you\b)[a-z][a-z' -]{{1,39}}?){_END_EN}"

# Key, pattern over the normalised text; group 1 is the value. A key of `_LISTS` may have several.
_PATTERNS: tuple[tuple[str, Sought], ...] = tuple(
    (key, Sought(pattern))
    for key, pattern in (
        ("nickname", r"\bcall me ([a-z][a-z'-]{1,20})\b(?! back| when| at| on| later| tomorrow| asap)"),
        ("nickname", rf"(?:เรียก(?:ผม|หนู|ฉัน|เรา|ดิฉัน)?ว่า|ชื่อเล่น(?:คือ|ว่า|ชื่อ)?)\s?([ก-๎a-z]{{1,20}}?){_END_TH}"),
        ("address", r"\bmy address(?:'s| is|:)? (?:is )?:?\s?([^\n]{5,160})"),
        ("address", r"ที่อยู่(?:จัดส่ง|ของ(?:ผม|หนู|ฉัน|เรา)|ผม|หนู)?(?:\s?คือ|\s?:|ใหม่(?:คือ)?)\s?([^\n]{5,160})"),
        ("city", rf"\bi(?:'ve| have)? (?:just )?(?:moved to|now live in|live in) ([a-z][a-z -]{{1,30}}?){_END_EN}"),
        ("city", rf"(?:ย้าย(?:ไป|มา)อยู่(?:ที่)?|ย้ายบ้าน(?:ไป|มา)(?:อยู่)?(?:ที่)?)\s?([ก-๎]{{2,30}}?){_END_TH}"),
        ("shoe_size", rf"(?:รองเท้า(?:ไซส์|ไซซ์|เบอร์|ขนาด)|เบอร์รองเท้า|ไซส์รองเท้า|ใส่รองเท้า(?:เบอร์|ไซส์)?)\s?({_SIZE})"),
        ("shoe_size", rf"(?:ใส่|เปลี่ยนเป็น)เบอร์\s?({_SIZE})"),
        ("shoe_size", rf"\bshoe size(?: is|'s|:)? ({_SIZE})"),
        ("shoe_size", rf"\bi(?:'m a| take| wear) (?:a )?(?:shoe )?size ({_SIZE}) shoes?\b"),
        ("size", rf"(?<!รองเท้า)(?:ใส่(?:เสื้อ)?|เสื้อ|ปกติ(?:ใส่)?)(?:ไซส์|ไซซ์|ไซด์)\s?({_SIZE})"),
        ("size", rf"\b(?:my size is|i wear(?: a)?(?: size)?|i take(?: a)? size|i'm a size) ({_SIZE})(?! shoes?)\b"),
        ("birthday", rf"(?:วันเกิด\S{{0,8}}?|เกิด)\s?(?:คือ|วันที่|ตรงกับ)*\s?({_DAY})"),
        ("birthday", rf"\b(?:my birthday(?:'s| is)(?: on)?|i was born on) ({_DAY})"),
        ("dislikes", rf"(?:(?:ผม|หนู|ฉัน|เรา|ดิฉัน)\s?)(?:ไม่ชอบ|เกลียด|เลิกชอบ)(?:กิน|ทาน|ดื่ม)?\s?{_THING_TH}"),
        ("dislikes", rf"\bi (?:(?:really )?(?:do not|don't|dont) like|hate|can't stand|dislike) {_THING_EN}"),
        ("likes", rf"(?:ผม|หนู|ฉัน|เรา|ดิฉัน)\s?ชอบ(?:กิน|ทาน|ดื่ม)?\s?{_THING_TH}"),
        ("likes", rf"\bi (?:really |also )?(?:like|love|prefer) {_THING_EN}"),
    )
)  # fmt: skip
_LISTS = ("likes", "dislikes")
_OVER = Sought(
    r"ไม่(?:ได้)?แพ้\s?([ก-๎a-z]{2,20}?)(?:แล้ว|อีกแล้ว|(?=นะ|ค่ะ|คะ|ครับ|คับ|จ้า|\s|[,.!]|$))"
    r"|เคยแพ้\s?([ก-๎a-z]{2,20}?)\s?(?:แต่|ตอนนี้|เดี๋ยวนี้)[^?]{0,24}?(?:กินได้|ทานได้|ใช้ได้|ไม่แพ้|หาย)"
    r"|\bused to be allergic to ([a-z ]{2,30}?)(?:,|\.| but| now)[^?]{0,30}?"
    r"(?:not any ?more|no longer|fine|can eat|okay|ok)\b"
    r"|หายแพ้\s?([ก-๎a-z]{2,20}?)(?:แล้ว|ค่ะ|ครับ|$)"
    r"|\b(?:no longer|not) allergic to ([a-z ]{2,30}?)(?: any ?more| now|[,.!]|$)"
)
_TELLS = reduce(or_, (pattern.bits for _, pattern in _PATTERNS), _OVER.bits)
_ASKS = re.compile(r"\?|ไหม|หรอ|เหรอ|กี่|อะไร|ยังไง|เท่าไหร่|^(?:do|does|can|could|would|is|are|what|if) ")
_ITEMS = re.compile(r",| and | or |และ|กับ")


class Told(Struct, frozen=True):
    """`holds` by key; `over`: items of a list that hold no longer."""

    holds: dict[str, Any] = {}
    over: dict[str, list[str]] = {}


def lasting(event: MemoryEvent) -> Told:
    """What an event tells of the person for good, by what was found in it and by plain sentences."""
    said = str(event.payload.get("original_message", ""))
    told = personal(said)
    holds = told.holds
    for key, value in attributes_from(event).items():
        # A language is what the text is in, and stands nowhere in it.
        if key == "preferred_language" or not (isinstance(value, str) and told_of_others(said, value)):
            holds[key] = value
    if "allergies" in holds:
        over = told.over.get("allergies", ())
        allergies = [one for one in holds["allergies"] if one not in over and not told_of_others(said, one)]
        holds["allergies"] = allergies
        if not allergies:
            del holds["allergies"]
    return told


def personal(text: str) -> Told:
    """Names and words as they were written; nothing out of questions."""
    holds: dict[str, Any] = {}
    over: dict[str, list[str]] = {}
    for line in text.splitlines():
        plain = normalise(line)
        if not may_match(plain) & _TELLS or _ASKS.search(plain):
            continue
        for found in _OVER.finditer(plain):
            if not of_speaker(plain, found.start()):
                continue
            over.setdefault("allergies", []).append(next(filter(None, found.groups())).strip())
        for key, value, at in _found(plain):
            if not of_speaker(plain, at):
                continue
            kept = _as_written(line, value)
            if key in _LISTS:
                items = [item.strip() for item in _ITEMS.split(kept) if item.strip()]
                holds[key] = list(dict.fromkeys([*holds.get(key, ()), *items]))
            else:
                holds.setdefault(key, kept.upper() if key in ("size", "shoe_size") else kept)
    return Told(holds, over)


def _found(plain: str) -> Iterator[tuple[str, str, int]]:
    """Key, value, and where the value stands."""
    for key, pattern in _PATTERNS:
        for found in pattern.finditer(plain):
            group = found.lastindex or 1
            value = (found[group] or "").strip(" .,!")
            if value:
                yield key, value, found.start(group)


def _as_written(text: str, found: str) -> str:
    """The normalised text is in lower case: take the words as they were written."""
    at = text.lower().find(found)
    return text[at : at + len(found)] if at >= 0 else found
