"""What has to be done beside something that may take long, and nearly never does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

from gateway.soon import Soon


class Meanwhile:
    """`async with Meanwhile(pause, work):` calls `work` beside the block, each time `pause()` seconds after the block
    began or the last call ended. A call under way is waited for at the block's end, and given up with the block. What
    it raises ends the block. Until the first call it costs no task, and with a `soon` that others share no timer."""

    def __init__(
        self, pause: Callable[[], float], work: Callable[[], Coroutine[Any, Any, None]], soon: Soon | None = None
    ) -> None:
        self._soon = soon or Soon()
        self._pause = pause
        self._work = work
        self._working: asyncio.Task[None] | None = None
        self._over = False
        self._failed = False  # the work, which ended the block

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._block = asyncio.current_task(self._loop)
        self._timer = self._soon.call_later(self._pause(), self._begin)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._timer.cancel()
        working = self._working
        if working is None:
            return
        if self._failed and self._block is not None:
            given_up = self._block.uncancel() > 0  # by others as well
        else:
            given_up = kind is not None and issubclass(kind, asyncio.CancelledError)
        if given_up:
            working.cancel()
            return
        await working  # raises what it raised, in the place of what that did to the block

    def _begin(self) -> None:
        self._working = self._loop.create_task(self._work())
        self._working.add_done_callback(self._ended)

    def _ended(self, working: asyncio.Task[None]) -> None:
        if working.cancelled() or self._over:
            return
        if working.exception() is None:
            self._timer = self._soon.call_later(self._pause(), self._begin)
        elif self._block is not None:
            self._failed = True
            self._block.cancel()
