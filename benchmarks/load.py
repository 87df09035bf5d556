"""Load of two kinds: a constant arrival rate, whatever the answers do; and as many as can be, with some in flight."""

from __future__ import annotations

import asyncio
import gc
import itertools
import statistics
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks import shop_talk
from benchmarks.http import Client, flood, request
from benchmarks.standin import StandIn

_numbers = itertools.count(1)  # of messages: never twice in a run
_strangers = itertools.count(1_000_000)  # users that nobody has seen before
KNOWN = 128  # users with a history, all of them in the middle of a conversation
# As many have one where the highest rate is sought: a chat of Telegram's takes one message a second.
CROWD = {"line": KNOWN, "telegram": 384}
_PATIENCE = 12.0  # seconds in which no answer comes: who has lost a message is not waited for longer
_RAMP = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Door:
    """Where a bot takes webhooks. `path` has `{tenant}` in it where the bot serves several."""

    platform: str  # line | telegram
    port: int
    path: str
    tenants: int

    def message(self, user: int) -> tuple[int, str, bytes, dict[str, str]]:
        """Number, path, body, headers of the user's next message."""
        number, tenant = next(_numbers), user % self.tenants
        build = shop_talk.line_webhook if self.platform == "line" else shop_talk.telegram_update
        body, headers = build(number, user, tenant)
        return number, self.path.format(tenant=f"shop-{tenant}"), body, headers


@dataclass(slots=True)
class Outcome:
    """Times are milliseconds, sorted."""

    sent: int = 0
    refused: int = 0
    lost: int = 0
    seconds: float = 0.0
    times: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return len(self.times) / self.seconds if self.seconds else 0.0

    def at(self, share: float) -> float:
        return self.times[min(len(self.times) - 1, int(len(self.times) * share))] if self.times else float("nan")


def users(full: bool) -> Callable[[], int]:
    """The next user to write: the known ones in turn, or one new user after the other."""
    known = itertools.cycle(range(KNOWN))
    return (lambda: next(known)) if full else (lambda: next(_strangers))


async def acknowledged(door: Door, count: int, *, at_once: int = 32) -> Outcome:
    """So many webhooks, made before the clock runs, as fast as they are acknowledged, `at_once` of them in flight."""
    outcome = Outcome(sent=count)
    made = [request(*one) for one in _of_strangers(door, count)]
    with _no_collecting():
        begin = time.perf_counter()
        statuses = await flood(door.port, made, at_once)
        outcome.seconds = time.perf_counter() - begin
    outcome.refused = sum(status != 200 for status in statuses)
    return outcome


async def acknowledged_at(door: Door, rate: float, seconds: float) -> Outcome:
    """Webhooks at a constant rate, made before the clock runs; times run from the planned arrival to the
    acknowledgement. The first `_RAMP` seconds, in which connections are made, don't count."""
    client, outcome = Client(door.port), Outcome()
    ready = iter(_of_strangers(door, int(rate * (_RAMP + seconds))))

    async def one(planned: float) -> None:
        outcome.refused += await client.post(*next(ready)) != 200
        if planned >= counts_from:
            outcome.times.append((time.perf_counter() - planned) * 1000)

    with _no_collecting():
        counts_from = time.perf_counter() + _RAMP
        outcome.sent, outcome.seconds = await arrivals(rate, _RAMP + seconds, one)
    outcome.times.sort()
    client.close()
    return outcome


def _of_strangers(door: Door, count: int) -> list[tuple[str, bytes, dict[str, str]]]:
    """Path, body and headers of so many messages, each of somebody else."""
    who = users(False)
    return [door.message(who())[1:] for _ in range(count)]


async def answered_at(
    standin: StandIn, door: Door, rate: float, seconds: float, *, full: bool, who: Callable[[], int] | None = None
) -> Outcome:
    """Messages at a constant rate; times run from the planned arrival to the call at the platform. `who` writes next
    (else: see `users`)."""
    client, who, outcome = Client(door.port), who or users(full), Outcome()
    planned_at: dict[int, float] = {}

    async def one(planned: float) -> None:
        number, path, body, headers = door.message(who())
        planned_at[number] = planned
        outcome.refused += await client.post(path, body, headers) != 200

    outcome.sent, outcome.seconds = await arrivals(rate, seconds, one)
    await _all_answered(planned_at, standin)
    outcome.times = sorted((standin.sent[n] - at) * 1000 for n, at in planned_at.items() if n in standin.sent)
    outcome.lost = len(planned_at) - len(outcome.times)
    client.close()
    return outcome


async def answered(standin: StandIn, door: Door, seconds: float, *, full: bool, at_once: int) -> Outcome:
    """As many whole turns as the bot can do, `at_once` customers waiting for their answer at any time: none writes
    again before they have it, as two messages of one may get one answer. The first `_RAMP` seconds, in which
    connections are made, don't count."""
    assert not full or at_once <= CROWD[door.platform]
    client, stranger, outcome = Client(door.port), users(False), Outcome()
    waiting: dict[int, asyncio.Future[None]] = {}

    def sent(number: int) -> None:
        if (one := waiting.pop(number, None)) is not None and not one.done():
            one.set_result(None)

    standin.on_sent = sent
    begin = time.perf_counter() + _RAMP
    end = begin + seconds

    async def lane(first: int) -> None:
        own = itertools.cycle(range(first, CROWD[door.platform], at_once))
        while time.perf_counter() < end:
            number, path, body, headers = door.message(next(own) if full else stranger())
            answer = waiting[number] = asyncio.get_running_loop().create_future()
            at = time.perf_counter()
            outcome.sent += 1
            outcome.refused += await client.post(path, body, headers) != 200
            try:
                await asyncio.wait_for(answer, _PATIENCE)
            except TimeoutError:
                outcome.lost += 1
                continue
            if begin <= (now := time.perf_counter()) <= end:
                outcome.times.append((now - at) * 1000)

    await asyncio.gather(*map(lane, range(at_once)))
    outcome.seconds = seconds
    outcome.times.sort()
    client.close()
    return outcome


async def arrivals(rate: float, seconds: float, one: Callable[[float], Coroutine[Any, Any, None]]) -> tuple[int, float]:
    """Starts one message after the other at its planned time, late ones at once; how many, and how long it took."""
    tasks: list[asyncio.Task[None]] = []
    begin = time.perf_counter()
    for position in range(int(rate * seconds)):
        planned = begin + position / rate
        if (wait := planned - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(planned)))
    await asyncio.gather(*tasks)
    return len(tasks), time.perf_counter() - begin


async def _all_answered(numbers: Collection[int], standin: StandIn) -> None:
    missing, since = len(numbers), time.monotonic()
    while missing and time.monotonic() - since < _PATIENCE:
        await asyncio.sleep(0.01)
        if (now := sum(number not in standin.sent for number in numbers)) != missing:
            missing, since = now, time.monotonic()


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Who measures does not stand still meanwhile to collect its own garbage."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def median(values: Sequence[float]) -> float:
    return statistics.median(values)
