"""What happens now in a tenant, told to whoever looks on: published in Redis by workers, and kept nowhere."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateway.hooks import Exchange
from memory import keys
from processors.models import iso

log = logging.getLogger(__name__)

TOGETHER = 0.03  # seconds in which what happens in one tenant is gathered
WAITING = 1000  # events that wait for Redis; beyond that the oldest are not told
KINDS = ("message", "event", "memory", "takeover")


def channel_key(tenant: str) -> str:
    return keys.shared("live", keys.check_tenant(tenant))


class Live:
    """A hook. Telling takes nothing of a turn's time: it is done behind it, several events at once."""

    def __init__(self, client: Redis) -> None:
        self._redis = client
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[tuple[str, bytes]] = []
        self._telling: asyncio.Task[None] | None = None

    async def before(self, exchange: Exchange) -> Mapping[str, Any]:
        return {}

    async def after(self, exchange: Exchange) -> None:
        ref = exchange.ref
        where = {
            "user_id": ref.user,
            "agent": ref.agent,
            "conversation_id": ref.conversation,
            "channel": exchange.channel,
        }
        for line in exchange.said:
            if line["message"]:
                by = "staff" if (line.get("metadata") or {}).get("by") == "staff" else line["role"]
                told = {"role": by, "message": line["message"], "message_id": line.get("message_id")}
                self.tell(ref.tenant, "message", where | told | {"timestamp": line.get("timestamp")})
        if (event := exchange.event) is not None:
            about = {
                "event_id": event.event_id,
                "event_type": event.event_type.value,
                "importance_score": event.importance_score,
                "timestamp": iso(event.timestamp),
            }
            self.tell(ref.tenant, "event", where | about)
        if exchange.state and (exchange.state == "human") != (exchange.session.state == "human"):
            holder = "human" if exchange.state == "human" else "bot"
            self.tell(ref.tenant, "takeover", where | {"by": holder, "timestamp": iso(exchange.now)})

    def remembered(self, tenant: str, user: str) -> None:
        """What is known of a person ("": of the tenant itself) changed. From any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.tell, tenant, "memory", {"user_id": user})

    def tell(self, tenant: str, kind: str, data: Mapping[str, Any]) -> None:
        self._waiting.append((channel_key(tenant), orjson.dumps({"kind": kind, "data": data})))
        del self._waiting[:-WAITING]
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell())

    def begin(self) -> None:
        """From the loop that tells: only then anything from other threads is told."""
        self._loop = asyncio.get_running_loop()

    async def close(self) -> None:
        self._loop = None
        if self._telling is not None:
            await asyncio.wait({self._telling}, timeout=1.0)

    async def _tell(self) -> None:
        while self._waiting:
            await asyncio.sleep(TOGETHER)
            some, self._waiting = self._waiting, []
            together: dict[str, list[bytes]] = {}
            for channel, event in some:
                together.setdefault(channel, []).append(event)
            try:
                for channel, events in together.items():
                    await self._redis.publish(channel, b"[" + b",".join(events) + b"]")
            except (RedisError, OSError) as error:
                log.debug("nobody is told what happens now: %s", type(error).__name__)
