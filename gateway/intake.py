"""From a platform's verified events to the inbox: what concerns us is kept, the rest is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from config.tenants import Tenant
from gateway.adapters.base import Received
from gateway.inbox.base import Policy
from gateway.messages import InboundMessage, Kind
from gateway.metrics import Metrics

# Kinds that lead to no answer and change nothing that we keep yet.
_SILENT = frozenset((Kind.EDITED, Kind.UNSEND, Kind.UNFOLLOW))


class Intake:
    """The one way into the inbox, for webhooks and polling alike."""

    def __init__(self, inbox: Keeps, metrics: Metrics) -> None:
        self._inbox = inbox
        self._metrics = metrics

    async def keep(self, tenant: Tenant, channel: str, received: Received) -> None:
        """Safe when it returns. Raises InboxUnavailable when it can be kept nowhere."""
        wanted = [
            (message, policy_for(tenant, message)) for message in received.messages if concerns_us(tenant, message)
        ]
        self.count(tenant, channel, received.passed_over)
        if skipped := len(received.messages) - len(wanted):
            self._metrics.passed_over.labels(tenant=tenant.id, channel=channel, kind="not for us").inc(skipped)
        if not wanted:
            return
        kept = await self._inbox.put(wanted)
        self._metrics.received.labels(tenant=tenant.id, channel=channel).inc(sum(kept))
        if repeats := len(kept) - sum(kept):
            self._metrics.repeated.labels(tenant=tenant.id, channel=channel).inc(repeats)

    def count(self, tenant: Tenant, channel: str, passed_over: Mapping[str, int]) -> None:
        """Counts what leads to nothing, by kind."""
        for kind, count in passed_over.items():
            self._metrics.passed_over.labels(tenant=tenant.id, channel=channel, kind=kind).inc(count)


class Keeps(Protocol):
    """An inbox, as far as putting into it goes."""

    async def put(self, messages: Sequence[tuple[InboundMessage, Policy]]) -> list[bool]:
        """Safe when it returns; False for each that was seen before. Raises InboxUnavailable."""
        ...


def concerns_us(tenant: Tenant, message: InboundMessage) -> bool:
    """Whether it is for the bot: a group's talk among itself is not, unless the shop wants all of it."""
    if message.kind in _SILENT:
        return False
    if message.platform == "telegram" and message.extra.get("unblocked"):
        return False  # a /start comes with it, and one welcome is enough
    if not message.group:
        return True
    groups = tenant.behaviour.groups
    return groups != "never" and (groups == "always" or message.mentioned)


def policy_for(tenant: Tenant, message: InboundMessage) -> Policy:
    """Words may be followed by more words; a command, a button or a sticker is answered at once."""
    behaviour = tenant.behaviour
    waits = message.platform != "terminal" and message.kind is Kind.TEXT and not message.text.startswith("/")
    return Policy(
        debounce=behaviour.debounce_ms if waits else 0,
        debounce_max=behaviour.debounce_max_ms if waits else 0,
        max_attempts=behaviour.max_attempts,
    )
