"""`/api/v1/live`: what happens now in a tenant, by WebSocket or as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, HTTPException, Query, Request, WebSocket, WebSocketDisconnect
from starlette.websockets import WebSocketState

from config.tenants import Tenant
from gateway.live import KINDS, channel_key
from gateway.routes.auth import Keys
from gateway.routes.problems import problem, problems
from gateway.routes.sse import ALIVE, EVENT_SCHEMA, READ_WITHIN, EventStream, event
from gateway.web_log import TooSlow
from gateway.wire import Listener, Wire
from memory.errors import MemoryFault

WAITING = 500  # events that one reader may be behind
HEARTBEAT = 15.0  # seconds of silence before a reader hears that we are there
INTRODUCED_WITHIN = 10.0  # seconds a WebSocket has to say who it is

_POLICY, _LATER = 1008, 1013  # WebSocket's codes: not allowed; try again later

EXAMPLE = (
    'event: message\ndata: {"user_id":"line:U4af…","agent":"default","conversation_id":"main","channel":"line-main",'
    '"role":"user","message":"สวัสดีค่ะ","message_id":"line-main:01H…","timestamp":"2026-11-28T02:40:00.123Z"}\n\n'
    'event: takeover\ndata: {"user_id":"line:U4af…","agent":"default","conversation_id":"main","channel":"line-main",'
    '"by":"human","timestamp":"2026-11-28T02:40:01.456Z"}\n\n'
)

Kinds = Annotated[
    list[str] | None, Query(alias="kind", description=f"only these: {', '.join(KINDS)}; may be given more than once")
]


class Reader:
    """One reader of one tenant, from now on."""

    def __init__(self, wire: Wire, tenant: str, kinds: list[str] | None) -> None:
        self._wire = wire
        self._channel = channel_key(tenant)
        self._kinds = kinds
        self._listener = Listener(self._hear, lambda: None)
        self._queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(WAITING + 1)

    async def __aenter__(self) -> Reader:
        await self._wire.join(self._channel, self._listener)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._wire.leave(self._channel, self._listener)

    async def next(self) -> dict[str, Any] | None:
        """`kind` and `data`; None when nothing happened for a while. Raises TooSlow."""
        try:
            async with asyncio.timeout(HEARTBEAT):
                found = await self._queue.get()
        except TimeoutError:
            return None
        if found is None:
            raise TooSlow
        return found

    def _hear(self, message: bytes) -> None:
        for told in orjson.loads(message):
            if self._kinds is not None and told["kind"] not in self._kinds:
                continue
            if self._queue.qsize() < WAITING:
                self._queue.put_nowait(told)
            elif self._queue.qsize() == WAITING:
                self._queue.put_nowait(None)


def router(wire: Wire, keys: Keys) -> APIRouter:
    routes = APIRouter(tags=["Live"])

    @routes.get(
        "/api/v1/live",
        summary="What happens now, as server-sent events",
        response_class=EventStream,
        responses=problems(401, 404, 422)
        | {200: {"content": {"text/event-stream": {"schema": EVENT_SCHEMA, "example": EXAMPLE}}}},
    )
    async def stream(kind: Kinds = None, tenant: Tenant = Depends(keys.tenant)) -> EventStream:
        """`message` (whoever said it), `event` (how it was understood), `memory` (what is known of this user changed)
        and `takeover` (a person of the shop has the conversation, or the bot again). Nothing is told of before; a
        reader who does not keep up is dropped. The same by WebSocket at this address."""
        check(kind)
        reader = await Reader(wire, tenant.id, kind).__aenter__()
        return EventStream(_pieces(reader), ended=reader.__aexit__, endless=True)

    @routes.websocket("/api/v1/live")
    async def live(socket: WebSocket, kind: Kinds = None, tenant: str | None = None) -> None:
        """Who can't set a header, as a browser can't, sends the key in a first message, `{"key": …, "tenant": …}`: in
        an address it would end up in logs."""
        try:
            shop = keys.tenant(_asked(socket), tenant) if "authorization" in socket.headers else None
            await socket.accept()
            if shop is None:
                shop = await _introduced(keys, socket, tenant)
            check(kind)
        except HTTPException as error:
            await _refuse(socket, error.status_code, str(error.detail), dict(error.headers or {}))
            return
        except (ValueError, TypeError, TimeoutError):
            await socket.close(_POLICY, "the first message says who asks")
            return
        except MemoryFault as error:  # nobody can tell whose key it is
            await _refuse(socket, 503, str(error.__doc__), {"Retry-After": "5"})
            return
        except WebSocketDisconnect:
            return
        async with Reader(wire, shop.id, kind) as reader:
            await _send({"kind": "ready", "data": {"tenant": shop.id}}, socket)
            sending = asyncio.create_task(_tell(reader, socket))
            leaving = asyncio.create_task(_left(socket))
            try:
                await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (sending, leaving):
                    task.cancel()
                await asyncio.gather(sending, leaving, return_exceptions=True)

    return routes


def check(kinds: list[str] | None) -> None:
    if strange := sorted(set(kinds or ()) - set(KINDS)):
        raise HTTPException(422, f"kind: there is no {strange[0][:40]!r}; there are {', '.join(KINDS)}")


async def _pieces(reader: Reader) -> AsyncGenerator[bytes, None]:
    while True:
        told = await reader.next()
        yield ALIVE if told is None else event(told["kind"], told["data"])


async def _refuse(socket: WebSocket, status: int, why: str, headers: dict[str, str]) -> None:
    """As any call is, as long as the opening is not answered; after that by a code."""
    if socket.application_state is WebSocketState.CONNECTING:
        await socket.send_denial_response(problem(status, why, headers))
    else:
        await socket.close(_LATER if status == 503 else _POLICY, why[:120])


async def _introduced(keys: Keys, socket: WebSocket, tenant: str | None) -> Tenant:
    """Raises HTTPException, TimeoutError, ValueError, TypeError."""
    async with asyncio.timeout(INTRODUCED_WITHIN):
        came = await socket.receive()
    if came["type"] == "websocket.disconnect":
        raise WebSocketDisconnect
    first = orjson.loads(came.get("text") or came.get("bytes") or b"")
    if not isinstance(first, dict) or not isinstance(first.get("key"), str):
        raise ValueError
    said = first.get("tenant", tenant)
    if said is not None and not isinstance(said, str):
        raise TypeError
    return keys.tenant(_asked(socket, f"Bearer {first['key']}".encode("utf-8", "replace")), said)


def _asked(socket: WebSocket, key: bytes | None = None) -> Request:
    """The opening as a request that only looks; with `key` as if that had stood in its head."""
    headers = [(name, value) for name, value in socket.scope["headers"] if name == b"authorization"]
    kept = {name: socket.scope.get(name) for name in ("route", "query_string")}
    return Request({"type": "http", **kept, "headers": headers if key is None else [(b"authorization", key)]})


async def _tell(reader: Reader, socket: WebSocket) -> None:
    try:
        while True:
            told = await reader.next()
            await _send({"kind": "alive", "data": {}} if told is None else told, socket)
    except (TooSlow, TimeoutError):
        await socket.close(_LATER, "too slow")


async def _send(told: dict[str, Any], socket: WebSocket) -> None:
    async with asyncio.timeout(READ_WITHIN):
        await socket.send_text(orjson.dumps(told).decode())


async def _left(socket: WebSocket) -> None:
    try:
        while True:
            await socket.receive()
    except (WebSocketDisconnect, RuntimeError):
        return
