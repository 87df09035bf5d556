"""Channels' states and LINE's months as an operator's graphs want them, read from Redis when the page is asked for."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from config.tenants import Tenants
from gateway.channel_states import ChannelStates
from gateway.ledger import Ledger


class ChannelGauges:
    """Registered with one process's metrics."""

    def __init__(self, registry: CollectorRegistry, tenants: Tenants, states: ChannelStates, ledger: Ledger) -> None:
        self._tenants = tenants
        self._states = states
        self._ledger = ledger
        labels = ("tenant", "channel")

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"chatchat_{name}", text, labels, registry=registry)

        self._well = gauge("channel_well", "1 while nothing is known to be wrong with the channel")
        self._free = gauge("line_free_replies", "This month's replies by token, which cost nothing")
        self._paid = gauge("line_paid_pushes", "This month's pushes, by recipient")
        self._used = gauge("line_quota_used", "This month's quota used, as LINE counts")
        self._limit = gauge("line_quota_limit", "This month's quota; absent without a limit")

    async def measure(self) -> None:
        channels = [(tenant.id, name) for tenant in self._tenants.all() for name in tenant.channels]
        troubled = await self._states.of(channels)
        for each in (self._well, self._free, self._paid, self._used, self._limit):
            each.clear()
        for channel in channels:
            self._well.labels(*channel).set(channel not in troubled)
        for channel, month in (await self._ledger.all(self._tenants.all())).items():
            self._free.labels(*channel).set(month.free)
            self._paid.labels(*channel).set(month.paid)
            if month.used is not None:
                self._used.labels(*channel).set(month.used)
            if month.limit is not None:
                self._limit.labels(*channel).set(month.limit)

    async def troubled(self) -> dict[str, int]:
        """How many channels there are, and how many of them have a trouble: no names, as anyone may read it."""
        channels = [(tenant.id, name) for tenant in self._tenants.all() for name in tenant.channels]
        return {"all": len(channels), "troubled": len(await self._states.of(channels))}
