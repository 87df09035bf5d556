"""A tenant's own classifier trained from the admin page: in a process of its own, one at a time; what came of it."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from multiprocessing.connection import Connection
from typing import Literal

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.settings import Settings
from memory import keys
from processors.models import iso

log = logging.getLogger(__name__)

_LONGEST = 600  # seconds
_KEPT_FOR = 30 * 86400  # seconds: what came of it

State = Literal["running", "done", "same", "failed"]


@dataclass(frozen=True, slots=True)
class Trained:
    """`same`: nothing better was learned, and nothing changed. The counts are of corrections: how many there are, and
    how many were understood as corrected, before and after."""

    state: State
    at: str
    who: str
    corrections: int = 0
    before: int = 0
    after: int = 0


class Training:
    """Over all processes one at a time, which Redis keeps. Raises RedisError."""

    def __init__(self, settings: Settings, client: Redis, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._redis = client
        self._clock = clock
        self._running: set[asyncio.Task[None]] = set()

    async def state(self, tenant: str) -> Trained | None:
        raw = await self._redis.get(_key(tenant))
        return None if raw is None else Trained(**orjson.loads(raw))

    async def begin(self, tenant: str, who: str) -> bool:
        """False where one is being trained already, this or another tenant's."""
        if not await self._redis.set(_LOCK, tenant, nx=True, ex=_LONGEST):
            return False
        await self._keep(tenant, Trained("running", iso(self._clock()), who), _LONGEST)
        task = asyncio.create_task(self._train(tenant, who))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return True

    async def _train(self, tenant: str, who: str) -> None:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        spawned = multiprocessing.get_context("spawn").Process(
            target=_work, args=(theirs, self._settings, tenant), name="training", daemon=True
        )
        answered, loop = asyncio.Event(), asyncio.get_running_loop()
        outcome: tuple[State, int, int, int] = ("failed", 0, 0, 0)
        try:
            await asyncio.to_thread(spawned.start)
            theirs.close()
            loop.add_reader(ours.fileno(), answered.set)
            async with asyncio.timeout(_LONGEST):
                await answered.wait()  # also where the process ended without a word
            outcome = ours.recv()
        except (OSError, EOFError, TimeoutError) as error:
            log.error("a classifier was not trained: %s", type(error).__name__, extra={"tenant": tenant})
        finally:
            if spawned.pid is not None:
                spawned.terminate()
            loop.remove_reader(ours.fileno())
            ours.close()
        try:
            await self._keep(tenant, Trained(outcome[0], iso(self._clock()), who, *outcome[1:]), _KEPT_FOR)
            await self._redis.delete(_LOCK)
        except (RedisError, OSError) as error:
            log.warning("what came of a training is not noted: %s", type(error).__name__, extra={"tenant": tenant})

    async def _keep(self, tenant: str, what: Trained, seconds: int) -> None:
        await self._redis.set(_key(tenant), orjson.dumps(asdict(what)), ex=seconds)


def _key(tenant: str) -> str:
    return keys.shared("training", tenant)


_LOCK = keys.shared("training")


def _work(answer: Connection, settings: Settings, tenant: str) -> None:
    """In the process of its own, which leaves the others their turn."""
    os.nice(10)
    from gateway.understanding_commands import learn
    from processors.local.own import NothingLearned

    try:
        _, learned = learn(settings, tenant)
    except NothingLearned:
        answer.send(("same", 0, 0, 0))
    else:
        answer.send(("done", learned.corrections, learned.before, learned.after))
