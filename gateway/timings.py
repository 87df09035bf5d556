"""How long turns, the language model's answers, sends and calls to stores took, as histograms of `/metrics`.

Counted in the process and written (a worker's along with its heartbeat) into one hash, from which any HTTP side reads:
a worker has no page of its own, and what it counted outlives it. Labels are tenants, their channels, stores' calls and
kinds of outcome.
"""

from __future__ import annotations

from asyncio import Future, ensure_future
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from inspect import iscoroutinefunction
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway import counting
from gateway.adapters.base import Call, Sender, Sent
from gateway.errors import GatewayFault
from gateway.inbox.base import Claim, Inbox
from gateway.messages import Target
from gateway.spans import NO_SPANS, Spans
from memory import keys
from memory.long_term.json_files import JsonFiles
from processors.llm import ChatModel, ChatRequest, Completion, LLMError

if TYPE_CHECKING:
    from memory.memory_manager import MemoryManager

T = TypeVar("T")

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
    "store_seconds": ("A call to a store, by operation and outcome", ("store", "operation", "result")),
}  # fmt: skip
# Redis, long-term memory and transcripts: what a turn waits for, and its calls by name.
STORE_STEPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
INBOX = ("put", "claim", "beat", "intent", "behind", "finish", "fail", "park", "move")
SESSIONS = ("load", "save")
LONGTERM = (
    *("load", "load_shared", "load_with_shared", "change", "change_shared", "save_events", "rewrite", "compact"),
    "forget",
)
TRANSCRIPTS = ("append", "tail", "everything", "find")


class _Series:
    """What one call took, since it was written last."""

    __slots__ = ("counts", "labels", "name", "steps", "sum")

    def __init__(self, name: str, labels: tuple[str, ...]) -> None:
        self.name, self.labels, self.steps = name, labels, _steps(name)
        self.counts = [0] * (len(self.steps) + 1)
        self.sum = 0.0


