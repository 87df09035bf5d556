"""The HTTP side while it begins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.front_door import Door, Known
from gateway.serving import serve


class Taking:
    """In the place of the webhooks."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def at_once(self, url: bytes, headers: Any, body: bytes, answer: Any) -> bool:
        return False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.taken.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


async def api(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def begun(made: asyncio.Future[tuple[Any, Known]]) -> tuple[Any, Known]:
    return await made


async def asked(port: int, line: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(line + b" HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
    status = await reader.readline()
    writer.close()
    return status.split()[1]


class Asked(Door):
    """Knows how many have come in."""

    came = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.came += 1
        await super().__call__(scope, receive, send)

    async def by(self, port: int) -> list[asyncio.Task[bytes]]:
        """Three who ask, once they are in."""
        waiting = [asyncio.create_task(asked(port, b"GET /healthz")) for _ in range(3)]
        async with asyncio.timeout(60):
            while self.came < 3:
                await asyncio.sleep(0.01)
        return waiting


async def listening(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return


async def test_webhooks_are_taken_while_the_rest_is_made_and_that_waits(unused_tcp_port: int) -> None:
    made: asyncio.Future[tuple[Any, Known]] = asyncio.get_running_loop().create_future()
    webhooks, stop, port, told = Taking(), asyncio.Event(), unused_tcp_port, list[int]()
    door = Door(webhooks, asyncio.create_task(begun(made)))  # type: ignore[arg-type]
    serving = asyncio.create_task(serve(door, "127.0.0.1", port, stop, told.append))
    await asyncio.wait_for(listening(port), 10)
    waiting = asyncio.create_task(asked(port, b"GET /healthz"))
    assert await asked(port, b"POST /webhooks/line/shop/main") == b"200"
    assert webhooks.taken == ["/webhooks/line/shop/main"]
    assert not told
    assert not waiting.done()
    made.set_result((api, lambda key: False))
    assert await waiting == b"204"
    assert told == [port]
    stop.set()
    assert await serving == 0


async def test_who_waits_for_the_rest_does_not_hold_up_a_stop(
    unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    port, stop = unused_tcp_port, asyncio.Event()
    door = Asked(Taking(), asyncio.create_task(begun(asyncio.Future())))  # type: ignore[arg-type]
    serving = asyncio.create_task(serve(door, "127.0.0.1", port, stop, lambda port: None))
    await asyncio.wait_for(listening(port), 10)
    waiting = await door.by(port)
    stop.set()
    assert await asyncio.gather(*waiting) == [b"503"] * 3
    assert await serving == 0
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_what_it_can_t_be_made_for_is_told_once_however_many_wait(
    unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    made: asyncio.Future[tuple[Any, Known]] = asyncio.get_running_loop().create_future()
    port = unused_tcp_port
    door = Asked(Taking(), asyncio.create_task(begun(made)))  # type: ignore[arg-type]
    serving = asyncio.create_task(serve(door, "127.0.0.1", port, asyncio.Event(), lambda port: None))
    await asyncio.wait_for(listening(port), 10)
    waiting = await door.by(port)
    made.set_exception(OSError("no such folder"))
    with pytest.raises(OSError, match="no such folder"):
        await serving
    assert await asyncio.gather(*waiting) == [b"503"] * 3
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_what_it_can_t_be_made_for_ends_it(unused_tcp_port: int) -> None:
    made: asyncio.Future[tuple[Any, Known]] = asyncio.get_running_loop().create_future()
    door = Door(Taking(), asyncio.create_task(begun(made)))  # type: ignore[arg-type]
    serving = asyncio.create_task(serve(door, "127.0.0.1", unused_tcp_port, asyncio.Event(), lambda port: None))
    made.set_exception(OSError("no such folder"))
    with pytest.raises(OSError, match="no such folder"):
        await serving
