"""The HTTP side alone, over a real server, and the memory that it shows; no worker, no platform."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from multidict import CIMultiDictProxy

from config.settings import Settings
from config.tenants import Tenants
from gateway import assembly, front_door
from gateway.serving import serve
from memory.memory_manager import MemoryManager

ADMIN_KEY = "test-admin-key"
SHOP_KEY = "test-key-of-the-shop"


@dataclass
class Api:
    url: str
    http: aiohttp.ClientSession
    manager: MemoryManager
    settings: Settings

    async def ask(self, method: str, path: str, *, key: str | None = SHOP_KEY, **more: Any) -> tuple[int, Any]:
        """Status and JSON; with the shop's own key unless another is given."""
        status, body, _ = await self.ask_whole(method, path, key=key, **more)
        return status, body

    async def ask_whole(
        self, method: str, path: str, *, key: str | None = SHOP_KEY, headers: dict[str, str] | None = None, **more: Any
    ) -> tuple[int, Any, CIMultiDictProxy[str]]:
        sent = dict(headers or {}) | ({"Authorization": f"Bearer {key}"} if key else {})
        async with self.http.request(method, self.url + path, headers=sent, **more) as answer:
            return answer.status, await answer.json(content_type=None), answer.headers

    async def get(self, path: str) -> Any:
        status, body = await self.ask("GET", path)
        assert status == 200, body
        return body

    async def texts(self, path: str) -> list[str]:
        return [one["text"] for one in (await self.get(path))["items"]]


@asynccontextmanager
async def api_side(
    tmp_path: Path, redis_url: str, *, clock: assembly.Clock = assembly.utc_now, **shop: Any
) -> AsyncIterator[Api]:
    """Two tenants, `shop` with a key of its own and `other`."""
    folder = tmp_path / "config" / "tenants"
    folder.mkdir(parents=True)
    channels = {"web": {"platform": "web"}}
    own = {"name": "Shop", "channels": channels, "api_keys": [f"sha256:{sha256(SHOP_KEY.encode()).hexdigest()}"]}
    for name, content in {"shop": own | shop, "other": {"name": "Other", "channels": channels}}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    settings = Settings(
        redis_url=redis_url, data_dir=tmp_path / "data", config_dir=tmp_path / "config", admin_api_key=ADMIN_KEY,
        shutdown_grace=5.0,
    )  # fmt: skip
    tenants = Tenants(settings)
    tenants.load()
    stop = asyncio.Event()
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    async with AsyncExitStack() as stack:
        manager = assembly.memory_of(settings, tenants, redis_url, clock=clock)
        stack.push_async_callback(manager.close)
        door = await stack.enter_async_context(front_door.door(settings, tenants, redis_url, ADMIN_KEY, clock=clock))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        serving = asyncio.create_task(serve(door, "127.0.0.1", 0, stop, bound.set_result))
        try:
            yield Api(f"http://127.0.0.1:{await bound}", http, manager, settings)
        finally:
            stop.set()
            await serving
