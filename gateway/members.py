"""What a LINE group calls its members, so that its history says who spoke. Telegram tells it with each message."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.errors import SendFault
from gateway.messages import InboundMessage
from memory import keys
from memory.person import clean_name

log = logging.getLogger(__name__)

KEPT_FOR = 86_400  # seconds
AGAIN_AFTER = 600  # seconds, when LINE could not tell
PATIENCE = 1.0  # seconds: an answer waits for it

Ask = Callable[
    [Tenant, str, str, str], Awaitable[str | None]
]  # tenant, channel, group or room, LINE's user id: the name


class Members:
    """Best effort: at most one question to LINE a member and day, an answer without the name where it can't be had."""

    def __init__(self, client: Redis, ask: Ask) -> None:
        self._redis = client
        self._ask = ask

    async def named(self, tenant: Tenant, message: InboundMessage) -> InboundMessage:
        """The message with its writer's name."""
        person = message.sender_id
        if message.platform != "line" or not message.group or person is None or message.sender_name:
            return message
        key = _key(tenant.id, person, message.chat_id)
        try:
            kept = await self._redis.get(key)
            if kept is None:
                name, keep = await self._asked(tenant, message, person.partition(":")[2])
                await self._redis.set(key, name, ex=keep)
            else:
                name = kept.decode() if isinstance(kept, bytes) else kept
        except (RedisError, OSError) as error:
            log.debug("a member's name is not looked up: %s", type(error).__name__)
            return message
        return msgspec.structs.replace(message, sender_name=name) if name else message

    async def _asked(self, tenant: Tenant, message: InboundMessage, user: str) -> tuple[str, int]:
        """The name, "" where LINE does not tell, and for how long that holds."""
        try:
            async with asyncio.timeout(PATIENCE):
                name = clean_name(await self._ask(tenant, message.channel, message.chat_id, user))
        except (SendFault, TimeoutError) as error:
            log.debug("a member's name is not known: %s", type(error).__name__)
            return "", AGAIN_AFTER
        return name or "", KEPT_FOR


async def forget_member(client: Redis, tenant: str, user: str) -> int:
    """Removes what groups call a person. Raises RedisError."""
    found = [key async for key in client.scan_iter(match=f"{_key(tenant, user, '')}*", count=1000)]
    return sum([await client.delete(key) for key in found])


def _key(tenant: str, user: str, group: str) -> str:
    return f"{keys.shared('member', tenant, user)}:{keys.escape(group) if group else ''}"
