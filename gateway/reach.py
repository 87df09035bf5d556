"""Who can't be reached any more: people who blocked the bot, groups that threw it out."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from memory import keys

log = logging.getLogger(__name__)

KEPT_FOR = 90 * 86400  # seconds


class Reach:
    """Best effort: where Redis can't tell, everybody can be reached. Times in seconds since 1970."""

    def __init__(self, client: Redis) -> None:
        self._redis = client

    async def left(self, tenant: str, channel: str, chat_id: str, at: float) -> None:
        """Nothing can be sent there from now on."""
        try:
            await self._redis.set(_key(tenant, channel, chat_id), at, ex=KEPT_FOR)
        except (RedisError, OSError) as error:
            log.warning("not noted that a chat is gone: %s", type(error).__name__, extra={"tenant": tenant})

    async def back(self, tenant: str, channel: str, chat_id: str) -> None:
        try:
            await self._redis.delete(_key(tenant, channel, chat_id))
        except (RedisError, OSError) as error:
            log.warning("not noted that a chat is back: %s", type(error).__name__, extra={"tenant": tenant})

    async def gone(self, tenant: str, channel: str, chat_id: str, heard_at: float) -> bool:
        """Whether they left after what we heard of them last: somebody who wrote since then is there."""
        try:
            left = await self._redis.get(_key(tenant, channel, chat_id))
        except (RedisError, OSError):
            return False
        return left is not None and float(left) >= heard_at

    async def gone_of(self, tenant: str, chats: Sequence[tuple[str, str, float]]) -> list[bool]:
        """`gone` of many, each a channel, a chat and when it was heard of last."""
        try:
            marks: Any = await self._redis.mget([_key(tenant, channel, chat) for channel, chat, _ in chats])
        except (RedisError, OSError):
            return [False] * len(chats)
        return [left is not None and float(left) >= at for left, (_, _, at) in zip(marks, chats, strict=True)]

    async def forget(self, tenant: str, ids: Collection[str]) -> int:
        """Removes that these people left, over whatever channel; how many marks that were. Raises RedisError."""
        chats = {f":{keys.escape(own)}" for one in ids if (own := one.partition(":")[2].removeprefix("group:"))}
        found = [
            key
            async for key in self._redis.scan_iter(match=f"{keys.shared('gone', tenant)}:*", count=1000)
            if any(key.decode().endswith(chat) for chat in chats)
        ]
        for key in found:
            await self._redis.delete(key)
        return len(found)


def _key(tenant: str, channel: str, chat_id: str) -> str:
    return keys.shared("gone", tenant, channel, chat_id)
