"""How long turns, the language model's answers and sends took, over all workers, as histograms of `/metrics`.

Counted in the worker's process and written along with its heartbeat into one hash, from which any HTTP side reads: a
worker has no page of its own, and what it counted outlives it. Labels are tenants, their channels and kinds of outcome.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any

import orjson
from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.adapters.base import Call, Sender, Sent
from gateway.errors import GatewayFault
from gateway.inbox.base import Claim
from gateway.messages import Target
from memory import keys
from processors.llm import ChatModel, ChatRequest, Completion, LLMError

KEY = keys.shared("timings")
KEPT_FOR = 40 * 86_400  # seconds after the last heartbeat
STEPS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)  # seconds at the most
SUM = -1  # in the place of a step

# Name: what it says, its labels.
FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "turn_seconds": ("From a claim to its end, by outcome and try", ("tenant", "channel", "result", "tries")),
    "waited_seconds": ("How long a message was ready before a worker took it", ("tenant",)),
    "llm_seconds": ("A call to the language model, by outcome", ("result",)),
    "send_seconds": ("A call to a platform, by outcome", ("platform", "result")),
}  # fmt: skip


class Timings:
    """A worker's."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, tuple[str, ...], int]] = Counter()
        self._sums: defaultdict[tuple[str, tuple[str, ...]], float] = defaultdict(float)

    def took(self, name: str, seconds: float, *labels: str) -> None:
        self._counts[name, labels, bisect_left(STEPS, seconds)] += 1
        self._sums[name, labels] += seconds

    def into(self, pipe: Any) -> Callable[[], None]:
        """Adds what was counted to a pipeline; what comes back counts it again, where that could not be sent."""
        counts, self._counts = self._counts, Counter()
        sums, self._sums = self._sums, defaultdict(float)
        for (name, labels, step), number in counts.items():
            pipe.hincrby(KEY, orjson.dumps([name, step, *labels]), number)
        for (name, labels), seconds in sums.items():
            pipe.hincrbyfloat(KEY, orjson.dumps([name, SUM, *labels]), round(seconds, 4))
        if counts:
            pipe.expire(KEY, KEPT_FOR)

        def back() -> None:
            self._counts.update(counts)
            for key, seconds in sums.items():
                self._sums[key] += seconds

        return back

    # -- around what is timed ----------------------------------------------------------------------------------------

    def turns(
        self, handle: Callable[[Claim], Coroutine[Any, Any, None]]
    ) -> Callable[[Claim], Coroutine[Any, Any, None]]:
        async def timed(claim: Claim) -> None:
            first = claim.messages[0]
            self.took("waited_seconds", claim.waited, first.tenant)
            began, result = time.monotonic(), "failed"
            try:
                await handle(claim)
                result = "done"
            finally:
                tries = "first" if claim.attempts == 1 else "again"
                self.took("turn_seconds", time.monotonic() - began, first.tenant, first.channel, result, tries)

        return timed

    def model(self, model: ChatModel) -> ChatModel:
        return _TimedModel(model, self)

    def senders(self, senders: Mapping[str, Sender]) -> dict[str, Sender]:
        return {name: _timed(sender, self) for name, sender in senders.items()}


class _TimedModel:
    def __init__(self, model: ChatModel, timings: Timings) -> None:
        self._model = model
        self._timings = timings

    async def complete(self, request: ChatRequest) -> Completion:
        began, result = time.monotonic(), "broken off"
        try:
            completion = await self._model.complete(request)
            result = "ok"
            return completion
        except LLMError as error:
            result = type(error).__name__
            raise
        finally:
            self._timings.took("llm_seconds", time.monotonic() - began, result)

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        began, result = time.monotonic(), "broken off"
        try:
            async for piece in self._model.stream(request):
                if isinstance(piece, Completion):
                    result = "ok"
                yield piece
        except LLMError as error:
            result = type(error).__name__
            raise
        finally:
            self._timings.took("llm_seconds", time.monotonic() - began, result)


def _timed(sender: Sender, timings: Timings) -> Sender:
    """The same sender, whose calls are timed."""
    send = sender.send

    async def timed(tenant: Tenant, target: Target, call: Call) -> Sent:
        began, result = time.monotonic(), "broken off"
        try:
            sent = await send(tenant, target, call)
            result = "ok"
            return sent
        except GatewayFault as error:
            result = type(error).__name__
            raise
        finally:
            timings.took("send_seconds", time.monotonic() - began, sender.platform, result)

    sender.send = timed  # type: ignore[method-assign]
    return sender


class TimingHistograms:
    """Registered with an HTTP side's metrics; reads what all workers counted."""

    def __init__(self, registry: CollectorRegistry, client: Redis) -> None:
        self._redis = client
        self._found: dict[tuple[str, tuple[str, ...]], dict[int, float]] = {}
        registry.register(self)

    async def measure(self) -> None:
        """Where Redis can't tell, what it told last stays."""
        found: dict[tuple[str, tuple[str, ...]], dict[int, float]] = {}
        try:
            counted: Any = await self._redis.hgetall(KEY)
        except (RedisError, OSError):
            return
        for field, number in counted.items():
            name, step, *labels = orjson.loads(field)
            found.setdefault((name, tuple(labels)), {})[step] = float(number)
        self._found = found

    def collect(self) -> Iterator[HistogramMetricFamily]:
        for name, (text, labels) in FAMILIES.items():
            family = HistogramMetricFamily(f"chatchat_{name}", text, labels=labels)
            for (of, values), steps in self._found.items():
                if of == name and len(values) == len(labels):
                    total, buckets = 0.0, []
                    for at, step in enumerate((*map(str, STEPS), "+Inf")):
                        total += steps.get(at, 0.0)
                        buckets.append((step, total))
                    family.add_metric(values, buckets, steps.get(SUM, 0.0))
            yield family
