"""What a fact was before staff changed it, for ten minutes."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from typing import Any

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from memory import keys
from memory.curation import tag
from memory.facts import Fact
from memory.long_term.document import plain

UNDO_FOR = 600  # seconds


class Undo:
    """Without Redis nothing can be undone."""

    def __init__(self, client: Redis) -> None:
        self._redis = client

    async def keep(self, tenant: str, ref: str, user: str, before: Fact, after: Fact) -> str:
        """A token, "" where it can't be kept. `user`: whose it is, "" for the tenant's own."""
        token = secrets.token_urlsafe(12)
        value = orjson.dumps({"ref": ref, "user": user, "before": plain(before), "after": tag(after)})
        try:
            await self._redis.set(keys.shared("undo", tenant, token), value, ex=UNDO_FOR)
        except (RedisError, OSError):
            return ""
        return token

    async def take(self, tenant: str, token: str) -> tuple[str, Fact, str] | None:
        """The fact's `ref`, what it was, and the tag of what it became; once."""
        raw = await self._redis.getdel(keys.shared("undo", tenant, token or "-"))
        if raw is None:
            return None
        value: dict[str, Any] = orjson.loads(raw)
        return value["ref"], Fact.model_validate(value["before"]), value["after"]

    async def forget(self, tenant: str, ids: Collection[str]) -> int:
        """Removes what was kept of these people's facts; how many. Raises RedisError."""
        found = []
        async for key in self._redis.scan_iter(match=f"{keys.shared('undo', tenant)}:*", count=1000):
            raw = await self._redis.get(key)
            if raw is not None and orjson.loads(raw).get("user") in ids:
                found.append(key)
        return sum([await self._redis.delete(key) for key in found])
