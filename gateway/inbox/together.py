"""Calls that come while one is under way go together in the next one: on a busy server many share a round trip, and
on a quiet one nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MOST = 100  # items of one call


class Together(Generic[T, R]):
    """`call` gets items of several callers, a caller's own side by side, and gives one result for each."""

    def __init__(self, call: Callable[[Sequence[T]], Awaitable[Sequence[R]]]) -> None:
        self._call = call
        self._busy = False
        self._waiting: list[tuple[Sequence[T], asyncio.Future[Sequence[R]]]] = []
        self._rest: asyncio.Task[None] | None = None

    async def __call__(self, items: Sequence[T]) -> Sequence[R]:
        """The results for `items`, or what `call` raised. A caller who is cancelled leaves the others alone; the call
        for its items may be made all the same."""
        if self._busy:
            result: asyncio.Future[Sequence[R]] = asyncio.get_running_loop().create_future()
            self._waiting.append((items, result))
            return await result
        self._busy = True
        try:
            return await self._call(items)
        finally:
            self._busy = bool(self._waiting)
            if self._waiting:
                self._rest = asyncio.create_task(self._work_off())

    async def close(self) -> None:
        """Waits for the calls that are under way."""
        if self._rest is not None:
            await asyncio.wait({self._rest})

    async def _work_off(self) -> None:
        while self._waiting:
            batch = [self._waiting.pop(0)]
            size = len(batch[0][0])
            while self._waiting and size + len(self._waiting[0][0]) <= MOST:
                batch.append(self._waiting.pop(0))
                size += len(batch[-1][0])
            work = self._call([item for items, _ in batch for item in items])
            (outcome,) = await asyncio.gather(work, return_exceptions=True)
            at = 0
            for items, result in batch:
                if not result.done():  # its caller was cancelled
                    if isinstance(outcome, BaseException):
                        result.set_exception(outcome)
                    else:
                        result.set_result(outcome[at : at + len(items)])
                at += len(items)
        self._busy = False
