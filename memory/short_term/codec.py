"""A session as bytes, the same for every store: JSON whose first bytes are `{"rev":N,`.

A field that has its default is left out: readers of every version fill it in. What was written so is read without
pydantic's validators; whatever else stands there (an older or newer version's, or odd) goes through them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, get_args

import orjson

from memory.models import ShortTermMemory, State
from memory.surrogates import without_surrogates
from processors.models import iso

GRACE = 3600.0  # seconds that an expired session may stand so that clean-up can still read it

_HEAD = re.compile(rb'{"rev":(\d+)')
_FIELDS = tuple(ShortTermMemory.model_fields)
_USUAL = {
    name: field.get_default(call_default_factory=True)
    for name, field in ShortTermMemory.model_fields.items()
    if name not in ("rev", "created_at") and not field.is_required()
}
_WRITTEN = tuple(
    (name, _USUAL.get(name, _FIELDS)) for name in _FIELDS
)  # with what each is left out for; _FIELDS: never
_BLANK = ShortTermMemory(tenant_id="", user_id="", session_id="")
_PLAIN = set(_FIELDS) - {"facts", "schema_version"}
_NONE: list[Any] = []
_TEXT, _DICT = {str}, {dict}
_ROLES, _STATES = {"user", "bot"}, set(get_args(State))


def encode(session: ShortTermMemory, rev: int) -> bytes:
    """The session as it is stored under `rev`. The session itself stays as it is."""
    fields = {**session.__dict__, "rev": rev, "created_at": iso(session.created_at)}
    if session.expires_at is not None:
        fields["expires_at"] = iso(session.expires_at)
    if session.facts:
        fields["facts"] = [fact.model_dump(mode="json") for fact in session.facts]
    written = {name: fields[name] for name, usual in _WRITTEN if fields[name] != usual}
    try:
        return orjson.dumps(written, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError:  # a lone surrogate in an id or a variable, or a variable that is no plain value
        numbered = without_surrogates_in(session.model_copy(update={"rev": rev}))
        return numbered.__pydantic_serializer__.to_json(numbered)


def without_surrogates_in(session: ShortTermMemory) -> ShortTermMemory:
    """Cleans in place: only ever called on a copy that is on its way out."""
    for name in session.__class__.model_fields:
        setattr(session, name, without_surrogates(getattr(session, name)))
    return session


def decode(raw: bytes) -> ShortTermMemory:
    """Raises ValueError when `raw` is no session. Fields that an older version did not write get their defaults."""
    try:
        fields = orjson.loads(raw)
        if _plain(fields):
            return _opened(fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return ShortTermMemory.model_validate_json(raw)


def _plain(fields: dict[str, Any]) -> bool:
    """Whether `encode` wrote it, or might have: pydantic never leaves out the version. Errors mean no."""
    get = fields.get
    return (
        fields.keys() <= _PLAIN
        and fields["rev"].__class__ is int
        and fields["tenant_id"].__class__ is str
        and fields["user_id"].__class__ is str
        and fields["session_id"].__class__ is str
        and get("agent", "").__class__ is str
        and get("conversation_id", "").__class__ is str
        and get("summary", "").__class__ is str
        and get("last_intent", "").__class__ is str
        and get("state", "human") in _STATES
        and get("variables", _USUAL).__class__ is dict
        and (history := get("history", _NONE)).__class__ is list
        and (carried := get("carried", _NONE)).__class__ is list
        and (ids := get("recent_ids", _NONE)).__class__ is list
        and (not ids or {one.__class__ for one in ids} == _TEXT)
        and _sound(history)
        and _sound(carried)
    )


def _sound(lines: Sequence[dict[str, Any]]) -> bool:
    """Whether each is a Message."""
    return not lines or (
        {line["role"] for line in lines} <= _ROLES
        and {line["message"].__class__ for line in lines} <= _TEXT
        and {line.get("timestamp", "").__class__ for line in lines} <= _TEXT
        and {line.get("message_id", "").__class__ for line in lines} <= _TEXT
        and {line.get("metadata", _USUAL).__class__ for line in lines} <= _DICT
    )


def _opened(fields: dict[str, Any]) -> ShortTermMemory:
    given: dict[str, Any] = {
        "history": [],
        "carried": [],
        "recent_ids": [],
        "facts": [],
        "variables": {},
        "expires_at": None,
    }
    given |= fields
    for name in ("created_at", "expires_at"):
        if (said := given[name]) is not None:
            moment = datetime.fromisoformat(said)
            given[name] = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return _BLANK.changed(given)


def stored_rev(raw: bytes | None) -> int:
    """The `rev` of stored bytes without parsing them; 0 for nothing or for something broken."""
    match = _HEAD.match(raw) if raw else None
    return int(match[1]) if match else 0


def ttl_ms(session_ttl: float) -> int:
    """For how many milliseconds the store keeps a session: its TTL and as much again for clean-up, at most an hour.

    0: for ever (a TTL of 0 means no expiry by idleness).
    """
    return int((session_ttl + min(session_ttl, GRACE)) * 1000) if session_ttl > 0 else 0
