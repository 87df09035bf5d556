"""How a worker is woken: by a blocked read of a list, which goes out with the claim that may find too little."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from redis.exceptions import RedisError

BLOCK = 4.0  # seconds of a blocked read: below the client's socket timeout
PASSED_ON = 0.05  # seconds after which a word that nobody waited for goes back to the others


class Listening:
    """The read outlives whoever waits for it: due times are slept locally, being exact to the millisecond where a
    server's are to 100, and a read that is given up would cost its connection. A worker that has no place left when it
    is woken passes that on (`pass_on`), as others may have one."""

    def __init__(self, client: Any, key: str, pass_on: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """`client` as `connect` makes it for a plain server."""
        self._redis = client
        self._read = ("BLPOP", key, BLOCK)
        self._pass_on = pass_on
        self._reading: asyncio.Future[list[Any]] | None = None
        self._passing: asyncio.Task[object] | None = None
        self._waited_for = False

    def behind(self, *command: Any) -> Awaitable[list[Any]] | None:
        """Asks a command, for a list of its one answer, and in the same write to be woken from then on. None: nothing
        was asked, as it listens already or has no connection yet."""
        if self._reading is not None and self._reading.done():
            self._heard()  # whoever asks looks
        if self._reading is not None or not self._redis.waiting.is_open:
            return None
        asked: Awaitable[list[Any]] = self._redis.waiting.ask((command,))
        self._begin()
        return asked

    async def wait(self, timeout: float, stop: asyncio.Future[Any] | None = None) -> None:
        """Until it is woken or `stop` is done, at most `timeout` seconds. Raises RedisError, OSError."""
        reading = self._reading or self._begin()
        self._waited_for = True
        try:
            both = {reading} if stop is None else {reading, stop}
            await asyncio.wait(both, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waited_for = False
        if reading.done():
            self._reading = None
            (answer,) = reading.result()
            if isinstance(answer, RedisError):
                raise answer

    async def close(self) -> None:
        for one in (self._reading, self._passing):
            if one is not None and not one.done():
                one.cancel()
                await asyncio.wait({one}, timeout=2)
                self._redis.waiting.end()  # else it would take out what nobody hears of

    def _begin(self) -> asyncio.Future[list[Any]]:
        reading: asyncio.Future[list[Any]] = asyncio.ensure_future(self._redis.waiting.ask((self._read,)))
        self._reading = reading
        reading.add_done_callback(self._woken)
        return reading

    def _woken(self, reading: asyncio.Future[list[Any]]) -> None:
        if not self._waited_for and not reading.cancelled() and not reading.exception() and reading.result()[0]:
            reading.get_loop().call_later(PASSED_ON, self._unheard, reading)

    def _unheard(self, reading: asyncio.Future[list[Any]]) -> None:
        if self._reading is reading:
            self._heard()
            self._passing = asyncio.create_task(self._pass_on())

    def _heard(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None and not reading.cancelled():
            reading.exception()  # what went wrong, the next command says
