"""What goes wrong in a chaos run: kill -9 and SIGSTOP, at random, then started or resumed again."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.acceptance.processes import Running


@dataclass(frozen=True)
class Target:
    """Something that can be killed and started again."""

    name: str
    running: Callable[[], Running]
    start: Callable[[], Awaitable[None]]


class Faults:
    """One fault at a time for each target, several at once over all."""

    def __init__(self, seed: int, targets: list[Target], *, every: float, longest_stop: float) -> None:
        self._random = random.Random(f"faults {seed}")
        self._targets = targets
        self._every = every
        self._longest_stop = longest_stop
        self._hit: set[str] = set()
        self.done: Counter[str] = Counter()
        self.log: list[str] = []

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
                pause = self._random.uniform(0.0, 2.0)
                self._note(f"kill {target.name}, started again after {pause:.1f} s")
                await running.kill()
                await asyncio.sleep(pause)
                await target.start()
                self.done[f"{kind} killed"] += 1
            else:
                pause = min(self._longest_stop, 0.5 + self._random.expovariate(1 / 4))
                self._note(f"stop {target.name} for {pause:.1f} s")
                running.pause()
                try:
                    await asyncio.sleep(pause)
                finally:
                    running.resume()
                self.done[f"{kind} stopped"] += 1
            await asyncio.sleep(self._random.uniform(0.0, 3.0))
        finally:
            self._hit.discard(target.name)

    def _note(self, what: str) -> None:
        self.log.append(f"{time.time():.3f} {what}")
