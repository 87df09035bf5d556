"""A session as bytes, the same for every store: JSON whose first bytes are `{"rev":N,`."""

from __future__ import annotations

import re

from pydantic_core import PydanticSerializationError

from memory.models import ShortTermMemory
from memory.surrogates import without_surrogates

GRACE = 3600.0  # seconds that an expired session may stand so that clean-up can still read it

_HEAD = re.compile(rb'{"rev":(\d+)')


def encode(session: ShortTermMemory, rev: int) -> bytes:
    """The session as it is stored under `rev`. The session itself stays as it is."""
    numbered = session.model_copy(update={"rev": rev})
    try:
        return numbered.__pydantic_serializer__.to_json(numbered)
    except PydanticSerializationError:  # a lone surrogate in an id or a variable
        return without_surrogates_in(numbered).__pydantic_serializer__.to_json(numbered)


def without_surrogates_in(session: ShortTermMemory) -> ShortTermMemory:
    """Cleans in place: only ever called on a copy that is on its way out."""
    for name in session.__class__.model_fields:
        setattr(session, name, without_surrogates(getattr(session, name)))
    return session


def decode(raw: bytes) -> ShortTermMemory:
    """Raises ValueError when `raw` is no session. Fields that an older version did not write get their defaults."""
    return ShortTermMemory.model_validate_json(raw)


def stored_rev(raw: bytes | None) -> int:
    """The `rev` of stored bytes without parsing them; 0 for nothing or for something broken."""
    match = _HEAD.match(raw) if raw else None
    return int(match[1]) if match else 0


def ttl_ms(session_ttl: float) -> int:
    """For how many milliseconds the store keeps a session: its TTL and as much again for clean-up, at most an hour.

    0: for ever (a TTL of 0 means no expiry by idleness).
    """
    return int((session_ttl + min(session_ttl, GRACE)) * 1000) if session_ttl > 0 else 0
