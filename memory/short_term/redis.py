"""Sessions in Redis or a server that speaks like it, alone or a cluster."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from datetime import datetime
from itertools import chain
from typing import Any, cast

from redis.asyncio import Redis

from memory import keys
from memory.keys import ConversationRef
from memory.models import ShortTermMemory
from memory.redis_client import sessions_errors
from memory.short_term import codec, lua

log = logging.getLogger(__name__)

Marks = list[tuple[bytes, float]]

_AT_ONCE = 1000  # marks that are taken over in one step
BROKEN_KEPT = 7 * 24 * 3600 * 1000  # milliseconds that a session we could not read is kept for the operator


class RedisSessions:
    """One string key a session, and beside them an index of when each is over.

    On a cluster the index lies in parts (`lua.INDEXES`), in other slots than the session, so it is written first and in
    a call of its own: a mark without a session is tidied up by the next clean-up, a session without a mark would never
    be found. Marks in the one index of a plain server, from a backup or an older version, are taken over by clean-up.
    `max_conversations` caps the sessions of a tenant, the least recently written going first; 0: no cap.
    """

    def __init__(self, client: Redis, *, cluster: bool = False, max_conversations: int = 0) -> None:
        self._redis = client
        self._cluster = cluster
        self._cap = max_conversations
        self._indexes = lua.INDEXES if cluster else (lua.INDEX,)
        self._save = client.register_script(lua.SAVE)
        self._drop = client.register_script(lua.DROP)
        self._unmark = client.register_script(lua.UNMARK)
        self._set_aside = client.register_script(lua.SET_ASIDE)

    async def load(self, ref: ConversationRef) -> ShortTermMemory | None:
        key = keys.session(ref)
        with sessions_errors():
            raw = cast("bytes | None", await self._redis.get(key))
        return await self.read(ref, raw) if raw is not None else None

    async def read(self, ref: ConversationRef, raw: bytes) -> ShortTermMemory | None:
        """The session in bytes that were read from its key; what can't be read is set aside and counts as none."""
        try:
            return codec.decode(raw)
        except ValueError:
            broken = keys.beside(keys.session(ref), "broken")
            log.warning("session of %s could not be read: set aside as %s", keys.session(ref), broken)
            with sessions_errors():
                await self._set_aside(keys=[keys.session(ref), broken], args=[raw, BROKEN_KEPT])
            return None

    async def save(self, ref: ConversationRef, session: ShortTermMemory, ttl: float) -> bool:
        value = codec.encode(session, session.rev + 1)
        args: list[Any] = [session.rev, value, codec.ttl_ms(ttl), lua.member(ref), lua.score(session)]
        with sessions_errors():
            if self._cluster:
                await self._redis.zadd(self._index(lua.member(ref)), {lua.member(ref): float(lua.score(session))})
                saved = await self._save(keys=[keys.session(ref)], args=args)
            else:
                saved = await self._save(keys=[keys.session(ref), lua.INDEX], args=args)
        if saved:
            await self.used(ref)
        return bool(saved)

    async def used(self, ref: ConversationRef) -> None:
        if not self._cap:
            return
        order = keys.shared("i", "used", ref.tenant)
        with sessions_errors():
            await self._redis.zadd(order, {lua.member(ref): time.time()})
            surplus = await self._redis.zcard(order) - self._cap
            if surplus > 0:
                for raw in cast("list[bytes]", await self._redis.zrange(order, 0, surplus - 1)):
                    await self._remove(lua.conversation_of(raw))

    async def delete(self, ref: ConversationRef) -> bool:
        with sessions_errors():
            return await self._remove(ref)

    async def _remove(self, ref: ConversationRef) -> bool:
        """The session first, its marks after: what is interrupted is found again by its mark."""
        key = keys.session(ref)
        removed = await self._redis.delete(key)
        await self._redis.delete(keys.beside(key, "broken"))
        for index in {self._index(lua.member(ref)), lua.INDEX}:
            await self._redis.zrem(index, lua.member(ref))
        await self._redis.zrem(keys.shared("i", "used", ref.tenant), lua.member(ref))
        return bool(removed)

    async def expired(self, now: datetime, limit: int = 100) -> AsyncIterator[ConversationRef]:
        with sessions_errors():
            if self._cluster:
                await self._take_over()
            pipe: Any = self._redis.pipeline(transaction=False)
            for index in self._indexes:
                until = f"{now.timestamp() * 1000:.0f}"
                pipe.zrange(index, "-inf", until, byscore=True, offset=0, num=limit, withscores=True)
            found = cast("list[Marks]", await pipe.execute())
        for raw, _ in sorted(chain.from_iterable(found), key=lambda mark: mark[1])[:limit]:
            yield lua.conversation_of(raw)

    async def _take_over(self) -> None:
        while rows := cast("Marks", await self._redis.zrange(lua.INDEX, 0, _AT_ONCE - 1, withscores=True)):
            pipe: Any = self._redis.pipeline(transaction=False)
            for raw, over in rows:
                pipe.zadd(lua.index_of(raw), {raw: over}, gt=True)  # a newer mark stays
            await pipe.execute()
            await self._unmark(keys=[lua.INDEX], args=[part for raw, over in rows for part in (raw, _score(over))])

    async def consolidated(self, ref: ConversationRef, rev: int) -> bool:
        name = lua.member(ref)
        with sessions_errors():
            # Read before the session goes: whoever opens a new one in between changes the score, and the mark stays.
            marked = await self._redis.zscore(self._index(name), name)
            dropped = await self._drop(keys=[keys.session(ref)], args=[rev])
            if dropped != 0 and marked is not None:
                await self._unmark(keys=[self._index(name)], args=[name, _score(marked)])
            if dropped == 1:
                await self._redis.zrem(keys.shared("i", "used", ref.tenant), name)
        return bool(dropped == 1)

    async def of(self, tenant: str, user: str | None = None) -> AsyncIterator[ConversationRef]:
        start = lua.member(ConversationRef(tenant, user or "")).rsplit(",", 3 if user is None else 2)[0] + ","
        found = set()
        with sessions_errors():
            for index in {*self._indexes, lua.INDEX}:
                async for raw, _ in self._redis.zscan_iter(index, match=_literal(start) + "*", count=1000):
                    found.add(lua.conversation_of(raw))
        for ref in sorted(found):
            yield ref

    async def forget(self, tenant: str, user: str) -> int:
        removed = 0
        found = {ConversationRef(tenant, user), *[ref async for ref in self.of(tenant, user)]}
        with sessions_errors():
            for ref in sorted(found):
                removed += await self._remove(ref)
        return removed

    async def close(self) -> None:
        await self._redis.aclose()

    def _index(self, member: str) -> str:
        return lua.index_of(member) if self._cluster else lua.INDEX


def _score(over: float) -> str:
    """As the server writes it."""
    return f"{over:.0f}" if over != float("inf") else "inf"


def _literal(text: str) -> str:
    """For a glob pattern: every sign that means something there stands for itself."""
    return "".join(f"\\{sign}" if sign in "*?[]^-\\" else sign for sign in text)
