"""How long what is kept stays, also of those who never come back and of tenants that are gone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from config.settings import Settings
from config.tenants import Tenants
from gateway import app, assembly
from gateway import cleanup as cleaning
from gateway.cleanup import Report
from gateway.departed import GRACE
from gateway.inbox.spool import BROKEN_FOR
from memory.errors import LongTermUnavailable
from memory.keys import ConversationRef
from memory.long_term.json_files import JsonFiles
from memory.memory_manager import MemoryManager
from memory.models import Message
from processors.models import EventType, MemoryEvent
from tests.house import shop

LONG_AGO = datetime(2024, 3, 1, tzinfo=UTC)
HER = "line:U1"


@dataclass
class Home:
    """Tenants' files, data and a clock."""

    folder: Path
    redis_url: str
    now: datetime = LONG_AGO

    def __post_init__(self) -> None:
        self.settings = Settings(
            redis_url=self.redis_url, data_dir=self.folder / "data", config_dir=self.folder / "config"
        )
        (self.folder / "config" / "tenants").mkdir(parents=True)

    def file(self, tenant: str) -> Path:
        return self.folder / "config" / "tenants" / f"{tenant}.yaml"

    def open_shop(self, tenant: str, **memory: int) -> None:
        own = {"line-main": {"platform": "line", "channel_secret": "s", "channel_access_token": f"token-{tenant}"}}
        self.file(tenant).write_text(yaml.safe_dump(shop(memory=memory, channels=own)), encoding="utf-8")

    def tenants(self) -> Tenants:
        tenants = Tenants(self.settings)
        tenants.load()
        return tenants

    async def remember(self, tenant: str) -> None:
        manager = assembly.memory_of(self.settings, self.tenants(), self.redis_url, clock=lambda: self.now)
        event = MemoryEvent(event_type=EventType.INQUIRY, importance_score=0.9, timestamp=self.now, event_id="e1")
        await manager.saving.save(tenant, HER, (event,))
        said: Message = {"role": "user", "message": "hello", "timestamp": self.now.isoformat(), "message_id": "e1"}
        await manager.transcripts.append(ConversationRef(tenant, HER), [said])
        await manager.close()

    async def kept(self, tenant: str) -> tuple[int, int]:
        """Events and lines of the transcript."""
        manager = assembly.memory_of(self.settings, self.tenants(), self.redis_url, clock=lambda: self.now)
        memory = await manager.longterm.load(tenant, HER)
        lines = await manager.transcripts.everything(tenant, HER)
        await manager.close()
        return len(memory.events) if memory else 0, len(lines)

    async def clean_up(self) -> Report:
        tenants = self.tenants()
        async with app.tidy(self.settings, tenants, self.redis_url, clock=lambda: self.now) as cleanup:
            return await cleanup.run()


@pytest.fixture
def home(tmp_path: Path, redis_url: str) -> Home:
    return Home(tmp_path, redis_url)


async def test_events_of_a_customer_who_never_comes_back_grow_too_old_as_well(home: Home) -> None:
    home.open_shop("shop", event_retention_days=30)
    await home.remember("shop")
    home.now += timedelta(days=29)
    assert (await home.clean_up()).events == 0
    home.now += timedelta(days=2)
    assert (await home.clean_up()).events == 1
    assert await home.kept("shop") == (0, 1)


async def test_of_a_tenant_that_is_gone_the_environments_days_count(home: Home) -> None:
    home.open_shop("shop")
    home.open_shop("old", event_retention_days=3000, transcript_retention_days=3000)
    await home.remember("old")
    home.now += timedelta(days=364)
    await home.clean_up()
    assert await home.kept("old") == (1, 1)
    home.file("old").unlink()
    await home.clean_up()
    assert await home.kept("old") == (1, 1)  # it may be back in a minute
    home.now += GRACE
    report = await home.clean_up()
    assert (report.events, report.transcript_messages) == (1, 1)
    assert await home.kept("old") == (0, 0)


async def test_of_a_tenant_whose_file_cant_be_read_nothing_is_removed(home: Home) -> None:
    home.open_shop("shop")
    home.open_shop("old", event_retention_days=3000, transcript_retention_days=3000)
    await home.remember("old")
    home.file("old").write_text("name: [", encoding="utf-8")
    for _ in range(3):
        home.now += timedelta(days=400)
        await home.clean_up()
    manager = assembly.memory_of(home.settings, home.tenants(), home.redis_url, clock=lambda: home.now)
    await manager.longterm.compact("old", HER, home.now)  # as at the end of a session
    await manager.close()
    assert await home.kept("old") == (1, 1)


