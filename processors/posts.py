"""Calls to one address over kept connections, with as little work as one can take: a body out, an answer in, whole or
as it comes.

aiohttp opens the connections (its TLS, its resolver, its limit) and keeps none of them; what it does around each call
costs four times as much as the call itself. What goes through a proxy stays with it.
"""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import Callable, Coroutine, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import httptools
import orjson

if TYPE_CHECKING:
    from aiohttp import ClientSession, ClientTimeout
    from aiohttp.connector import Connection

REDIRECTS = (307, 308)  # by which the same call is to be made elsewhere: nothing was done
KEPT_FOR = 15.0  # seconds that a connection is kept without a call
_EARLY = 0.001  # seconds by which a timer may come before its time
_ENCODING = b"content-encoding"
_UNPACKED = frozenset((b"gzip", b"x-gzip", b"deflate"))
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Posted:
    """An answer, whole."""

    __slots__ = ("_named", "body", "status")

    def __init__(self, status: int, body: bytes, named: list[tuple[bytes, bytes]]) -> None:
        self.status, self.body, self._named = status, body, named

    @property
    def headers(self) -> dict[str, str]:
        """With lower-case names; of several of one name the last."""
        return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._named}

    @property
    def is_json(self) -> bool:
        """As its headers say."""
        for name, value in reversed(self._named):
            if len(name) == 12 and name.lower() == b"content-type":
                return value.startswith(b"application/json")
        return False


