"""How much a shop loses by forgetting a message: its type, raised or lowered by what is in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

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
    return SCORES[event_type](found)


def _transaction(found: Found) -> float:
    return IMPORTANT if _CATEGORY.match(found.text) or _BARE_YES.match(found.text) else CRITICAL


def _complaint(found: Found) -> float:
    if found.marks.get("critical"):
        return CRITICAL
    return MODERATE if found.marks.get("vague") or len(found.text) < 12 else IMPORTANT


def _support(found: Found) -> float:
    if found.marks.get("critical"):
        return CRITICAL
    return IMPORTANT if found.marks.get("blocked") else MODERATE


def _request(found: Found) -> float:
    if found.marks.get("critical"):
        return CRITICAL
    return IMPORTANT if found.marks.get("named") or _NUMBER.search(found.text) else MODERATE


def _inquiry(found: Found) -> float:
    return LOW if found.marks.get("casual") else MODERATE


def _information(found: Found) -> float:
    size = len(found.text)
    if found.marks.get("keep") or (size > 8 and _LONG_NUMBER.search(found.text)):
        return IMPORTANT
    return LOW if size < 12 else MODERATE


def _feedback(found: Found) -> float:
    aspects = found.marks.get("aspect", 0)
    if aspects >= 2 and len(found.text) > 35:
        return IMPORTANT
    negative = found.scores.get(EventType.COMPLAINT, 0) >= 3
    return MODERATE if negative or (aspects and len(found.text) > _BARE) else LOW


SCORES: Mapping[EventType, Callable[[Found], float]] = {
    EventType.TRANSACTION: _transaction,
    EventType.COMPLAINT: _complaint,
    EventType.SUPPORT: _support,
    EventType.REQUEST: _request,
    EventType.INQUIRY: _inquiry,
    EventType.INFORMATION: _information,
    EventType.FEEDBACK: _feedback,
    EventType.GENERIC_EVENT: lambda found: MINIMAL,
}


def heard(event_type: EventType, found: Found, importance: float) -> float:
    """The importance, but for a complaint of harm, a doctor or the law: whatever else is in it, people have to hear."""
    return CRITICAL if event_type is EventType.COMPLAINT and found.marks.get("critical") else importance
