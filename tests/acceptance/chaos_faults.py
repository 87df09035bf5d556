"""What goes wrong in a chaos run: kill -9 and SIGSTOP, at random, then started or resumed again."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.acceptance.chaos_cluster import ClusterNode
from tests.acceptance.processes import Running


@dataclass(frozen=True)
class Target:
    """Something that can be killed and started again."""

    name: str
    running: Callable[[], Running | ClusterNode]
    start: Callable[[], Awaitable[None]]
    again: Callable[[], Awaitable[None]] | None = None  # after a stop: until it is as before


class Faults:
    """One fault at a time for each target, several at once over all."""

    def __init__(self, seed: int, targets: list[Target], *, every: float, longest_stop: float) -> None:
        self._random = random.Random(f"faults {seed}")
        self._targets = targets
        self._every = every
        self._longest_stop = longest_stop
        self._hit: set[str] = set()
        self.done: Counter[str] = Counter()
        self.log: list[tuple[float, float, str]] = []  # from when to when (seconds since 1970), what

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then everything is up again."""
        under_way: set[asyncio.Task[None]] = set()
        while not stop.is_set():
            free = [target for target in self._targets if target.name not in self._hit]
            if free:
                task = asyncio.create_task(self._harm(self._random.choice(free)))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
            try:
                await asyncio.wait_for(stop.wait(), self._random.expovariate(1 / self._every))
            except TimeoutError:
                continue
        for outcome in await asyncio.gather(*under_way, return_exceptions=True):
            if isinstance(outcome, BaseException):
                sys.stderr.write(f"a fault failed: {outcome!r}\n")

    async def _harm(self, target: Target) -> None:
        self._hit.add(target.name)
        running = target.running()
        kind = target.name.rstrip("-123")
        try:
            if running.ended or self._random.random() < 0.5:
                pause, began = self._random.uniform(0.0, 2.0), time.time()
                await running.kill()
                await asyncio.sleep(pause)
                await target.start()
                self.log.append((began, time.time(), f"{target.name} killed at {began:.1f}"))
                self.done[f"{kind} killed"] += 1
            else:
                pause = min(self._longest_stop, 0.5 + self._random.expovariate(1 / 4))
                began = time.time()
                running.pause()
                try:
                    await asyncio.sleep(pause)
                finally:
                    running.resume()
                self.log.append((began, time.time(), f"{target.name} stopped at {began:.1f} for {pause:.1f} s"))
                self.done[f"{kind} stopped"] += 1
                if target.again is not None:
                    await target.again()
            await asyncio.sleep(self._random.uniform(0.0, 3.0))
        finally:
            self._hit.discard(target.name)

    def around(self, at: float, seconds: float = 1.0) -> str:
        """What was under way then, or was so many seconds before or after."""
        return ", ".join(what for began, ended, what in self.log if began - seconds < at < ended + seconds) or "nothing"
