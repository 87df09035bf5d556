"""LINE bots' own user ids, which their webhooks name as destination. The probe asks LINE; everybody reads them from
Redis. A webhook that names another bot is one whose address was pasted into the wrong channel."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.stopping import stopped
from config.tenants import LineChannel, Tenant, Tenants
from memory import keys

log = logging.getLogger(__name__)

KEPT_FOR = 7 * 86_400  # seconds
EVERY = 30.0  # seconds between looks
PATIENCE = 0.5  # seconds for a look before a webhook is refused


class BotIds:
    def __init__(self, client: Redis, tenants: Tenants) -> None:
        self._redis = client
        self._tenants = tenants
        self._ids: dict[tuple[str, str], str] = {}

    async def note(self, tenant: Tenant, channel: str, bot_id: str) -> None:
        """What LINE says. Raises RedisError."""
        await self._redis.set(_key(tenant.id, channel), bot_id, ex=KEPT_FOR)

    async def wrong(self, tenant: Tenant, channel: str, destination: str) -> str | None:
        """Why a webhook with this destination is not the channel's; None: it is, or nobody knows."""
        if self.matches(tenant, channel, destination):
            return None
        try:
            async with asyncio.timeout(PATIENCE):  # the channel may have got another bot a moment ago
                found: Any = await self._redis.get(_key(tenant.id, channel))
        except (RedisError, OSError, TimeoutError):
            return None
        if found is None or found.decode() == destination:
            return None
        return f"webhooks of {self.owner(destination) or 'another bot'} arrive here: its webhook URL is this channel's"

    def matches(self, tenant: Tenant, channel: str, destination: str) -> bool:
        """Whether it is the channel's, as far as this process knows."""
        return self._ids.get((tenant.id, channel), destination) == destination

    def owner(self, destination: str) -> str | None:
        """Whose bot it is, as `tenant/channel`; None: none of ours."""
        return next((f"{tenant}/{name}" for (tenant, name), known in self._ids.items() if known == destination), None)

    async def watch(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self.look()
            await stopped(stop, EVERY)

    async def look(self) -> None:
        bots = [
            (tenant.id, name)
            for tenant in self._tenants.all()
            for name, channel in tenant.channels.items()
            if isinstance(channel, LineChannel)
        ]
        if not bots:
            return
        try:
            found: Any = await self._redis.mget([_key(*bot) for bot in bots])
        except (RedisError, OSError) as error:
            log.debug("bot ids are not read: %s", type(error).__name__)
            return
        self._ids = {bot: raw.decode() for bot, raw in zip(bots, found, strict=True) if raw}


def _key(tenant: str, channel: str) -> str:
    return keys.shared("botid", tenant, channel)