async def test_what_takes_long_is_done_again_when_it_is_a_small_share_of_the_time(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.open_shop("shop", transcript_retention_days=30)
    home.open_shop("other", transcript_retention_days=30)
    monkeypatch.setattr(cleaning, "CHEAP", -1.0)
    monkeypatch.setattr(cleaning, "SHARE", 1e9)
    async with app.tidy(home.settings, home.tenants(), home.redis_url, clock=lambda: home.now) as cleanup:
        await cleanup.run("shop")
        await home.remember("shop")
        await home.remember("other")
        home.now += timedelta(days=31)
        assert (await cleanup.run()).transcript_messages == 1  # the other shop's
        assert await home.kept("shop") == (1, 1)
        monkeypatch.setattr(cleaning, "CHEAP", 1e9)
        cleanup._again.clear()
        assert (await cleanup.run()).transcript_messages == 1
        await home.remember("shop")
        home.now += timedelta(days=31)
        assert (await cleanup.run()).transcript_messages == 1


async def test_unreadable_files_of_the_spool_are_removed_after_a_month(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    home.open_shop("shop")
    spool = home.settings.data_dir / "spool"
    spool.mkdir(parents=True)
    broken, waiting = spool / "a-b.broken", spool / "c-d.json"
    broken.touch()
    waiting.touch()
    home.now = datetime.fromtimestamp(os.stat(broken).st_ctime + BROKEN_FOR - 1, UTC)
    assert ((await home.clean_up()).spool_files, broken.exists()) == (0, True)
    home.now += timedelta(seconds=2)
    assert ((await home.clean_up()).spool_files, broken.exists(), waiting.exists()) == (1, False, True)
    assert [record.message for record in caplog.records if "a-b.broken" in record.message] != []


async def test_what_is_odd_in_one_tenants_data_keeps_no_other_waiting(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for tenant in ("odd", "plain"):
        home.open_shop(tenant, event_retention_days=30, transcript_retention_days=30)
        await home.remember(tenant)
    expire, transcripts = JsonFiles.expire, MemoryManager.prune_transcripts

    async def odd_events(self: JsonFiles, tenant: str, now: datetime) -> int:
        if tenant == "odd":
            raise OverflowError(f"words of {tenant}")
        return await expire(self, tenant, now)

    async def odd_talks(self: MemoryManager, tenant: str, days: int) -> int:
        if tenant == "odd":
            raise LongTermUnavailable("the disk is gone")
        return await transcripts(self, tenant, days)

    monkeypatch.setattr(JsonFiles, "expire", odd_events)
    monkeypatch.setattr(MemoryManager, "prune_transcripts", odd_talks)
    home.now += timedelta(days=40)
    report = await home.clean_up()
    assert (report.events, report.transcript_messages) == (1, 1)
    assert await home.kept("plain") == (0, 0)
    told = [one.getMessage() for one in caplog.records if one.levelname == "ERROR"]
    assert [one.partition(" waits: ")[0] for one in told] == ["retention of transcripts", "retention of events"]
    assert "words of odd" not in "".join(told)
    monkeypatch.undo()
    assert (await home.clean_up()).events == 1


async def test_a_clock_that_was_ahead_for_a_while_holds_nothing_up(home: Home) -> None:
    home.open_shop("shop", event_retention_days=30)
    tenants = home.tenants()
    async with app.tidy(home.settings, tenants, home.redis_url, clock=lambda: home.now) as cleanup:
        home.now += timedelta(days=400)
        await cleanup.run()
        home.now = LONG_AGO + timedelta(days=31)
        path = home.settings.data_dir / "longterm" / "shop" / f"{HER}.json"  # by hand: nobody tells of it
        path.parent.mkdir(parents=True, exist_ok=True)
        event = MemoryEvent(event_type=EventType.INQUIRY, importance_score=0.9, timestamp=LONG_AGO, event_id="e1")
        path.write_text(f'{{"user_id": "{HER}", "events": [{event.model_dump_json()}]}}')
        assert (await cleanup.run()).events == 1
