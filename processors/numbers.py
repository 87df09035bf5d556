"""Numbers as they are written out: สอง, ยี่สิบห้า, three hundred, a dozen."""

from __future__ import annotations

import re

_ONES = {
    "ศูนย์": 0,
    "หนึ่ง": 1,
    "เอ็ด": 1,
    "สอง": 2,
    "ยี่": 2,
    "สาม": 3,
    "สี่": 4,
    "ห้า": 5,
    "หก": 6,
    "เจ็ด": 7,
    "แปด": 8,
    "เก้า": 9,
}
_TENS = {"สิบ": 10, "ร้อย": 100, "พัน": 1000, "หมื่น": 10_000, "แสน": 100_000, "ล้าน": 1_000_000}
_ENGLISH = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "dozen": 12,
    "a dozen": 12, "half a dozen": 6, "a couple of": 2,
}  # fmt: skip
THAI_WORDS = sorted({*_ONES, *_TENS}, key=len, reverse=True)
_THAI_WORD = "|".join(THAI_WORDS)
THAI = rf"(?:{_THAI_WORD})(?:{_THAI_WORD})*"  # one and more are said apart, so that it is known how it begins
_ENGLISH_WORD = "|".join(sorted(_ENGLISH, key=len, reverse=True))
_PART = re.compile(_THAI_WORD)
COUNT = rf"\d{{1,4}}|{THAI}|\b(?:{_ENGLISH_WORD})\b"


def count_of(word: str) -> int:
    """What COUNT found, as a number; `word` is normalised."""
    if word.isdigit():
        return int(word)
    return _ENGLISH.get(" ".join(word.split())) or thai_number(word)


def thai_number(word: str) -> int:
    """สองร้อยห้าสิบ is 250; `word` is made of number words alone."""
    total = part = 0
    for name in _PART.findall(word):
        if name in _ONES:
            part = part * 10 + _ONES[name]
        elif name == "ล้าน":
            total, part = (total + part or 1) * 1_000_000, 0
        else:
            total, part = total + (part or 1) * _TENS[name], 0
    return total + part
