"""How much of what is asked a passage tells: pure.

By the letters of the question's own words that stand in the passage, so that it is the same in a library of six
passages and of thousands: how rare a word is says little among six. What any question has ("how much", "มี…ไหม") counts
for nothing, and whoever asks for a price or a number is answered by no passage without one.
"""

from __future__ import annotations

import re

from memory.recall.lexical import slips
from memory.recall.terms import idle, stem, terms, thai

_LEAST = 4  # letters: of less nobody can be sure what is asked
_ASKING = re.compile(
    r"ไหม|หรือยัง|แล้ว|ล่ะ|ส่วน|เหรอ|หรอ|เท่าไหร่|กี่(?:บาท|โมง|วัน|นาที|ชั่วโมง|คน|ชิ้น|ชุด|เดือน|ปี)?|อะไร(?:บ้าง)?|ยังไง|แค่ไหน"
    r"|(?:ชิ้น|ตัว|ชุด|อัน|กล่อง|ถุง|แก้ว|ใบ|คืน|คน|ครั้ง|กิโล|โหล)ละ|(?:ที่|ตรง|วัน|แบบ|อัน|สี|รุ่น|ช่วง)ไหน|เมื่อไหร่|ใคร|ทำไม"
    r"|ราคา|มี(?![ดน])|ได้|ต้อง|อยาก(?:ได้|รู้|ทราบ)?|ขอ(?![งบ])|สอบถาม|รบกวน|บ้าง|ใช้เวลา|ใช่|นาน|ที่นี่|ร้าน(?:นี้|เรา)?"
    r"|\b(?:much|many|long|prices?|costs?|please|pls|hi|hello|hey|ok|get|tell|know|want|need|like|takes?|does|may|says?"
    r"|us|me|mine|no|yes)\b"
)
_PIECES = re.compile(r"[ก-๎]+|[^\W_ก-๎]+")
_FOR_A_PRICE = re.compile(r"ราคา|เท่าไหร่|กี่บาท|\b(?:how much|prices?|costs?)\b")
_FOR_A_NUMBER = re.compile(r"กี่|\b(?:how (?:long|many|often)|what time)\b")
_PRICE = re.compile(r"\d[\d,.]*\s*(?:บาท|฿|baht|thb)|฿\s*\d|(?:ราคา|บาท|price|baht|thb)\W{0,3}\d")
_NUMBER = re.compile(r"\d")


def told_of(question: str, passage: str) -> float:
    """0.0-1.0; 1.0 where all that is asked stands in the passage."""
    plain, told = terms(question).plain, terms(passage)
    for asks, answer in ((_FOR_A_PRICE, _PRICE), (_FOR_A_NUMBER, _NUMBER)):
        if asks.search(plain) and not answer.search(told.plain):
            return 0.0
    asked = found = 0
    for piece in _PIECES.findall(_ASKING.sub(" ", plain)):
        if not idle(piece):
            asked += len(piece)
            found += _letters(piece, told.plain) if thai(piece) else len(piece) * _stands(stem(piece), told.words)
    return found / asked if asked >= _LEAST else 0.0


def _stands(word: str, told: tuple[str, ...]) -> bool:
    return word in told or bool(slips(word, [other for other in told if other[0] == word[0]]))


def _letters(run: str, told: str) -> int:
    """How many letters of a Thai run stand in it in groups of three; a shorter run as a whole or not at all."""
    if len(run) < 3:
        return len(run) * (run in told)
    there = set[int]()
    for at in range(len(run) - 2):
        if run[at : at + 3] in told:
            there.update((at, at + 1, at + 2))
    return len(there)
