"""What is remembered of a person, told to that person: pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

from gateway.texts import Tongue, text
from memory.models import LongTermMemory
from processors.models import MemoryEvent

EVENTS = 10  # the newest
LINE_CHARACTERS = 200

_LABELS: dict[str, dict[Tongue, str]] = {
    "name": {"th": "ชื่อ", "en": "Name"},
    "phone": {"th": "เบอร์โทร", "en": "Phone"},
    "email": {"th": "อีเมล", "en": "E-mail"},
    "allergies": {"th": "แพ้", "en": "Allergies"},
    "diet": {"th": "อาหารที่เลือกทาน", "en": "Diet"},
    "nickname": {"th": "ชื่อเรียก", "en": "Called"},
    "address": {"th": "ที่อยู่", "en": "Address"},
    "city": {"th": "เมืองที่อยู่", "en": "City"},
    "birthday": {"th": "วันเกิด", "en": "Birthday"},
    "size": {"th": "ไซส์", "en": "Size"},
    "shoe_size": {"th": "เบอร์รองเท้า", "en": "Shoe size"},
    "likes": {"th": "ชอบ", "en": "Likes"},
    "dislikes": {"th": "ไม่ชอบ", "en": "Dislikes"},
    "preferred_language": {"th": "ภาษา", "en": "Language"},
    "current_topic": {"th": "เรื่องที่คุยล่าสุด", "en": "Latest topic"},
}
_VALUES: dict[tuple[str, str], dict[Tongue, str]] = {
    ("preferred_language", "th"): {"th": "ไทย", "en": "Thai"},
    ("preferred_language", "en"): {"th": "อังกฤษ", "en": "English"},
    ("preferred_language", "mixed"): {"th": "ไทยและอังกฤษ", "en": "Thai and English"},
}


def told(memory: LongTermMemory | None, language: Tongue, zone: tzinfo, forget: str | None = "forget") -> str:
    """Markdown. Dates are those of `zone`; `forget` is the command that removes all of it, if there is one."""
    if memory is None or not (memory.attributes or memory.events or memory.history_summary):
        return text("nothing_known", language)
    known = [
        f"- {_label(key, language)}: {_value(key, memory.attributes[key], language)}"
        for key in _order(memory.attributes)
    ]
    parts = ["\n".join([text("known", language), *known])]
    if memory.history_summary:
        parts.append("\n".join([f"**{text('known_summary', language)}**", memory.history_summary]))
    if memory.events:
        lines = [_line(event, zone) for event in memory.events[-EVENTS:]]
        parts.append("\n".join([f"**{text('known_events', language)}**", *lines]))
    if forget:
        parts.append(text("known_end", language, word=forget))
    return "\n\n".join(parts)


def _line(event: MemoryEvent, zone: tzinfo) -> str:
    said = event.payload.get("original_message", "")
    return f"- {event.timestamp.astimezone(zone):%Y-%m-%d} {said}"[:LINE_CHARACTERS]


def _order(attributes: Mapping[str, Any]) -> list[str]:
    """The known ones first, as they stand above."""
    return [key for key in _LABELS if key in attributes] + sorted(key for key in attributes if key not in _LABELS)


def _label(key: str, language: Tongue) -> str:
    return _LABELS[key][language] if key in _LABELS else key.replace("_", " ")


def _value(key: str, value: Any, language: Tongue) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_value(key, one, language) for one in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{_label(name, language)} {_value(name, one, language)}" for name, one in value.items())
    return _VALUES.get((key, str(value)), {}).get(language) or str(value)
