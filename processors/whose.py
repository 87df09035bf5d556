"""Whom a statement is about: the speaker, or somebody that they speak of. No model."""

from __future__ import annotations

import re

from processors.normalise import normalise

_SELF_TH = r"ผม|กระผม|ดิฉัน|หนู|ฉัน|เรา|ตัวเอง|ข้าพเจ้า"
_OTHERS_TH = (
    r"เพื่อน(?:สนิท|ร่วมงาน|บ้าน)?|ลูก(?!ค้า|อม|ชิ้น|เกด|พลับ|หว้า|พรุน|แพร์|พีช)(?:ชาย|สาว|คนโต|คนเล็ก)?|แฟน|สามี|ภรรยา|เมีย|ผัว"
    r"|(?:คุณ)?(?:พ่อ(?!ค้า|ครัว)|แม่(?!ค้า|น้ำ|เหล็ก|ครัว)|ปู่|ย่า(?!ง)|ยาย)|คุณตา|หลาน|ป้า|ลุง|น้า(?!ว)|คุณอา|พี่(?:ชาย|สาว|เขย|สะใภ้)|น้อง(?:ชาย|สาว|เขย|สะใภ้|หมา|แมว)"
    r"|เด็ก|แขก|หัวหน้า|เจ้านาย|ลูกน้อง|รูมเมท|เขา|คน(?=ที่|แพ้|ท้อง|แก่)|บางคน|มีคน|อีกคน|คนหนึ่ง|คนนึง|ญาติ|หมา|แมว"
)
_SELF_EN = r"\b(?:i|i'm|im|i've|me|my|mine|myself|we|we're)\b"
_OTHERS_EN = (
    r"\b(?:friends?|sons?|daughters?|kids?|child|children|baby|babies|toddler|wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?"
    r"|mother|mom|mum|mommy|father|dad|daddy|parents?|sisters?|brothers?|siblings?|aunt|auntie|uncle|niece|nephew|cousins?"
    r"|grand(?:ma|pa|mother|father|son|daughter|child|parents?|kids?)|in-laws?|colleagues?|co-?workers?|boss|guests?"
    r"|clients?|customers?|roommate|flatmate|neighbou?rs?|family|someone|somebody|person|people"
    r"|one of (?:us|them|our|my)|dog|cat|pet|he|he's|she|she's|they|they're|him|her|his|their|theirs)\b"
)
_MARK = re.compile(
    rf"(?P<other>(?:{_OTHERS_TH})(?:\s?(?:ของ)?\s?(?:{_SELF_TH}))?|{_OTHERS_EN}(?:'s)?(?: of mine| and (?P<both>i)\b)?)"
    rf"|(?P<self>{_SELF_TH}|{_SELF_EN})"
)
# Where a new statement begins, whose subject may be another.
_ENDS = re.compile(r"[.!?;,\n]|(?:ครับ|ค่ะ|คะ|คับ)(?=\s|$)|แต่|ส่วน|\b(?:but|while|whereas)\b")
_IDLE = re.compile(r"(?:\s|และ|กับ|ด้วย|ก็|and|also|too|is|are|be|severely|very|มาก)*")


def of_speaker(plain: str, at: int) -> bool:
    """Whether the statement whose heart stands at this place of a normalised text is about who wrote it: whoever was
    named last before it decides, within its own part of the text; where nobody was named, they mean themselves."""
    end = at
    while True:
        start = max((one.end() for one in _ENDS.finditer(plain, 0, end)), default=0)
        part = plain[start:at]
        marks = list(_MARK.finditer(part))
        if marks:
            return marks[-1]["self"] is not None or marks[-1]["both"] is not None
        if start == 0 or not _IDLE.fullmatch(part):
            return True
        end = start - 1  # "my son can't have milk, and no nuts": it goes on about the same person
        at = max(0, end)


def told_of_others(text: str, value: str) -> bool:
    """Whether a value stands in the text, and each time it does it is somebody else's."""
    plain, wanted = normalise(text), normalise(value)
    places = [found.start() for found in re.finditer(re.escape(wanted), plain)] if wanted else []
    return bool(places) and not any(of_speaker(plain, at) for at in places)