class Growing(Posted):
    """An answer of which the head is there. `more` is what came since, b"" at the end; it raises what ended it in the
    middle. To be closed."""

    __slots__ = ("_done", "_ended", "_error", "_line", "_waiting")

    def __init__(self, line: _Line, done: Callable[[_Line], None]) -> None:
        super().__init__(0, b"", [])
        self._line: _Line | None = line  # whose it is until it is closed: then the next call's
        self._done = done
        self._ended = False
        self._error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    @property
    def whole(self) -> bool:
        """All of it came and was given."""
        return self._ended and self._error is None and not self.body

    async def more(self) -> bytes:
        if not (self.body or self._ended):
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        if self.body:
            came, self.body = self.body, b""
            return came
        if self._error is not None:
            raise self._error
        return b""

    def begin(self, status: int, named: list[tuple[bytes, bytes]]) -> None:
        self.status, self._named = status, named

    def grew(self, body: bytes) -> None:
        self.body += body
        self._wake()

    def end(self, error: Exception | None) -> None:
        self._ended, self._error = True, error
        self._wake()

    def close(self) -> None:
        """What has not come by then is not waited for."""
        line, self._line = self._line, None
        if line is not None:
            self._done(line)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class Posts:
    """To be used inside one event loop, that of `session`, for one scheme, host and port. Raises aiohttp's own errors:
    ConnectionTimeoutError and ClientConnectorError for what was certainly not sent. No redirect is followed."""

    def __init__(self, session: ClientSession, url: str) -> None:
        import aiohttp
        from yarl import URL

        assert session.connector is not None
        self._connector = session.connector
        self._loop = asyncio.get_running_loop()
        self._place = aiohttp.ClientRequest("POST", URL(url).with_user(None), loop=self._loop, session=session)
        self._idle: list[_Line] = []  # the one that was used last at the end
        self._sweeping: asyncio.TimerHandle | None = None
        # Lines whose answers are to be there by a time of the loop's. One timer for all of them: a timer of each call's
        # own costs the loop a turn when it is taken back, which nearly each is.
        self._expected: dict[_Line, float] = {}
        self._look_at = inf  # when it comes
        self._looking: asyncio.TimerHandle | None = None

    def get(self, head: bytes, timeout: ClientTimeout) -> Coroutine[Any, Any, Posted]:
        """`head` as `head_of` gives it for a GET."""
        return self.post(head, None, timeout)

    async def post(
        self, head: bytes, body: bytes | None, timeout: ClientTimeout, seconds: float | None = None
    ) -> Posted:
        """`head` as `head_of` gives it; of `timeout` `total`, `connect` and `sock_connect` count. `seconds` in place of
        `total`, where that is another one each time."""
        seconds = timeout.total if seconds is None else seconds
        late = None if seconds is None else self._loop.time() + seconds
        line = self._kept() or await self._opened(timeout, seconds)
        answer = line.asked(
            head + b"\r\n" if body is None else b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)
        )
        if late is not None:
            self._expect(line, late)
        try:
            posted = await answer
        except BaseException:  # a cancelled one too: what comes later would be taken for the next call's answer
            self._expected.pop(line, None)
            line.close()
            raise
        self._done(line)
        return posted

    async def stream(self, head: bytes, body: bytes, timeout: ClientTimeout, seconds: float) -> Growing:
        """The same, whose answer has so many seconds to come."""
        until = self._loop.time() + seconds
        line = self._kept() or await self._opened(timeout, seconds)
        growing = Growing(line, self._done)
        answer = line.asked(b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body), growing)
        self._expect(line, until)
        try:
            await answer
        except BaseException:
            self._expected.pop(line, None)
            line.close()
            raise
        return growing

    def close(self) -> None:
        """Closes what is idle; calls under way end as they may."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        if not self._expected:
            self._look_again(inf)
        for line in self._idle:
            line.close()
        self._idle.clear()

    def _expect(self, line: _Line, by: float) -> None:
        self._expected[line] = by
        if by < self._look_at:
            self._look_again(by)

    def _look_again(self, at: float) -> None:
        if self._looking is not None:
            self._looking.cancel()
        self._look_at, self._looking = at, self._loop.call_at(at, self._look) if at < inf else None

    def _look(self) -> None:
        late = self._loop.time() + _EARLY
        for line in [line for line, by in self._expected.items() if by <= late]:
            del self._expected[line]
            line.late()
        self._look_again(min(self._expected.values(), default=inf))

    def _done(self, line: _Line) -> None:
        self._expected.pop(line, None)
        if not line.reusable or self._connector._waiters:  # for a place, which one that is kept would take
            line.close()
            return
        line.idle_since = self._loop.time()
        self._idle.append(line)
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(KEPT_FOR, self._sweep)

    def _kept(self) -> _Line | None:
        while self._idle:
            line = self._idle.pop()
            if line.reusable and self._loop.time() - line.idle_since <= KEPT_FOR:
                return line
            line.close()
        return None

    async def _opened(self, timeout: ClientTimeout, seconds: float | None) -> _Line:
        from aiohttp import ConnectionTimeoutError

        try:
            async with asyncio.timeout(seconds):
                return _Line(await self._connector.connect(self._place, [], timeout), self._loop)
        except TimeoutError:
            raise ConnectionTimeoutError(f"Connection timeout to host {self._place.host}") from None

    def _sweep(self) -> None:
        self._sweeping = None
        now = self._loop.time()
        old = [line for line in self._idle if not line.reusable or now - line.idle_since >= KEPT_FOR]
        self._idle = [line for line in self._idle if line not in old]
        for line in old:
            line.close()
        if self._idle:
            left = KEPT_FOR - (now - self._idle[0].idle_since)
            self._sweeping = self._loop.call_later(left, self._sweep)


class _Line(asyncio.Protocol):
    """One connection, taken over from aiohttp, with one call at a time."""

    idle_since = 0.0

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        assert connection.transport is not None
        self._connection, self._loop = connection, loop
        self._opener = connection.protocol  # to hear of its end: closing a session waits for that
        self._transport = connection.transport
        self._transport.set_protocol(self)
        self._parser = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(  # as aiohttp reads answers
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._answer: asyncio.Future[Posted] | None = None
        self.reusable = True

    def asked(self, request: bytes, growing: Growing | None = None) -> asyncio.Future[Posted]:
        """Done when the answer is whole, or the head of one that is `growing` is there."""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._headed = False  # the head of the answer, not of a 1xx before it, is there
        self._encoding = b""  # nobody asks for one, but somebody on the way may think of it
        self._unpacks: Any = None
        self._growing = growing
        self.reusable = False  # until its answer is whole
        self._answer = answer = self._loop.create_future()
        self._transport.write(request)
        return answer

    def late(self) -> None:
        self._failed(TimeoutError())

    def close(self) -> None:
        self.reusable = False
        self._connection.close()

    # -- asyncio's ---------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._answer is None:  # nobody asked
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            from aiohttp import ClientPayloadError

            self.reusable = False
            self._failed(ClientPayloadError(f"no answer in HTTP: {type(error).__name__}"))

    def eof_received(self) -> None:
        self.reusable = False

    def connection_lost(self, exc: Exception | None) -> None:
        from aiohttp import ClientOSError, ClientPayloadError, ServerDisconnectedError

        self.reusable = False
        if self._answer is not None:
            named = {name.lower() for name, _ in self._headers}
            if self._headed and exc is None and not named & {b"content-length", b"transfer-encoding"}:
                self._whole()  # its end is the connection's
            elif self._headed:
                self._failed(ClientPayloadError("the answer is not whole"))
            elif exc is not None:
                self._failed(ClientOSError(*exc.args))
            else:
                self._failed(ServerDisconnectedError())
        if self._opener is not None:
            self._opener.connection_lost(exc)
        self._connection.close()

    # -- the parser's ------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._answer is None:  # a second answer to one call
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(name) == 16 and name.lower() == _ENCODING:
            self._encoding = value.strip().lower().removesuffix(b"identity")
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._headed = status >= 200
        if self._headed and self._encoding and self._encoding not in _UNPACKED:
            self._unread(f"the answer is packed in a way nobody asked for: {self._encoding.decode('latin-1')}")
        if self._headed and self._growing is not None and self._answer is not None and not self._answer.done():
            self._growing.begin(status, self._headers)
            self._answer.set_result(self._growing)

    def on_body(self, body: bytes) -> None:
        if self._encoding:
            body = self._unpacked(body)
        if self._growing is not None:
            self._growing.grew(body)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if not self._headed:  # 1xx: the answer is still to come
            self._headers.clear()
            self._encoding = b""
            return
        self.reusable = self._answer is not None and self._parser.should_keep_alive()
        self._whole()

    # ----------------------------------------------------------------------------------------------------------------

    def _unpacked(self, body: bytes) -> bytes:
        if self._answer is None:  # nobody's by now
            return b""
        if self._unpacks is None:
            self._unpacks = zlib.decompressobj(wbits=47)  # gzip or zlib, as it begins
        try:
            return bytes(self._unpacks.decompress(body))
        except zlib.error:
            self._unread("the answer can't be unpacked")
            return b""

    def _unread(self, why: str) -> None:
        from aiohttp import ClientPayloadError

        self.reusable = False
        self._failed(ClientPayloadError(why))
        self._growing = None  # what comes of it still is told to nobody

    def _whole(self) -> None:
        if self._unpacks is not None and (not self._unpacks.eof or self._unpacks.unused_data):
            self._unread("the answer is not whole")
        answer, self._answer = self._answer, None
        growing, self._growing = self._growing, None  # nothing that comes after it is part of it
        if growing is not None:
            growing.end(None)
        elif answer is not None and not answer.done():
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            answer.set_result(Posted(self._parser.get_status_code(), body, self._headers))

    def _failed(self, error: Exception) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            answer.set_exception(error)
        elif self._growing is not None:
            self._growing.end(error)


def encoded(body: Mapping[str, Any]) -> bytes:
    """As JSON."""
    try:
        return orjson.dumps(body)
    except TypeError:  # a lone surrogate, or a number over 64 bits: escaped it gets through
        return json.dumps(body).encode()


def head_of(url: str, headers: Mapping[str, str], verb: str = "POST") -> bytes:
    """The head of a POST but for its length, or of a GET, with the credentials in the URL unless `headers` have others.
    Raises ValueError, which does not quote it, for what fits in no header."""
    from aiohttp import encode_basic_auth
    from yarl import URL

    place = URL(url)
    named = {"Host": place.host_port_subcomponent or "", "Accept": "*/*", "Accept-Encoding": "identity"}
    if place.user is not None:
        named["Authorization"] = encode_basic_auth(place.user, place.password or "")
    named |= headers
    if any(_CONTROL.search(value) for value in named.values()):
        raise ValueError("a header holds what none can hold")
    lines = [f"{verb} {place.raw_path_qs} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "".join(f"{line}\r\n" for line in lines).encode("utf-8")
