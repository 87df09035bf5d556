"""Calls that come while one is under way go together in the next one: on a busy server many share a round trip, and
on a quiet one nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MOST = 100  # items of one call


class Together(Generic[T, R]):
    """`call` gets items of several callers, a caller's own side by side, and gives one result for each."""

    def __init__(self, call: Callable[[Sequence[T]], Coroutine[Any, Any, Sequence[R]]]) -> None:
        self._call = call
        self._busy = False
        self._waiting: list[tuple[Sequence[T], Callable[[Sequence[R] | BaseException], object]]] = []
        self._rest: asyncio.Task[Sequence[R]] | None = None

    async def __call__(self, items: Sequence[T]) -> Sequence[R]:
        """The results for `items`, or what `call` raised. A caller who is cancelled leaves the others alone; the call
        for its items may be made all the same."""
        if self._busy:
            result: asyncio.Future[Sequence[R]] = asyncio.get_running_loop().create_future()
            self._waiting.append((items, partial(_into, result)))
            return await result
        self._busy = True
        try:
            return await self._call(items)
        finally:
            self._next()

    def soon(self, items: Sequence[T], told: Callable[[Sequence[R] | BaseException], object]) -> None:
        """For a caller who does not wait: `told` gets the results, or what `call` raised."""
        self._waiting.append((items, told))
        if not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._next)  # what comes in this turn of the loop goes along

    async def close(self) -> None:
        """Waits for the calls that are under way."""
        await asyncio.sleep(0)  # what was asked for soon is under way then
        while self._rest is not None and not self._rest.done():
            await asyncio.wait({self._rest})

    def _next(self) -> None:
        self._busy = bool(self._waiting)
        if not self._busy:
            return
        batch = [self._waiting.pop(0)]
        size = len(batch[0][0])
        while self._waiting and size + len(self._waiting[0][0]) <= MOST:
            batch.append(self._waiting.pop(0))
            size += len(batch[-1][0])
        self._rest = task = asyncio.create_task(self._call([item for items, _ in batch for item in items]))
        task.add_done_callback(partial(self._done, batch))

    def _done(
        self,
        batch: Sequence[tuple[Sequence[T], Callable[[Sequence[R] | BaseException], object]]],
        task: asyncio.Task[Sequence[R]],
    ) -> None:
        outcome = asyncio.CancelledError() if task.cancelled() else task.exception() or task.result()
        self._next()
        at = 0
        for items, told in batch:
            part = outcome if isinstance(outcome, BaseException) else outcome[at : at + len(items)]
            task.get_loop().call_soon(told, part)
            at += len(items)


def _into(result: asyncio.Future[Sequence[R]], outcome: Sequence[R] | BaseException) -> None:
    if result.done():  # its caller was cancelled
        return
    if isinstance(outcome, BaseException):
        result.set_exception(outcome)
    else:
        result.set_result(outcome)
