"""What is to be done in a while, and nearly never has to be: one timer of the event loop for all that wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from math import ceil, inf

_EARLY = 0.001  # seconds by which a timer may come before its time


class Waiting:
    __slots__ = ("at", "call")

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at = at
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None  # nothing is held until the timer comes by


class Soon:
    """Within one event loop. Each call comes so many seconds after it was asked for, or up to `together` later, beside
    that of others."""

    def __init__(self, together: float = 0.0) -> None:
        self._together = together
        self._waiting: deque[Waiting] = deque()  # the next first
        self._timer: asyncio.TimerHandle | None = None
        self._comes_at = inf  # the timer

    def call_later(self, seconds: float, what: Callable[[], None]) -> Waiting:
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        if self._together:
            at = ceil(at / self._together) * self._together
        one, waiting = Waiting(at, what), self._waiting
        while waiting and waiting[-1].call is None:
            waiting.pop()
        if not waiting or waiting[-1].at <= at:  # as nearly always: all wait about as long
            waiting.append(one)
        else:
            waiting.insert(next(place for place, other in enumerate(waiting) if other.at > at), one)
        if at < self._comes_at:
            self._set(loop, at)
        return one

    def _set(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._comes_at, self._timer = at, loop.call_at(at, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, now = self._waiting, loop.time() + _EARLY
        self._timer, self._comes_at = None, -inf  # what is asked for now is seen to below
        try:
            while waiting and (waiting[0].call is None or waiting[0].at <= now):
                call = waiting.popleft().call
                if call is not None:
                    call()
        finally:
            self._comes_at = inf
            if waiting:
                self._set(loop, waiting[0].at)
