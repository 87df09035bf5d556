"""A bare endpoint: the product's HTTP server with its settings, which checks LINE's signature and answers.

python -m benchmarks.bare PORT
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import sys
from typing import Any

from benchmarks.shop_talk import line_secret
from gateway.cli import in_loop
from gateway.serving import serve

_SECRET = line_secret(0).encode()


class App:
    """In the place of the product's door: with no short way, and whole from the beginning."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()

    async def whole(self) -> None:
        pass

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            event = await receive()
            body += event.get("body", b"")
            more = event.get("more_body", False)
        given = next((value for name, value in scope["headers"] if name == b"x-line-signature"), b"")
        right = base64.b64encode(hmac.digest(_SECRET, body, "sha256"))
        status = 200 if hmac.compare_digest(right, given) else 401
        headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"{}"})


if __name__ == "__main__":
    in_loop(serve(App(), "127.0.0.1", int(sys.argv[1]), asyncio.Event(), lambda port: None))  # type: ignore[arg-type]
