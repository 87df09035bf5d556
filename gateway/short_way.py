"""The short way of a webhook: what came whole in one read, with nothing out of the ordinary about it, is read by one
pattern and taken in the server's protocol, without its parser and without a scope, a task and events of its own.
Whatever else comes goes the server's own way, so that refusing, waiting and being slow have one place."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any

from gateway.http_limits import LARGEST_HEAD, GuardedHttp

Headers = Mapping[bytes, bytes]  # lower-case names
Answer = Callable[[bytes, bytes], None]  # status line and headers, each with its line's end; body
AtOnce = Callable[[bytes, Headers, bytes, Answer], bool]

# An address that means what it says and whose parts nobody can make long, and a head about whose lines no two servers
# could differ: what others mean, the server finds out.
_plainly_a_webhook = re.compile(
    rb"POST (/webhooks/[a-z]{1,20}/[a-z0-9_-]{1,64}/[\w-]{1,64}/?) HTTP/1\.1\r\n"
    rb"((?:[A-Za-z][A-Za-z0-9-]*: [!-~](?:[ -~]*[!-~])?\r\n)+)\r\n"
).match
_lines = re.compile(rb"([^:]+): (.*)\r\n").findall
_MEANS_MORE = frozenset((b"transfer-encoding", b"expect", b"upgrade", b"proxy-connection"))
_UNHEARD = asyncio.Event()


class _Request:
    """What the server wants to know of the request that is under way on a connection."""

    __slots__ = ("_http", "disconnected", "keep_alive", "response_complete")

    message_event = _UNHEARD  # set when the other side is gone: nobody waits for that here

    def __init__(self, http: WebhookHttp, keep_alive: bool) -> None:
        self._http = http
        self.disconnected = False
        self.keep_alive = keep_alive  # false as soon as the server wants to end
        self.response_complete = False

    def answer(self, head: bytes, body: bytes) -> None:
        self.response_complete = True
        transport = self._http.transport
        if self.disconnected or transport.is_closing():
            return
        if self.keep_alive:
            transport.write(b"%b\r\n%b" % (head, body))
        else:
            transport.write(b"%bconnection: close\r\n\r\n%b" % (head, body))
            transport.close()
        self._http.answered()


class WebhookHttp(GuardedHttp):
    """Offers webhooks to the application's `at_once(url, headers, body, answer)`, where it has that: False, and nothing
    was done, or `answer` is called in its time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._at_once: AtOnce | None = getattr(self.app, "at_once", None)
        self._parsing = False  # a request, of which more may come
        self._idle_since = 0.0  # the loop's time

    def on_message_begin(self) -> None:
        self._parsing = True
        super().on_message_begin()

    def on_message_complete(self) -> None:
        self._parsing = self.parser.should_upgrade()  # what follows is no request
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        if not self._taken(data):
            super().data_received(data)

    def _taken(self, data: bytes) -> bool:
        if (
            self._at_once is None
            or self._parsing
            or self.flow.write_paused
            or not (self.cycle is None or self.cycle.response_complete)
        ):
            return False
        found = _plainly_a_webhook(data)
        if found is None or found.end() > LARGEST_HEAD:
            return False
        lines, body = _lines(found[2]), data[found.end() :]
        headers = {name.lower(): value for name, value in lines}
        connection = headers.get(b"connection", b"keep-alive")
        if (
            len(headers) != len(lines)  # of two lines with one name others might read the other
            or not _MEANS_MORE.isdisjoint(headers)
            or connection not in (b"keep-alive", b"close")
            or headers.get(b"content-length") != b"%d" % len(body)
        ):
            return False
        before, request = self.cycle, _Request(self, connection == b"keep-alive")
        self.cycle = request  # type: ignore[assignment]
        try:
            taken = self._at_once(found[1], headers, body, request.answer)
        except Exception:  # noqa: BLE001 - what went wrong goes wrong on the other way too, where it is told
            request.disconnected = True  # whoever has its answer by now tells nobody
            taken = request.response_complete
        if not taken:
            self.cycle = before
            return False
        if self._reading:
            self.ended()
        return True

    def answered(self) -> None:
        """As `on_response_complete`, but the timer of an idle connection runs on: it finds out that this was none."""
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None or self.pipeline:
            self.on_response_complete()
        else:
            self.server_state.total_requests += 1

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        elif self.cycle is None or self.cycle.response_complete:  # else its end begins a new one
            super().timeout_keep_alive_handler()
