"""What is seen of a message beside its words: what the rules say, its shape, and what makes it weigh."""

from __future__ import annotations

import re
from collections.abc import Mapping

from processors.models import EventType, Language
from processors.sought import Patterns, digits_in

TYPES = tuple(EventType)
_ENOUGH = 12.0  # a rule score above says nothing more
_HALF = 0.5  # of what is only now and then telling: a single sign should not outweigh the words
_MARKS = ("critical", "named", "keep", "blocked", "casual", "vague")
# Over the normalised text.
_SEEN = {
    "money": r"\d\s*(?:บาท|บ\.|฿|baht|thb|dollars)|[$฿€£]\s?\d",
    "phone": r"0(?<!\d0)(?:\d{8,9}(?!\d)|\d\d?[- ]\d{3})",
    "time": r"\d\s*(?:โมง|ทุ่ม|น\.|am\b|pm\b)|\d[:.]\d\d|พรุ่งนี้|วันนี้|บ่าย|tomorrow|today|tonight"
    r"|วัน(?:จันทร์|อังคาร|พุธ|พฤหัส|ศุกร์|เสาร์|อาทิตย์)|(?:mon|tues|wednes|thurs|fri|satur|sun)day",
    "number of an order": r"[a-z\d#](?:(?<=[a-z])\d{2}|(?<=\d)\d[a-z]|(?<=#)\d)",
    "allergy": r"แพ้|allerg",
    "money lost": r"คืนเงิน|เงินคืน|refund|money back|โกง|หลอก|scam|fraud|ปลอม|fake|stolen|stole|twice|หักเงิน|ตัดเงิน|โดนตัด",
    "danger": r"ท้องเสีย|ไฟ(?:ไหม้|ช็อต|ดูด)|ช็อต|เจ็บ|หนอน|แมลง|sick|hurt|burn|hair in|poison",
    "anger": r"แย่มาก|โคตร|ห่วย|กาก|เลว|worst|terrible|awful|horrible|never again|disgusting|unacceptable",
    "not": r"ไม่|\bnot?\b|n't\b",
    "joined": r"แต่|เพราะ|และ|กับ|\b(?:but|because|and)\b",
    "place": r"@|ถนน|ซอย|หมู่|[ตอจ]\.|street|road",
    "exclaimed": r"!",
}
_PATTERNS = Patterns((pattern, at) for at, pattern in enumerate(_SEEN.values()))
_LONG_NUMBER = re.compile(r"\d{3}")

NAMES = (
    *(f"score {event_type}" for event_type in TYPES),
    *(f"first {event_type}" for event_type in TYPES),
    *("length", "under 6", "under 15", "asks", "digits", "share of digits", "thai", "english"),
    *(f"mark {mark}" for mark in _MARKS),
    *("an aspect", "aspects"),
    *_SEEN,
    *("long number", "under 12", "over 40", "over 90"),
    "always",
)


_AT = {name: at for at, name in enumerate(NAMES)}
_SCORES = {event_type: at for at, event_type in enumerate(TYPES)}
_MARKED = {mark: _AT[f"mark {mark}"] for mark in _MARKS}
_FIRST, _SHAPE, _ASPECTS = len(TYPES), _AT["length"], _AT["an aspect"]
_LETTERS, _SIZES, _ALWAYS = _ASPECTS + 2, _AT["long number"], _AT["always"]
_TONGUES: Mapping[Language | None, int] = {"th": _AT["thai"], "en": _AT["english"]}


def signs(
    plain: str, language: Language | None, scores: Mapping[EventType, float], marks: Mapping[str, int]
) -> dict[int, float]:
    """What there is of NAMES, by its number there, none above 2; the others are 0. `plain` is the normalised text, the
    rest the rules' own."""
    told = {_ALWAYS: 1.0}
    most, first = 0.0, 0
    for event_type, score in scores.items():
        at = _SCORES[event_type]
        told[at] = share = min(score, _ENOUGH) / _ENOUGH
        if share > most or (share == most and at < first):
            most, first = share, at
    if most:
        told[_FIRST + first] = _HALF
    size, digits = len(plain), digits_in(plain)
    told[_SHAPE] = min(size, 200) / 100
    if size < 15:
        told[_SHAPE + 2] = 1.0
        if size < 6:
            told[_SHAPE + 1] = 1.0
    if "?" in plain:
        told[_SHAPE + 3] = 1.0
    if digits:
        told[_SHAPE + 4], told[_SHAPE + 5] = 1.0, digits / size
    if language in _TONGUES:
        told[_TONGUES[language]] = 1.0
    for mark, count in marks.items():
        if mark in _MARKED:
            told[_MARKED[mark]] = _HALF
        elif mark == "aspect":
            told[_ASPECTS] = _HALF
            if count > 1:
                told[_ASPECTS + 1] = _HALF
    for at in _PATTERNS.matching(plain):
        told[_LETTERS + at] = _HALF
    if digits > 2 and _LONG_NUMBER.search(plain) is not None:
        told[_SIZES] = _HALF
    if size < 12:
        told[_SIZES + 1] = _HALF
    elif size > 40:
        told[_SIZES + 2] = _HALF
        if size > 90:
            told[_SIZES + 3] = _HALF
    return told


def in_line(signs: Mapping[int, float]) -> list[float]:
    """One number for each of NAMES."""
    told = [0.0] * len(NAMES)
    for at, sign in signs.items():
        told[at] = sign
    return told
