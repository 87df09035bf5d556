"""Clean-up of the files looks at whom something is due for and at nobody else; and finds also who was never listed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memory import MemoryConfig, MemoryManager, facts, parts
from memory.config import MemoryRules
from memory.errors import CatalogUnavailable
from memory.index import file as index_file
from memory.long_term.files import Files
from memory.models import Changes
from memory.protocols import LongTerm
from memory.retention import Retention
from tests.contracts.longterm import NOW, TENANT, LongTermContract, event, ids

OLD = NOW - timedelta(days=400)
LATER = NOW + timedelta(days=366)


class Rules:
    """A tenant's, which may change."""

    def __init__(self) -> None:
        self.now = MemoryRules()

    def __call__(self, tenant: str) -> MemoryRules:
        return self.now


@pytest.fixture
def rules() -> Rules:
    return Rules()


@pytest.fixture
async def manager(tmp_path: Path, rules: Rules) -> AsyncIterator[MemoryManager]:
    config = MemoryConfig(lm_base_path=tmp_path / "longterm")
    manager = MemoryManager(config, rules=rules, clock=lambda: NOW)
    yield manager
    await manager.close()


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    users: list[str] = []
    compact = Files.compact

    def noting(self: Files, tenant: str, user: str, now: Any) -> int:
        users.append(user)
        return compact(self, tenant, user, now)

    monkeypatch.setattr(Files, "compact", noting)
    return users


def by_hand(tmp_path: Path, user: str, **whole: Any) -> None:
    path = tmp_path / "longterm" / TENANT / f"{user}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"tenant_id": TENANT, "user_id": user, **whole}))


def plain(number: int, at: Any) -> dict[str, Any]:
    return event(number, at=at).model_dump(mode="json")


class TestContract:
    """As the product puts them together."""

    @pytest.fixture
    async def another(self, tmp_path: Path) -> AsyncIterator[Callable[..., LongTerm]]:
        made: list[LongTerm] = []

        def store(retention: Any = None) -> LongTerm:
            def of(tenant: str) -> MemoryRules:
                asked: Retention = retention(tenant) if retention else Retention()
                return MemoryRules(max_events_per_user=asked.max_events, event_retention_days=asked.days)

            made.append(parts.make_longterm(MemoryConfig(lm_base_path=tmp_path / "longterm"), of, lambda: NOW))
            return made[-1]

        yield store
        for one in made:
            await one.close()

    @pytest.fixture
    def store(self, another: Callable[..., LongTerm]) -> LongTerm:
        return another()

    test_rules = LongTermContract.test_each_tenant_may_have_its_own_rules
    test_retention = LongTermContract.test_retention_over_everybody_counts_what_went
    test_fading = LongTermContract.test_who_may_have_faded_facts_is_among_those_to_be_looked_at


