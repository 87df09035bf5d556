"""What the HTTP side asks of whoever connects: a head within a size and a time, a body in time, answers that are read,
and no more calls than one's share. And what every answer tells a browser."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import httptools
import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

ABORT = "chat_chat.abort"  # in the scope: ends a connection at once, whatever still waits to be read
CLOSING = "chat_chat.closing"  # in the scope: an event that says that the process ends
HEAD_ALONE = "chat_chat.head_alone"  # in the scope of a GET: of its answer nobody reads more than the head

LARGEST_HEAD = 64 * 1024  # bytes
HEAD_WITHIN = 10.0  # seconds from a request's first byte, or from the connection, to the end of its head
BODY_WITHIN = 60.0  # seconds from the head to the body's end
READ_WITHIN = 60.0  # seconds a client may leave a piece of an answer unread

_MOST = 10_000  # names of which a share is known; who has been silent the longest is forgotten first


@dataclass(frozen=True, slots=True)
class Share:
    """`a_second` calls for ever, and `at_once` more after a while of silence."""

    a_second: float
    at_once: float


OF_A_KEY = Share(200.0, 2000.0)
OF_AN_ADDRESS = Share(100.0, 1000.0)  # without a key
OF_WRONG_KEYS = Share(0.5, 30.0)  # from one address

# The API speaks to programs: should a browser show it as a page, nothing of it runs. Pages have a policy of their own.
_POLICY = b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
_UNSHOWN = [(b"content-security-policy", _POLICY), (b"x-frame-options", b"DENY")]
_ALWAYS: Mapping[bytes, bytes] = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}
FOR_PROGRAMS = (*_ALWAYS.items(), *_UNSHOWN)  # what an answer that no browser asks for tells one all the same
_YEAR = b"max-age=31536000"


class _Parser(httptools.HttpRequestParser):
    """Reads a request that offers another protocol as well (`Upgrade: h2c`, as Java's clients do) as if it did not: of
    such a one the original leaves the body out."""

    def __init__(self, http: GuardedHttp) -> None:
        super().__init__(http)
        self._http = http

    def feed_data(self, data: Any) -> None:
        parser = self
        while True:
            try:
                httptools.HttpRequestParser.feed_data(parser, data)
                return
            except httptools.HttpParserUpgrade as offer:
                if not self._http.declines():
                    raise
                parser, data = self._http.read_anew(data[offer.args[0] :])


class GuardedHttp(HttpToolsProtocol):
    """The server's own protocol reads heads of any length, for as long as they take. A head that comes in one piece
    costs no timer."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.parser = _Parser(self)
        self._head = 0  # bytes of it so far
        self._reading = True  # a head, or waiting for the connection's first
        self._timer: asyncio.TimerHandle | None = None
        self._watch()

    def data_received(self, data: bytes) -> None:
        if self._reading:
            self._head += len(data)
        super().data_received(data)
        if self._reading and not self.transport.is_closing():
            self._watch()
            if self._head > LARGEST_HEAD:
                self._refuse(b"431 Request Header Fields Too Large")

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if not self._reading:
            self._reading, self._head = True, 0

    def declines(self) -> bool:
        """Whether the request offers a protocol that we don't speak, and may go on in this one. A WebSocket begins with
        a GET; with anything else the server would wait for ever."""
        if not self.parser.should_upgrade():
            return False
        method = self.parser.get_method()
        return method != b"CONNECT" and (method, self._get_upgrade()) != (b"GET", b"websocket")

    def read_anew(self, rest: bytes) -> tuple[_Parser, bytes]:
        """The parser for a request that offered something, and what it reads: the head without that, then `rest`."""
        version = self.parser.get_http_version().encode()
        lines = [b"%b: %b\r\n" % line for line in self.headers if line[0] != b"upgrade"]
        head = b"%b %b HTTP/%b\r\n%b\r\n" % (self.parser.get_method(), self.url, version, b"".join(lines))
        self.parser = parser = _Parser(self)
        return parser, head + rest

    def on_headers_complete(self) -> None:
        if self.declines():
            return
        self.ended()
        if sum([len(name) + len(value) for name, value in self.headers]) > LARGEST_HEAD:
            raise ValueError("the head is too large")  # however quickly it came; the server answers 400
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self.declines():
            super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """What the WebSocket's side can't read it neither answers nor ends: a body, a head beyond limits of its own."""
        super().handle_websocket_upgrade()
        protocol: Any = self.transport.get_protocol()
        if protocol.conn.handshake_exc is not None and not self.transport.is_closing():
            self._refuse(b"400 Bad Request")

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_WITHIN, self._refuse, b"408 Request Timeout")

    def ended(self) -> None:
        """The head is whole, or there is none to wait for."""
        self._reading = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, status: bytes) -> None:
        self.ended()
        if not self.transport.is_closing():
            self.transport.write(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()


class Shares:
    """Who has called how often lately, in this process: a bucket that fills again, for each name."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name → calls left, when

    def wait(self, name: str, share: Share, calls: float = 1.0) -> float:
        """Takes `calls` of it; seconds until there is one again where none is left. With 0 calls it only looks."""
        now = self._clock()
        left, since = self._left.pop(name, (share.at_once, now))
        left = min(share.at_once, left + (now - since) * share.a_second)
        short = left < max(calls, 1.0)
        self._left[name] = (left if short else left - calls, now)
        while len(self._left) > _MOST:
            self._left.popitem(last=False)
        return (1.0 - left) / share.a_second if short else 0.0


class Guard:
    """Around the HTTP side. `known` says whether an `Authorization` is one of ours; behind a proxy that we were told
    of, the address is the one that it names; `https` is the address that people know us by."""

    def __init__(self, inner: Any, known: Callable[[str], bool], *, proxied: bool = False, https: bool = False) -> None:
        self._inner = inner
        self._known = known
        self._proxied = proxied
        self._always = dict(_ALWAYS) | ({b"strict-transport-security": _YEAR} if https else {})
        self._shares = Shares()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if self._proxied and (seen := headers.get(b"x-forwarded-for", b"").rpartition(b",")[2].strip()):
            scope = {**scope, "client": (seen.decode("latin-1"), 0)}
        address = (scope.get("client") or ("",))[0]
        answer = self._answer(scope, send, address)
        if not scope["path"].startswith("/webhooks/") and (wait := self._asks_too_much(headers, address)):
            await _refuse(scope, answer, wait)
            return
        await self._inner(scope, _in_time(scope, receive, send), answer)

    def _asks_too_much(self, headers: Mapping[bytes, bytes], address: str) -> float:
        """Seconds to wait, 0 for who may ask."""
        said = headers.get(b"authorization", b"")
        if not said:
            return self._shares.wait(f"address {address}", OF_AN_ADDRESS)
        wrong = self._shares.wait(f"wrong {address}", OF_WRONG_KEYS, 0.0)
        if wrong and not self._known(said.decode("latin-1")):
            return wrong
        return self._shares.wait(f"key {hashlib.sha256(said).hexdigest()}", OF_A_KEY)

    def _answer(self, scope: Mapping[str, Any], send: Any, address: str) -> Any:
        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == 401:
                    self._shares.wait(f"wrong {address}", OF_WRONG_KEYS)
                given = {name.lower() for name, _ in message.get("headers", ())}
                more = [one for one in self._always.items() if one[0] not in given]
                if b"content-security-policy" not in given:
                    more += _UNSHOWN
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await sent(send, message)

        return answer


async def sent(send: Any, message: Any) -> None:
    """Sends a piece of an answer; a client that leaves too much unread for too long loses the connection."""
    flow = getattr(getattr(send, "__self__", None), "flow", None)
    if flow is not None and not flow.write_paused:  # the server takes it without a wait
        await send(message)
        return
    try:
        async with asyncio.timeout(READ_WITHIN):
            await send(message)
    except TimeoutError:
        _abort(send)


def _in_time(scope: Mapping[str, Any], receive: Any, send: Any) -> Any:
    """A body that does not come to its end in time ends the connection."""
    if scope["method"] in ("GET", "HEAD"):
        return receive
    until = asyncio.get_running_loop().time() + BODY_WITHIN
    whole = False

    async def heard() -> Any:
        nonlocal whole
        if whole:
            return await receive()
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError:
            _abort(send)
            return {"type": "http.disconnect"}
        whole = not message.get("more_body")
        return message

    return heard


def _abort(send: Any) -> None:
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()


def for_openai(path: str, status: int, detail: str) -> dict[str, Any]:
    """What a problem has besides under `/v1`: OpenAI's clients show what stands under `error`, and nothing else."""
    if not path.startswith("/v1/"):
        return {}
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": detail, "type": kind, "param": None, "code": status}}


async def _refuse(scope: Mapping[str, Any], send: Any, wait: float) -> None:
    detail = "More calls than your share"
    told = {"type": "about:blank", "title": "Too Many Requests", "status": 429, "detail": detail}
    told |= for_openai(scope["path"], 429, detail)
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"retry-after", str(max(1, round(wait + 0.5))).encode()),
    ]
    body = orjson.dumps(told)
    await send(
        {
            "type": "http.response.start",
            "status": 429,
            "headers": [*headers, (b"content-length", str(len(body)).encode())],
        }
    )
    await send({"type": "http.response.body", "body": body})
