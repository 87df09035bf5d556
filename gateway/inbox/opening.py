"""Which inbox belongs to a client."""

from __future__ import annotations

from redis.asyncio import Redis

from config.settings import Settings
from gateway.inbox.redis import RedisInbox


def inbox_of(settings: Settings, client: Redis, worker: str = "", *, lease: float = 10.0) -> RedisInbox:
    if not settings.redis_cluster:
        return RedisInbox(client, worker, lease=lease, copies=settings.redis_copies)
    from gateway.inbox.spread_inbox import SpreadInbox

    return SpreadInbox(client, worker, lease=lease, copies=settings.redis_copies, shards=settings.redis_shards)
