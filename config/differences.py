"""What changed between two versions of a tenant, by field: for the log, so without texts, and with no secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, SecretStr

from config.mistakes import Loc, field_name

_MOST = 20  # fields that are named one by one
# Fields whose values are words of ours. Every other text may be a customer's, or hold what was filled in.
_WORDS = frozenset(
    {
        "language",
        "mode",
        "policy",
        "groups",
        "system_role",
        "rewrite",
        "when_closed",
        "quiet_hours",
        "timezone",
        "platform",
    }
)


def differences(old: BaseModel, new: BaseModel) -> list[str]:
    """Such as `memory.sm_ttl (1800 → 60)`, `faq[2].answer`, `channels.line-main.channel_secret (secret)`."""
    found = [_told(loc, before, after) for loc, before, after in _changes(_plain(old), _plain(new), ())]
    rest = len(found) - _MOST
    return found if rest <= 0 else [*found[:_MOST], f"{rest} more"]


def _changes(old: Any, new: Any, loc: Loc) -> Iterator[tuple[Loc, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _changes(old.get(key, ...), new.get(key, ...), (*loc, key))
    elif isinstance(old, tuple) and isinstance(new, tuple) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _changes(one, other, (*loc, index))
    elif old != new:
        yield loc, old, new


def _plain(value: Any) -> Any:
    """Models as their fields, lists as tuples; secrets stay what they are, so that they are known as such."""
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    return value


def _told(loc: Loc, old: Any, new: Any) -> str:
    name = field_name(loc)
    if isinstance(old, SecretStr) or isinstance(new, SecretStr):
        return f"{name} (secret)"
    if old in (..., None):
        return f"{name} (new)"
    if new in (..., None):
        return f"{name} (gone)"
    if isinstance(old, tuple) and isinstance(new, tuple):
        return f"{name} ({len(old)} → {len(new)})"
    if all(isinstance(one, bool | int | float) for one in (old, new)) or (loc and loc[-1] in _WORDS):
        return f"{name} ({_value(old)} → {_value(new)})"
    return name


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
