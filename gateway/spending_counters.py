"""What the language model cost, as an operator's graphs want it, read from Redis when the page is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector
from redis.asyncio import Redis

from config.tenants import Tenants
from gateway.spending import Month, months


class SpendingCounters(Collector):
    """Registered with one process's metrics. The counters begin anew each month, which `rate` and `increase` know."""

    def __init__(
        self, registry: CollectorRegistry, tenants: Tenants, client: Redis, clock: Callable[[], datetime]
    ) -> None:
        self._clock = clock
        self._tenants = tenants
        self._client = client
        self._months: dict[str, Month] = {}
        registry.register(self)

    async def measure(self) -> None:
        self._months = await self.of(tenant.id for tenant in self._tenants.all())

    async def of(self, tenants: Iterable[str]) -> dict[str, Month]:
        """This month of each."""
        return await months(self._client, tenants, self._tenants.get, self._clock)

    def collect(self) -> Iterator[CounterMetricFamily]:
        calls = CounterMetricFamily("chatchat_llm_calls", "Answers of the language model", labels=("tenant", "purpose"))
        tokens = CounterMetricFamily("chatchat_llm_tokens", "Its tokens", labels=("tenant", "purpose", "kind"))
        dollars = CounterMetricFamily(
            "chatchat_llm_cost_usd", "What it cost, as far as the endpoint tells", labels=("tenant", "purpose")
        )
        understood = CounterMetricFamily(
            "chatchat_messages_understood", "Messages that became events, by who classified", labels=("tenant", "way")
        )
        for tenant, month in self._months.items():
            for purpose, count in month.calls.items():
                calls.add_metric((tenant, purpose), count)
            for kind, of in (("prompt", month.prompt_tokens), ("completion", month.completion_tokens)):
                for purpose, count in of.items():
                    tokens.add_metric((tenant, purpose, kind), count)
            for purpose, cost in month.dollars.items():
                dollars.add_metric((tenant, purpose), cost)
            for way, count in month.understood.items():
                understood.add_metric((tenant, way), count)
        yield from (calls, tokens, dollars, understood)
