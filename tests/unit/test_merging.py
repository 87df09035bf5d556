"""Two ids become one person while others are at work on them: nothing is lost, and both lead to one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory import MemoryConfig, MemoryManager, MemoryManagerFactory
from memory import facts as facts_of
from memory.identities import merged, moved
from memory.models import LongTermMemory

SHOP = "shop"
NOW = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)
Managers = tuple[MemoryManager, MemoryManager, MemoryManager]


@pytest.fixture
async def managers(tmp_path: Path) -> AsyncIterator[Managers]:
    """As three processes would have them, over one folder."""
    config = MemoryConfig(lm_base_path=str(tmp_path / "longterm"))
    first, second, third = (MemoryManagerFactory.create_from_config(config) for _ in range(3))
    yield first, second, third
    for manager in (first, second, third):
        await manager.close()


async def known(manager: MemoryManager, *ids: str) -> tuple[set[str], dict[str, object]]:
    """Whom these ids lead to, and what is known of the first of those."""
    whose = {await manager.knowledge.canonical(SHOP, one) for one in ids}
    memory = await manager.longterm.load(SHOP, sorted(whose)[0])
    return whose, dict(memory.attributes) if memory else {}


@pytest.mark.parametrize("number", range(5))
async def test_two_who_link_with_each_other_at_once_are_one_person_with_all_they_had(
    managers: Managers, number: int
) -> None:
    one, other = f"telegram:{number}", f"line:U{number}"
    await managers[0].remember(SHOP, one, key="size", value="M")
    await managers[0].remember(SHOP, other, key="city", value="Phuket")
    ends = await asyncio.gather(
        managers[0].link_users(SHOP, one, other), managers[1].link_users(SHOP, other, one), return_exceptions=True
    )
    whose, attributes = await known(managers[2], one, other)
    assert len(whose) == 1
    assert set(ends) == whose
    assert attributes == {"size": "M", "city": "Phuket"}


async def test_three_who_link_in_a_circle_are_one_person(managers: Managers) -> None:
    ids = ["telegram:1", "line:U1", "web:one"]
    for at, one in enumerate(ids):
        await managers[0].remember(SHOP, one, key=f"key{at}", value=str(at))
    links = (manager.link_users(SHOP, ids[at], ids[at - 1]) for at, manager in enumerate(managers))
    await asyncio.gather(*links)
    whose, attributes = await known(managers[0], *ids)
    assert len(whose) == 1
    assert attributes == {"key0": "0", "key1": "1", "key2": "2"}


async def test_what_is_remembered_while_two_ids_become_one_is_known_of_the_one(managers: Managers) -> None:
    await managers[0].remember(SHOP, "telegram:1", key="seed", value="x")

    async def remembers(manager: MemoryManager, name: str) -> None:
        for at in range(8):
            await manager.remember(SHOP, "telegram:1", key=f"{name}{at}", value=str(at))

    link = managers[2].link_users(SHOP, "telegram:1", "line:U1")
    await asyncio.gather(remembers(managers[0], "a"), link, remembers(managers[1], "b"))
    whose, attributes = await known(managers[0], "telegram:1", "line:U1")
    assert whose == {"line:U1"}
    assert set(attributes) == {"seed", *(f"{name}{at}" for name in "ab" for at in range(8))}


def test_a_merge_that_a_crash_cut_short_takes_along_what_came_since_and_counts_nothing_twice() -> None:
    def told(key: str) -> facts_of.Fact:
        return facts_of.new(now=NOW, key=key, value="x", owner="telegram:1")

    person = {"canonical_id": "telegram:1", "first_seen_at": NOW, "last_seen_at": NOW, "messages": 3}
    other = LongTermMemory.model_validate(
        {"tenant_id": SHOP, "user_id": "telegram:1", "facts": [told("a")], "person": person, "history_summary": "then"}
    )
    cut_short = merged(LongTermMemory(tenant_id=SHOP, user_id="line:U1"), other, NOW)
    since = other.model_copy(update={"facts": [*other.facts, told("b")]})
    whole = merged(cut_short, since, NOW)
    assert set(whole.attributes) == {"a", "b"}
    assert whole.history_summary == "then"
    assert whole.person is not None
    assert whole.person.messages == 3
    assert len(whole.person.parts["telegram:1"]["memory"]["facts"]) == 2
    with pytest.raises(ValueError, match="merged already"):
        merged(whole, moved(since, "line:U1", NOW), NOW)


async def test_an_export_has_what_was_put_away_of_every_id(managers: Managers) -> None:
    manager = managers[0]
    for user, key in (("telegram:1", "old"), ("line:U1", "older")):
        await manager.remember(SHOP, user, key="size", value="M")
        await manager.archive.add(
            SHOP, user, [facts_of.new(now=NOW, key=key, value="x", owner=user)], datetime.now(UTC)
        )
    await manager.link_users(SHOP, "telegram:1", "line:U1")
    value = await manager.export(SHOP, "line:U1")
    assert value is not None
    assert [one["key"] for one in value["archived"]] == ["older", "old"]


async def test_events_written_by_hand_go_along_and_come_back(managers: Managers, tmp_path: Path) -> None:
    folder = tmp_path / "longterm" / SHOP
    folder.mkdir(parents=True)
    event = {"event_type": "COMPLAINT", "payload": {"original_message": "broken cup"}, "importance_score": 0.9}
    by_hand = {"tenant_id": SHOP, "user_id": "telegram:1", "events": [event | {"timestamp": "2026-03-01T00:00:00Z"}]}
    (folder / "telegram:1.json").write_text(json.dumps(by_hand))

    async def told(user: str) -> list[str]:
        memory = await managers[1].longterm.load(SHOP, user)
        return [one.payload["original_message"] for one in memory.events] if memory else []

    await managers[0].link_users(SHOP, "telegram:1", "line:U1")
    assert await told("line:U1") == ["broken cup"]
    await managers[0].unlink_user(SHOP, "telegram:1")
    assert (await told("line:U1"), await told("telegram:1")) == ([], ["broken cup"])


@pytest.mark.parametrize(
    "odd",
    [
        {"merged": [1]},
        {"merged": {"x": 5}},
        {"said": [1]},
        {"said": {"u": 5}},
        {"said": {"u": [5]}},
        {"said": {"u": [{"role": "user"}]}},
        {"archived": 5},
        {"archived": [5]},
        {"memory": 5},
        {"memory": {"facts": 5}},
        {"user_id": ""},
    ],
    ids=str,
)
async def test_what_is_no_export_is_refused_and_nothing_of_it_kept(
    managers: Managers, tmp_path: Path, odd: dict[str, object]
) -> None:
    value = {"format": "chat-chat.memory/1", "user_id": "telegram:1", "memory": {"attributes": {"size": "M"}}}
    with pytest.raises(ValueError):  # noqa: PT011 - each says something else
        await managers[0].import_(SHOP, value | odd)
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []


async def test_a_value_that_no_file_could_give_back_is_refused_alone(managers: Managers) -> None:
    deep: object = "x"
    for _ in range(900):
        deep = [deep]
    values = [deep, 10**400, float("nan"), "plain"]
    told = (managers[0].remember(SHOP, "line:U1", key=f"k{at}", value=one) for at, one in enumerate(values))
    ends = await asyncio.gather(*told, return_exceptions=True)
    assert [isinstance(one, ValueError) for one in ends] == [True, True, False, False]
    _, attributes = await known(managers[1], "line:U1")
    assert attributes == {"k2": "NaN", "k3": "plain"}
