"""Server-sent events: with ids, comments while nothing happens, and no patience for readers that don't read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

import orjson
from fastapi import Response

from gateway.http_limits import ABORT, CLOSING, HEAD_ALONE
from gateway.web_log import TooSlow

log = logging.getLogger(__name__)

LINGER = 5.0  # seconds after which what still waits for an answer is not held open any longer by a process that ends
READ_WITHIN = 10.0  # seconds a reader may leave a piece unread
RETRY = b"retry: 1000\n"  # milliseconds after which a browser comes back; stands within an event

# What OpenAPI says of one event.
EVENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("id", "event", "data")} | {"retry": {"type": "integer"}},
}
ALIVE = b": alive\n\n"


def event(name: str, data: Any, event_id: str = "") -> bytes:
    """`data` as one line of JSON."""
    first = f"id: {event_id}\n" if event_id else ""
    return f"{first}event: {name}\ndata: ".encode() + orjson.dumps(data) + b"\n\n"


class EventStream(Response):
    """Sends what `pieces` gives; `left` is called when the reader goes before the end, and not when we end; `ended`
    when it is over in whatever way, also before the first piece was asked for. An `endless` one ends with the process,
    another has a few seconds more.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        headers: Mapping[str, str] | None = None,
        left: Callable[[], None] = lambda: None,
        ended: Callable[[], Awaitable[None]] | None = None,
        endless: bool = False,
        status_code: int = 200,  # where OpenAPI looks for it
    ) -> None:
        super().__init__(
            status_code=status_code, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **(headers or {})}
        )
        del self.headers["content-length"]
        self._pieces = pieces
        self._left = left
        self._ended = ended
        self._endless = endless

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await self._stream(scope, receive, send)
        finally:
            if self._ended is not None:
                await self._ended()

    async def _stream(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if HEAD_ALONE in scope:
            await _end(send)
            return
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_disconnected(receive))
        closing = asyncio.create_task(over(scope, at_once=self._endless))
        try:
            await asyncio.wait({sending, leaving, closing}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
            elif leaving.done():
                self._left()
                return
            sending.cancel()
            await asyncio.wait({sending})
            await _end(send)  # whoever comes back is served by another process, or by the next one
        except (TimeoutError, TooSlow):
            log.info("a reader that did not read was dropped")
            self._left()
            if (abort := scope.get(ABORT)) is not None:
                abort()
        finally:
            for task in (sending, leaving, closing):
                task.cancel()
            await asyncio.gather(sending, leaving, closing, return_exceptions=True)

    async def _send(self, send: Any) -> None:
        async with aclosing(self._pieces) as pieces:
            await _within(send, ALIVE)  # the head is on its way before there is anything to say
            async for piece in pieces:
                await _within(send, piece)


async def _within(send: Any, piece: bytes) -> None:
    async with asyncio.timeout(READ_WITHIN):
        await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _end(send: Any) -> None:
    async with asyncio.timeout(READ_WITHIN):
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def over(scope: Any, *, at_once: bool = False) -> None:
    """Until the process ends; else it still waits for LINGER seconds, as the answer may be on its way."""
    closing: asyncio.Event | None = scope.get(CLOSING)
    await (closing or asyncio.Event()).wait()
    if not at_once:
        await asyncio.sleep(LINGER)


async def _disconnected(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
