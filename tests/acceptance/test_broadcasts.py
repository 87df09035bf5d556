"""A worker that is killed in the middle of a broadcast, as a real process."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from config.settings import Settings
from config.texts import Text
from gateway.broadcast_commands import desk_of
from gateway.broadcasts.draft import Audience, Draft
from gateway.broadcasts.store import BroadcastStore
from memory import MemoryConfig, MemoryManager
from processors.models import EventType, MemoryEvent
from tests.acceptance.processes import RedisServer, stage, until
from tests.house import shop

pytestmark = pytest.mark.slow

PEOPLE = [f"U{number:032x}" for number in range(30)]


async def test_after_a_kill_another_worker_goes_on_and_each_has_it_once(tmp_path: Path, server: RedisServer) -> None:
    tenant = shop(broadcasts={"quiet_hours": False})
    async with stage(tmp_path, redis_url=server.url, tenants={"shop": tenant}, llm=False) as s:
        manager = MemoryManager(MemoryConfig(lm_base_path=s.data / "longterm"))
        for number, user in enumerate(PEOPLE):
            event = MemoryEvent(
                event_type=EventType.TRANSACTION,
                payload={"original_message": "two lattes", "language": "en"},
                importance_score=0.7,
                timestamp=datetime.now(UTC),
                event_id=f"line-main:{number}",
            )
            await manager.longterm.save_events("shop", f"line:{user}", [event])
        await manager.close()
        settings = Settings(
            redis_url=server.url, data_dir=s.data, config_dir=s.folder / "config", line_api_base=s.urls["line"]
        )
        draft = Draft(to=Audience(events=(EventType.TRANSACTION,)), message=Text(th="Half price", en="Half price"))
        async with desk_of(settings, "shop") as (desk, shop_as_read):
            report, _ = await desk.send(shop_as_read, draft, by="test", name="news")
        assert report.waiting == len(PEOPLE)
        await s.script("line", faults=[{"delay": 0.2, "times": 1000, "on": "/push"}])  # so that it is met in the middle

        async def shown() -> Counter[str]:
            delivered = (await s.delivered("line"))["delivered"]
            return Counter({user: len(delivered[user]) for user in PEOPLE if user in delivered})

        async def begun() -> bool:
            return 3 <= len(await shown())

        store = BroadcastStore(s.data)
        first = await s.worker()
        await until(begun)
        await first.kill()
        (left,) = store.running("shop")
        assert store.waiting("shop", left.id) or store.under_way("shop")
        await s.worker()

        async def done() -> bool:
            found = store.get("shop", "news")
            return found is not None and found.state == "done"

        await until(done)
        assert store.counts("shop", "news") == {("sent", ""): len(PEOPLE)}
        assert await shown() == Counter(PEOPLE)
