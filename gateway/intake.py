"""From a platform's verified events to the inbox: what concerns us is kept, the rest is counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache
from typing import Protocol

import msgspec

from config.tenants import Tenant
from gateway.adapters.base import Received
from gateway.blocked import Blocked
from gateway.inbox.base import Policy
from gateway.kinds import KINDS, NOT_FOR_US, Fate
from gateway.messages import InboundMessage, Kind
from gateway.metrics import Metrics
from gateway.spans import NO_SPANS, Spans

Wanted = Sequence[tuple[InboundMessage, Policy]]

ALBUM_WAITS = 1000  # ms for the next part of an album: nobody says how many there are


class Intake:
    """The one way into the inbox, for webhooks and polling alike. `blocked` are those whom staff blocked; `arrived`
    hears of each message that is new."""

    def __init__(
        self,
        inbox: Keeps,
        metrics: Metrics,
        blocked: Blocked | None = None,
        arrived: Callable[[Tenant, InboundMessage], None] = lambda tenant, message: None,
        spans: Spans = NO_SPANS,
    ) -> None:
        self._inbox = inbox
        self._metrics = metrics
        self._blocked = blocked
        self._arrived = arrived
        self._spans = spans
        self._received = cache(metrics.received.labels)  # looking one up costs more than counting

    async def keep(self, tenant: Tenant, channel: str, received: Received) -> None:
        """Safe when it returns. Raises InboxUnavailable when it can be kept nowhere."""
        wanted = self.wanted(tenant, received)
        self.passed_over(tenant, channel, received, wanted)
        if not wanted:
            return
        with self._spans.whole("receive", tenant=tenant.id, channel=channel, messages=len(wanted)):
            if here := self._spans.here():
                wanted = [(msgspec.structs.replace(message, trace=here), policy) for message, policy in wanted]
            kept = await self._inbox.put(wanted)
        self.kept(tenant, channel, wanted, kept)

    def wanted(self, tenant: Tenant, received: Received) -> Wanted:
        """What of it goes into the inbox."""
        blocked = self._blocked.of(tenant.id) if self._blocked and received.messages else ()
        return [
            (message, policy_for(tenant, message))
            for message in received.messages
            if concerns_us(tenant, message, blocked)
        ]

    def passed_over(self, tenant: Tenant, channel: str, received: Received, wanted: Wanted) -> None:
        """Counts the rest."""
        if received.passed_over:
            self.count(tenant, channel, received.passed_over)
        if skipped := len(received.messages) - len(wanted):
            self._metrics.passed_over.labels(tenant=tenant.id, channel=channel, kind=NOT_FOR_US).inc(skipped)

    def kept(self, tenant: Tenant, channel: str, wanted: Wanted, kept: Sequence[bool]) -> None:
        """They are in the inbox, or were seen before."""
        for (message, _), new in zip(wanted, kept, strict=True):
            if new:
                self._arrived(tenant, message)
        count = sum(kept)
        self._received(tenant.id, channel).inc(count)
        if repeats := len(kept) - count:
            self._metrics.repeated.labels(tenant=tenant.id, channel=channel).inc(repeats)

    def hears(self, tenant: Tenant, message: InboundMessage) -> bool:
        """Whether it would go into the inbox."""
        return concerns_us(tenant, message, self._blocked.of(tenant.id) if self._blocked else ())

    def count(self, tenant: Tenant, channel: str, passed_over: Mapping[str, int]) -> None:
        """Counts what leads to nothing, by kind."""
        for kind, count in passed_over.items():
            self._metrics.passed_over.labels(tenant=tenant.id, channel=channel, kind=kind).inc(count)


class Keeps(Protocol):
    """An inbox, as far as putting into it goes."""

    async def put(self, messages: Sequence[tuple[InboundMessage, Policy]]) -> list[bool]:
        """Safe when it returns; False for each that was seen before. Raises InboxUnavailable."""
        ...


def concerns_us(tenant: Tenant, message: InboundMessage, blocked: Collection[str] = ()) -> bool:
    """Whether it is for the bot: a group's talk among itself is not, unless the shop wants all of it, nor is what
    blocked people write, whom the tenant's file or its staff name."""
    if (
        (blocked or tenant.blocked_users)
        and not {message.user_id, message.sender_id}.isdisjoint((*tenant.blocked_users, *blocked))
        and not _amends(message)
    ):
        return False
    if tenant.staff and tenant.is_staff_chat(message.channel, message.chat_id):
        return "quoted_message_id" in message.extra  # staff talk among themselves; a reply may be for a customer
    if not message.group:
        return True
    groups = tenant.behaviour.groups
    if groups == "never":
        return False
    # What was changed or taken back may be kept; whether a quote is of the bot's own words, the history tells.
    quotes = message.platform == "line" and "quoted_message_id" in message.extra
    return groups == "always" or message.mentioned or _amends(message) or quotes or message.kind is Kind.POSTBACK


def _amends(message: InboundMessage) -> bool:
    return KINDS[message.kind].fate is Fate.REMEMBERED


def policy_for(tenant: Tenant, message: InboundMessage) -> Policy:
    """Words, pictures and what changes them may be followed by more; a command, a button or a sticker is answered at
    once. An album's parts wait for each other."""
    behaviour = tenant.behaviour
    waits = message.platform != "terminal" and not message.alone
    debounce = behaviour.debounce_ms if waits else 0
    longest = behaviour.debounce_max_ms if waits else 0
    if "album" in message.extra and waits:
        debounce = max(debounce, ALBUM_WAITS)
        longest = max(longest, 3 * ALBUM_WAITS)
    return _policy(debounce, longest, behaviour.max_attempts)


_policy = lru_cache(1024)(Policy)
