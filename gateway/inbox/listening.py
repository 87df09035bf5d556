"""How a worker is woken: by a blocked read of a list, with its claim behind it in the same write. The server goes on to
the claim when the read ends, so a message that comes is claimed in the step that brought it, and both answers are one
read."""

from __future__ import annotations

import asyncio
from typing import Any

from redis.exceptions import RedisError

BLOCK = 4.0  # seconds of a blocked read at the most: below the client's socket timeout
PATIENCE = 1.0  # seconds that who is to stop waits for the answer to what the server may have done already
_STALE = 5000  # ms after which a word for one worker that it did not hear is gone


class Listening:
    """Due times are slept locally, being exact to the millisecond where a server's are to 100: a word on a list of this
    worker's own (`own`) ends the read then, and when it is to stop."""

    def __init__(self, client: Any, key: str, own: str) -> None:
        """`client` as `connect` makes it for a plain server."""
        self._redis = client
        self._key, self._own = key, own
        self._told: asyncio.Future[list[Any]] | None = None
        self._giving_up: asyncio.TimerHandle | None = None

    async def once_woken(
        self, command: tuple[Any, ...], within: float, due: float | None, stop: asyncio.Future[Any] | None
    ) -> Any:
        """The command's answer, which may be an error. The server carries it out when a word comes, when `due` seconds
        are over or `stop` is done, or after `within` seconds. Raises RedisError, OSError: it may have been carried out
        and nobody heard of it."""
        read = ("BLPOP", self._key, self._own, min(within, BLOCK))
        asked = self._redis.waiting.ask((read, command))
        timer = None
        if due is not None and due < within:
            timer = asyncio.get_running_loop().call_later(due, self._end_read)
        if stop is not None:
            stop.add_done_callback(self._stop)
        try:
            word, answer = await asked
        except asyncio.CancelledError:
            self._redis.waiting.end()  # else it would take out what nobody hears of
            raise
        finally:
            if timer is not None:
                timer.cancel()
            if stop is not None:
                stop.remove_done_callback(self._stop)
            if self._giving_up is not None:
                self._giving_up.cancel()
                self._giving_up = None
        if isinstance(word, RedisError):
            raise word
        return answer

    def _stop(self, stop: asyncio.Future[Any]) -> None:
        self._end_read()
        self._giving_up = stop.get_loop().call_later(PATIENCE, self._redis.waiting.end)

    def _end_read(self) -> None:
        asked = self._redis.shared.ask((("LPUSH", self._own, 1), ("PEXPIRE", self._own, _STALE)))
        self._told = asyncio.ensure_future(asked)
        self._told.add_done_callback(lambda told: told.cancelled() or told.exception())  # then the read ends by itself
