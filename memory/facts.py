"""What is known for good, one statement at a time, and what becomes of it when something is said again: pure.

A fact has a key within its scope. Said again, it is confirmed; said otherwise, the new one takes its place and the old
one stays as history (`superseded_by`). Lists gain items instead: a second allergy does not end the first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime
from enum import StrEnum
from json.encoder import encode_basestring_ascii as _text
from operator import attrgetter
from typing import Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, field_serializer, field_validator, model_validator

from memory.surrogates import without_surrogates
from memory.wording import core, key_form, negated, slug
from processors.models import in_utc, iso
from processors.personal import Told


class FactType(StrEnum):
    FACT = "fact"
    PREFERENCE = "preference"
    CONTEXT = "context"
    PROCEDURE = "procedure"
    ENTITY = "entity"
    RELATIONSHIP = "relationship"
    CORRECTION = "correction"
    SELF_KNOWLEDGE = "self_knowledge"


class Priority(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Scope(StrEnum):
    """Who a fact holds for, narrowest first; `global` means the tenant, never more."""

    SESSION = "session"
    USER = "user"
    AGENT = "agent"
    GLOBAL = "global"


ALIASES = {"user_preference": FactType.PREFERENCE, "world_knowledge": FactType.FACT}
DEFAULT_PRIORITY = {
    FactType.FACT: Priority.HIGH,
    FactType.PREFERENCE: Priority.MEDIUM,
    FactType.CONTEXT: Priority.LOW,
    FactType.PROCEDURE: Priority.MEDIUM,
    FactType.ENTITY: Priority.MEDIUM,
    FactType.RELATIONSHIP: Priority.LOW,
    FactType.CORRECTION: Priority.HIGH,
    FactType.SELF_KNOWLEDGE: Priority.MEDIUM,
}
MANY = frozenset({"allergies", "likes", "dislikes"})  # a person can have several of: always lists
_new, _set = object.__new__, object.__setattr__
_NONE = type(None)
_any = json.JSONEncoder(default=str, sort_keys=True).encode
_USERS = Scope.USER  # by its class it takes a call
_FACT = FactType.FACT
_COUNTERPARTS = (("likes", "dislikes"), ("dislikes", "likes"))
_OBSERVED = ("preferred_language", "current_topic")  # shown by every message: showing it again confirms nothing
_NARROW_TO_WIDE = list(Scope)
_KEPT_SOURCES = 20
DEEPEST = 50  # levels of a value
DELETED = "deleted"  # in `superseded_by`: of this one nothing is left but which messages not to learn it from again
_TYPES = {
    "preferred_language": FactType.PREFERENCE,
    "diet": FactType.PREFERENCE,
    "likes": FactType.PREFERENCE,
    "dislikes": FactType.PREFERENCE,
    "current_topic": FactType.CONTEXT,
}


def fact_type(name: str) -> FactType:
    """By its name or an alias. Raises ValueError that names the known ones."""
    try:
        return ALIASES.get(name) or FactType(name)
    except ValueError:
        raise ValueError(f"{name!r} is no type of fact: use one of {', '.join([*FactType, *ALIASES])}") from None


def scope_of(name: str) -> Scope:
    """Raises ValueError that names the known ones."""
    try:
        return Scope(name)
    except ValueError:
        raise ValueError(f"{name!r} is no scope: use one of {', '.join(Scope)}") from None


class Fact(BaseModel):
    """One statement. `text` is how a person would say it; `confidence` 0.0-1.0; `source` names the message or who said
    it, `also_from` those who said it again; `last_used_at` the last time it was said, asked for or needed.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    key: str
    value: Any = None
    text: str
    type: FactType = FactType.FACT
    priority: Priority
    scope: Scope = Scope.USER
    agent: str | None = None  # whose, in the scope `agent`
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    times_confirmed: int = Field(default=0, ge=0)
    times_contradicted: int = Field(default=0, ge=0)
    created_at: datetime
    last_used_at: datetime
    source: str | None = None
    also_from: list[str] = Field(default_factory=list)
    superseded_by: str | None = None
    pinned: bool = False

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        out = dict(given)
        out["type"] = fact_type(str(out.get("type", FactType.FACT)))
        out.setdefault("priority", DEFAULT_PRIORITY[out["type"]])
        return out

    @field_validator("created_at", "last_used_at")
    @classmethod
    def _aware(cls, value: datetime) -> datetime:
        return in_utc(value)

    @field_serializer("created_at", "last_used_at", when_used="json")
    def _z(self, value: datetime) -> str:
        return iso(value)

    @property
    def current(self) -> bool:
        return self.superseded_by is None

    @property
    def deleted(self) -> bool:
        return self.superseded_by == DELETED

    @property
    def sources(self) -> set[str]:
        return {*self.also_from, *([self.source] if self.source else ())}

    def with_(self, **changes: Any) -> Self:
        """`model_copy` with these fields, which are ours, for less."""
        made = _new(self.__class__)
        _set(made, "__dict__", {**self.__dict__, **changes})
        _set(made, "__pydantic_fields_set__", {*self.__pydantic_fields_set__, *changes})
        _set(made, "__pydantic_extra__", dict(self.__pydantic_extra__ or ()))
        _set(made, "__pydantic_private__", None)
        return made

    def plain(self) -> dict[str, Any] | None:
        """What `model_dump(mode="json", exclude_none=True)` gives, for less; None where that has to look closer."""
        known = self.__dict__
        value = known["value"]
        if self.__pydantic_extra__ or not (value.__class__ is str or _texts(value)):
            return None
        out = {name: one for name, one in known.items() if one is not None}
        for name in ("type", "priority", "scope"):
            out[name] = str(out[name])
        for name in ("created_at", "last_used_at"):
            out[name] = iso(out[name])
        out["confidence"] = float(out["confidence"])
        out["also_from"] = list(out["also_from"])
        if value.__class__ is not str:
            out["value"] = list(value)
        return out


