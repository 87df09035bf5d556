"""What is done beside something else in the same task: nearly never, or at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Meanwhile:
    """`async with Meanwhile(pause, work):` calls `work` beside the block, each time `pause()` seconds after the block
    began or the last call ended. A call under way is waited for at the block's end, and given up with the block. What
    it raises ends the block. Until the first call it costs a timer and no task."""

    def __init__(self, pause: Callable[[], float], work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._pause = pause
        self._work = work
        self._working: asyncio.Task[None] | None = None
        self._over = False
        self._failed = False  # the work, which ended the block

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._block = asyncio.current_task(self._loop)
        self._timer = self._loop.call_later(self._pause(), self._begin)

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
            self._timer = self._loop.call_later(self._pause(), self._begin)
        elif self._block is not None:
            self._failed = True
            self._block.cancel()


class Begun(Generic[T]):
    """Work that goes on at once until it waits for something, and from there when it is awaited, once: what its first
    wait is for (a file is written) is done beside whatever comes in between, and it costs no task. What it raises comes
    out where it is awaited. `close` gives it up."""

    __slots__ = ("_awaited", "_ended", "_work")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._awaited: Any = None  # what it waits for
        self._ended: BaseException | None = None
        try:
            self._awaited = work.send(None)
        except Exception as error:  # noqa: BLE001 - a StopIteration bears its result
            self._ended = error

    def __await__(self) -> Generator[Any, None, T]:
        try:
            if self._ended is None:
                if isinstance(self._awaited, asyncio.Future) and self._awaited.done():
                    self._awaited = self._work.send(None)
                while True:
                    try:
                        yield self._awaited
                    except BaseException as error:  # noqa: BLE001 - it is the work's own affair
                        self._awaited = self._work.throw(error)
                    else:
                        self._awaited = self._work.send(None)
            raise self._ended
        except StopIteration as ended:
            result: T = ended.value
            return result

    def close(self) -> None:
        self._work.close()
