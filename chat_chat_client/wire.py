"""Requests, what is tried again, and server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import aiohttp
import msgspec
from yarl import URL

from chat_chat_client.errors import Refused, Unreachable

T = TypeVar("T")

RETRIES = 3
SILENCE = 40.0  # seconds after which a stream counts as cut: the server says that it is there every 15
LONGEST_PAUSE = 30.0  # seconds between two tries
IDLE = 15.0  # seconds an idle connection is used again within; the server closes it after 75

_LOST = (aiohttp.ClientError, TimeoutError, OSError)


class ServerEvent(NamedTuple):
    name: str
    id: str
    data: bytes  # JSON, or nothing


class _Problem(msgspec.Struct):
    title: str = ""
    detail: str = ""


class Wire:
    def __init__(self, url: str, key: str, tenant: str | None, timeout: float) -> None:
        self._url = url.rstrip("/")
        self._key = key
        self._tenant = tenant
        self._timeout = timeout
        self._http: aiohttp.ClientSession | None = None

    async def connect(self) -> None:
        self._http = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {self._key}"},
            connector=aiohttp.TCPConnector(keepalive_timeout=IDLE),
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    async def ask(self, kind: type[T], method: str, path: str, **more: Any) -> T:
        """The JSON of an answer; `more` as with `open`."""
        async with self.open(method, path, **more) as answer:
            return decoded(kind, await answer.read(), f"{method} {path}")

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        silence: float | None = None,
        also: int = 200,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer whose status is a 2xx, or `also`. Where no connection could be made any request is tried again,
        otherwise only those that change nothing. Raises Refused, Unreachable."""
        if self._http is None:
            raise RuntimeError("A client is used within `async with`")
        url = URL(self._url + path, encoded=True).update_query(_query({"tenant": self._tenant} | dict(params or {})))
        data = msgspec.json.encode(_given(body)) if body is not None else None
        sent = {"Content-Type": "application/json"} if body is not None else {}
        timeout = aiohttp.ClientTimeout(sock_connect=10, sock_read=silence or self._timeout)
        for left in reversed(range(RETRIES + 1)):
            wait = pause(RETRIES - left)
            try:
                answer = await self._http.request(
                    method, url, data=data, headers=sent | dict(headers or {}), timeout=timeout, allow_redirects=False
                )
            except _LOST as error:
                unsent = isinstance(error, aiohttp.ClientConnectorError)
                if not left or not (unsent or method == "GET"):
                    raise Unreachable(f"{method} {path}: {error or type(error).__name__}") from error
            else:
                if not (left and method == "GET" and answer.status in (502, 503) and answer.status != also):
                    break
                wait = _seconds(answer) or wait
                answer.release()
            await asyncio.sleep(min(wait, LONGEST_PAUSE))
        try:
            async with answer:
                if not (200 <= answer.status < 300 or answer.status == also):
                    raise _refused(answer, await answer.read())
                yield answer
        except _LOST as error:
            raise Unreachable(f"{method} {path}: {error or type(error).__name__}") from error


def decoded(kind: type[T], body: bytes, asked: str) -> T:
    """Raises Unreachable for what no server of ours says: something between us and it answered."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise Unreachable(f"{asked}: the answer is none of chat-chat's: {error}") from error


def pause(tried: int) -> float:
    """Seconds to wait after so many tries."""
    return min(0.1 * 2.0 ** min(tried, 10), LONGEST_PAUSE)


async def events(answer: aiohttp.ClientResponse) -> AsyncGenerator[ServerEvent, None]:
    """An event that is not whole is not given."""
    rest = b""
    async for piece in answer.content.iter_any():
        *blocks, rest = (rest + piece).split(b"\n\n")
        for block in blocks:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
            yield ServerEvent(
                fields.get(b"event", b"").decode(), fields.get(b"id", b"").decode(), fields.get(b"data", b"")
            )


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _query(params: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in _given(params).items():
        for one in value if isinstance(value, list | tuple) else [value]:
            told = one.isoformat() if isinstance(one, datetime) else str(one)
            pairs.append((name, told.lower() if isinstance(one, bool) else told))
    return pairs


def _refused(answer: aiohttp.ClientResponse, body: bytes) -> Refused:
    try:
        problem = msgspec.json.decode(body, type=_Problem)
    except msgspec.DecodeError:  # of something between us and the server
        problem = _Problem()
    return Refused(answer.status, problem.title or answer.reason or "", problem.detail, _seconds(answer))


def _seconds(answer: aiohttp.ClientResponse) -> float | None:
    said = answer.headers.get("Retry-After", "")
    return float(said) if said.isdecimal() else None
