"""The terminal: answers go into a short-lived list, from which the process at the keyboard takes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
from redis.asyncio import Redis

from config.tenants import Tenant
from gateway.adapters.base import Call, Sent
from gateway.messages import Answer, InboundMessage, Media, QuickReply, Sticker, Target
from gateway.rendering import literal
from memory import keys

KEPT_FOR = 3600  # seconds an answer waits for a terminal that has gone


class Line(msgspec.Struct, frozen=True):
    """One answer on its way to a terminal, Markdown as it was written."""

    text: str
    quick_replies: tuple[QuickReply, ...] = ()


def list_key(tenant: str, chat_id: str) -> str:
    return keys.shared("term", tenant, chat_id)


class TerminalSender:
    platform = "terminal"

    def __init__(self, client: Redis) -> None:
        self._redis = client

    def plan(self, tenant: Tenant, target: Target, answer: Answer, now: float) -> Sequence[Call]:
        shown = [answer.text, *map(_told, answer.media)]
        text = "\n\n".join(part for part in shown if part.strip())
        return [Call("print", msgspec.to_builtins(Line(text, answer.quick_replies)))] if text else []

    async def send(self, tenant: Tenant, target: Target, call: Call) -> Sent:
        key = list_key(tenant.id, target.chat_id)
        pipe = self._redis.pipeline(transaction=True)
        pipe.rpush(key, msgspec.json.encode(call.body))
        pipe.expire(key, KEPT_FOR)
        await pipe.execute()
        return Sent()

    def instead(self, tenant: Tenant, target: Target, call: Call, error: Exception) -> Call | None:
        return None

    def watch(self, tenant: Tenant, target: Target) -> None:
        return None

    async def typing(self, tenant: Tenant, target: Target) -> None:
        return None

    async def acknowledge(self, tenant: Tenant, message: InboundMessage) -> None:
        return None

    async def close(self) -> None:
        return None


def _told(media: Media) -> str:
    """What a terminal shows in place of it, as Markdown."""
    return literal(f"[sticker {media.package}/{media.id}]" if isinstance(media, Sticker) else media.link)


async def answers(client: Redis, tenant: str, chat_id: str) -> AsyncIterator[Line | None]:
    """The answers for one terminal as they come; None for every second without one."""
    decoder: Any = msgspec.json.Decoder(Line)
    key = list_key(tenant, chat_id)
    while True:
        popped = await client.blpop([key], timeout=1)
        yield decoder.decode(popped[1]) if popped else None
