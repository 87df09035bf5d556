"""Who a person is across channels: pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator

from processors.models import in_utc, iso

_KINDS = {
    "line": "line_id",
    "telegram": "telegram_id",
    "web": "web_id",
    "terminal": "terminal_id",
    "email": "email",
    "phone": "phone",
}


LONGEST_NAME = 64  # characters
_WITHOUT = re.compile(
    r"[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def clean_name(name: Any) -> str | None:
    """A name as it may be shown: one line, at most LONGEST_NAME characters, no character that turns what stands around
    it about or hides; None where nothing is left. What it says is data all the same."""
    if not isinstance(name, str):
        return None
    plain = " ".join(_WITHOUT.sub(" ", name).split())
    end = LONGEST_NAME
    while end < len(plain) and end > 1 and unicodedata.category(plain[end]).startswith("M"):
        end -= 1  # no vowel or tone without its consonant
    return plain[:end].strip() or None


class Person(BaseModel):
    """A memory user. `identities` are `telegram_id`, `line_id`, `email` and so on; `merged_into` is the canonical id
    that stands for this one now; `parts` what came from each id that was merged into this one."""

    model_config = ConfigDict(frozen=True, extra="allow")

    canonical_id: str
    identities: dict[str, str] = Field(default_factory=dict)
    display_name: str | None = None
    conversations: int = Field(default=0, ge=0)  # sessions that ended
    messages: int = Field(default=0, ge=0)  # said by the person in them
    first_seen_at: datetime
    last_seen_at: datetime
    merged_into: str | None = None
    parts: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @field_validator("display_name", mode="before")
    @classmethod
    def _clean(cls, value: Any) -> str | None:
        return clean_name(value)

    @field_validator("first_seen_at", "last_seen_at")
    @classmethod
    def _aware(cls, value: datetime) -> datetime:
        return in_utc(value)

    @field_serializer("first_seen_at", "last_seen_at", when_used="json")
    def _z(self, value: datetime) -> str:
        return iso(value)

    def with_(self, **changes: Any) -> Self:
        return self.model_copy(update=changes)


def new(user: str, now: datetime, display_name: str | None = None) -> Person:
    """Of a canonical id such as `telegram:12345`."""
    platform, _, own = user.partition(":")
    kind = _KINDS.get(platform)
    return Person(
        canonical_id=user,
        identities={kind: own} if kind and own and not own.startswith("group:") else {},
        display_name=display_name or None,
        first_seen_at=now,
        last_seen_at=now,
    )


def user_of(trigger: Mapping[str, Any]) -> str | None:
    """The canonical id that a trigger's payload names: `user_id`, or a channel and who writes there."""
    if isinstance(user := trigger.get("user_id"), str) and ":" in user:
        return user
    channel = trigger.get("channel") or trigger.get("platform")
    for name in ("user_id", "chat_id", "from_id", "telegram_id", "line_id", "email"):
        if (own := trigger.get(name)) not in (None, ""):
            if name in _KINDS.values() and not channel:
                channel = next(platform for platform, kind in _KINDS.items() if kind == name)
            return f"{channel}:{own}" if channel else None
    return None


def seen(
    person: Person | None, user: str, now: datetime, *, messages: int = 0, ended: bool = False, name: str | None = None
) -> Person:
    """The person after one more visit."""
    person = person or new(user, now, name)
    return person.with_(
        last_seen_at=max(person.last_seen_at, now),
        messages=person.messages + messages,
        conversations=person.conversations + ended,
        display_name=clean_name(name) or person.display_name,
    )
