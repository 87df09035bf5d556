"""One connection to Redis that many commands share: what is asked within one turn of the event loop goes out together,
and answers come back in order. A command costs a third of what it does on a connection that it has to itself.

For short commands alone: a long one would hold up everybody, and one that blocks or changes the connection everybody
else. It is opened by the Redis library, with all that a URL can say, and its errors are the library's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import hiredis
from redis.asyncio import ConnectionPool
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import DataError, InvalidResponse, ReadOnlyError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

SHORT = frozenset(
    (
        *("EVALSHA", "EVAL", "GET", "MGET", "SET", "DEL", "EXISTS", "EXPIRE", "PEXPIRE", "TTL", "PTTL", "INCRBY"),
        *("HGET", "HMGET", "HSET", "HSETNX", "HDEL", "HINCRBY", "HINCRBYFLOAT", "PUBLISH"),
        *("ZADD", "ZREM", "ZCARD", "ZCOUNT", "ZSCORE", "ZREMRANGEBYSCORE", "SADD", "SREM", "SISMEMBER", "LLEN"),
        *("GETDEL", "GETEX", "PERSIST", "HEXISTS", "HLEN", "ZINCRBY", "RPUSH", "LPUSH", "LTRIM", "SCARD", "ZRANK"),
    )
)
TWO_WORDS = "PUBSUB NUMSUB"  # as the library names it: short as well
IDLE = 30.0  # seconds of silence after which the other side is asked first whether it is still there

_NOTHING = object()
_pack: Callable[[tuple[Any, ...]], bytes] = hiredis.pack_command
_PING = hiredis.pack_command(("PING",))
_Asked = tuple["asyncio.Future[list[Any]]", int, float]  # answers it waits for, when it was asked


class SharedConnection:
    """Opened when something is first asked, and anew when it was lost. `pool` tells how; nothing is taken from it."""

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool
        self._wire: _Wire | None = None
        self._opening: asyncio.Task[_Wire] | None = None
        self._in_company: list[asyncio.Future[None]] = []

    def ask(self, commands: Sequence[tuple[Any, ...]]) -> Awaitable[list[Any]]:
        """The answers of commands that nothing of others comes between; an error is an answer, too. What has been sent
        is never sent again here. Asked as soon as this returns, where the connection `is_open`.

        Raises redis' ConnectionError and TimeoutError: as its own connection says it where nothing was sent.
        """
        try:
            packed = _pack(commands[0]) if len(commands) == 1 else b"".join(map(_pack, commands))
        except TypeError as error:
            raise DataError(str(error)) from None
        company = bool(self._in_company)
        if company:
            self._set_out()
        wire = self._wire
        if wire is not None and wire.usable:  # as `_at_hand`, for each command
            loop = asyncio.get_running_loop()
            if wire.loop is loop and loop.time() - wire.heard <= IDLE:
                return wire.ask(packed, len(commands), company)
        return self._ask_opened(packed, len(commands))

    async def in_company(self, seconds: float) -> None:
        """Returns when something is asked, in time to go along in its write, or after so many seconds: for what is in
        no hurry, as each write wakes the other side."""
        loop = asyncio.get_running_loop()
        out: asyncio.Future[None] = loop.create_future()
        self._in_company.append(out)
        timer = loop.call_later(seconds, self._set_out)
        try:
            await out
        finally:
            timer.cancel()

    def _set_out(self) -> None:
        waiting, self._in_company = self._in_company, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    @property
    def is_open(self) -> bool:
        return self._at_hand() is not None

    def _at_hand(self) -> _Wire | None:
        wire = self._wire
        if wire is None or not wire.usable:
            return None
        loop = asyncio.get_running_loop()
        return wire if wire.loop is loop and loop.time() - wire.heard <= IDLE else None

    async def _ask_opened(self, packed: bytes, answers: int) -> list[Any]:
        return await (await self._opened()).ask(packed, answers)

    async def aclose(self) -> None:
        if self._opening is not None and self._opening.get_loop() is asyncio.get_running_loop():
            await asyncio.wait({self._opening})
        self.end()

    def end(self) -> None:
        """Whoever waits for an answer hears that there will be none."""
        if self._wire is not None:
            self._wire.end("the client was closed")

    async def _opened(self) -> _Wire:
        """One opens it for all who wait."""
        opening = self._opening
        if opening is None or opening.done() or opening.get_loop() is not asyncio.get_running_loop():
            opening = self._opening = asyncio.create_task(self._open())
            opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(opening)

    async def _open(self) -> _Wire:
        old = self._wire
        if old is not None and old.usable and old.loop is asyncio.get_running_loop():
            try:
                await old.ask(_PING, 1)
                return old
            except (RedisConnectionError, RedisTimeoutError):
                pass
        connection: Any = self._pool.make_connection()  # type: ignore[no-untyped-call]
        await connection.connect()
        self._wire = _Wire(connection)
        return self._wire


class _Wire(asyncio.Protocol):
    """Takes over what `connection` has opened."""

    def __init__(self, connection: Any) -> None:
        self.loop = asyncio.get_running_loop()
        self.usable = True
        self._ended = False
        self.heard = self.loop.time()
        self._timeout: float | None = connection.socket_timeout
        self._error_of = connection._parser.parse_error
        self._demoted = False  # says an answer of the oldest one asked
        self._replies = hiredis.Reader(protocolError=InvalidResponse, replyError=self._error, notEnoughData=_NOTHING)
        self._asked: deque[_Asked] = deque()
        self._some: list[Any] = []  # answers of the oldest one asked
        self._out: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._why = "Connection closed by server."
        self._connection = connection  # who lets go of it closes it
        self._transport = cast("asyncio.Transport", connection._writer.transport)
        self._transport.set_protocol(self)
        # uvloop writes at the end of a turn of the loop what was written in it, which is one step less; not over TLS.
        plain = self._transport.get_extra_info("ssl_object") is None
        self._gathers = not (plain and type(self._transport).__module__ == "uvloop.loop")

    def ask(self, packed: bytes, answers: int, company: bool = False) -> asyncio.Future[list[Any]]:
        """`company`: others ask in the next turn of the loop, and it goes out with theirs."""
        future: asyncio.Future[list[Any]] = self.loop.create_future()
        if self._ended:
            future.set_exception(RedisConnectionError(self._why))
            return future
        self._asked.append((future, answers, self.loop.time()))
        if company or self._gathers or self._out:
            if not self._out:
                self.loop.call_soon(self._write)
            self._out.append(packed)
        elif not self._transport.is_closing():  # else it hears of that
            self._transport.write(packed)
        if self._timer is None and self._timeout is not None:
            self._timer = self.loop.call_later(self._timeout, self._look)
        return future

    def retire(self) -> None:
        """Nothing new is asked; it ends when what was asked is answered."""
        self.usable = False
        if not self._asked:
            self._transport.close()

    def end(self, why: str) -> None:
        self.usable, self._why = False, why
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self.heard = self.loop.time()
        replies, asked = self._replies, self._asked
        replies.feed(data)
        try:
            while (answer := replies.gets()) is not _NOTHING:
                if answer.__class__ is hiredis.PushNotification:
                    continue
                self._some.append(answer)
                future, answers, _ = asked[0]
                if len(self._some) == answers:
                    asked.popleft()
                    some, self._some = self._some, []
                    if self._demoted:
                        self._demote(future)
                    elif not future.done():  # somebody waits for it still
                        future.set_result(some)
        except (RedisError, IndexError) as error:
            self.end(f"the answer makes no sense: {error}")
        if not self.usable and not self._asked:
            self._transport.close()

    def eof_received(self) -> None:
        self.usable = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable, self._ended = False, True
        self._out.clear()
        self._connection._reader = self._connection._writer = None
        if self._timer is not None:
            self._timer.cancel()
        late = self.loop.time() - (self._timeout or 0.0)
        for future, _, since in self._asked:
            if not future.done():
                overdue = self._timeout is not None and since <= late
                lost = RedisTimeoutError("Timeout reading from socket") if overdue else RedisConnectionError(self._why)
                lost.__cause__ = exc
                future.set_exception(lost)
        self._asked.clear()

    def _demote(self, future: asyncio.Future[list[Any]]) -> None:
        """Another server was promoted behind the same address: only a new connection leads there."""
        self._demoted = False
        self.retire()
        if not future.done():
            future.set_exception(RedisConnectionError("this server is a replica by now"))

    def _error(self, said: str) -> Exception:
        error: Exception = self._error_of(said)
        self._demoted = self._demoted or isinstance(error, ReadOnlyError)
        return error

    def _write(self) -> None:
        out, self._out = self._out, []
        if not out or self._transport.is_closing():  # what was asked hears of that
            return
        self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def _look(self) -> None:
        """Whether the oldest command has waited too long: then nobody is there."""
        self._timer = None
        if self._asked and self._timeout is not None:
            left = self._asked[0][2] + self._timeout - self.loop.time()
            if left <= 0:
                self.end("others waited in vain for an answer")
            else:
                self._timer = self.loop.call_later(left, self._look)
