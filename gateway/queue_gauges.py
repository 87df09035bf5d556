"""What waits, who works and whether the tenants' files are well, read when the page is asked for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import TenantStatus
from gateway.errors import InboxUnavailable
from gateway.inbox.base import Inbox
from memory import keys

ALIVE = keys.shared("workers")
_SHARD = ("shard", "state")
ALIVE_FOR = 30.0  # seconds since its last heartbeat


class QueueGauges:
    """Registered with one process's metrics."""

    def __init__(
        self, registry: CollectorRegistry, inbox: Inbox, client: Redis, statuses: Callable[[], list[TenantStatus]]
    ) -> None:
        self._inbox = inbox
        self._redis = client
        self._statuses = statuses

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"chatchat_{name}", text, labels, registry=registry)

        self._up = gauge("redis_up", "1 while Redis answers; else the other figures from there are the last ones")
        self._waiting = gauge("conversations", "Conversations that wait or are in hand, by state", "state")
        self._oldest = gauge("oldest_ready_seconds", "How long the oldest ready conversation has been waiting")
        self._shard_waiting = gauge(
            "shard_conversations", "As conversations, by the shard that they are marked in", *_SHARD
        )
        self._shard_oldest = gauge("shard_oldest_ready_seconds", "As oldest_ready_seconds, by shard", "shard")
        self._dead = gauge("dead_letters", "Messages that could not be handled")
        self._workers = gauge("workers", "Workers that gave a sign of life lately")
        self._files = gauge("tenant_files", "Tenants' files, by state", "state")

    async def measure(self) -> None:
        self._files.clear()
        for found, number in Counter(row.state for row in self._statuses()).items():
            self._files.labels(found).set(number)
        try:
            depth = await self._inbox.depth()
            alive = await self._redis.zcount(ALIVE, time.time() - ALIVE_FOR, "+inf")
        except (InboxUnavailable, RedisError, OSError):
            self._up.set(0)
            return
        self._up.set(1)
        for state, number in (("ready", depth.ready), ("due", depth.due), ("leased", depth.leased)):
            self._waiting.labels(state).set(number)
        self._oldest.set(depth.oldest)
        self._shard_waiting.clear()  # there may be fewer of them now
        self._shard_oldest.clear()
        for shard, part in enumerate(depth.parts or (depth,)):
            for state, number in (("ready", part.ready), ("due", part.due), ("leased", part.leased)):
                self._shard_waiting.labels(str(shard), state).set(number)
            self._shard_oldest.labels(str(shard)).set(part.oldest)
        self._dead.set(depth.dead)
        self._workers.set(alive)
