"""What a person's history comes to in a few sentences, and what a session was about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

from processors.language import detect
from processors.llm import Access, ChatModel, ChatRequest, LLMError
from processors.models import EventType, Language
from processors.normalise import normalise, safe

LONGEST = 600  # characters of a summary
_QUOTE = 60
_SESSION_MESSAGES = 40  # of a session, that a summary is made from
_SESSION_CHARACTERS = 400  # of each

_TOPICS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "price": ("ราคา", "prices", ("ราคา", "กี่บาท", "เท่าไหร่", "how much", "price", "cost", "fee")),
    "hours": ("เวลาเปิดปิด", "opening hours", ("กี่โมง", "เปิด", "ปิด", "open", "close", "hours")),
    "delivery": ("การจัดส่ง", "delivery", ("จัดส่ง", "ค่าส่ง", "พัสดุ", "deliver", "shipping", "tracking")),
    "place": ("ที่ตั้งร้าน", "the location", ("ที่ไหน", "สาขา", "อยู่ไหน", "where", "location", "branch")),
    "promotion": ("โปรโมชั่น", "promotions", ("โปร", "ส่วนลด", "คูปอง", "promotion", "discount")),
    "stock": ("สินค้าที่มี", "what is in stock", ("มีของ", "พร้อมส่ง", "ยังมี", "in stock", "available", "do you have")),
}
_COUNTED = (
    # type, in Thai, in English (once, more often)
    (EventType.TRANSACTION, "สั่งซื้อหรือชำระเงิน %d ครั้ง", ("Ordered or paid once", "Ordered or paid %d times")),
    (EventType.COMPLAINT, "ร้องเรียน %d ครั้ง", ("complained once", "complained %d times")),
    (EventType.REQUEST, "ขอให้ดำเนินการ %d ครั้ง", ("made one request", "made %d requests")),
    (EventType.SUPPORT, "ขอความช่วยเหลือ %d ครั้ง", ("needed help once", "needed help %d times")),
    (EventType.FEEDBACK, "ให้ความเห็น %d ครั้ง", ("gave feedback once", "gave feedback %d times")),
    (EventType.INFORMATION, "แจ้งข้อมูล %d ครั้ง", ("gave details once", "gave details %d times")),
)
_QUOTED = frozenset(kind for kind, *_ in _COUNTED)
_OFTEN = 3  # questions about one thing
_MOST_KNOWN = 10_000
_INQUIRY = EventType.INQUIRY  # by its class it takes a call
_times = itemgetter(1)
_known_topics: dict[int, tuple[str, ...]] = {}  # of a question, by its hash


class Told(Protocol):
    """What a summary is made from of an event, a MemoryEvent or less than one."""

    @property
    def event_type(self) -> EventType: ...
    @property
    def timestamp(self) -> datetime: ...
    @property
    def said(self) -> str:
        """The message itself."""
        ...


def summarise_events(previous_summary: str, events: Sequence[Told], language: Language | None) -> str:
    """The history in at most LONGEST characters, in Thai unless the customer writes English.

    `events` are all that are kept, oldest first: the counts come from them, so saying it again after each event does
    not add anything up twice. Without events the previous summary stands."""
    tally = Tally()
    tally.add(events)
    return tally.told(previous_summary, language)


class Tally:
    """What a summary is made from: so that what comes later can be added, and nothing is counted again."""

    __slots__ = ("_asked", "_counts", "_newest")

    def __init__(self) -> None:
        self._counts: dict[EventType, int] = {}
        self._newest: dict[EventType, str] = {}  # when it was, and what it said
        self._asked: dict[str, int] = {}

    def add(self, events: Sequence[Told]) -> None:
        """Of the newest that there are, oldest first."""
        counts, asked = self._counts, self._asked
        newest: dict[EventType, Told] = {}
        for event in events:
            kind = event.event_type
            counts[kind] = counts.get(kind, 0) + 1
            if kind is _INQUIRY:
                for topic in _topics_of(event.said):
                    asked[topic] = asked.get(topic, 0) + 1
            else:
                newest[kind] = event
        for kind, event in newest.items():
            if kind in _QUOTED:
                self._newest[kind] = f"{event.timestamp.astimezone(UTC).date().isoformat()}: {_quote(event)}"

    def told(self, previous: str, language: Language | None) -> str:
        """See summarise_events."""
        thai = language != "en"
        parts = []
        for event_type, in_thai, (once, more) in _COUNTED:
            if not (count := self._counts.get(event_type, 0)):
                continue
            said = in_thai % count if thai else once if count == 1 else more % count
            parts.append(f"{said} ({'ล่าสุด' if thai else 'last'} {self._newest[event_type]})")
        for topic, count in sorted(self._asked.items(), key=_times, reverse=True)[:2]:
            in_thai_topic, english, _ = _TOPICS[topic]
            if thai:
                parts.append(f"{'ถามเรื่อง' if count < _OFTEN else 'มักถามเรื่อง'}{in_thai_topic}")
            else:
                parts.append(f"asks about {english}" + (" often" if count >= _OFTEN else ""))
        if not parts:
            return previous[:LONGEST]
        summary = "; ".join(parts)
        while len(summary) > LONGEST and len(parts) > 1:
            parts.pop()
            summary = "; ".join(parts)
        return summary[0].upper() + summary[1:LONGEST]


async def summarise_session(
    llm: ChatModel | None,
    access: Access | None,
    messages: Sequence[Mapping[str, Any]],
    previous: str,
    language: Language | None,
) -> str:
    """What a session was about and what is still open, in the conversation's language, at most LONGEST characters.
    Asked of the language model; without one, or when it fails, told from the messages themselves."""
    said = [m for m in messages if m.get("message")]
    if not said:
        return previous[:LONGEST]
    thai = _is_thai(said, language)
    if llm is not None and access is not None and access.api_key:
        told = {
            "earlier_summary": previous[:LONGEST],
            "language": "Thai" if thai else "English",
            "messages": [
                {"role": str(m.get("role", "")), "message": safe(str(m["message"]))[:_SESSION_CHARACTERS]}
                for m in said[-_SESSION_MESSAGES:]
            ],
        }
        request = ChatRequest(
            messages=[
                {"role": "system", "content": _prompt()},
                {"role": "user", "content": json.dumps(told, ensure_ascii=False)},
            ],
            access=access,
            max_tokens=300,
            temperature=0.0,
        )
        try:
            text = (await llm.complete(request)).text.strip()
        except LLMError:
            pass
        else:
            # A summary in another language than the customer's would mislead every later answer.
            if (detect(text) in ("th", "mixed")) == thai:
                return text[:LONGEST]
    return _by_rules(said, thai)


def _by_rules(messages: Sequence[Mapping[str, Any]], thai: bool) -> str:
    asked = [str(m["message"]) for m in messages if m.get("role") == "user"]
    if not asked:
        return ""
    first, last = _short(asked[0]), _short(asked[-1])
    if len(asked) == 1:
        return f"ลูกค้าเขียนว่า “{first}”" if thai else f"The customer wrote “{first}”"
    if thai:
        return f"ลูกค้าเขียน {len(asked)} ข้อความ เริ่มจาก “{first}” ล่าสุด “{last}”"
    return f"The customer wrote {len(asked)} messages, beginning with “{first}”, lastly “{last}”"


def _topics_of(question: str) -> tuple[str, ...]:
    """Looked up by a hash: the same events are summed up after each new one, and their words are kept nowhere."""
    name = hash(question)
    if (known := _known_topics.get(name)) is None:
        text = normalise(question)
        known = tuple([topic for topic, (_, _, words) in _TOPICS.items() if any(map(text.__contains__, words))])
        if len(_known_topics) >= _MOST_KNOWN:
            _known_topics.clear()
        _known_topics[name] = known
    return known


def _is_thai(messages: Sequence[Mapping[str, Any]], language: Language | None) -> bool:
    if language in ("th", "en"):
        return language == "th"
    return any(detect(str(m["message"])) in ("th", "mixed") for m in messages if m.get("role") == "user")


def _quote(event: Told) -> str:
    return f"“{_short(event.said)}”"


def _short(text: str) -> str:
    text = " ".join(safe(text).split())
    return text if len(text) <= _QUOTE else text[:_QUOTE].rstrip() + "…"


@cache
def _prompt() -> str:
    return (Path(__file__).parent / "prompts" / "session.txt").read_text(encoding="utf-8").strip()
