"""Brings a message into the form in which words can be looked for.

NFC, not NFKC: the latter splits the Thai vowel ำ in two.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from ahocorasick_rs import AhoCorasick, MatchKind

SCANNED = 2000  # characters of a message that are looked at; what a customer wants stands in the first of them

_SURROGATES = re.compile(r"[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# Soft hyphen, zero-width characters, marks of direction, variation selectors, byte order mark.
_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff]")
_WIDE = {0xFF01 + i: 0x21 + i for i in range(94)} | {0x3000: 0x20}
_DIGITS = {0x0E50 + i: 0x30 + i for i in range(10)}
_QUOTES = {0x2018: "'", 0x2019: "'", 0x02BC: "'", 0x201C: '"', 0x201D: '"', 0x60: "'"}
_TABLE = _WIDE | _DIGITS | _QUOTES
# Whether a text has any of those, or of what is invisible: told at once.
_STRANGE = re.compile(f"{_INVISIBLE.pattern[:-1]}{re.escape(''.join(map(chr, _TABLE)))}]")

_LAUGH = re.compile(
    # Never a group of a phone or order number ("081 555 0199").
    r"(?<![\d.,])(?<![0-46-9][ -])5{3,}\+*(?![\d.,]|[ -](?!5+\b)\d{3}|\s*(?:บาท|บ\b|฿|baht|thb))"
    r"|(?<=[ก-ฺเ-๎])55+\+*(?!\d|\s*บ)",
    re.IGNORECASE,
)
_REPEATED = re.compile(r"([^\W\d_])\1{2,}")
_REPEATED_MARK = re.compile(r"([ัิ-ฺ็-๎!?~.…])\1+")
_TOO_OFTEN = re.compile(r"(.)\1(?:\1|(?<=[ัิ-ฺ็-๎!?~.…]))")  # one of these two, told fast
_REPEAT_SIGN = re.compile(r"\s*ๆ+")
_SPACE = re.compile(r"[ \t\r\n\f\v\u00a0\u2000-\u200a]+")

# One spelling for what is written in many ways. The longest counts; each pair is safe inside a word.
_SPELLINGS = {
    "เเ": "แ",
    "ํา": "ำ",
    "มั๊ย": "ไหม",
    "มั้ย": "ไหม",
    "ไม๊": "ไหม",
    "มั๋ย": "ไหม",
    "หรือเปล่า": "ไหม",
    "รึเปล่า": "ไหม",
    "หรือป่าว": "ไหม",
    "รึป่าว": "ไหม",
    "รึป่ะ": "ไหม",
    "เท่าใหร่": "เท่าไหร่",
    "เท่าไร": "เท่าไหร่",
    "เท่าไหร": "เท่าไหร่",
    "เท่าไหร่": "เท่าไหร่",
    "เท่าหร่าย": "เท่าไหร่",
    "เทาไหร่": "เท่าไหร่",
    "เท่ารัย": "เท่าไหร่",
    "อะรัย": "อะไร",
    "อาราย": "อะไร",
    "อารัย": "อะไร",
    "ยังงัย": "ยังไง",
    "ยังไงง": "ยังไง",
    "อย่างไร": "ยังไง",
    "ทำไง": "ทำยังไง",
    "ค๊ะ": "คะ",
    "นะค่ะ": "นะคะ",
    "คร๊าบ": "ครับ",
    "คร้าบ": "ครับ",
    "ค้าบ": "ครับ",
    "คัฟ": "ครับ",
    "แร้ว": "แล้ว",
    "เเล้ว": "แล้ว",
    "แล้ส": "แล้ว",
    "ด้าย": "ได้",
    "ช้วย": "ช่วย",
    "ชวย": "ช่วย",
    "เน็ท": "เน็ต",
    "เนต": "เน็ต",
    "เนตร": "เนตร",
    "สิ้นค้า": "สินค้า",
    "ออเดอ": "ออเดอร์",
    "ออร์เดอร์": "ออเดอร์",
    "ออเดอร์": "ออเดอร์",  # stands for itself: the shorter spelling is in it
    "ขอบคุน": "ขอบคุณ",
    "ขอบใจ": "ขอบคุณ",
    "สวัดดี": "สวัสดี",
    "หวัดดี": "สวัสดี",
    "อ่ะ": "อะ",
    "พุ่งนี้": "พรุ่งนี้",
    "พรุ้งนี้": "พรุ่งนี้",
    "พู่งนี้": "พรุ่งนี้",
}
_SPELT = tuple(_SPELLINGS.values())
_SPELLING = AhoCorasick(list(_SPELLINGS), matchkind=MatchKind.LeftmostLongest)

_CONTRACTIONS = {
    "i'd": "i would", "we'd": "we would", "you'd": "you would", "i'll": "i will", "we'll": "we will",
    "it'll": "it will", "she'll": "she will", "he'll": "he will", "pls": "please", "plz": "please", "plss": "please",
    "thx": "thanks", "u": "you", "ur": "your", "wanna": "want to", "gonna": "going to", "cannot": "cant",
    "can't": "cant", "colour": "color",
}  # fmt: skip
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")

# What politeness adds to a sentence and a question can do without. Each alternative begins with its letter, so that
# nothing is tried where none can begin: a third of the time.
_POLITE = "ครับผม|ครับ|ค่ะ|คะ|ค่า|คับ|ขอรับ|จ้ะ|จ๊ะ|จ้า|ฮะ|ฮับ|งับ|งะ|เจ้าคะ|เจ้าค่ะ"
_BEHIND = "|".join(f"{word}(?<=[ก-๎]{word})(?![ก-๎])" for word in ("นะ", "น่ะ", "อะ", "เลย", "ด้วย"))
PARTICLES = re.compile(f"น(?:ะ|่ะ|้า)(?:{_POLITE})|อะ(?<=[ก-๎]อะ)(?:{_POLITE})|{_POLITE}|{_BEHIND}")


def safe(text: str) -> str:
    """The text as it may be stored and sent: lone surrogates become U+FFFD, NUL and control characters go."""
    return text if text.isprintable() else _CONTROL.sub("", _SURROGATES.sub("\ufffd", text))


@lru_cache(maxsize=256)
def normalise(text: str, limit: int = SCANNED) -> str:
    """One spelling of a message's first `limit` characters: lower case, no zero-width characters, no long vowels
    ("มากกก"), plain digits, "555" as laughter, one space between words. Never raises."""
    text = text[: limit * 2]
    odd = not text.isprintable()  # nothing that is safe, no space but the plain one
    text = unicodedata.normalize("NFC", safe(text) if odd else text)
    if _STRANGE.search(text):
        text = _INVISIBLE.sub("", text).translate(_TABLE)
    text = text[:limit].lower()
    if "55" in text:
        text = _LAUGH.sub(" ฮ่าฮ่า ", text)
    if _TOO_OFTEN.search(text):
        text = _REPEATED_MARK.sub(r"\1", _REPEATED.sub(r"\1", text))
    if found := _SPELLING.find_matches_as_indexes(text):
        text = _spelt(text, found)
    if odd or "  " in text:
        text = _SPACE.sub(" ", text)
    return text.strip()


def _spelt(text: str, found: Sequence[tuple[int, int, int]]) -> str:
    parts: list[str] = []
    at = 0
    for index, start, end in found:
        parts += text[at:start], _SPELT[index]
        at = end
    return "".join(parts) + text[at:]


@lru_cache(maxsize=256)
def words_apart(text: str) -> str:
    """A normalised text with each Latin word and number between spaces of its own, so that ` refund ` is found
    as a word and never inside one; Thai runs stand as they are, without their repeat signs."""
    if "ๆ" in text:
        text = _REPEAT_SIGN.sub("", text)
    text = _WORD.sub(_apart, text)
    # A single space that was there before stays between Thai words only.
    return _LOOSE.sub("  ", text) if "   " in text else text


_LOOSE = re.compile(r" {3,}")


def _apart(match: re.Match[str]) -> str:
    word = _CONTRACTIONS.get(match[0]) or match[0].replace("'", "")
    return f" {word.replace(' ', '  ')} "
