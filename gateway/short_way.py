"""The short way of a webhook: what came whole in one read, nothing about it being out of the ordinary, is taken in the
server's protocol, without a scope, a task and events of its own. Whatever else comes goes the server's own way, from
its head on, so that refusing, waiting and being slow have one place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from gateway.http_limits import GuardedHttp

Headers = Sequence[tuple[bytes, bytes]]  # lower-case names
Answer = Callable[[bytes, bytes], None]  # status line and headers, each with its line's end; body
AtOnce = Callable[[bytes, Headers, bytes, Answer], bool]

_WEBHOOKS = b"/webhooks/"
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
        if self._may_be_short():
            self._pieces = []
        else:
            super().begin()

    def _may_be_short(self) -> bool:
        return (
            self._at_once is not None
            and self.url.startswith(_WEBHOOKS)
            and (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
            and not self.expect_100_continue
            and self.parser.get_method() == b"POST"
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
            assert self._at_once is not None
            if self._at_once(self.url, self.headers, b"".join(pieces), request.answer):
                return
            self.cycle = before
            self._go_on(pieces)
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        pieces, self._pieces = self._pieces, None
        if pieces is not None and not self.transport.is_closing():
            self._go_on(pieces)  # the rest is still to come

    def _go_on(self, pieces: Sequence[bytes]) -> None:
        super().begin()
        for piece in pieces:
            super().on_body(piece)