_BLANK = {name: field.get_default() for name, field in Fact.model_fields.items()}  # all of them, in their order


_TYPES_BY_NAME = {str(one): one for one in FactType}
_PRIORITIES_BY_NAME = {str(one): one for one in Priority}
_SCOPES_BY_NAME = {str(one): one for one in Scope}
_ALWAYS = frozenset(("type", "priority"))  # set also where a file says nothing of them
_SAID, _SAID_OR_NOT = ("id", "key", "text"), ("agent", "source", "superseded_by")
_CHOSEN = ("type", "priority", "scope")
_COUNTS = ("times_confirmed", "times_contradicted")
_TIMES = ("created_at", "last_used_at")


def read(raw: Mapping[str, Any]) -> Fact | None:
    """What `model_validate` gives of a fact as we write it, for less; None: that has to look closer."""
    if not raw.keys() <= _BLANK.keys():
        return None
    out = {**_BLANK, "also_from": [], **raw}
    confidence, sources = out["confidence"], out["also_from"]
    plainly = (
        confidence.__class__ is float
        and 0.0 <= confidence <= 1.0
        and out["pinned"].__class__ is bool
        and sources.__class__ is list
        and {*map(type, sources)} <= {str}
        and {*[type(out[name]) for name in _SAID]} == {str}
        and {*[type(out[name]) for name in _SAID_OR_NOT]} <= {str, _NONE}
        and {*[type(out[name]) for name in _COUNTS]} == {int}
        and min([out[name] for name in _COUNTS]) >= 0
        and {*[type(raw[name]) for name in _CHOSEN if name in raw]} <= {str}
    )
    if not plainly:
        return None
    kind, scope = _TYPES_BY_NAME.get(raw.get("type", "fact")), _SCOPES_BY_NAME.get(raw.get("scope", "user"))
    if kind is None or scope is None:
        return None
    priority = _PRIORITIES_BY_NAME.get(raw["priority"]) if "priority" in raw else DEFAULT_PRIORITY[kind]
    if priority is None:
        return None
    for name in _TIMES:
        at = _time(out[name])
        if at is None:
            return None
        out[name] = at
    out["type"], out["priority"], out["scope"], out["also_from"] = kind, priority, scope, list(sources)
    fact = _new(Fact)
    _set(fact, "__dict__", out)
    _set(fact, "__pydantic_fields_set__", {*raw, *_ALWAYS})
    _set(fact, "__pydantic_extra__", {})
    _set(fact, "__pydantic_private__", None)
    return fact


