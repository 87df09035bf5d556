"""Real processes for the tests that kill them: the product's, the stand-ins and a Redis-compatible server.

Each ends only what it started, by its id, and nothing outlives its `async with`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import redis.asyncio as aioredis
import yaml
from redis.exceptions import RedisError

from config.settings import Settings
from gateway.app import ALIVE
from gateway.assembly import inbox_client
from gateway.inbox.base import Depth
from gateway.inbox.opening import inbox_of
from gateway.redis_server import find_binary
from memory.redis_client import connect, is_cluster
from tests.house import LINE_SECRET, LINE_TOKEN, LLM_KEY, TELEGRAM_SECRET, TELEGRAM_TOKEN, shop
from tests.standins.line_model import sign

ROOT = Path(__file__).parents[2]
ADMIN_KEY = "test-admin-key"
WEBHOOK_PATIENCE = aiohttp.ClientTimeout(total=10)


async def until(holds: Callable[[], Awaitable[Any]], seconds: float = 90.0, every: float = 0.05) -> Any:
    """What `holds` gives once it is true. AssertionError when it is not within `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        found = await holds()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s; last: {found!r}"
        await asyncio.sleep(every)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def alive(pid: int) -> bool:
    """A zombie has ended: its parent may be slow to collect it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid: int) -> list[int]:
    """The processes whose parent it is."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def descendants(pid: int) -> list[int]:
    return [one for child in children(pid) for one in (child, *descendants(child))]


@dataclass
class Running:
    """A process that was started here. Its output is in `log`."""

    process: asyncio.subprocess.Process
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def ended(self) -> bool:
        return self.process.returncode is not None

    @property
    def said(self) -> str:
        return self.log.read_text("utf-8", "replace")

    def send(self, number: signal.Signals) -> None:
        if not self.ended:
            self.process.send_signal(number)

    def pause(self) -> None:
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        self.send(signal.SIGCONT)

    async def kill(self) -> None:
        self.send(signal.SIGKILL)
        await self.process.wait()

    async def end(self, patience: float = 30.0) -> int:
        """Asks it to end, as an operator would; its exit status. Killed after `patience` seconds."""
        self.resume()
        self.send(signal.SIGTERM)
        try:
            async with asyncio.timeout(patience):
                return await self.process.wait()
        except TimeoutError:
            await self.kill()
            raise AssertionError(f"did not end within {patience} s: {self.said[-2000:]}") from None


async def launch(log: Path, arguments: Sequence[str], env: Mapping[str, str], cwd: Path) -> Running:
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *arguments, env=dict(env), cwd=cwd, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output
        )
    return Running(process, log)


class RedisServer:
    """A server with an append-only file, as the embedded one has, which can be killed, paused and started again."""

    def __init__(self) -> None:
        # Not a test's own folder: a socket's path may be 107 bytes long and no longer.
        self.folder = Path(tempfile.mkdtemp(prefix="cc-", dir="/tmp"))
        self.url = f"unix://{self.folder}/redis.sock"
        self.running: Running | None = None

    async def __aenter__(self) -> RedisServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.running is not None:
            await self.running.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    async def start(self, seconds: float = 20.0) -> None:
        options = {"port": "0", "unixsocket": f"{self.folder}/redis.sock", "appendonly": "yes", "save": ""}
        options["appendfsync"] = "no"  # nobody cuts the power here
        arguments = [str(find_binary()), *(word for name, value in options.items() for word in (f"--{name}", value))]
        self.running = await launch(self.folder / "log", arguments, {}, self.folder)
        await until(self.answers, seconds)

    async def kill(self) -> None:
        assert self.running is not None
        await self.running.kill()

    async def answers(self) -> bool:
        try:
            async with aioredis.Redis.from_url(self.url, retry=None, socket_timeout=1) as client:
                return bool(await client.ping())
        except (RedisError, OSError):
            return False


@dataclass
class Stage:
    """DATA_DIR, CONFIG_DIR and stand-ins in a folder of its own, and what is started over them."""

    folder: Path
    env: dict[str, str]
    urls: dict[str, str]
    http: aiohttp.ClientSession
    redis_url: str | None
    started: list[Running] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    async def start(self, *arguments: str, log: str | None = None, **env: str) -> Running:
        """A `chat-chat` process."""
        name = log or f"{arguments[0]}-{len(self.started)}"
        command = [sys.executable, "-m", "gateway", *arguments]
        running = await launch(self.folder / f"{name}.log", command, {**self.env, **env}, self.folder)
        self.started.append(running)
        return running

    async def serve(self, port: int | None = None, **env: str) -> tuple[Running, str]:
        """`chat-chat serve` and its address, once it answers."""
        port = port or free_port()
        running = await self.start("serve", "--port", str(port), **env)
        return running, await self.up(running, port)

    async def run(self, port: int | None = None, workers: int = 1, **env: str) -> tuple[Running, str]:
        """`chat-chat run` and its address, once it answers."""
        port = port or free_port()
        running = await self.start("run", "--port", str(port), "--workers", str(workers), **env)
        return running, await self.up(running, port)

    async def up(self, running: Running, port: int, seconds: float = 60.0) -> str:
        url = f"http://127.0.0.1:{port}"

        async def answers() -> bool:
            assert not running.ended, running.said[-2000:]
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with self.http.get(f"{url}/healthz") as answer:
                    return answer.status == 200
            return False

        await until(answers, seconds)
        return url

    async def worker(self, **env: str) -> Running:
        """`chat-chat worker`, once it takes part."""
        running = await self.start("worker", **env)
        await self.take_part([running], 180.0)
        return running

    async def take_part(self, workers: Sequence[Running], seconds: float) -> None:
        """Until each of the workers has had a heartbeat."""
        assert self.redis_url is not None
        async with connect(self.redis_url) as client:

            async def all_beat() -> bool:
                assert not [one for one in workers if one.ended], workers[0].said[-2000:]
                names = [name.decode() for name in await client.zrange(ALIVE, 0, -1)]
                return all(any(f"-{one.pid}-" in name for name in names) for one in workers)

            await until(all_beat, seconds)

    async def cli(self, *arguments: str, stdin: bytes = b"", seconds: float = 60.0, **env: str) -> tuple[int, str, str]:
        """A command that ends: exit status, standard output, standard error."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *arguments),
            env={**self.env, **env},
            cwd=self.folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(seconds):
                out, err = await process.communicate(stdin)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        return process.returncode or 0, out.decode(), err.decode()

    # -- customers

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str]]:
        async with self.http.post(url, data=body, headers=headers, timeout=WEBHOOK_PATIENCE) as answer:
            return answer.status, answer.headers

    async def line_says(self, url: str, event: Mapping[str, Any], tenant: str = "shop") -> int:
        """Delivers a LINE event; the webhook's status."""
        body, headers = line_request(event)
        return (await self.post(f"{url}/webhooks/line/{tenant}/line-main", body, headers))[0]

    async def telegram_says(self, url: str, update: Mapping[str, Any], tenant: str = "shop") -> int:
        body, headers = telegram_request(update)
        return (await self.post(f"{url}/webhooks/telegram/{tenant}/telegram-main", body, headers))[0]

    # -- stand-ins

    async def script(self, name: str, **orders: Any) -> None:
        async with self.http.post(f"{self.urls[name]}/_script", json=orders) as answer:
            assert answer.status == 200, await answer.text()

    async def calls(self, name: str) -> list[dict[str, Any]]:
        async with self.http.get(f"{self.urls[name]}/_calls") as answer:
            return list((await answer.json())["calls"])

    async def delivered(self, name: str) -> dict[str, Any]:
        async with self.http.get(f"{self.urls[name]}/_delivered") as answer:
            return dict(await answer.json())

    async def line_shows(self, user: str) -> list[str]:
        """What the customer has on the screen."""
        shown = (await self.delivered("line"))["delivered"].get(user, [])
        return [str(one["message"].get("text", "")) for one in shown]

    async def telegram_shows(self, chat: int) -> list[str]:
        shown = (await self.delivered("telegram"))["delivered"].get(str(chat), [])
        return [str(one["text"]) for one in shown]

    async def quiet(self, seconds: float = 90.0) -> None:
        """Until nothing waits in the inbox and nothing is in hand."""

        async def nothing_waits() -> bool:
            depth = await self.depth()
            return depth.ready + depth.due + depth.leased == 0

        await until(nothing_waits, seconds)

    async def depth(self) -> Depth:
        """What waits in the inbox and what is in hand."""
        assert self.redis_url is not None
        settings = Settings(redis_cluster=is_cluster(self.redis_url))
        inbox = inbox_of(settings, inbox_client(settings, self.redis_url), "test")
        try:
            return await inbox.depth()
        finally:
            await inbox.close()

    async def slow_model(self, seconds: float, times: int = 1) -> None:
        await self.script("llm_control", faults=[{"delay": seconds, "times": times, "on": "/chat/completions"}])

    async def asked(self, times: int = 1) -> None:
        """Until the model has been asked that often."""

        async def enough() -> bool:
            return len([c for c in await self.calls("llm_control") if "/chat/completions" in c["path"]]) >= times

        await until(enough)


def line_event(user: str, text: str, event_id: str | None = None) -> dict[str, Any]:
    """A message event whose reply token the stand-ins take once."""
    event_id = event_id or uuid.uuid4().hex[:26].upper()
    return {
        "type": "message",
        "mode": "active",
        "timestamp": int(time.time() * 1000),
        "source": {"type": "user", "userId": user},
        "webhookEventId": event_id,
        "deliveryContext": {"isRedelivery": False},
        "replyToken": f"{user}.{event_id}",
        "message": {"type": "text", "id": str(uuid.uuid4().int % 10**18), "quoteToken": "q", "text": text},
    }


def line_request(
    event: Mapping[str, Any], secret: str = LINE_SECRET, bot: str = "U" + "b0" * 16
) -> tuple[bytes, dict[str, str]]:
    body = json.dumps({"destination": bot, "events": [event]}, ensure_ascii=False).encode()
    return body, {"Content-Type": "application/json", "x-line-signature": sign(secret, body)}


def telegram_update(chat: int, text: str, number: int) -> dict[str, Any]:
    sender = {"id": chat, "is_bot": False, "first_name": "Test", "language_code": "en"}
    return {
        "update_id": number,
        "message": {
            "message_id": number,
            "from": sender,
            "chat": {"id": chat, "type": "private", "first_name": "Test"},
            "date": int(time.time()),
            "text": text,
        },
    }


def telegram_request(update: Mapping[str, Any], secret: str = TELEGRAM_SECRET) -> tuple[bytes, dict[str, str]]:
    headers = {"Content-Type": "application/json", "X-Telegram-Bot-Api-Secret-Token": secret}
    return json.dumps(update).encode(), headers


async def start_stand_ins(
    folder: Path, *options: str, ports: Mapping[str, str] | None = None, log: str = "stand-ins"
) -> tuple[Running, dict[str, str]]:
    """The process and its addresses; `ports` are of an earlier one to be taken again, for those that were in it."""
    log_file = folder / f"{log}.log"
    begin = log_file.stat().st_size if log_file.exists() else 0
    given = [word for name, port in (ports or {}).items() for word in (f"--{name}-port", port)]
    env = {"PATH": os.environ["PATH"]}
    running = await launch(log_file, [sys.executable, "-m", "tests.standins", *given, *options], env, ROOT)

    async def said() -> str:
        assert not running.ended, running.said[-2000:]
        lines = running.said[begin:].splitlines()
        return next((line for line in lines if line.startswith("{") and line.endswith("}")), "")

    return running, json.loads(await until(said))


@asynccontextmanager
async def stage(
    folder: Path,
    *,
    redis_url: str | None = None,
    llm: bool = True,
    tenants: Mapping[str, Any] | None = None,
    **env: str,
) -> AsyncIterator[Stage]:
    """With `redis_url` None the product starts its embedded server; without `llm` its rules answer."""
    config = folder / "config" / "tenants"
    config.mkdir(parents=True)
    for name, content in (tenants or {"shop": shop(understanding={"policy": "never"}, language="en")}).items():
        (config / f"{name}.yaml").write_text(yaml.safe_dump(dict(content), allow_unicode=True), encoding="utf-8")
    async with AsyncExitStack() as stack:
        running, urls = await start_stand_ins(
            folder,
            *("--line-channel", f"{LINE_TOKEN}:{LINE_SECRET}:U{'b0' * 16}"),
            *("--any-reply-token", "--telegram-token", TELEGRAM_TOKEN, "--llm-key", LLM_KEY),
            *("--journal", str(folder / "journal")),
            ports={"line": "0", "line-data": "0", "telegram": "0", "llm": "0"},
        )
        stack.push_async_callback(running.end)
        http = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)))
        made = Stage(folder, environment(folder, urls, redis_url, llm=llm) | env, urls, http, redis_url)
        try:
            yield made
        finally:
            for one in reversed(made.started):
                if not one.ended:
                    with contextlib.suppress(AssertionError):
                        await one.end()


def environment(folder: Path, urls: Mapping[str, str], redis_url: str | None, *, llm: bool = True) -> dict[str, str]:
    """All that the product's processes get from outside."""
    made = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "DATA_DIR": str(folder / "data"),
        "CONFIG_DIR": str(folder / "config"),
        "ADMIN_API_KEY": ADMIN_KEY,
        "LINE_API_BASE": urls["line"],
        "LINE_DATA_API_BASE": urls["line_data"],
        "TELEGRAM_API_BASE": urls["telegram"],
        "LOG_FORMAT": "json",
        "SHUTDOWN_GRACE": "10",
    }
    if redis_url is not None:
        made["REDIS_URL"] = redis_url
    if llm:
        made |= {"OPENROUTER_API_KEY": LLM_KEY, "OPENROUTER_BASE_URL": urls["llm"]}
    return made
