"""The server's end of a webhook's short way, with an application that answers when it is told to."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.serving import serve
from gateway.short_way import Answer, Headers

REQUEST = b"POST /webhooks/line/x/y HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n"


class App:
    """Takes every webhook at once but those that say `no`; those get their own body back. `ok` is answered at once,
    `un` and `bo` find it broken, before and after it has answered."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()
        self.taken: asyncio.Queue[tuple[bytes, Answer]] = asyncio.Queue()
        self.asked: list[str] = []  # the long way

    def at_once(self, url: bytes, headers: Headers, body: bytes, answer: Answer) -> bool:
        if body == b"no":
            return False
        if body in (b"ok", b"bo"):
            answer(HEAD, body)
        if body in (b"un", b"bo"):
            self.taken.put_nowait((body, answer))
            raise RuntimeError("broken")
        if body == b"ok":
            return True
        self.taken.put_nowait((body, answer))
        return True

    async def whole(self) -> None:
        pass

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.idle = receive.__self__.on_response.__self__.timeout_keep_alive_task  # of the connection
        self.asked.append(scope["path"])
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event["body"], event["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
async def served() -> Any:
    app, stop = App(), asyncio.Event()
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(app, "127.0.0.1", 0, stop, bound.set_result))  # type: ignore[arg-type]
    reader, writer = await asyncio.open_connection("127.0.0.1", await bound)
    async with asyncio.timeout(60):
        yield app, stop, serving, reader, writer
        writer.close()
        stop.set()
        await serving


async def test_a_server_that_ends_answers_first_what_it_has_taken(served: Any) -> None:
    app, stop, serving, reader, writer = served
    writer.write(REQUEST)
    _, answer = await app.taken.get()
    stop.set()
    while not app.closing.is_set():
        await asyncio.sleep(0.01)
    assert not serving.done()
    await asyncio.sleep(0.3)  # the server has told its connections by then
    answer(HEAD, b"ok")
    assert await reader.read() == HEAD + b"connection: close\r\n\r\nok"
    assert await serving == 0


async def test_what_comes_before_the_answer_waits_its_turn_and_who_is_gone_is_not_answered(served: Any) -> None:
    app, _, _, reader, writer = served
    writer.write(REQUEST)
    _, answer = await app.taken.get()
    writer.write(REQUEST[:-2] + b"no" + REQUEST)
    await asyncio.sleep(0.1)
    assert app.asked == []
    answer(HEAD, b"ok")
    whole = HEAD + b"\r\nok"
    assert await reader.readexactly(2 * len(whole)) == whole + whole[:-2] + b"no"
    # Behind others in one piece a webhook takes the long way; by itself the short one again.
    assert await reader.readexactly(len(whole)) == whole[:-2] + b"hi"
    writer.write(REQUEST)
    _, answer = await app.taken.get()
    writer.transport.abort()
    await asyncio.sleep(0.1)
    answer(HEAD, b"ok")


async def test_what_is_under_way_behind_one_that_was_answered_at_once_is_not_taken_for_idle(served: Any) -> None:
    app, _, _, reader, writer = served
    for body in (b"ok", b"no"):
        writer.write(REQUEST[:-2] + body)
        assert await reader.readexactly(len(HEAD) + 4) == HEAD + b"\r\n" + body
    assert (app.asked, app.idle) == (["/webhooks/line/x/y"], None)


async def test_an_application_that_finds_itself_broken_is_asked_on_the_long_way_and_heard_once(served: Any) -> None:
    app, _, _, reader, writer = served
    for body, long in ((b"un", 1), (b"bo", 1)):  # the latter had its answer by then
        writer.write(REQUEST[:-2] + body)
        whole = HEAD + b"\r\n" + body
        assert await reader.readexactly(len(whole)) == whole
        assert len(app.asked) == long
        _, answer = await app.taken.get()
        answer(HEAD, b"??")
    writer.write(REQUEST[:-2] + b"ok")
    assert await reader.readexactly(len(HEAD) + 4) == HEAD + b"\r\nok"


@pytest.mark.parametrize("path", [b"/webhooks/line/x/" + b"ab/" * 15_000, b"/webhooks/line/x/y?z", b"/webhooks/line/x"])
async def test_an_address_that_is_no_webhooks_is_the_servers_to_read(path: bytes, served: Any) -> None:
    app, _, _, reader, writer = served
    writer.write(REQUEST.replace(b"/webhooks/line/x/y", path))
    assert (await reader.readexactly(len(HEAD) + 4)).endswith(b"hi")
    assert (len(app.asked), app.taken.empty()) == (1, True)


@pytest.mark.parametrize(
    "more",
    [
        b"Content-Length: 5\r\n\r\nhello",
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"".join(b"X-%d: 1\r\n" % number for number in range(200)) + b"\r\n",
        b"X: " + b"a" * 20_000 + b"\r\n\r\n",
    ],
    ids=["body", "chunks", "many lines", "long line"],
)
async def test_a_websocket_that_can_t_be_read_is_refused_and_holds_no_connection(more: bytes, served: Any) -> None:
    *_, reader, writer = served
    offers = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    writer.write(b"GET /api/v1/live HTTP/1.1\r\nHost: x\r\n" + offers + key + more)
    async with asyncio.timeout(60):
        assert (await reader.read()).startswith(b"HTTP/1.1 400 ")


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
@pytest.mark.parametrize("piece", [1, 7, 1000], ids=["bytewise", "in pieces", "whole"])
async def test_a_body_is_read_although_its_sender_offers_another_protocol(
    piece: int, protocol: bytes, served: Any
) -> None:
    app, _, _, reader, writer = served
    offering = REQUEST.replace(b"Content", OFFER.replace(b"h2c", protocol) + b"Content")
    chunked = offering.replace(b"Content-Length: 2", b"Transfer-Encoding: chunked")[:-2] + b"2\r\nyo\r\n0\r\n\r\n"
    asked = offering + chunked + REQUEST[:-2] + b"no" + offering
    for at in range(0, len(asked), piece):
        writer.write(asked[at : at + piece])
        await writer.drain()
        await asyncio.sleep(0)
    for body in (b"hi", b"yo", b"no", b"hi"):
        assert await reader.readexactly(len(HEAD) + 4) == HEAD + b"\r\n" + body
    assert len(app.asked) == 4
