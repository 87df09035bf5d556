"""POSTs over kept connections, against servers that answer as servers may, and as they should not."""

from __future__ import annotations

import asyncio
import gzip
import inspect
import json
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from processors import posts
from processors.posts import Posts, encoded, head_of
from tests.tls import Certificate, certificate

PATIENCE = aiohttp.ClientTimeout(total=20, connect=10)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n5;x=y\r\n, two\r\n0\r\nX-Late: 1\r\n\r\n"

Script = Callable[["Place", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def on_both_loops(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The worker's loop is uvloop's, where that is installed."""

    @wraps(test)
    def run(loop: Callable[[], asyncio.AbstractEventLoop], **given: Any) -> None:
        async def whole() -> None:
            async with asyncio.timeout(60):
                await test(**given)

        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(whole())

    own = inspect.signature(test)
    added = inspect.Parameter("loop", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = own.replace(parameters=[added, *own.parameters.values()], return_annotation=None)
    del run.__wrapped__  # type: ignore[attr-defined]
    loops = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    shown: Callable[..., None] = pytest.mark.parametrize("loop", loops.values(), ids=loops.keys())(run)
    return shown


@dataclass
class Place:
    """`asked` holds head and body of each request, `connections` how many were opened."""

    port: int = 0
    connections: int = 0
    ended: int = 0
    asked: list[tuple[bytes, bytes]] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def hears(self, reader: asyncio.StreamReader) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        self.asked.append((head, await reader.readexactly(length)))


@asynccontextmanager
async def place(script: Script, tls: Certificate | None = None) -> AsyncIterator[Place]:
    here = Place()
    context = None
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.chain, tls.key)

    async def enter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        here.connections += 1
        try:
            await script(here, reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            here.ended += 1
            writer.close()

    server = await asyncio.start_server(enter, "127.0.0.1", 0, ssl=context)
    here.port = server.sockets[0].getsockname()[1]
    yield here
    server.close()


@asynccontextmanager
async def posting(port: int, scheme: str = "http", **connector: Any) -> AsyncIterator[Callable[..., Any]]:
    url = f"{scheme}://127.0.0.1:{port}/a?b=%20c"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(**connector)) as session:
        to = Posts(session, url)

        async def post(body: bytes = b"{}", timeout: aiohttp.ClientTimeout = PATIENCE) -> tuple[int, bytes]:
            posted = await to.post(head_of(url, {"X-Key": "k"}), body, timeout)
            return posted.status, posted.body

        yield post
        to.close()


def says(*answers: bytes) -> Script:
    """Each request of a connection gets the next of these."""

    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await here.hears(reader)
            writer.write(answer)
        await here.gate.wait()

    return script


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.005)


@on_both_loops
async def test_calls_one_after_the_other_go_over_one_connection() -> None:
    async with place(says(OK, CHUNKED, OK)) as there, posting(there.port) as post:
        assert [await post(b"1"), await post("ส".encode()), await post(b"")] == [
            *((200, b"ok"), (200, b"one, two"), (200, b"ok"))
        ]
        assert there.connections == 1
        assert [body for _, body in there.asked] == [b"1", "ส".encode(), b""]
        line, *named = there.asked[1][0].decode().split("\r\n")
        assert line == "POST /a?b=%20c HTTP/1.1"
        assert {f"Host: 127.0.0.1:{there.port}", "X-Key: k", "Content-Length: 3"} <= set(named)


@on_both_loops
async def test_calls_at_once_have_a_connection_each_and_later_ones_take_these() -> None:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await here.hears(reader)
            await here.gate.wait()
            writer.write(OK)

    async with place(script) as there, posting(there.port) as post:
        first = [asyncio.create_task(post()) for _ in range(3)]
        await until(lambda: len(there.asked) == 3)
        there.gate.set()
        await asyncio.gather(*first)
        await asyncio.gather(post(), post(), post())
        assert there.connections == 3


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + OK, 200, b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n", 429, b""),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", 302, b""),
    ],
)
@on_both_loops
async def test_an_answer_of_any_form_is_read(answer: bytes, status: int, body: bytes) -> None:
    keeps = b"close" not in answer and b"HTTP/1.0" not in answer
    async with place(says(answer, OK)) as there, posting(there.port) as post:
        assert await post() == (status, body)
        await post()
        assert there.connections == (1 if keeps else 2)


def packed(how: bytes, raw: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (how, len(raw), raw)


ZIPPED = gzip.compress("ชัดเจน".encode(), mtime=0)  # the same in each process that collects


@pytest.mark.parametrize(
    "answer",
    [
        packed(b"gzip", ZIPPED),
        packed(b"deflate", zlib.compress("ชัดเจน".encode())),
        packed(b"identity", "ชัดเจน".encode()),
        b"HTTP/1.1 103 Early\r\nContent-Encoding: br\r\n\r\n" + packed(b"X-GZIP", ZIPPED),
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + ZIPPED,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n"
        + b"".join(b"1\r\n%c\r\n" % byte for byte in ZIPPED)
        + b"0\r\n\r\n",
    ],
    ids=["gzip", "deflate", "identity", "after a hint", "until the end", "chunked"],
)
@on_both_loops
async def test_an_answer_that_was_packed_unasked_is_unpacked(answer: bytes) -> None:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        writer.write(answer)
        if b"Length" not in answer and b"chunked" not in answer:
            return
        await here.hears(reader)
        writer.write(OK)
        await reader.read()

    async with place(script) as there, posting(there.port) as post, aiohttp.ClientSession() as session:
        assert await post() == (200, "ชัดเจน".encode())
        if b"Length" in answer or b"chunked" in answer:
            assert await post() == (200, b"ok")  # over the same connection, which is plain again
            assert there.connections == 1
        url = f"http://127.0.0.1:{there.port}/"
        growing = await Posts(session, url).stream(head_of(url, {}), b"{}", PATIENCE, 60.0)
        said = b""
        while came := await growing.more():
            said += came
        assert said == "ชัดเจน".encode()
        growing.close()


@pytest.mark.parametrize(
    "answer",
    [packed(b"br", b"x"), packed(b"gzip", ZIPPED[:-4]), packed(b"gzip", b"plain"), packed(b"gzip", ZIPPED * 2)],
    ids=["unknown", "cut short", "plain", "twice"],
)
@on_both_loops
async def test_what_can_not_be_unpacked_is_no_answer(answer: bytes) -> None:
    async with place(says(answer)) as there, posting(there.port) as post, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientPayloadError, match=r"packed|whole"):
            await post()
        url = f"http://127.0.0.1:{there.port}/"

        async def streamed() -> None:
            growing = await Posts(session, url).stream(head_of(url, {}), b"{}", PATIENCE, 60.0)
            try:
                while await growing.more():
                    pass
            finally:
                growing.close()

        with pytest.raises(aiohttp.ClientPayloadError, match=r"packed|whole"):
            await streamed()
        assert there.connections == 2


@on_both_loops
async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nfirst, ")
        await writer.drain()
        writer.write(b"last")

    async with place(script) as there, posting(there.port) as post:
        assert await post() == (200, b"first, last")
        assert await post() == (200, b"first, last")
        assert there.connections == 2


@pytest.mark.parametrize(
    ("half", "error"),
    [
        (b"", aiohttp.ServerDisconnectedError),
        (b"HTTP/1.1 200 O", aiohttp.ServerDisconnectedError),
        (b"HTTP/1.1 100 Continue\r\n\r\n", aiohttp.ServerDisconnectedError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", aiohttp.ClientPayloadError),
        (CHUNKED[:-15], aiohttp.ClientPayloadError),
        (b"SSH-2.0-OpenSSH_9\r\n", aiohttp.ClientPayloadError),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", aiohttp.ClientPayloadError),
    ],
)
@on_both_loops
async def test_half_an_answer_is_none_and_the_next_call_has_a_connection_of_its_own(
    half: bytes, error: type[Exception]
) -> None:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        writer.write(half if here.connections == 1 else OK)

    async with place(script) as there, posting(there.port) as post:
        with pytest.raises(error):
            await post()
        assert await post() == (200, b"ok")
        assert len(there.asked) == 2  # nothing is tried again unasked


@on_both_loops
async def test_a_connection_that_is_reset_is_an_error_of_the_system() -> None:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.transport.abort()  # with bytes unread: a reset

    async with place(script) as there, posting(there.port) as post:
        with pytest.raises((aiohttp.ClientOSError, aiohttp.ServerDisconnectedError)):
            await post(b"x" * 3_000_000)


@on_both_loops
async def test_a_kept_connection_that_was_closed_meanwhile_is_not_used() -> None:
    async with place(says(OK)) as there, posting(there.port) as post:
        await post()
        there.gate.set()
        await until(lambda: there.ended == 1)
        await asyncio.sleep(0.05)
        assert await post() == (200, b"ok")
        assert there.connections == 2


@pytest.mark.parametrize("late", [False, True])
@on_both_loops
async def test_what_nobody_asked_for_is_no_answer_to_the_next_call(late: bool) -> None:
    more = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"

    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        writer.write(OK if late else OK + more)
        if late:
            await here.gate.wait()
            writer.write(more)
        await reader.read()

    async with place(script) as there, posting(there.port) as post:
        assert await post() == (200, b"ok")
        there.gate.set()
        await until(lambda: there.ended == 1)
        assert await post() == (200, b"ok")
        assert there.connections == 2


@on_both_loops
async def test_a_call_that_was_given_up_leaves_its_answer_to_nobody() -> None:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        if here.connections == 1:
            await here.gate.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d" % here.connections)
        await reader.read()

    async with place(script) as there, posting(there.port) as post:
        given_up = asyncio.create_task(post())
        await until(lambda: len(there.asked) == 1)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        there.gate.set()
        assert await post() == (200, b"2")


@on_both_loops
async def test_the_whole_time_is_bounded() -> None:
    async with place(says()) as there, posting(there.port) as post:
        with pytest.raises(TimeoutError) as caught:
            await post(timeout=aiohttp.ClientTimeout(total=0.1, connect=0.1))
        assert not isinstance(caught.value, aiohttp.ConnectionTimeoutError)
        await until(lambda: there.connections == 1)
        there.gate.set()


@on_both_loops
async def test_who_can_not_be_reached_was_sent_nothing() -> None:
    async with place(says()) as gone:
        pass
    async with posting(gone.port) as post:
        with pytest.raises(aiohttp.ClientConnectorError):
            await post()
    async with place(says()) as there, posting(there.port, limit=1) as post:
        holding = asyncio.create_task(post())
        await until(lambda: there.connections == 1)
        for soon in ({"connect": 0.1}, {"total": 0.1}):
            with pytest.raises(aiohttp.ConnectionTimeoutError):
                await post(timeout=aiohttp.ClientTimeout(**soon))
        assert there.connections == 1
        holding.cancel()


@on_both_loops
async def test_who_waits_for_a_place_gets_it_when_a_call_is_over() -> None:
    """A connection that is kept takes a place, too."""

    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await here.hears(reader)
            await here.gate.wait()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + here.asked[-1][1])

    async with place(script) as there, posting(there.port, limit=2) as post:
        calls = [asyncio.create_task(post(b"x")) for _ in range(20)]
        await until(lambda: len(there.asked) == 2)
        there.gate.set()
        assert await asyncio.gather(*calls) == [(200, b"x")] * 20
        opened = there.connections
        assert [await post(b"y") for _ in range(3)] == [(200, b"y")] * 3
        assert there.connections <= opened + 1  # nobody waits any more


@on_both_loops
async def test_an_idle_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posts, "KEPT_FOR", 0.2)

    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        writer.write(OK)
        await reader.read()

    async with place(script) as there, posting(there.port) as post:
        await asyncio.gather(post(), post())
        await until(lambda: there.ended == 2)
        assert await post() == (200, b"ok")
        await until(lambda: there.ended == 3)  # once more


@on_both_loops
async def test_a_session_closes_while_connections_are_kept_and_used() -> None:
    async with place(says(OK)) as there:
        async with asyncio.timeout(20), posting(there.port) as post:
            await post()
            under_way = asyncio.create_task(post())
            await until(lambda: there.connections == 1)
        with pytest.raises(aiohttp.ClientError):
            await under_way
        there.gate.set()


@on_both_loops
async def test_a_growing_answer_is_read_as_it_comes_and_its_connection_kept() -> None:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await here.hears(reader)
            writer.write(b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(3):
                await here.gate.wait()
                here.gate.clear()
                writer.write(b"2\r\nab\r\n2\r\ncd\r\n")
            writer.write(b"0\r\n\r\n")

    async with place(script) as there, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{there.port}/"
        to = Posts(session, url)
        for _ in range(2):
            growing = await to.stream(head_of(url, {}), b"{}", PATIENCE, 60.0)
            assert (growing.status, growing.headers["x-a"]) == (200, "1")
            for _ in range(3):
                there.gate.set()
                came = b""
                while len(came) < 4:
                    came += await growing.more()
                assert came == b"abcd"
            assert [await growing.more(), await growing.more()] == [b"", b""]
            growing.close()
        assert there.connections == 1
        to.close()


@on_both_loops
async def test_a_stream_without_a_head_ends_in_its_time() -> None:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        await here.gate.wait()

    async with place(script) as here, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{here.port}/v1"
        to = Posts(session, url)
        async with asyncio.timeout(20):
            with pytest.raises(TimeoutError) as caught:
                await to.stream(head_of(url, {}), b"{}", PATIENCE, 0.1)
        assert not isinstance(caught.value, aiohttp.ConnectionTimeoutError)  # it may have been taken
        here.gate.set()
        to.close()


@on_both_loops
async def test_a_growing_answer_that_stalls_ends_in_its_time_and_so_does_its_connection() -> None:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        writer.write(CHUNKED[:60])
        await reader.read()

    async with place(script) as there, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{there.port}/"
        to = Posts(session, url)
        growing = await to.stream(head_of(url, {}), b"{}", PATIENCE, 0.2)
        with pytest.raises(TimeoutError):
            [await growing.more() for _ in range(100)]
        growing.close()
        await until(lambda: there.ended == 1)
        to.close()


@on_both_loops
async def test_a_growing_answer_that_breaks_off_says_so_and_one_that_is_left_is_closed() -> None:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        writer.write(CHUNKED[:60])
        if here.connections == 1:
            return
        writer.write(CHUNKED[60:70])
        await reader.read()

    async with place(script) as there, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{there.port}/"
        to = Posts(session, url)
        growing = await to.stream(head_of(url, {}), b"{}", PATIENCE, 60.0)
        came = [await growing.more()]
        with pytest.raises(aiohttp.ClientPayloadError):
            came += [await growing.more() for _ in range(3)]
        assert b"one, two".startswith(b"".join(came))
        growing.close()
        growing = await to.stream(head_of(url, {}), b"{}", PATIENCE, 60.0)
        assert (await growing.more()).startswith(b"one")
        waiting = asyncio.create_task(growing.more())
        await asyncio.sleep(0.01)
        waiting.cancel()
        growing.close()
        await until(lambda: there.ended == 2)
        with pytest.raises(aiohttp.ClientConnectionError):
            await Posts(session, "http://127.0.0.1:1/").stream(head_of(url, {}), b"", PATIENCE, 60.0)
        to.close()


@on_both_loops
async def test_a_growing_answer_that_is_closed_twice_is_closed_once() -> None:
    """By then its connection is another call's."""

    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        writer.write(CHUNKED)
        await here.hears(reader)
        await here.gate.wait()
        writer.write(OK)

    async with place(script) as there, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{there.port}/"
        to = Posts(session, url)
        growing = await to.stream(head_of(url, {}), b"{}", PATIENCE, 60.0)
        while await growing.more():
            pass
        growing.close()
        next_one = asyncio.create_task(to.post(head_of(url, {}), b"{}", PATIENCE))
        await until(lambda: len(there.asked) == 2)
        growing.close()
        there.gate.set()
        assert (await next_one).body == b"ok"
        assert there.connections == 1
        to.close()


@pytest.mark.parametrize("more", [OK, b"H", b" ", b"\0", CHUNKED], ids=["answer", "letter", "blank", "nul", "chunked"])
@on_both_loops
async def test_what_nobody_asked_for_is_no_part_of_a_growing_answer(more: bytes) -> None:
    async with place(says(CHUNKED + more)) as there, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{there.port}/"
        to = Posts(session, url)
        for opened in (1, 2):
            growing, came = await to.stream(head_of(url, {}), b"{}", PATIENCE, 60.0), b""
            while piece := await growing.more():
                came += piece
            assert came == b"one, two"
            growing.close()
            assert there.connections == opened
        there.gate.set()
        to.close()


@on_both_loops
async def test_tls_is_the_sessions(tmp_path: Path) -> None:
    ours, stranger = certificate(tmp_path / "ours"), certificate(tmp_path / "stranger")
    trusted = ssl.create_default_context(cafile=str(ours.authority))
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 500000\r\n\r\n" + b"x" * 500_000
    async with place(says(long, OK), ours) as there:
        async with posting(there.port, "https", ssl=trusted) as post:
            assert await post(b"y" * 400_000) == (200, b"x" * 500_000)
            assert await post() == (200, b"ok")
            assert there.connections == 1
        for wrong in ({}, {"ssl": ssl.create_default_context(cafile=str(stranger.authority))}):
            async with posting(there.port, "https", **wrong) as post:
                with pytest.raises(aiohttp.ClientConnectorCertificateError):
                    await post()
        there.gate.set()


class Said:
    """In the place of a connection of aiohttp's, and of its transport: takes what is sent."""

    protocol = None

    def __init__(self) -> None:
        self.transport: Any = self
        self.closed = False

    def set_protocol(self, protocol: asyncio.Protocol) -> None:
        self.line = protocol

    def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@given(
    body=st.binary(max_size=40),
    chunks=st.none() | st.lists(st.integers(1, 9), max_size=5),
    cuts=st.lists(st.integers(1, 30), max_size=8),
    ended=st.integers(0, 200),
)
@settings(deadline=None)
def test_however_an_answer_arrives_it_is_whole_or_an_error(
    body: bytes, chunks: list[int] | None, cuts: list[int], ended: int
) -> None:
    """The bytes in any pieces; where the connection ends before all are there, an error comes out."""
    if chunks is None:
        sent = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    else:
        parts: list[bytes] = []
        rest = body
        for size in chunks:
            parts, rest = [*parts, rest[:size]], rest[size:]
        framed = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in [*parts, rest] if part)
        sent = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%b0\r\n\r\n" % framed
    arriving = sent[:ended]

    async def heard() -> Any:
        said = Said()
        line = posts._Line(said, asyncio.get_running_loop())  # type: ignore[arg-type]
        answer, rest = line.asked(b""), arriving
        for cut in (*cuts, len(arriving)):
            if rest[:cut]:
                line.data_received(rest[:cut])
            rest = rest[cut:]
        if not answer.done():
            assert not line.reusable
            line.connection_lost(None)
            assert said.closed
        return await answer

    if ended >= len(sent):
        posted = asyncio.run(heard())
        assert (posted.status, posted.body) == (200, body)
    else:
        with pytest.raises(aiohttp.ClientError):
            asyncio.run(heard())


async def test_a_kept_connection_that_is_being_closed_is_asked_nothing() -> None:
    line = posts._Line(Said(), asyncio.get_running_loop())  # type: ignore[arg-type]
    answer = line.asked(b"")
    line.data_received(OK)
    assert ((await answer).body, line.reusable) == (b"ok", True)
    line.eof_received()
    assert not line.reusable


def test_a_head_is_one_head() -> None:
    head = head_of("https://[::1]:8443/v1/x y", {"Authorization": "Bearer ก"})
    assert head.startswith(b"POST /v1/x%20y HTTP/1.1\r\nHost: [::1]:8443\r\n")
    assert head.endswith("Authorization: Bearer ก\r\n".encode())
    known = b"Authorization: Basic dTpw\r\n"
    assert known in head_of("http://u:p@example.com/", {"X": "1"})
    assert known not in head_of("http://u:p@example.com/", {"Authorization": "Bearer k"})
    for wrong in ("secret\r\nX-Injected: 1", "secret\n", "secret\x00"):
        with pytest.raises(ValueError, match="none can hold") as caught:
            head_of("https://example.com/", {"Authorization": wrong})
        assert "secret" not in str(caught.value)


def test_what_utf8_can_not_hold_goes_out_escaped() -> None:
    assert encoded({"text": "สวัสดี"}) == '{"text":"สวัสดี"}'.encode()
    assert json.loads(encoded({"text": "\ud83d"})) == {"text": "\ud83d"}
    assert json.loads(encoded({"n": 2**70})) == {"n": 2**70}
