"""Everything under test on one machine: the embedded server, `serve`, a worker, the two minimal bots, the stand-in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from redis.asyncio import Redis

from benchmarks import shop_talk
from benchmarks.load import CROWD, KNOWN, Door, answered_at
from benchmarks.processes import Process, cpu_seconds, free_port, stop_all, wait_for_port
from benchmarks.standin import StandIn
from gateway.redis_server import EmbeddedRedis
from memory import keys
from memory.keys import ConversationRef
from memory.models import Message
from memory.reading import READ
from memory.redis_client import connect
from memory.session import append, new_session
from memory.short_term.redis import RedisSessions
from processors.models import iso

TTL = 1800
FULL = 20  # messages
READ_EVERY = 5  # messages of a customer's between two readings of the session: what a tenant's file has by default


@dataclass
class House:
    """`folder` is ours alone and goes with the run."""

    folder: Path
    standin: StandIn
    redis_url: str
    redis_pid: int
    client: Redis
    stack: AsyncExitStack
    processes: dict[str, Process] = field(default_factory=dict)

    def start(self, name: str, command: list[str], **env: str) -> Process:
        """A process with the product's settings for this house."""
        process = Process(name, command, {**self.settings(), **env}, self.folder / f"{name}.log")
        self.stack.callback(lambda: stop_all(self.processes.values()))
        self.processes[name] = process
        return process

    def settings(self, data: str = "data") -> dict[str, str]:
        return {
            "REDIS_URL": self.redis_url,
            "DATA_DIR": str(self.folder / data),
            "CONFIG_DIR": str(self.folder / "config"),
            "LINE_API_BASE": self.standin.url,
            "TELEGRAM_API_BASE": self.standin.url,
            "OPENROUTER_BASE_URL": f"{self.standin.url}/v1",
            "OPENROUTER_API_KEY": "benchmark",
        }

    async def start_serve(self) -> int:
        port = free_port()
        process = self.start("serve", ["-m", "gateway", "serve", "--port", str(port)])
        await asyncio.to_thread(wait_for_port, port, process)
        return port

    async def start_bot(self, name: str, **env: str) -> int:
        """A minimal bot: `line_bot` or `aiogram_bot`."""
        port = free_port()
        given = {"PORT": str(port), "STANDIN": self.standin.url, **env}
        process = self.start(name, ["-m", f"benchmarks.bots.{name}"], **given)
        await asyncio.to_thread(wait_for_port, port, process)
        return port

    async def quiet(self) -> None:
        """Until every process has done with loading what it loads in the background: for three seconds in a row, as on
        a busy machine what loads gets little of each."""
        still = 0
        while still < 3:
            before = [cpu_seconds(process.pid) for process in self.processes.values() if process.alive()]
            await asyncio.sleep(1)
            after = [cpu_seconds(process.pid) for process in self.processes.values() if process.alive()]
            still = still + 1 if max(now - then for now, then in zip(after, before, strict=True)) < 0.06 else 0

    async def warm(self, door: Door, messages: int = KNOWN, tries: int = 6) -> None:
        """Until it answers at its usual speed and has met the known users; raises RuntimeError when nothing comes, over
        `tries` of 20 s."""
        for _ in range(tries):
            if (await answered_at(self.standin, door, 40, messages / 40, full=True)).times:
                return
        logs = "".join(f"\n{name}: {p.log.read_text('utf-8')[-1500:]}" for name, p in self.processes.items())
        raise RuntimeError(f"no answers from {door}{logs}")


def configure(folder: Path, tenants: int = shop_talk.TENANTS) -> None:
    """Tenant files. Each message is answered alone (no debounce) and by the model; rules classify it."""
    place = folder / "config" / "tenants"
    place.mkdir(parents=True)
    for n in range(tenants):
        content: dict[str, Any] = {
            "name": f"Shop {n}",
            "channels": {
                "line-main": {
                    "platform": "line",
                    "channel_secret": shop_talk.line_secret(n),
                    "channel_access_token": shop_talk.line_token(n),
                },
                "telegram-main": {
                    "platform": "telegram",
                    "bot_token": shop_talk.telegram_token(n),
                    "webhook_secret": shop_talk.telegram_secret(n),
                },
            },
            "agents": {"default": {"instructions": "You are a shop's assistant."}},
            "understanding": {"policy": "never"},
            "behaviour": {"debounce_ms": 0, "rate_limit_per_minute": 0},
            "memory": {"sm_ttl": TTL},
        }
        (place / f"shop-{n}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")


async def open_house(folder: Path, stack: AsyncExitStack, tenants: int = shop_talk.TENANTS) -> House:
    """With the embedded server and the stand-in running, and no process yet."""
    configure(folder, tenants)
    standin = StandIn()
    await standin.start()
    stack.callback(standin.close)
    server = EmbeddedRedis(folder / "redis-data")
    url = await asyncio.to_thread(server.start)
    stack.callback(server.stop)
    client = connect(url)
    stack.push_async_callback(client.aclose)
    pid = int((await client.info("server"))["process_id"])
    return House(folder, standin, url, pid, client, stack)


def ref_of(platform: str, user: int, tenants: int = shop_talk.TENANTS) -> ConversationRef:
    name = f"line:{shop_talk.line_user(user)}" if platform == "line" else f"telegram:{shop_talk.telegram_user(user)}"
    return ConversationRef(f"shop-{user % tenants}", name)


def full_session(ref: ConversationRef, unread: int = 0) -> Any:
    """`unread`: how many of the customer's messages nobody has read yet for what they tell of them."""
    now = datetime.now(UTC)
    said: list[Message] = [
        {
            "role": "bot" if role == "bot" else "user",
            "message": text,
            "timestamp": iso(now - timedelta(seconds=60 - n)),
            "message_id": f"{'re:' if role == 'bot' else ''}01SEED{n // 2:020d}",
        }
        for n, (role, text) in enumerate(shop_talk.history(FULL))
    ]
    session = new_session(ref, "sess_benchmark", None, [], now, TTL)
    session.variables[READ] = said[-1 - 2 * unread]["message_id"]
    return append(session, said, max_messages=FULL, now=now, ttl=TTL)


async def seed(house: House, tenants: int = shop_talk.TENANTS) -> None:
    """The known users' histories, in the product's sessions and in the bots' lists. The product has read some of each
    as it would have while they were said, and has asked for the users' names."""
    sessions = RedisSessions(house.client)
    lines = [
        json.dumps({"role": "assistant" if role == "bot" else "user", "content": text}, ensure_ascii=False)
        for role, text in shop_talk.history(FULL)
    ]
    ids: dict[str, Callable[[int], object]] = {"line": shop_talk.line_user, "telegram": shop_talk.telegram_user}
    for platform, key in ids.items():
        for user in range(CROWD[platform]):
            ref = ref_of(platform, user, tenants)
            await sessions.delete(ref)
            await sessions.save(ref, full_session(ref, user % READ_EVERY), TTL)
            await house.client.set(keys.shared("name", ref.tenant, ref.user), 1, ex=TTL)
            name = f"history:{key(user)}"
            await house.client.delete(name)
            await house.client.rpush(name, *lines)
