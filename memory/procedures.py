"""How things are done here: taught by a person, learned from what went well, or derived from another. Pure.

The content is text for the model; nothing of it is ever run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_serializer, field_validator

from memory.episodes import Episode
from processors.models import in_utc, iso
from processors.normalise import normalise, words_apart


class ProcedureType(StrEnum):
    WORKFLOW_GRAPH = "workflow_graph"
    PROMPT_TEMPLATE = "prompt_template"
    CODE_SNIPPET = "code_snippet"
    TOOL_SEQUENCE = "tool_sequence"


# What a trigger can ask: each condition holds if one of its words does, all conditions must hold.
CONDITIONS = ("goal_contains", "goal_contains_all", "intent", "language", "platform", "agent")
_LEARNED_FROM = 3  # episodes that went well in the same way


class Procedure(BaseModel):
    """`trigger` holds conditions (see CONDITIONS), each a word or a list; a condition of another name never holds.
    `average_duration` in seconds."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    name: str = ""
    trigger: dict[str, Any] = Field(default_factory=dict)
    type: ProcedureType = ProcedureType.PROMPT_TEMPLATE
    content: str
    enabled: bool = True
    times_used: int = Field(default=0, ge=0)
    times_succeeded: int = Field(default=0, ge=0)
    total_duration: float = Field(default=0.0, ge=0.0)
    source: str = "human"  # human, learned or derived
    derived_from: str | None = None
    created_at: datetime
    last_used_at: datetime | None = None

    @field_validator("created_at", "last_used_at")
    @classmethod
    def _aware(cls, value: datetime | None) -> datetime | None:
        return in_utc(value) if value is not None else None

    @field_validator("content", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        """A graph or a sequence given as JSON is kept as its text."""
        return value if isinstance(value, str) else orjson.dumps(value, default=str).decode()

    @field_serializer("created_at", "last_used_at", when_used="json")
    def _z(self, value: datetime | None) -> str | None:
        return iso(value) if value else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def success_rate(self) -> float | None:
        """None while it has not been used."""
        return self.times_succeeded / self.times_used if self.times_used else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def average_duration(self) -> float | None:
        return self.total_duration / self.times_used if self.times_used else None

    def with_(self, **changes: Any) -> Self:
        return self.model_copy(update=changes)


def new(
    content: Any,
    trigger: Mapping[str, Any],
    now: datetime,
    *,
    name: str = "",
    type: str = ProcedureType.PROMPT_TEMPLATE,
    source: str = "human",
    derived_from: str | None = None,
) -> Procedure:
    """Raises ValueError for a type that there is not."""
    raw = orjson.dumps([dict(trigger), type, content, derived_from], default=str, option=orjson.OPT_SORT_KEYS)
    return Procedure(
        id=f"p_{hashlib.sha256(raw).hexdigest()[:20]}",
        name=name,
        trigger=dict(trigger),
        type=ProcedureType(type),
        content=content,
        source=source,
        derived_from=derived_from,
        created_at=now,
    )


_TAUGHT = (
    re.compile(
        r"^(?:when|whenever|if) (?:a |the |any )?(?:customers?|users?|someone|somebody|people|they) "
        r"(?:asks?|wants?|mentions?|says?|writes?|complains?)(?: (?:for|about|to know))?:? (?:an? |the )?"
        r"(?P<what>[^,]{1,80}), *"
        r"(?:then )?(?P<how>.+)$",
        re.IGNORECASE | re.DOTALL,
    ),
    re.compile(
        r"^(?:ถ้า|เมื่อ|เวลา|หาก)\s?(?:มี)?(?:ลูกค้า|คน|ใคร)\s?(?:ถาม(?:ถึง|หา|เรื่อง)?|ขอ|อยาก(?:ได้|รู้)?|พูดถึง|สั่ง|แจ้ง)\s?"
        r"(?P<what>\S{1,60}?),?\s*"
        r"(?:ก็)?ให้\s?(?P<how>.+)$",
        re.DOTALL,
    ),
)


def taught(text: str, now: datetime) -> Procedure | None:
    """What a person's rule says ("when a customer asks for delivery, ask for the postcode first"); None: it is none."""
    for pattern in _TAUGHT:
        if found := pattern.match(text.strip()):
            return new(found["how"].strip(), {"goal_contains": [found["what"].strip()]}, now, name=text.strip()[:120])
    return None


def derived(parent: Procedure, content: str, now: datetime) -> Procedure:
    """Another way of doing the same thing; its own results count from nothing."""
    return new(
        content, parent.trigger, now, name=parent.name, type=parent.type, source="derived", derived_from=parent.id
    )


def learned(episodes: Sequence[Episode], now: datetime) -> list[Procedure]:
    """Tool sequences that went well at least three times for the same kind of message."""
    ways: dict[tuple[str, tuple[str, ...]], int] = {}
    for episode in episodes:
        tools = tuple(str(action.get("tool")) for action in episode.actions if action.get("tool"))
        intent = episode.trigger.get("intent")
        if episode.outcome == "success" and tools and isinstance(intent, str):
            ways[intent, tools] = ways.get((intent, tools), 0) + 1
    return [
        new(list(tools), {"intent": intent}, now, type=ProcedureType.TOOL_SEQUENCE, source="learned")
        for (intent, tools), times in ways.items()
        if times >= _LEARNED_FROM
    ]


def matching(procedures: Iterable[Procedure], goal: str, **moment: str | None) -> list[Procedure]:
    """Those whose trigger fits what is wanted: `goal` in the customer's words; `intent`, `language`, `platform` and
    `agent` of the moment. The most successful first. One without any condition never fits."""
    able = [one for one in procedures if one.enabled and one.trigger]
    plain = words_apart(f" {normalise(goal)} ") if able else ""
    found = [one for one in able if _fits(one.trigger, plain, moment)]
    return sorted(found, key=lambda one: (-(one.success_rate if one.success_rate is not None else 0.5), one.id))


def counted(procedure: Procedure, succeeded: bool, seconds: float, now: datetime) -> Procedure:
    """After one more use."""
    return procedure.with_(
        times_used=procedure.times_used + 1,
        times_succeeded=procedure.times_succeeded + succeeded,
        total_duration=procedure.total_duration + max(0.0, seconds),
        last_used_at=now,
    )


def upserted(procedures: Iterable[Procedure], changed: Iterable[Procedure]) -> list[Procedure]:
    return list(({one.id: one for one in procedures} | {one.id: one for one in changed}).values())


def _fits(trigger: Mapping[str, Any], plain: str, moment: Mapping[str, str | None]) -> bool:
    for name, wanted in trigger.items():
        words = [str(word) for word in (wanted if isinstance(wanted, list | tuple) else [wanted])]
        if name == "goal_contains":
            holds = any(_in(word, plain) for word in words)
        elif name == "goal_contains_all":
            holds = bool(words) and all(_in(word, plain) for word in words)
        elif name in CONDITIONS:
            have = moment.get(name)
            holds = have is not None and have.casefold() in (word.casefold() for word in words)
        else:
            return False
        if not holds:
            return False
    return True


def _in(word: str, plain: str) -> bool:
    """A Latin word is found as a word, Thai anywhere."""
    wanted = words_apart(normalise(word))
    return bool(wanted.strip()) and wanted in plain
