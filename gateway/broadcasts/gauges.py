"""How far broadcasts are, read when the metrics are asked for."""

from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry, Gauge

from config.tenants import Tenants
from gateway.broadcasts.store import BroadcastStore, BroadcastsUnavailable


class BroadcastGauges:
    """Registered with one process's metrics."""

    def __init__(self, registry: CollectorRegistry, tenants: Tenants, store: BroadcastStore) -> None:
        self._tenants = tenants
        self._store = store
        text = "Recipients of broadcasts and follow-ups that are not over, by what became of them"
        self._people = Gauge("chatchat_broadcast_people", text, ("tenant", "fate"), registry=registry)

    async def measure(self) -> None:
        self._people.clear()
        for tenant in self._tenants.all():
            try:
                counts = await asyncio.to_thread(self._store.open, tenant.id)
            except BroadcastsUnavailable:
                continue
            for fate, number in counts.items():
                self._people.labels(tenant.id, fate).set(number)