def _time(told: Any) -> datetime | None:
    """As `iso` writes it."""
    if told.__class__ is not str or len(told) not in (20, 24) or told[-1] != "Z":
        return None
    if (told[4], told[7], told[10]) != ("-", "-", "T") or told[19] not in ".Z":
        return None
    try:
        at = datetime.fromisoformat(told)
    except ValueError:
        return None
    return at if 1 < at.year < MAXYEAR and at.tzinfo is UTC else None


def said(key: str, value: Any) -> str:
    """How a person would say it where nobody has said it in words: `shoe size: 38`."""
    return f"{key.replace('_', ' ')}: {shown(value)}"


def shown(value: Any) -> str:
    """A value in words; names and text verbatim."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return json.dumps(value, ensure_ascii=False, default=str)


def new(
    *,
    now: datetime,
    text: str | None = None,
    key: str | None = None,
    value: Any = None,
    type: str | None = None,
    scope: str = Scope.USER,
    agent: str | None = None,
    priority: str | None = None,
    confidence: float = 1.0,
    source: str | None = None,
    pinned: bool = False,
    owner: str = "",
) -> Fact:
    """A fact that nobody has stored yet. Without a key its text gives one, without a value the text is it. `owner`, the
    person's id, makes that of its own id: the same said by two at one time are two facts.

    Raises ValueError where there is neither a text nor a key with a value, or for a type, scope or priority that there
    is not.
    """
    text = (text or "").strip()
    if value is None:
        if not text:
            raise ValueError("nothing to remember: give a text, or a key and a value")
        value = text
    key = (key or "").strip() or slug(text)
    if not key:
        raise ValueError("nothing to remember: give a text, or a key and a value")
    given = _given(now, key, value, text, type, scope, agent, priority, confidence, source, pinned, owner)
    return Fact(**given)


def _given(
    now: datetime,
    key: str,
    value: Any,
    text: str = "",
    type: str | None = None,
    scope: str = _USERS,
    agent: str | None = None,
    priority: str | None = None,
    confidence: float = 1.0,
    source: str | None = None,
    pinned: bool = False,
    owner: str = "",
) -> dict[str, Any]:
    """What a fact is made of; the rest of its fields have their defaults."""
    if key_form(key) in MANY and not isinstance(value, list):
        value = [value]
    value, text, key = _json(value), without_surrogates(text), without_surrogates(key)
    kind = fact_type(type) if type else _TYPES.get(key, _FACT)
    return {
        "id": _id(scope, agent, key, value, iso(now), source, *([owner] if owner else ())),
        "key": key,
        "value": value,
        "text": text or said(key, value),
        "type": kind,
        "priority": Priority(priority) if priority else DEFAULT_PRIORITY[kind],
        "scope": scope if scope.__class__ is Scope else scope_of(scope),
        "agent": agent if scope == "agent" else None,
        "confidence": confidence,
        "created_at": now,
        "last_used_at": now,
        "source": source,
        "pinned": pinned,
    }


def _made(now: datetime, key: str, value: Any, source: str | None = None, owner: str = "") -> Fact:
    """The same of what was found here and needs no look: in a third of the time."""
    given, at = _given(now, key, value, source=source, owner=owner), in_utc(now)
    fact = _new(Fact)
    _set(fact, "__dict__", {**_BLANK, **given, "created_at": at, "last_used_at": at, "also_from": []})
    _set(fact, "__pydantic_fields_set__", set(given))
    _set(fact, "__pydantic_extra__", {})
    _set(fact, "__pydantic_private__", None)
    return fact


Outcome = Literal["created", "confirmed", "updated", "kept"]


@dataclass(frozen=True, slots=True)
class Merged:
    """`fact` is what holds now; `changed` is what is to be stored, each new or in place of the one with its id."""

    fact: Fact
    outcome: Outcome
    changed: tuple[Fact, ...] = ()


def merge(facts: Iterable[Fact], fact: Fact, *, overwrite: bool = True, reassert: bool = False) -> Merged:
    """What becomes of a statement beside what is known in its scope.

    The same again: confirmed, once a source. Another value: it takes the old one's place (`updated`), unless it was
    said before the old one, which then stands; `overwrite=False` keeps whatever is there. `reassert`: who replaces the
    value stands in for the key, so that its confirmations go on counting. What a message told and somebody deleted is
    not learned from that message again.
    """
    scope, agent, form, sources = fact.scope, fact.agent, key_form(fact.key), fact.sources
    mates: list[Fact] = []
    known: Fact | None = None
    for one in facts:
        if one.superseded_by is None:
            if one.scope == scope and one.agent == agent:
                mates.append(one)
                if known is None and key_form(one.key) == form:
                    known = one
        elif sources and one.deleted and one.sources & sources:
            return Merged(fact, "kept")
    known = known or next((one for one in mates if _alike(one, fact)), None)
    if known is None:
        opposite = next((one for one in mates if _opposite(one, fact)), None)
        return _replaced(opposite, fact, reassert) if opposite and overwrite else Merged(fact, "created", (fact,))
    if not overwrite:
        return Merged(known, "kept")
    value = _joined(known.value, fact.value)
    if same(known.value, value):
        return _confirmed(known, fact)
    if isinstance(known.value, list) and isinstance(value, list):
        grown = _heard(known, fact, value=value, text=said(known.key, value))
        return Merged(grown, "updated", (grown,))
    if fact.created_at < known.created_at:
        late = fact.with_(superseded_by=known.id, times_contradicted=1)
        return Merged(known, "kept", (late,))
    return _replaced(known, fact.with_(key=known.key), reassert)


def taken_back(facts: Iterable[Fact], key: str, value: Any, now: datetime, scope: str = Scope.USER) -> list[Fact]:
    """What holds no longer ("I can eat nuts again"): the item leaves its list, the fact its place. To be stored."""
    out = []
    for one in facts:
        if not one.current or one.scope != scope or key_form(one.key) != key_form(key):
            continue
        left = [item for item in one.value if not same(item, value)] if isinstance(one.value, list) else []
        ended = one.with_(superseded_by="nothing", times_contradicted=one.times_contradicted + 1)
        if left and len(left) < len(one.value):
            rest = new(now=now, key=one.key, value=left, type=one.type, scope=scope, source=one.source)
            out += [ended.with_(superseded_by=rest.id), rest.with_(priority=one.priority, also_from=one.also_from)]
        elif not left and (isinstance(one.value, list) or value is None or same(one.value, value)):
            out.append(ended)
    return out


def attributes(facts: Iterable[Fact]) -> dict[str, Any]:
    """The view by key of what holds for the user."""
    return {one.key: one.value for one in facts if one.superseded_by is None and one.scope is _USERS}


def from_attributes(
    facts: Sequence[Fact], told: Mapping[str, Any], now: datetime, source: str | None = None, owner: str = ""
) -> list[Fact]:
    """What is to be stored so that the view by key has these values too; confidence 1."""
    changed: dict[str, Fact] = {}
    for key, value in told.items():
        known = upserted(facts, changed.values()) if changed else facts
        merged = merge(known, _made(now, key, value, source, owner))
        changed |= {one.id: one for one in merged.changed}
    return list(changed.values())


def heard(facts: Sequence[Fact], told: Told, now: datetime, source: str | None = None) -> list[Fact]:
    """What is to be stored of what somebody said of themselves: what holds now, what holds no longer. Who dislikes
    something likes it no more, and the other way round."""
    over = {key: list(items) for key, items in told.over.items()} if told.over else {}
    for key, counterpart in _COUNTERPARTS:
        if items := told.holds.get(key):
            over.setdefault(counterpart, []).extend(items)
    changed: list[Fact] = []
    for key, items in over.items():
        for item in items:
            changed = upserted(changed, taken_back(upserted(facts, changed), key, item, now))
    holds, view = dict(told.holds), attributes(facts)
    for key in _OBSERVED:
        if key in holds and view.get(key) == holds[key]:
            del holds[key]
    if not changed and not holds:
        return []
    if not changed:
        return from_attributes(facts, holds, now, source)
    return upserted(changed, from_attributes(upserted(facts, changed), holds, now, source))


def without_sources(facts: Sequence[Fact], gone: Collection[str]) -> list[Fact]:
    """Without what these messages alone said; what had given way to it holds again."""
    kept = []
    for one in facts:
        left = one.sources - set(gone)
        if one.sources and not left:
            continue
        if left != one.sources:
            source = one.source if one.source in left else next(name for name in one.also_from if name in left)
            also = [name for name in one.also_from if name in left and name != source]
            one = one.with_(source=source, also_from=also)
        kept.append(one)
    removed = {one.id for one in facts} - {one.id for one in kept}
    holding = {(one.scope, key_form(one.key)) for one in kept if one.current}
    out: list[Fact] = []
    for one in reversed(kept):  # of several that gave way, the newest holds again
        if one.superseded_by in removed and (one.scope, key_form(one.key)) not in holding:
            holding.add((one.scope, key_form(one.key)))
            one = one.with_(superseded_by=None, times_contradicted=max(0, one.times_contradicted - 1))
        out.append(one)
    return out[::-1]


def settled(facts: Sequence[Fact], view: Mapping[str, Any], now: datetime, owner: str = "") -> list[Fact]:
    """The facts of a file whose view was written by somebody else: what only stands there becomes a fact, another
    value there takes the place of ours. A key that is missing there is no statement."""
    out = list(facts)
    known = attributes(facts)
    for key, value in view.items():
        if key in known and known[key] == value:
            continue
        fact = _made(now, key, value)
        fact = fact.with_(id=_id(Scope.USER, None, key, value, owner, None))  # the same at each reading
        old = next((one for one in out if one.current and one.scope is Scope.USER and one.key == key), None)
        if old is not None:
            out = upserted(out, [old.with_(superseded_by=fact.id, times_contradicted=old.times_contradicted + 1)])
        out = upserted(out, [fact])
    return out


def without_keys(facts: Sequence[Fact], view: Mapping[str, Any], now: datetime, owner: str = "") -> list[Fact]:
    """The facts so that their view by key is `view`: what is missing there goes for good."""
    kept = [one for one in facts if one.scope is not Scope.USER or not one.current or one.key in view]
    return settled(kept, view, now, owner)


def upserted(facts: Iterable[Fact], changed: Iterable[Fact]) -> list[Fact]:
    """Each changed one in the place of the one with its id, or at the end."""
    out = {one.id: one for one in facts}
    out |= {one.id: one for one in changed}
    return list(out.values())


_confidence = attrgetter("confidence")


def narrowest(facts: Iterable[Fact], key: str) -> Fact | None:
    """The current fact with this key; the narrowest scope goes first. Space, `_` and `-` are alike."""
    found = [one for one in facts if one.current and key_form(one.key) == key_form(key)]
    return min(found, key=lambda one: _NARROW_TO_WIDE.index(one.scope), default=None)


def visible(facts: Iterable[Fact]) -> list[Fact]:
    """One fact a key, of the narrowest scope; the surest first."""
    best: dict[str, Fact] = {}
    for one in facts:
        if one.superseded_by is None:
            form = key_form(one.key)
            if form not in best or _NARROW_TO_WIDE.index(one.scope) < _NARROW_TO_WIDE.index(best[form].scope):
                best[form] = one
    return sorted(best.values(), key=_confidence, reverse=True)


def same(one: Any, other: Any) -> bool:
    """Equal but for spelling: case, spaces, politeness. Numbers, negations and names count."""
    if isinstance(one, str) and isinstance(other, str):
        return one == other or (bool(core(one)) and core(one) == core(other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def _alike(one: Fact, other: Fact) -> bool:
    """The same statement under two keys: both are their own text."""
    return one.value == one.text and other.value == other.text and same(one.text, other.text)


def _opposite(one: Fact, other: Fact) -> bool:
    """One statement denies the other."""
    if one.value != one.text or other.value != other.text or negated(one.text) == negated(other.text):
        return False
    return core(one.text, negations=False) == core(other.text, negations=False)


def _joined(known: Any, value: Any) -> Any:
    """A list gains what it lacks, also a single item."""
    if not isinstance(known, list):
        return [known, *(v for v in value if not same(v, known))] if isinstance(value, list) and value else value
    items = value if isinstance(value, list) else [value]
    return [*known, *(item for item in items if not any(same(item, one) for one in known))]


def _heard(known: Fact, fact: Fact, **changes: Any) -> Fact:
    sources = known.also_from
    if fact.source and fact.source not in known.sources:
        sources = [*sources, fact.source][-_KEPT_SOURCES:]
    return known.with_(
        last_used_at=max(known.last_used_at, fact.last_used_at),
        confidence=max(known.confidence, fact.confidence),
        also_from=sources,
        pinned=known.pinned or fact.pinned,
        **changes,
    )


def _confirmed(known: Fact, fact: Fact) -> Merged:
    if fact.source and fact.source in known.sources:
        return Merged(known, "confirmed")
    again = _heard(known, fact, times_confirmed=known.times_confirmed + 1)
    return Merged(again, "confirmed", (again,))


def _replaced(old: Fact, fact: Fact, reassert: bool) -> Merged:
    after = fact.with_(pinned=fact.pinned or old.pinned)
    if reassert:
        after = after.with_(times_confirmed=old.times_confirmed + 1)
    before = old.with_(superseded_by=after.id, times_contradicted=old.times_contradicted + 1)
    return Merged(after, "updated", (before, after))


def _id(*parts: Any) -> str:
    return f"f_{hashlib.sha256(_told(parts).encode()).hexdigest()[:20]}"


def _told(value: Any) -> str:
    """Their JSON, as `json` writes it: text, lists of it and nothing are nearly all of it, and an encoder for each
    costs more than they do."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return _text(value)
    if value.__class__ is list or value.__class__ is tuple:
        return f"[{', '.join(map(_told, value))}]"
    return _any(value)


def _texts(value: Any) -> bool:
    """A list of nothing but text."""
    return isinstance(value, list) and {one.__class__ for one in value} <= {str}


def _json(value: Any) -> Any:
    """The value as a file will give it back: what JSON has no form for as text. Raises ValueError for what no file
    could give back."""
    if value.__class__ is str:  # nearly always this or the next
        return without_surrogates(value)
    if value.__class__ is list and {one.__class__ for one in value} == {str}:
        return [without_surrogates(one) for one in value]
    if _deeper(value, DEEPEST):
        raise ValueError(f"a value may be nested {DEEPEST} deep, and no deeper")
    plain = json.loads(json.dumps(without_surrogates(value), default=str), parse_constant=str)
    return orjson.loads(json.dumps(plain))


def _deeper(value: Any, levels: int) -> bool:
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return levels < 0 or any(_deeper(one, levels - 1) for one in inside)
