"""How long one piece of work waits in all for a Redis that does not answer. A server that hangs costs each call the
connection's whole patience: whoever is watched by somebody asks several things one after the other, and can't add that
up. Where no bound was set, as for workers and for what brings messages home, every call keeps its own patience.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from redis.exceptions import TimeoutError as RedisTimeoutError

T = TypeVar("T")

_NO_ANSWER = "Redis gave no answer in the time there was for it"
GLANCE = 0.1  # seconds for each call that comes after the bound: a server that is back is noticed


class Bound:
    """`seconds` of waiting in vain; an answer makes them whole again."""

    __slots__ = ("_seconds", "_vain", "over")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._vain = 0.0  # seconds since the last answer
        self.over = False  # what the work began goes on without it

    async def wait(self, asked: Awaitable[T]) -> T:
        """Raises redis' TimeoutError as the connection itself would, only sooner."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        until = began + max(GLANCE, self._seconds - self._vain)
        try:
            # The shared connection's answers are futures: a timer on one costs half of a timeout around it.
            found = await (_by(until, asked) if isinstance(asked, asyncio.Future) else _within(until, asked))
        except RedisTimeoutError:
            self._vain += loop.time() - began
            raise
        self._vain = 0.0
        return found


async def _by(until: float, asked: asyncio.Future[T]) -> T:
    timer = asked.get_loop().call_at(until, _give_up, asked)
    try:
        return await asked
    finally:
        timer.cancel()


def _give_up(asked: asyncio.Future[Any]) -> None:
    if not asked.done():
        asked.set_exception(RedisTimeoutError(_NO_ANSWER))


async def _within(until: float, asked: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout_at(until) as bound:
            return await asked
    except TimeoutError:
        if not bound.expired():
            raise
        raise RedisTimeoutError(_NO_ANSWER) from None


BOUND: ContextVar[Bound | None] = ContextVar("chat_chat_bound", default=None)  # None, or what `bound` may tell of


def bound() -> Bound | None:
    """What holds for a call that is made now."""
    one = BOUND.get()
    return None if one is None or one.over else one


@contextmanager
def bounded(seconds: float | None) -> Iterator[None]:
    """What is asked of Redis in the body, and in tasks begun there until it ends, waits for no longer than that in
    vain; None: each call as long as its connection does."""
    one = None if seconds is None else Bound(seconds)
    before = BOUND.set(one)
    try:
        yield
    finally:
        if one is not None:
            one.over = True
        BOUND.reset(before)
