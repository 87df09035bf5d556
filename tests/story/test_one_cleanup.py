"""However many call for clean-up, one does it at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml
from redis.asyncio import Redis

from config.settings import Settings
from config.tenants import Tenants
from gateway import app
from gateway import cleanup as cleaning
from memory.memory_manager import MemoryManager
from tests.house import shop


async def test_of_two_at_once_one_does_it_and_keeps_the_lease_while_it_works(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config" / "tenants").mkdir(parents=True)
    (tmp_path / "config" / "tenants" / "shop.yaml").write_text(yaml.safe_dump(shop()))
    settings = Settings(redis_url=redis_url, data_dir=tmp_path / "data", config_dir=tmp_path / "config")
    tenants = Tenants(settings)
    tenants.load()
    begun, may_end = asyncio.Event(), asyncio.Event()
    ended = MemoryManager.cleanup_expired_sessions

    async def slow(self: MemoryManager, tenant: str | None = None) -> int:
        begun.set()
        await may_end.wait()
        return await ended(self, tenant)

    monkeypatch.setattr(MemoryManager, "cleanup_expired_sessions", slow)
    monkeypatch.setattr(cleaning, "LOCK_FOR", 9.0)
    async with (
        app.tidy(settings, tenants, redis_url) as first,
        app.tidy(settings, tenants, redis_url) as second,
        Redis.from_url(redis_url) as client,
    ):
        working = asyncio.create_task(first.run())
        await begun.wait()
        assert (await second.run()).lines() == ["another clean-up is at work; nothing to do here"]
        left = await client.pttl(cleaning.LOCK)
        async with asyncio.timeout(60):  # it is renewed: more is left than before
            while (now := await client.pttl(cleaning.LOCK)) <= left and now > 0:
                left = now
                await asyncio.sleep(0.05)
        assert now > 0
        may_end.set()
        assert (await working).elsewhere is False
        assert (await second.run()).elsewhere is False
