"""The commands that a Telegram bot offers in its menu, kept as the tenant's file has them."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.stopping import stopped
from config.tenants import TelegramChannel, Tenant, Tenants
from gateway.command_words import DOES, listed
from gateway.errors import SendFault
from gateway.texts import Tongue
from memory import keys

log = logging.getLogger(__name__)

KEPT_FOR = 30 * 86_400  # seconds; then it is told again, in case somebody changed the menu elsewhere
EVERY = 5.0  # seconds between looks at the tenants' files
TRIED_FOR = 60  # seconds in which no other worker tries

Call = Callable[[Tenant, str, str, dict[str, Any]], Awaitable[Any]]  # tenant, channel, method, arguments


def menus(tenant: Tenant) -> list[dict[str, Any]]:
    """The arguments of setMyCommands: for apps in Thai, in English, and for all others in the shop's language."""
    others: Tongue = "th" if tenant.language == "th" else "en"
    return [
        _menu(tenant, others),
        {**_menu(tenant, "th"), "language_code": "th"},
        {**_menu(tenant, "en"), "language_code": "en"},
    ]


def _menu(tenant: Tenant, tongue: Tongue) -> dict[str, Any]:
    shown = [(word, DOES[name][tongue]) for word, name in listed(tenant)]
    commands = [{"command": word, "description": does[:1].upper() + does[1:]} for word, does in shown]
    return {"commands": commands, "scope": {"type": "default"}}


class CommandMenus:
    """Tells each bot once after its tenant's file came or changed, whichever worker sees it first."""

    def __init__(self, client: Redis, tenants: Tenants, call: Call) -> None:
        self._redis = client
        self._tenants = tenants
        self._call = call
        self._done: dict[tuple[str, str], Tenant] = {}

    async def watch(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            for tenant in self._tenants.all():
                for name, channel in tenant.channels.items():
                    if isinstance(channel, TelegramChannel) and self._done.get((tenant.id, name)) is not tenant:
                        await self._keep(tenant, name, channel)
            await stopped(stop, EVERY)

    async def _keep(self, tenant: Tenant, name: str, channel: TelegramChannel) -> None:
        wanted = menus(tenant)
        # Another bot in the channel's place has a menu of its own.
        told = orjson.dumps([wanted, channel.bot_token.get_secret_value()])
        mark = hashlib.sha256(told).hexdigest()
        key = keys.shared("menu", tenant.id, name)
        try:
            if await self._redis.get(key) != mark.encode():
                if not await self._redis.set(f"{key}:tried", 1, nx=True, ex=TRIED_FOR):
                    return  # another worker is at it, or it failed a moment ago
                for menu in wanted:
                    await self._call(tenant, name, "setMyCommands", menu)
                await self._redis.set(key, mark, ex=KEPT_FOR)
                await self._redis.delete(f"{key}:tried")
        except SendFault as error:
            log.warning("a bot's menu is not set: %s", error, extra={"tenant": tenant.id, "channel": name})
            return
        except (RedisError, OSError) as error:
            log.debug("a bot's menu is not kept: %s", type(error).__name__)
            return
        self._done[tenant.id, name] = tenant