class Timings:
    """A process's, counted and where somebody wants to look, traced."""

    def __init__(self, spans: Spans = NO_SPANS) -> None:
        self._spans = spans
        self._series: list[_Series] = []  # of the calls that are made many times a turn
        self._lately: dict[tuple[str, tuple[str, ...]], _Series] = {}  # of others, since they were written last
        self._counts: Counter[tuple[str, tuple[str, ...], int]] = Counter()
        self._sums: defaultdict[tuple[str, tuple[str, ...]], float] = defaultdict(float)

    def took(self, name: str, seconds: float, *labels: str) -> None:
        one = self._lately.get((name, labels))
        if one is None:
            one = self._lately[name, labels] = _Series(name, labels)
        one.counts[bisect_left(one.steps, seconds)] += 1
        one.sum += seconds

    def into(self, pipe: Any) -> Callable[[], None]:
        """Adds what was counted to a pipeline; what comes back counts it again, where that could not be sent."""
        counts, self._counts = self._counts, Counter()
        sums, self._sums = self._sums, defaultdict(float)
        lately, self._lately = self._lately, {}
        for one in (*self._series, *lately.values()):
            if any(one.counts):
                counts.update({(one.name, one.labels, step): n for step, n in enumerate(one.counts) if n})
                sums[one.name, one.labels] += one.sum
                one.counts, one.sum = [0] * len(one.counts), 0.0
        counting.add(
            pipe,
            KEY,
            KEPT_FOR,
            ((orjson.dumps([name, step, *labels]), number) for (name, labels, step), number in counts.items()),
            ((orjson.dumps([name, SUM, *labels]), round(seconds, 4)) for (name, labels), seconds in sums.items()),
        )

        def back() -> None:
            self._counts.update(counts)
            for key, seconds in sums.items():
                self._sums[key] += seconds

        return back

    # -- around what is timed ----------------------------------------------------------------------------------------

    def turns(
        self, handle: Callable[[Claim], Coroutine[Any, Any, None]]
    ) -> Callable[[Claim], Coroutine[Any, Any, None]]:
        if self._spans is not NO_SPANS:
            handle = self._whole(handle)

        async def timed(claim: Claim) -> None:
            first = claim.messages[0]
            self.took("waited_seconds", claim.waited, first.tenant)
            began, result = monotonic(), "failed"
            try:
                await handle(claim)
                result = "done"
            finally:
                tries = "first" if claim.attempts == 1 else "again"
                self.took("turn_seconds", monotonic() - began, first.tenant, first.channel, result, tries)

        return timed

    def _whole(
        self, handle: Callable[[Claim], Coroutine[Any, Any, None]]
    ) -> Callable[[Claim], Coroutine[Any, Any, None]]:
        async def traced(claim: Claim) -> None:
            first, begun = claim.messages[0], [message.trace for message in claim.messages]
            told = {"tries": claim.attempts, "messages": len(claim.messages), "waited": claim.waited}
            with self._spans.whole("turn", begun, tenant=first.tenant, channel=first.channel, **told):
                await handle(claim)

        return traced

    def model(self, model: ChatModel) -> ChatModel:
        return _TimedModel(model, self)

    def senders(self, senders: Mapping[str, Sender]) -> dict[str, Sender]:
        return {name: _timed(sender, self) for name, sender in senders.items()}

    def stores(self, inbox: Inbox, manager: MemoryManager) -> None:
        """From now on their calls are timed."""
        longterm = "files" if isinstance(manager.longterm, JsonFiles) else "postgres"
        self._store("redis", inbox, INBOX)
        self._store("redis", manager.sessions, SESSIONS, "session_")
        self._store(longterm, manager.longterm, LONGTERM)
        self._store(longterm, manager.transcripts, TRANSCRIPTS, "said_")

    def _store(self, store: str, of: object, operations: Iterable[str], prefix: str = "") -> None:
        for name in operations:
            setattr(of, name, self._timed_call(store, prefix + name, getattr(of, name)))

    def _timed_call(self, store: str, operation: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        call = self._traced(f"{store} {operation}", call)
        ok = self._fixed("store_seconds", store, operation, "ok")
        failed = self._fixed("store_seconds", store, operation, "failed")

        def took(began: float, done: Future[Any]) -> None:
            result = failed if done.cancelled() or done.exception() is not None else ok
            seconds = monotonic() - began
            result.counts[bisect_left(STORE_STEPS, seconds)] += 1
            result.sum += seconds

        def begun(*given: Any, **named: Any) -> Future[Any]:
            """Of what begins when it is called, and not when it is awaited."""
            began = monotonic()
            doing = call(*given, **named)
            if not isinstance(doing, Future):
                doing = ensure_future(doing)
            doing.add_done_callback(partial(took, began))
            return doing

        if not iscoroutinefunction(call):
            return begun

        async def timed(*given: Any, **named: Any) -> Any:
            began, result = monotonic(), failed
            try:
                found = await call(*given, **named)
                result = ok
                return found
            finally:
                seconds = monotonic() - began
                result.counts[bisect_left(STORE_STEPS, seconds)] += 1
                result.sum += seconds

        return timed

    def _fixed(self, name: str, *labels: str) -> _Series:
        self._series.append(made := _Series(name, labels))
        return made

    def _traced(self, name: str, call: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        if self._spans is NO_SPANS:
            return call

        async def traced(*given: Any, **named: Any) -> T:
            with self.part(name):
                return await call(*given, **named)

        return traced

    def part(self, name: str) -> AbstractContextManager[None]:
        return self._spans.part(name)


class _TimedModel:
    def __init__(self, model: ChatModel, timings: Timings) -> None:
        self._model = model
        self._timings = timings
        self._complete = timings._traced("model", model.complete)

    async def complete(self, request: ChatRequest) -> Completion:
        began, result = monotonic(), "broken off"
        try:
            completion = await self._complete(request)
            result = "ok"
            return completion
        except LLMError as error:
            result = type(error).__name__
            raise
        finally:
            self._timings.took("llm_seconds", monotonic() - began, result)

    def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        pieces = self._model.stream(request)
        if self._timings._spans is not NO_SPANS:
            pieces = self._traced(pieces)
        return _TimedPieces(pieces, self._timings)

    async def _traced(self, pieces: AsyncIterator[str | Completion]) -> AsyncIterator[str | Completion]:
        with self._timings.part("model"):
            try:
                async for piece in pieces:
                    yield piece
            finally:
                await _closed(pieces)


class _TimedPieces:
    """No generator, for the reason that `openrouter` has."""

    __slots__ = ("_began", "_pieces", "_timings")

    def __init__(self, pieces: AsyncIterator[str | Completion], timings: Timings) -> None:
        self._pieces = pieces
        self._timings = timings
        self._began: float | None = monotonic()  # None: it is counted

    def __aiter__(self) -> _TimedPieces:
        return self

    async def __anext__(self) -> str | Completion:
        try:
            piece = await anext(self._pieces)
        except LLMError as error:
            self._took(type(error).__name__)
            raise
        except BaseException:  # its end too, which comes behind the completion
            self._took("broken off")
            raise
        if piece.__class__ is Completion:
            self._took("ok")
        return piece

    async def aclose(self) -> None:
        self._took("broken off")
        await _closed(self._pieces)

    def _took(self, result: str) -> None:
        if self._began is not None:
            self._timings.took("llm_seconds", monotonic() - self._began, result)
            self._began = None


async def _closed(pieces: AsyncIterator[str | Completion]) -> None:
    close = getattr(pieces, "aclose", None)
    if close is not None:
        await close()


def _timed(sender: Sender, timings: Timings) -> Sender:
    """The same sender, whose calls are timed."""
    send = timings._traced(f"send {sender.platform}", sender.send)

    async def timed(tenant: Tenant, target: Target, call: Call) -> Sent:
        began, result = monotonic(), "broken off"
        try:
            sent = await send(tenant, target, call)
            result = "ok"
            return sent
        except GatewayFault as error:
            result = type(error).__name__
            raise
        finally:
            timings.took("send_seconds", monotonic() - began, sender.platform, result)

    sender.send = timed  # type: ignore[method-assign]
    return sender


def _steps(name: str) -> tuple[float, ...]:
    return STORE_STEPS if name == "store_seconds" else STEPS


class TimingHistograms:
    """Registered with an HTTP side's metrics; reads what all counted, after what this process did (`own`) was added."""

    def __init__(self, registry: CollectorRegistry, client: Redis, own: Timings | None = None) -> None:
        self._redis = client
        self._own = own or Timings()
        self._found: dict[tuple[str, tuple[str, ...]], dict[int, float]] = {}
        registry.register(self)

    async def measure(self) -> None:
        """Where Redis can't tell, what it told last stays."""
        found: dict[tuple[str, tuple[str, ...]], dict[int, float]] = {}
        pipe: Any = self._redis.pipeline(transaction=False)
        uncounted = self._own.into(pipe)
        try:
            counted: Any = (await pipe.hgetall(KEY).execute())[-1]
        except (RedisError, OSError):
            uncounted()
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
                    for at, step in enumerate((*map(str, _steps(name)), "+Inf")):
                        total += steps.get(at, 0.0)
                        buckets.append((step, total))
                    family.add_metric(values, buckets, steps.get(SUM, 0.0))
            yield family
