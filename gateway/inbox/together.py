"""Calls that come while one is under way go together in the next one: on a busy server many share a round trip, and
on a quiet one nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

MOST = 100  # items of one call

_Batch = list[tuple[Sequence[T], Callable[[Sequence[R] | BaseException], object]]]


class Together(Generic[T, R]):
    """`call` gets items of several callers, a caller's own side by side, and gives one result for each."""

    def __init__(self, call: Callable[[Sequence[T]], Coroutine[Any, Any, Sequence[R]]]) -> None:
        self._call = call
        self._waiting: _Batch[T, R] = []
        self._untold: list[tuple[_Batch[T, R], Sequence[R] | BaseException]] = []  # what callers are to hear, in order
        self._at_work: asyncio.Task[None] | None = None  # one of a caller who waits, or the resident
        # One for all whom nobody waits for, which rests in between: a task of its own for each call of a quiet server
        # costs a tenth of what a webhook does.
        self._resident: asyncio.Task[None] | None = None
        self._rest: asyncio.Future[None] | None = None
        self._closing: list[asyncio.Future[None]] = []

    async def __call__(self, items: Sequence[T]) -> Sequence[R]:
        """The results for `items`, or what `call` raised. A caller who is cancelled leaves the others alone; the call
        for its items may be made all the same."""
        result: asyncio.Future[Sequence[R]] = asyncio.get_running_loop().create_future()
        self._waiting.append((items, partial(_into, result)))
        if self._at_work is None:
            self._at_work = self._begun(self._go_on(), None)  # in the caller's context: the call is part of its trace
        return await result

    def soon(self, items: Sequence[T], told: Callable[[Sequence[R] | BaseException], object]) -> None:
        """For a caller who does not wait: `told` gets the results, or what `call` raised."""
        self._waiting.append((items, told))
        if self._at_work is not None:
            return
        rest = self._rest  # what is made begins later: what comes in this turn of the loop joins
        if rest is not None and not rest.done() and rest.get_loop() is asyncio.get_running_loop():
            rest.set_result(None)
        else:
            self._resident = self._begun(self._stay(), Context())
        self._at_work = self._resident

    @property
    def busy(self) -> bool:
        """Whether somebody is still to be told."""
        return self._at_work is not None

    def _begun(self, work: Coroutine[Any, Any, None], context: Context | None) -> asyncio.Task[None]:
        task = asyncio.create_task(work, context=context)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """One that was cancelled before it came to its work: who waits for it is told that, and the next one begins."""
        if task is self._at_work:
            batch, self._waiting = self._waiting, []
            self._untold.append((batch, asyncio.CancelledError()))
            self._done()
            self._tell()

    def _done(self) -> None:
        self._at_work = None
        while self._closing:
            if not (one := self._closing.pop()).done():  # who closes may be cancelled
                one.set_result(None)

    async def _stay(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._go_on()
            self._rest = loop.create_future()
            await self._rest

    async def _go_on(self) -> None:
        ended = None
        try:
            while self._waiting:
                batch = self._next()
                items = batch[0][0] if len(batch) == 1 else [item for items, _ in batch for item in items]
                try:
                    outcome: Sequence[R] | BaseException = await self._call(items)
                except BaseException as error:  # noqa: BLE001 - whatever it is, it is theirs who asked
                    outcome = error
                    if isinstance(error, asyncio.CancelledError):
                        ended = error
                self._untold.append((batch, outcome))
                if self._waiting:
                    loop = asyncio.get_running_loop()
                    # Behind the writing of the next call, which is made first.
                    loop.call_soon(loop.call_soon, self._tell)
                else:
                    self._tell()
        finally:
            self._done()
        if ended is not None:  # the process ends: everybody has been told
            raise ended

    async def close(self) -> None:
        """Waits for the calls that were asked for."""
        if self._at_work is not None:
            closing = asyncio.get_running_loop().create_future()
            self._closing.append(closing)
            await closing
        if self._rest is not None:
            self._rest.cancel()

    def _next(self) -> _Batch[T, R]:
        count, size = 1, len(self._waiting[0][0])
        while count < len(self._waiting) and size + len(self._waiting[count][0]) <= MOST:
            size += len(self._waiting[count][0])
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    def _tell(self) -> None:
        untold, self._untold = self._untold, []
        for batch, outcome in untold:
            at = 0
            for items, told in batch:
                try:
                    told(outcome if isinstance(outcome, BaseException) else outcome[at : at + len(items)])
                except Exception as error:  # noqa: BLE001 - it is one caller's own
                    fault = {"message": "a caller could not be told", "exception": error}
                    asyncio.get_running_loop().call_exception_handler(fault)
                at += len(items)


def _into(result: asyncio.Future[Sequence[R]], outcome: Sequence[R] | BaseException) -> None:
    if result.done():  # its caller was cancelled
        return
    if isinstance(outcome, BaseException):
        result.set_exception(outcome)
    else:
        result.set_result(outcome)
