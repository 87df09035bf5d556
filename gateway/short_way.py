"""The short way of a webhook: what came whole in one read, nothing about it being out of the ordinary, is taken in the
server's protocol, without a scope, a task and events of its own. Whatever else comes goes the server's own way, from
its head on, so that refusing, waiting and being slow have one place."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

from gateway.http_limits import GuardedHttp

Headers = Sequence[tuple[bytes, bytes]]  # lower-case names
Answer = Callable[[bytes, bytes], None]  # status line and headers, each with its line's end; body
AtOnce = Callable[[bytes, Headers, bytes, Answer], bool]

# An address that means what it says and whose parts nobody can make long: what others mean, the server finds out.
_plainly_a_webhook = re.compile(rb"/webhooks/[a-z]{1,20}/[a-z0-9_-]{1,64}/[\w-]{1,64}/?").fullmatch
_UNHEARD = asyncio.Event()


class _Request:
    """What the server wants to know of the request that is under way on a connection."""

    __slots__ = ("_http", "disconnected", "keep_alive", "response_complete")

    message_event = _UNHEARD  # set when the other side is gone: nobody waits for that here

    def __init__(self, http: WebhookHttp) -> None:
        self._http = http
        self.disconnected = False
        self.keep_alive = http.parser.should_keep_alive()  # false as soon as the server wants to end
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
        self._http.on_response_complete()


class WebhookHttp(GuardedHttp):
    """Offers webhooks to the application's `at_once(url, headers, body, answer)`, where it has that: False, and nothing
    was done, or `answer` is called in its time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._at_once: AtOnce | None = getattr(self.app, "at_once", None)
        self._pieces: list[bytes] | None = None  # of the body, as long as it may go the short way

    def begin(self) -> None:
        self._unset_keepalive_if_required()  # where the one before in this very read was answered at once
        if self._may_be_short():
            self._pieces = []
        else:
            super().begin()

    def _may_be_short(self) -> bool:
        return (
            self._at_once is not None
            and _plainly_a_webhook(self.url) is not None
            and (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
            and not self.expect_100_continue
            and self.parser.get_method() == b"POST"
            and self.parser.get_http_version() == "1.1"
            and not self.parser.should_upgrade()
        )

    def on_body(self, body: bytes) -> None:
        if self._pieces is None:
            super().on_body(body)
        else:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        pieces, self._pieces = self._pieces, None
        if pieces is not None:
            before, request = self.cycle, _Request(self)
            self.cycle = request  # type: ignore[assignment]
            if self._taken(b"".join(pieces), request):
                return
            self.cycle = before
            self._go_on(pieces)
        super().on_message_complete()

    def _taken(self, body: bytes, request: _Request) -> bool:
        assert self._at_once is not None
        try:
            return self._at_once(self.url, self.headers, body, request.answer)
        except Exception:  # noqa: BLE001 - what went wrong goes wrong on the other way too, where it is told
            request.disconnected = True  # whoever has its answer by now tells nobody
            return request.response_complete

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        pieces, self._pieces = self._pieces, None
        if pieces is not None and not self.transport.is_closing():
            self._go_on(pieces)  # the rest is still to come

    def _go_on(self, pieces: Sequence[bytes]) -> None:
        super().begin()
        for piece in pieces:
            super().on_body(piece)
