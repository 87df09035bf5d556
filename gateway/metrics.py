"""What is counted, under the names an operator expects. Labels are bounded: tenants, their channels, known kinds."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, generate_latest


class Metrics:
    """One process's counters."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.received = self._counter("messages_received", "Messages kept in the inbox", "tenant", "channel")
        self.repeated = self._counter("messages_repeated", "Deliveries seen before", "tenant", "channel")
        self.passed_over = self._counter(
            "events_passed_over", "Events that lead to nothing, by kind", "tenant", "channel", "kind"
        )
        self.webhooks_refused = self._counter("webhooks_refused", "Webhooks not taken", "platform", "status")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"chatchat_{name}", text, labels, registry=self.registry)

    def page(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self.registry)
