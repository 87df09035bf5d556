"""Telegram bots' user names, by which a group addresses them. Workers ask Telegram; everybody reads them from Redis."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.stopping import stopped
from config.tenants import TelegramChannel, Tenant, Tenants
from gateway.errors import SendFault
from memory import keys

log = logging.getLogger(__name__)

KEPT_FOR = 7 * 86_400  # seconds
EVERY = 30.0  # seconds between looks


class BotNames:
    def __init__(self, client: Redis, tenants: Tenants) -> None:
        self._redis = client
        self._tenants = tenants
        self._names: dict[tuple[str, str], str] = {}

    def of(self, tenant: Tenant, channel: str) -> str | None:
        """The name without `@`; None while it is not known."""
        return self._names.get((tenant.id, channel))

    async def watch(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            bots = self._bots()
            if bots:
                try:
                    names: Any = await self._redis.mget([_key(tenant.id, channel) for tenant, channel in bots])
                    self._names = {
                        (tenant.id, channel): name.decode()
                        for (tenant, channel), name in zip(bots, names, strict=True)
                        if name
                    }
                except (RedisError, OSError) as error:
                    log.debug("bot names are not read: %s", type(error).__name__)
            await stopped(stop, EVERY)

    async def learn(self, ask: Callable[[Tenant, str], Awaitable[str]], stop: asyncio.Event) -> None:
        """`ask(tenant, channel)` asks the platform. Each name once a week."""
        while not stop.is_set():
            for tenant, channel in self._bots():
                if (tenant.id, channel) in self._names:
                    continue
                try:
                    key = _key(tenant.id, channel)
                    if await self._redis.set(f"{key}:asked", 1, nx=True, ex=60) and (
                        name := await ask(tenant, channel)
                    ):
                        await self._redis.set(key, name, ex=KEPT_FOR)
                except SendFault as error:
                    log.warning("a bot's name is not known: %s", error, extra={"tenant": tenant.id, "channel": channel})
                except (RedisError, OSError) as error:
                    log.debug("a bot's name is not kept: %s", type(error).__name__)
            await stopped(stop, EVERY)

    def _bots(self) -> list[tuple[Tenant, str]]:
        return [
            (tenant, name)
            for tenant in self._tenants.all()
            for name, channel in tenant.channels.items()
            if isinstance(channel, TelegramChannel)
        ]


def _key(tenant: str, channel: str) -> str:
    return keys.shared("bot", tenant, channel)
