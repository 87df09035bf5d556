"""A language model that says what a script says, behind an address like any other's."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web

KEY = "simulated"


class Stub:
    """`says`: the next answer; None: the script has none, and the call is refused. `asked` counts what was asked of it
    for an answer."""

    def __init__(self) -> None:
        self.says: str | None = None
        self.asked = 0
        self.url = ""

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = orjson.loads(await request.read())
        if "response_format" in body:  # classification and the like: left to the rules
            return web.json_response({"error": {"message": "not in the script"}}, status=400)
        self.asked += 1
        if self.says is None:
            return web.json_response({"error": {"message": "the script has no answer here"}}, status=400)
        choice = {"index": 0, "message": {"role": "assistant", "content": self.says}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0, "cost": 0}
        about = {"id": "simulated", "object": "chat.completion", "created": int(time.time()), "model": "simulated"}
        if body.get("stream"):
            piece = {"index": 0, "delta": {"role": "assistant", "content": self.says}, "finish_reason": "stop"}
            told = orjson.dumps(about | {"object": "chat.completion.chunk", "choices": [piece], "usage": usage})
            return web.Response(body=b"data: " + told + b"\n\ndata: [DONE]\n\n", content_type="text/event-stream")
        return web.json_response(about | {"choices": [choice], "usage": usage})


@asynccontextmanager
async def stubbed() -> AsyncIterator[Stub]:
    stub = Stub()
    application = web.Application()
    application.router.add_post("/v1/chat/completions", stub.complete)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        stub.url = f"http://127.0.0.1:{port}/v1"
        yield stub
    finally:
        await runner.cleanup()
