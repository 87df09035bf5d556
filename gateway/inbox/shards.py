"""The shards of the inbox on a cluster: how many there are, in which there may be something, and being woken for it."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from redis.asyncio import Redis

from gateway.errors import InboxUnavailable
from gateway.inbox.base import Depth
from gateway.inbox.listening import BLOCK
from gateway.inbox.redis import INDEX, mapped

log = logging.getLogger(__name__)

EVERY = 2.0  # seconds between looks at a shard of which nothing was heard
TOLD_EVERY = 10.0  # seconds between looks at how many shards there are
GONE_AFTER = 60.0  # seconds since anybody last put into that many
DEAF_FOR = 1.0  # seconds before a shard whose server is away is listened to again
NUMBERS = f"{INDEX}:shards"  # sorted set: a number of shards → when a process with that number was last at work, s


def key_of(shard: int) -> str:
    return f"cc:i:{{{shard}}}"


class Shards:
    """`own`: into how many this process puts. `look_at` tells what there is in one. Raises InboxUnavailable."""

    def __init__(self, client: Redis, own: int, look_at: Callable[[int], Awaitable[Depth]]) -> None:
        self._redis = client
        self._own = own
        self._look_at = look_at
        self._known = own  # as many are looked after
        self._told_at: float | None = None
        self._heard: set[int] = set()  # shards that were woken, or have more than was taken
        self._looked: dict[int, float] = {}
        self._due: dict[int, float] = {}
        self._deaf: dict[int, float] = {}
        self._listening: dict[int, asyncio.Task[Any]] = {}

    def all(self) -> Iterable[int]:
        """Those that are looked after."""
        return range(self._known)

    async def learn(self) -> None:
        """How many shards others put into, and tells them of ours."""
        if self._told_at is not None and now() - self._told_at < TOLD_EVERY:
            return
        wall = time.time()
        with mapped():
            await self._redis.zadd(NUMBERS, {str(self._own): wall})
            found: Any = await self._redis.zrange(NUMBERS, 0, -1, withscores=True)
        numbers = {int(number): at for number, at in found}
        self._known = max(numbers)
        self._told_at = now()
        stale = {number for number, at in numbers.items() if number != self._own and wall - at >= GONE_AFTER}
        used = max(numbers.keys() - stale)
        if stale:
            left = [await self._look_at(shard) for shard in range(used, self._known)]
            if not any(one.ready + one.due + one.leased for one in left):
                with mapped():
                    await self._redis.zrem(NUMBERS, *stale)
                self._known = used

    # -- in which there may be something -------------------------------------------------------------------------------

    def note(self, shard: int, wait: int) -> None:
        """Something is to be looked at there in that many ms, if not never."""
        if wait == 0:
            self._heard.add(shard)
        elif wait > 0:
            at = now() + wait / 1000
            self._due[shard] = min(at, self._due.get(shard, at))

    def asked(self, shard: int) -> None:
        """From now on what is heard of it is new."""
        self._heard.discard(shard)
        self._looked[shard] = now()

    def answered(self, shard: int, wait: int, more: bool) -> None:
        """`wait`: ms until something is due there, below 0 for never. `more`: than was taken."""
        self._due.pop(shard, None)
        if wait >= 0:
            self._due[shard] = now() + wait / 1000
        if more:
            self._heard.add(shard)

    def worth_asking(self, but: set[int]) -> list[int]:
        """Shards of which something was heard, where something is due, or which were not looked at for a while."""
        at = now()
        return [
            shard
            for shard in range(self._known)
            if shard not in but
            and (
                shard in self._heard
                or self._due.get(shard, at + 1) <= at
                or at - self._looked.get(shard, -EVERY) >= EVERY
            )
        ]

    def next_due(self) -> float | None:
        """In how many seconds something is due anywhere; None for never."""
        at = min(self._due.values(), default=None)
        return None if at is None else max(0.0, at - now())

    # -- being woken ---------------------------------------------------------------------------------------------------

    async def wait(self, timeout: float, stop: asyncio.Future[Any] | None = None) -> None:
        """One blocked read a shard: whoever is woken knows where to look."""
        until = now() + timeout * random.uniform(1.0, 1.05)
        stopped = set() if stop is None else {stop}
        while not self.collect() and (left := until - now()) > 0 and not (stop is not None and stop.done()):
            for shard in range(self._known):
                if shard not in self._listening and self._deaf.get(shard, 0.0) <= now():
                    self._listening[shard] = asyncio.create_task(self._woken_in(shard))
            pause = min([left, *(at - now() for at in self._deaf.values() if at > now())])
            if told := {*self._listening.values(), *stopped}:
                await asyncio.wait(told, timeout=max(pause, 0.0), return_when=asyncio.FIRST_COMPLETED)
            else:  # none can be heard just now
                await asyncio.sleep(max(pause, 0.0))

    def collect(self) -> bool:
        """Whether a blocked read has ended with a wake-up."""
        woken = False
        for shard, task in [one for one in self._listening.items() if one[1].done()]:
            del self._listening[shard]
            if task.result():
                self._heard.add(shard)
                woken = True
        return woken

    async def _woken_in(self, shard: int) -> bool:
        try:
            with mapped():
                return await self._redis.blpop([f"{key_of(shard)}:wake"], timeout=BLOCK) is not None
        except InboxUnavailable as error:
            log.debug("shard %d is not heard: %s", shard, error)
            self._deaf[shard] = now() + DEAF_FOR
            return False

    async def close(self) -> None:
        for task in self._listening.values():
            task.cancel()
        if self._listening:
            await asyncio.wait(self._listening.values(), timeout=2)


def now() -> float:
    """Of the running loop's clock, in seconds."""
    return asyncio.get_running_loop().time()
