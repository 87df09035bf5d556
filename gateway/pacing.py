"""How fast we may speak, over all workers together: one bucket per chat and per bot, asked with the right to send.

Figures are Telegram's FAQ (a message a second in a chat, bursts pass; 20 a minute in a group; 30 a second for a bot)
and LINE's 2000 a second for a channel, each a little below.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from gateway.messages import Target
from memory import keys


class Limit(NamedTuple):
    """One every `interval` ms on average, `burst` at once. Within any time T at most burst + T / interval pass."""

    key: str
    interval: float
    burst: int


def limits_for(target: Target) -> tuple[Limit, ...]:
    """The whole channel's limit first, then the chat's."""
    if target.platform == "telegram":
        return _of_chat(target.tenant, target.channel, target.chat_id, target.group)
    return _of_channel(target.platform, target.tenant, target.channel)


@lru_cache(maxsize=2000)
def _of_chat(tenant: str, channel: str, chat_id: str, group: bool) -> tuple[Limit, ...]:
    where = _key(tenant, channel, chat_id)
    chat = Limit(where, 3200, 2) if group else Limit(where, 1000, 3)
    return *_of_channel("telegram", tenant, channel), chat


@lru_cache(maxsize=2000)
def _of_channel(platform: str, tenant: str, channel: str) -> tuple[Limit, ...]:
    if platform == "telegram":
        return (Limit(_key(tenant, channel), 40, 5),)
    return (Limit(_key(tenant, channel), 0.55, 100),) if platform == "line" else ()


def _key(tenant: str, channel: str, *chat: str) -> str:
    """All of a channel's in one slot of a cluster: they are asked together."""
    return keys.beside(f"{tenant}:{keys.escape(channel)}", "pace", *chat)


def limits_beside(target: Target) -> tuple[Limit, ...]:
    """For what can be left out: the same buckets, full by half, so that an answer right after it need not wait."""
    return tuple(limit._replace(burst=max(1, limit.burst // 2)) for limit in limits_for(target))
