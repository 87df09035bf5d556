"""The server of the HTTP side."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from gateway.front_door import Door
from gateway.short_way import WebhookHttp

IDLE = 75  # seconds after which a connection on which nothing comes is closed


class _Server(uvicorn.Server):
    """Signals are ours: everything has to end in order. So is the word to end, which it need not look for."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told = asyncio.Event()

    def end(self) -> None:
        self.should_exit = True
        self._told.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)  # the headers of all answers: without a date they stay as they are
        await self._told.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Sockets(WebSocketsSansIOProtocol):
    """A refusal that says why is an end like any other; the server's own takes it for a fault of ours, and logs it."""

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True


async def serve(door: Door, host: str, port: int, stop: asyncio.Event, ready: Callable[[int], None]) -> int:
    """Until `stop` is set; the exit status. `ready` hears the port when everything is answered; webhooks are before."""
    config = uvicorn.Config(
        door,
        host=host,
        port=port,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=10,
        http=WebhookHttp,
        ws=_Sockets,
        ws_max_size=64 * 1024,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve())
    stopping, whole = asyncio.create_task(stop.wait()), asyncio.create_task(door.whole())
    try:
        while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn tells nobody
            await asyncio.sleep(0.01)
        if serving.done():
            return 1
        await asyncio.wait({serving, stopping, whole}, return_when=asyncio.FIRST_COMPLETED)
        if whole.done():
            whole.result()
            ready(server.servers[0].sockets[0].getsockname()[1])
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return 0 if stop.is_set() else 1
    finally:
        stopping.cancel()
        whole.cancel()
        server.end()
        door.closing.set()
        with contextlib.suppress(SystemExit):
            await serving