class TestRetention:
    async def test_who_has_nothing_too_old_is_not_looked_at(self, manager: MemoryManager, looked_at: list[str]) -> None:
        for number in range(20):
            await manager.longterm.save_events(TENANT, f"line:U{number}", [event(number)])
        for user in ("line:U3", "line:U7"):
            await manager.longterm.save_events(TENANT, user, [event(30, at=OLD), event(31, at=OLD)])
        assert await manager.longterm.expire(TENANT, NOW) == 4
        assert sorted(looked_at) == ["line:U3", "line:U7"]
        looked_at.clear()
        for _ in range(2):
            assert await manager.longterm.expire(TENANT, NOW) == 0
        assert looked_at == []
        assert await manager.longterm.expire(TENANT, LATER) == 20
        assert len(looked_at) == 20

    async def test_who_changed_since_is_known_to_have(self, manager: MemoryManager, looked_at: list[str]) -> None:
        await manager.longterm.save_events(TENANT, "line:U1", [event(1)])
        assert await manager.longterm.expire(TENANT, NOW) == 0
        await manager.longterm.save_events(TENANT, "line:U2", [event(2)])
        await manager.longterm.save_events(TENANT, "line:U2", [event(3, at=OLD)])
        assert await manager.longterm.expire(TENANT, NOW) == 1
        assert looked_at == ["line:U2"]
        await manager.longterm.forget(TENANT, "line:U1")
        assert await manager.longterm.expire(TENANT, LATER) == 1  # of the one who is left
        assert await manager.longterm.load(TENANT, "line:U1") is None

    async def test_stricter_rules_count_for_everybody_and_milder_ones_look_at_nobody_again(
        self, manager: MemoryManager, rules: Rules, looked_at: list[str], tmp_path: Path
    ) -> None:
        await manager.longterm.save_events(TENANT, "line:U1", [event(n) for n in range(5)])
        by_hand(tmp_path, "line:U2", events=[plain(9, NOW - timedelta(days=40))])
        assert await manager.longterm.expire(TENANT, NOW) == 0
        rules.now = MemoryRules(max_events_per_user=3, event_retention_days=30)
        assert await manager.longterm.expire(TENANT, NOW) == 3
        assert sorted(looked_at) == ["line:U1", "line:U2"]
        assert await ids(manager.longterm, TENANT, "line:U1") == ["e2", "e3", "e4"]
        looked_at.clear()
        rules.now = MemoryRules()
        assert await manager.longterm.expire(TENANT, NOW) == 0
        assert looked_at == []

    async def test_what_this_version_cant_understand_grows_old_as_well(
        self, manager: MemoryManager, tmp_path: Path
    ) -> None:
        strange = {"event_type": "OF_A_NEWER_VERSION", "timestamp": NOW.isoformat(), "payload": {}}
        by_hand(tmp_path, "line:U1", events=[strange, plain(1, NOW + timedelta(days=30))])
        assert await manager.longterm.expire(TENANT, NOW) == 0
        assert await manager.longterm.expire(TENANT, LATER) == 1
        assert await ids(manager.longterm, TENANT, "line:U1") == ["e1"]

    async def test_a_restored_folder_is_found_when_the_index_is_made_and_later_by_a_comparison(
        self, manager: MemoryManager, tmp_path: Path
    ) -> None:
        by_hand(tmp_path, "line:U1", events=[plain(1, OLD), plain(2, NOW)])
        assert await manager.longterm.expire(TENANT, NOW) == 1
        by_hand(tmp_path, "line:U2", events=[plain(3, OLD)])
        by_hand(tmp_path, "line:U1", events=[plain(4, OLD), plain(5, OLD)])
        assert await manager.refresh_lists(TENANT) == 2
        assert await manager.longterm.expire(TENANT, NOW) == 3

    @pytest.mark.parametrize("broken", ["no folder", "notes that can't be read"])
    async def test_without_an_index_everybody_is_looked_at(
        self, manager: MemoryManager, looked_at: list[str], tmp_path: Path, broken: str
    ) -> None:
        if broken == "no folder":
            (tmp_path / "index").write_text(broken)
        else:
            (tmp_path / "index" / f"{TENANT}.changed").mkdir(parents=True)
        for user in ("line:U1", "line:U2"):
            by_hand(tmp_path, user, events=[plain(1, OLD if user == "line:U1" else NOW)])
        assert await manager.longterm.expire(TENANT, NOW) == 1
        assert looked_at == ["line:U1", "line:U2"]
        assert [user async for user in manager.longterm.fading(TENANT, NOW)] == ["line:U1", "line:U2"]


async def test_who_has_faded_facts_and_nobody_else_is_asked_for_them(manager: MemoryManager) -> None:
    def told(type: str, pinned: bool = False) -> Changes:
        return Changes(facts=[facts.new(now=NOW, key="k", value=1, type=facts.FactType(type), pinned=pinned)])

    await manager.longterm.change(TENANT, "line:U1", lambda _: told("context"))
    await manager.longterm.change(TENANT, "line:U2", lambda _: told("preference"))
    await manager.longterm.change(TENANT, "line:U3", lambda _: told("context", pinned=True))
    await manager.longterm.change_shared(TENANT, lambda _: told("context"))

    async def fading(days: int) -> list[str]:
        return [user async for user in manager.longterm.fading(TENANT, NOW + timedelta(days=days))]

    assert await fading(1) == []
    assert await fading(200) == ["line:U1"]
    assert await fading(36500) == ["line:U1", "line:U2"]


async def test_a_comparison_takes_its_share_of_the_time_and_no_more(
    manager: MemoryManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await manager.longterm.save_events(TENANT, "line:U1", [event(1)])
    assert await manager.refresh_lists(TENANT) == 1
    monkeypatch.setattr(index_file, "_CHEAP", -1.0)
    monkeypatch.setattr(index_file, "_SHARE", 1e9)
    by_hand(tmp_path, "line:U2", events=[plain(2, NOW)])
    await manager.longterm.save_events(TENANT, "line:U1", [event(3)])
    assert await manager.refresh_lists(TENANT) == 1  # who is known to have changed
    assert await manager.catalog.refresh(TENANT) == 1  # who asks for it gets a comparison
    by_hand(tmp_path, "line:U3", events=[plain(4, NOW)])
    assert await manager.refresh_lists(TENANT) == 0
    monkeypatch.setattr(index_file, "_SHARE", 0)
    assert await manager.refresh_lists(TENANT) == 1


async def test_what_cant_be_listed_anew_waits_for_the_next_time(
    manager: MemoryManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand(tmp_path, "line:U1", events=[plain(1, OLD)])

    def unavailable(*_: object) -> None:
        raise CatalogUnavailable("the disk is full")

    monkeypatch.setattr(index_file.IndexFile, "take_again", unavailable)
    assert await manager.longterm.expire(TENANT, NOW) == 1
    monkeypatch.undo()
    assert await manager.longterm.expire(TENANT, NOW) == 0
