"""A shop's own people try the bot: one real turn of a test customer's, with what it was told, what it understood and
what it took."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from config.tenants import Tenant
from gateway.chat import Caller, Chat, Talk
from gateway.preview import Part, Previews
from gateway.routes.admin_shop import USER, NoAnswer
from gateway.routes.live import Reader
from gateway.web_log import Entry
from gateway.wire import Wire
from memory.errors import MemoryFault
from memory.keys import MAIN, ConversationRef
from processors.models import band
from processors.prices import Prices

_AFTERWARDS = 3.0  # seconds in which the classification is waited for: it comes right behind the answer


@dataclass(frozen=True, slots=True)
class Tried:
    """`parts`: of what the model is told, with tokens and text; they stand for what it would be told, also where the
    shop's own answer came before it. `dollars` None: nobody knows the model's price."""

    said: str
    answer: str
    model: str | None
    tokens: tuple[int, int]  # of the answer: prompt, completion
    dollars: float | None
    kind: str | None  # the event's type
    band: str | None
    parts: Sequence[tuple[Part, str]]


class Trying:
    def __init__(self, chat: Chat, wire: Wire, previews: Previews, prices: Prices) -> None:
        self._chat = chat
        self._wire = wire
        self._previews = previews
        self._prices = prices

    async def turn(self, tenant: Tenant, owner: str, said: str) -> Tried:
        """Raises NoAnswer, InboxUnavailable, Unheard, MemoryFault."""
        try:
            told = await self._previews.of(tenant, USER, said)
        except MemoryFault:
            told = None
        talk = Talk(Caller(tenant, owner), ConversationRef(tenant.id, USER, conversation=MAIN))
        async with Reader(self._wire, tenant.id, ["event"]) as events:
            entry = await self._answered(talk, said)
            kind, score = await self._understood(events)
        model = entry.model
        price = self._prices.of(model) if model else None
        tokens = entry.tokens.prompt, entry.tokens.completion
        return Tried(
            said=said,
            answer=entry.text,
            model=model,
            tokens=tokens,
            dollars=price.of(*tokens) if price and sum(tokens) else None if model else 0.0,
            kind=kind,
            band=band(score).value if kind else None,
            parts=[(part, told.texts.get(part.name, "")) for part in told.parts if part.sent] if told else [],
        )

    async def _answered(self, talk: Talk, said: str) -> Entry:
        async with self._chat.follower(talk) as follower:
            request = await self._chat.say(talk, said, streamed=False)
            async with aclosing(self._chat.answer(follower, talk, request)) as answer:  # type: ignore[type-var]
                async for shown in answer:
                    if shown is not None and shown.kind == "done" and shown.entry is not None:
                        return shown.entry
                    if shown is not None and shown.kind == "error":
                        raise NoAnswer
        raise NoAnswer

    async def _understood(self, events: Reader) -> tuple[str | None, float]:
        try:
            async with asyncio.timeout(_AFTERWARDS):
                while True:
                    told = await events.next()
                    if told is not None and told["data"].get("user_id") == USER:
                        return str(told["data"]["event_type"]), float(told["data"]["importance_score"])
        except TimeoutError:
            return None, 0.0  # small talk, a command
