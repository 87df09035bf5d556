"""Sessions in this process's own memory: for one process without Redis, and for tests."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime

from memory import keys
from memory.keys import ConversationRef
from memory.models import ShortTermMemory
from memory.short_term import codec


@dataclass(slots=True)
class _Stored:
    ref: ConversationRef
    raw: bytes
    over_at: float | None  # seconds since 1970; None: never by idleness
    gone_at: float | None  # the same with the grace


class InProcessSessions:
    """The same rules as in Redis, kept as bytes so that nobody changes a stored session by holding on to it.

    `max_conversations` caps the sessions of a tenant, the least recently written going first; 0: no cap.
    `clock` gives seconds since 1970.
    """

    def __init__(self, *, max_conversations: int = 500, clock: Callable[[], float] = time.time) -> None:
        self._cap = max_conversations
        self._clock = clock
        self._tenants: dict[str, OrderedDict[str, _Stored]] = {}

    def _sessions(self, tenant: str) -> OrderedDict[str, _Stored]:
        return self._tenants.setdefault(tenant, OrderedDict())

    def _find(self, ref: ConversationRef) -> _Stored | None:
        stored = self._sessions(ref.tenant).get(keys.session(ref))
        if stored is not None and stored.gone_at is not None and self._clock() >= stored.gone_at:
            self._remove(ref)
            return None
        return stored

    def _remove(self, ref: ConversationRef) -> bool:
        return self._sessions(ref.tenant).pop(keys.session(ref), None) is not None

    async def load(self, ref: ConversationRef) -> ShortTermMemory | None:
        stored = self._find(ref)
        return codec.decode(stored.raw) if stored else None

    async def save(self, ref: ConversationRef, session: ShortTermMemory, ttl: float) -> bool:
        stored = self._find(ref)
        if codec.stored_rev(stored.raw if stored else None) != session.rev:
            return False
        kept = codec.ttl_ms(ttl) / 1000
        sessions = self._sessions(ref.tenant)
        sessions[keys.session(ref)] = _Stored(
            ConversationRef(ref.tenant, ref.user, keys.agent_name(ref.agent), ref.conversation),
            codec.encode(session, session.rev + 1),
            session.expires_at.timestamp() if session.expires_at else None,
            self._clock() + kept if kept else None,
        )
        sessions.move_to_end(keys.session(ref))
        while self._cap and len(sessions) > self._cap:
            sessions.popitem(last=False)
        return True

    async def used(self, ref: ConversationRef) -> None:
        """Nobody writes past `save` here."""

    async def delete(self, ref: ConversationRef) -> bool:
        return self._find(ref) is not None and self._remove(ref)

    async def expired(self, now: datetime, limit: int = 100) -> AsyncIterator[ConversationRef]:
        moment = now.timestamp()
        over = [
            stored
            for sessions in self._tenants.values()
            for stored in sessions.values()
            if stored.over_at is not None and stored.over_at <= moment
        ]
        for stored in sorted(over, key=lambda one: one.over_at or 0.0)[:limit]:
            yield stored.ref

    async def of(self, tenant: str, user: str | None = None) -> AsyncIterator[ConversationRef]:
        for stored in list(self._sessions(tenant).values()):
            if user in (None, stored.ref.user) and self._find(stored.ref) is not None:
                yield stored.ref

    async def consolidated(self, ref: ConversationRef, rev: int) -> bool:
        stored = self._find(ref)
        return stored is not None and codec.stored_rev(stored.raw) == rev and self._remove(ref)

    async def forget(self, tenant: str, user: str) -> int:
        mine = [one.ref for one in self._sessions(tenant).values() if one.ref.user == user]
        return sum(self._remove(ref) for ref in mine)

    async def close(self) -> None:
        """Nothing to close; the sessions go with the process."""
