"""HTTP/1.1 with as little work as possible, so that the measuring side takes little of the shared cores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import cast

import httptools

Answer = Callable[[bytes, bytes], tuple[float, bytes]]  # path, body → seconds to wait, body of the answer


def request(path: str, body: bytes, headers: dict[str, str]) -> bytes:
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body


class _Waiting(asyncio.Protocol):
    """One kept connection of the client's."""

    def __init__(self, idle: list[_Waiting]) -> None:
        self._idle = idle
        self.answer: asyncio.Future[int] | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        self._parser = httptools.HttpResponseParser(self)
        answer, self.answer = self.answer, None
        self._idle.append(self)
        if answer is not None and not answer.done():
            answer.set_result(status)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionError("the connection was closed"))


class Client:
    """Keeps its connections; as many as there are requests at once."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[_Waiting] = []

    async def post(self, path: str, body: bytes, headers: dict[str, str]) -> int:
        """The status. Raises OSError."""
        loop = asyncio.get_running_loop()
        while self._idle and self._idle[-1].transport is None:
            self._idle.pop()
        if self._idle:
            connection = self._idle.pop()
        else:
            _, connection = await loop.create_connection(lambda: _Waiting(self._idle), "127.0.0.1", self._port)
        connection.answer = loop.create_future()
        assert connection.transport is not None
        connection.transport.write(request(path, body, headers))
        return await connection.answer

    def close(self) -> None:
        for connection in self._idle:
            if connection.transport is not None:
                connection.transport.close()
        self._idle.clear()


class _Flooding(asyncio.Protocol):
    """A kept connection that sends the next request when the last one is answered."""

    def __init__(self, requests: Iterator[bytes], statuses: list[int], done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._statuses = statuses
        self._done = done
        self._came = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def begin(self) -> None:
        if (one := next(self._requests, None)) is not None:
            self._transport.write(one)
            return
        self._transport.close()
        if not self._done.done():
            self._done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, end, body = self._came.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if not end or len(body) < int(length):
            return
        self._statuses.append(int(head[9:12]))
        self._came = b""
        self.begin()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(ConnectionError("the connection was closed"))


async def flood(port: int, requests: Sequence[bytes], at_once: int) -> list[int]:
    """The statuses of all `requests`, `at_once` of them in flight. Raises OSError."""
    loop, left, statuses = asyncio.get_running_loop(), iter(requests), list[int]()
    dones = [loop.create_future() for _ in range(at_once)]
    lanes = [
        (await loop.create_connection(partial(_Flooding, left, statuses, done), "127.0.0.1", port))[1] for done in dones
    ]
    for lane in lanes:
        lane.begin()
    await asyncio.gather(*dones)
    return statuses


class _Serving(asyncio.Protocol):
    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._clear()

    def _clear(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._path, self._body, self._whole = b"", b"", False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"expect":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_message_complete(self) -> None:
        self._whole = True

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)
        if not self._whole:
            return
        wait, body = self._answer(self._path, self._body)
        self._clear()
        kind = b"text/event-stream" if body.startswith(b"data:") else b"application/json"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(body))
        if wait:
            asyncio.get_running_loop().call_later(wait, self._write, head + body)
        else:
            self._write(head + body)

    def _write(self, answer: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(answer)


async def listen(answer: Answer) -> tuple[asyncio.Server, int]:
    """A server on a free port of loopback."""
    server = await asyncio.get_running_loop().create_server(lambda: _Serving(answer), "127.0.0.1", 0, backlog=512)
    return server, server.sockets[0].getsockname()[1]
