"""A whole house in this process: a real server for the inbox, the platforms' stand-ins, HTTP and a worker.

Only the processes are missing; those are started by tests/acceptance.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from config.settings import Settings
from config.tenants import Tenants
from gateway import app, assembly, front_door
from gateway.inbox import away
from gateway.inbox.away import RECENT
from gateway.inbox.redis import INDEX, RedisInbox
from gateway.inbox.spool import MOST
from gateway.patience import Times
from gateway.serving import serve
from gateway.spans import NO_SPANS, Spans
from tests.standins.line import LineStandIn
from tests.standins.line_model import LineChannel
from tests.standins.openrouter import OpenRouterStandIn
from tests.standins.telegram import TelegramStandIn

T = TypeVar("T")

LINE_SECRET, LINE_TOKEN = "line-secret-1", "line-token-1"
TELEGRAM_TOKEN, TELEGRAM_SECRET = "1000001:first-test-bot", "telegram-secret-1"
LLM_KEY = "sk-or-test-1"
ADMIN_KEY = "test-admin-key"


def shop(name: str = "Test Shop", **sections: Any) -> dict[str, Any]:
    """A tenant's file with a LINE and a Telegram channel, which waits for no further message unless it says so."""
    return {
        "name": name,
        "channels": {
            "line-main": {"platform": "line", "channel_secret": LINE_SECRET, "channel_access_token": LINE_TOKEN},
            "telegram-main": {
                "platform": "telegram",
                "bot_token": TELEGRAM_TOKEN,
                "webhook_secret": TELEGRAM_SECRET,
            },
        },
        "behaviour": {"debounce_ms": 0},
    } | sections


@dataclass
class House:
    settings: Settings
    tenants: Tenants
    line: LineStandIn
    telegram: TelegramStandIn
    llm: OpenRouterStandIn
    url: str
    redis_url: str

    def line_hook(self, tenant: str = "shop", channel: str = "line-main") -> str:
        return f"{self.url}/webhooks/line/{tenant}/{channel}"

    def telegram_hook(self, tenant: str = "shop", channel: str = "telegram-main") -> str:
        return f"{self.url}/webhooks/telegram/{tenant}/{channel}"

    async def line_says(self, user: str, text: str, tenant: str = "shop") -> int:
        """A LINE user writes; the webhook's status."""
        return await self.line.deliver(self.line_hook(tenant), self.line.text_event(user, text))

    async def telegram_says(self, chat: int, text: str, tenant: str = "shop") -> int:
        update = self.telegram.text_update(chat, text)
        return await self.telegram.deliver(self.telegram_hook(tenant), update, TELEGRAM_SECRET)

    def line_shows(self, user: str) -> list[str]:
        """What the customer has on the screen."""
        return [one.text for one in self.line.delivered.get(user, [])]

    def telegram_shows(self, chat: int) -> list[str]:
        return [one.text for one in self.telegram.delivered.get(str(chat), [])]

    async def until(self, ask: Callable[[], Awaitable[T]], holds: Callable[[T], bool], patience: float = 90.0) -> T:
        """Asks until the answer is as it should be."""
        async with asyncio.timeout(patience):
            while not holds(answer := await ask()):
                await asyncio.sleep(0.02)
        return answer

    async def waiting(self) -> int:
        """Conversations that wait or are in hand."""
        client = assembly.inbox_client(self.settings, self.redis_url)
        inbox = RedisInbox(client, "test")
        depth = await inbox.depth()
        await inbox.close()
        return depth.ready + depth.due + depth.leased

    async def parked(self) -> None:
        """Until an answer waits for its customer, and nothing is in hand."""
        client = assembly.inbox_client(self.settings, self.redis_url)
        inbox = RedisInbox(client, "test")

        async def depth() -> tuple[int, int, int]:
            found = await inbox.depth()
            return found.ready, found.due, found.leased

        await self.until(depth, lambda found: found == (0, 1, 0))
        await inbox.close()

    async def quiet(self, patience: float = 90.0) -> None:
        """Until nothing waits and nothing is in hand."""
        client = assembly.inbox_client(self.settings, self.redis_url)
        try:
            async with asyncio.timeout(patience):
                while True:
                    look: Any = client.pipeline(transaction=True)  # in one step: nothing slips from place to place
                    look.zcard(f"{INDEX}:due").zcard(f"{INDEX}:lease").llen(f"{INDEX}:tenants")
                    if not any(await look.execute()):
                        return
                    await asyncio.sleep(0.01)
        finally:
            await client.aclose()


@asynccontextmanager
async def house(
    tmp_path: Path,
    redis_url: str,
    tenants: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    llm_key: str | None = None,
    line_channels: tuple[LineChannel, ...] = (),
    telegram_tokens: tuple[str, ...] = (TELEGRAM_TOKEN,),
    telegram_names: Mapping[str, str] | None = None,
    clock: assembly.Clock = assembly.utc_now,
    times: Times | None = None,
    probe_every: float = 0.0,
    spool_holds: int = MOST,
    recent: float = RECENT,
    spans: Spans = NO_SPANS,
    **settings: Any,
) -> AsyncIterator[House]:
    folder = tmp_path / "config" / "tenants"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (tenants or {"shop": shop()}).items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(dict(content), allow_unicode=True), encoding="utf-8")

    def seconds() -> float:
        return clock().timestamp()

    async with AsyncExitStack() as stack:
        # The house shares one thread: where a busy machine holds that up for a second, Redis is there all the same.
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(away, "PATIENCE", 30.0)
        line = await stack.enter_async_context(LineStandIn(line_channels or (LineChannel(),), clock=seconds))
        telegram = await stack.enter_async_context(
            TelegramStandIn(telegram_tokens, names=telegram_names, clock=seconds)
        )
        llm = await stack.enter_async_context(OpenRouterStandIn((LLM_KEY,)))
        given = Settings(
            redis_url=redis_url,
            data_dir=tmp_path / "data",
            config_dir=tmp_path / "config",
            line_api_base=line.url,
            line_data_api_base=line.data_url,
            telegram_api_base=telegram.url,
            openrouter_base_url=llm.url,
            openrouter_api_key=llm_key,
            admin_api_key=ADMIN_KEY,
            shutdown_grace=5.0,
        )
        given = replace(given, **settings)
        loaded = Tenants(given)
        loaded.load()
        stop = asyncio.Event()
        bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        door = await stack.enter_async_context(
            front_door.door(
                *(given, loaded, redis_url, ADMIN_KEY),
                spool_holds=spool_holds,
                recent=recent,
                clock=clock,
                spans=spans,
            )
        )
        run = await stack.enter_async_context(
            app.work(given, loaded, redis_url, times=times, probe_every=probe_every, clock=clock, spans=spans)
        )
        serving = asyncio.create_task(serve(door, "127.0.0.1", 0, stop, bound.set_result))
        working = asyncio.create_task(run(stop))
        try:
            yield House(given, loaded, line, telegram, llm, f"http://127.0.0.1:{await bound}", redis_url)
        finally:
            stop.set()
            ended, late = await asyncio.wait({serving, working}, timeout=30)
            for task in late:
                task.cancel()
            for task in ended:
                task.result()
