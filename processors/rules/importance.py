"""How much a shop loses by forgetting a message: its type, raised or lowered by what is in it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from processors.models import EventType

MINIMAL, LOW, MODERATE, IMPORTANT, CRITICAL = 0.15, 0.35, 0.55, 0.75, 0.92

_NUMBER = re.compile(r"\d")
_LONG_NUMBER = re.compile(r"\d{3,}")
_CATEGORY = re.compile(
    r"^(?:i )?(?:would )?(?:like|want|need) to (?:buy|purchase|order)(?: (?:internet|something|a ticket|some))?\W*$"
)
_BARE_YES = re.compile(r"^(?:จัดไป|จัดมา|เอา|รับ|สั่ง|ซื้อ|ตกลง|โอเค)?(?:อันนี้|ตัวนี้|เลย)?(?:ครับ|ค่ะ|คะ|คับ|จ้า|นะ|!|\s)*$")

_BARE = 15  # characters: "อร่อยมาก" names an aspect and says no more than that it was good


class Found(Struct, frozen=True):
    """What the rules saw: the normalised text, marks by name with counts, and the scores of the types."""

    text: str
    marks: Mapping[str, int]
    scores: Mapping[EventType, float]


def score(event_type: EventType, found: Found) -> float:
    """0.0 to 1.0, in the middle of the band that fits."""
    marks, text = found.marks, found.text
    match event_type:
        case EventType.TRANSACTION:
            vague = _CATEGORY.match(text) or _BARE_YES.match(text)
            return IMPORTANT if vague else CRITICAL
        case EventType.COMPLAINT:
            if marks.get("critical"):
                return CRITICAL
            return MODERATE if marks.get("vague") or len(text) < 12 else IMPORTANT
        case EventType.SUPPORT:
            if marks.get("critical"):
                return CRITICAL
            return IMPORTANT if marks.get("blocked") else MODERATE
        case EventType.REQUEST:
            if marks.get("critical"):
                return CRITICAL
            return IMPORTANT if marks.get("named") or _NUMBER.search(text) else MODERATE
        case EventType.INQUIRY:
            return LOW if marks.get("casual") else MODERATE
        case EventType.INFORMATION:
            if marks.get("keep") or (_LONG_NUMBER.search(text) and len(text) > 8):
                return IMPORTANT
            return LOW if len(text) < 12 else MODERATE
        case EventType.FEEDBACK:
            if marks.get("aspect", 0) >= 2 and len(text) > 35:
                return IMPORTANT
            negative = found.scores.get(EventType.COMPLAINT, 0) >= 3
            return MODERATE if negative or (marks.get("aspect") and len(text) > _BARE) else LOW
        case _:
            return MINIMAL


def heard(event_type: EventType, found: Found, importance: float) -> float:
    """The importance, but for a complaint of harm, a doctor or the law: whatever else is in it, people have to hear."""
    return CRITICAL if event_type is EventType.COMPLAINT and found.marks.get("critical") else importance
