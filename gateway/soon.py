"""What is to be done in a while, and nearly never has to be: one timer of the event loop for all that wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from math import ceil

_EARLY = 0.001  # seconds by which a timer may come before its time


class Waiting:
    __slots__ = ("_at", "_call")

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self._at = at
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self._call = None  # nothing is held until the timer comes by


class Soon:
    """Within one event loop. Each call comes `seconds` after it was asked for, or up to `together` later, beside that
    of others."""

    def __init__(self, seconds: float, together: float = 0.0) -> None:
        self._seconds = seconds
        self._together = together
        self._waiting: deque[Waiting] = deque()  # the next first
        self._timer: asyncio.TimerHandle | None = None

    def call(self, what: Callable[[], None]) -> Waiting:
        loop = asyncio.get_running_loop()
        at = loop.time() + self._seconds
        if self._together:
            at = ceil(at / self._together) * self._together
        waiting = Waiting(at, what)
        self._waiting.append(waiting)
        if self._timer is None:
            self._timer = loop.call_at(at, self._look, loop)
        return waiting

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting, now = self._waiting, loop.time() + _EARLY
        try:
            while waiting and (waiting[0]._call is None or waiting[0]._at <= now):
                call = waiting.popleft()._call
                if call is not None:
                    call()
        finally:
            self._timer = loop.call_at(waiting[0]._at, self._look, loop) if waiting else None
