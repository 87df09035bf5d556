"""Which sites may read the chat's answers: those that a shop allows. Whose shop it is about, the routes check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from config.tenants import Tenant
from gateway.routes.visitors import web_channel

PATHS = ("/chat", "/web/", "/api/memories")
_SHOWN = b"X-Conversation-Id, X-Visitor-Token, Retry-After"
_AGE = b"600"  # seconds a browser need not ask again


class Cors:
    """Around an ASGI application."""

    def __init__(self, inner: Any, tenants: Callable[[], Iterable[Tenant]]) -> None:
        self._inner = inner
        self._tenants = tenants

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PATHS):
            await self._inner(scope, receive, send)
            return
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"")
        allowed = origin and any(
            origin.decode("latin-1") in channel.allowed_origins
            for tenant in self._tenants()
            if (channel := web_channel(tenant)) is not None
        )
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            await _preflight(send, origin if allowed else b"", headers.get(b"access-control-request-headers", b""))
            return

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(b"vary", b"Origin")]
                if allowed:
                    more += [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", _SHOWN)]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self._inner(scope, receive, answer)


async def _preflight(send: Any, origin: bytes, wanted: bytes) -> None:
    headers = [(b"vary", b"Origin")]
    if origin:
        headers += [
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
            (b"access-control-allow-headers", wanted or b"authorization, content-type, last-event-id"),
            (b"access-control-max-age", _AGE),
        ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
