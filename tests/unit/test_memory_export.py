"""What is taken along is everything, and arrives as it was."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from config.settings import Settings
from gateway import memory_commands
from gateway.cli import Failed
from memory import MemoryManager
from memory.config import MemoryConfig as Config

SHOP, HER = "store_001", "line:U1"


class Clock:
    now = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def at(folder: Path, clock: Clock) -> MemoryManager:
    return MemoryManager(Config(lm_base_path=folder / "longterm"), clock=clock)


async def lived(folder: Path) -> MemoryManager:
    """A person with everything: facts, history, an episode, a second id, something pruned."""
    clock = Clock()
    manager = at(folder, clock)
    await manager.remember(SHOP, HER, key="topic", value="q4", type="context")
    clock.now += timedelta(days=200)
    await manager.prune(SHOP, HER)
    for said in ("My name is Ploy", "I moved to Bangkok", "I moved to Chiang Mai"):
        await manager.add_message_to_context(SHOP, HER, said)
    await manager.add_message_to_context(SHOP, HER, "side", agent="sales", conversation_id="c2")
    clock.now += timedelta(hours=2)
    await manager.cleanup_expired_sessions()
    await manager.rate(SHOP, HER, 5, "ดีมาก")
    await manager.remember(SHOP, "telegram:7", key="size", value="M", pinned=True)
    await manager.merge_users(SHOP, "telegram:7", HER)
    return manager


async def test_an_export_is_complete_and_imported_elsewhere_gives_the_same_export_back(tmp_path: Path) -> None:
    here, there = await lived(tmp_path / "here"), at(tmp_path / "there", Clock())
    value = await here.export(SHOP, HER)
    assert value is not None
    text = json.dumps(value, ensure_ascii=False)
    assert all(word in text for word in ("Ploy", "Bangkok", "Chiang Mai", "side", "q4", "ดีมาก", "telegram:7"))
    assert await there.import_(SHOP, json.loads(text)) == HER
    assert await there.export(SHOP, HER) == value
    assert await there.export(SHOP, "telegram:7") == value
    await there.import_(SHOP, json.loads(text))
    assert await there.export(SHOP, HER) == value
    assert await there.recall(SHOP, "telegram:7", "city") == "city = Chiang Mai"
    for manager in (here, there):
        await manager.close()


async def test_what_is_no_export_is_refused(tmp_path: Path) -> None:
    manager = at(tmp_path, Clock())
    with pytest.raises(ValueError, match="no export"):
        await manager.import_(SHOP, {"user_id": HER})
    assert await manager.export(SHOP, HER) is None
    await manager.close()


async def test_an_import_says_how_far_it_came_and_repeats_nobody_s_words(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", config_dir=tmp_path, embeddings="none")
    good = {"format": "chat-chat.memory/1", "tenant_id": "shop", "user_id": "line:U1", "memory": {}}
    good["memory"] = {"tenant_id": "shop", "user_id": "line:U1", "events": []}
    bad = good | {"memory": {"tenant_id": "shop", "user_id": "line:U1", "events": "somebody's words"}}
    file = tmp_path / "people.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(good).encode() + b"\r\n\r\n" + json.dumps(bad).encode())
    with pytest.raises(Failed) as told:
        await memory_commands.import_(settings, "shop", [file])
    wrong = "events: Input should be a valid list"
    assert told.value.message == f"{file}, line 3: {wrong}; the 1 before it stand"
    file.write_bytes(b"\n")
    assert await memory_commands.import_(settings, "shop", [file]) == ["nothing taken in: there is nothing in it"]


async def test_an_export_of_everybody_at_a_mistyped_shop_is_no_empty_file(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", config_dir=tmp_path, embeddings="none")
    with pytest.raises(Failed, match=r"there is no tenant file shpo\.yaml"):
        await memory_commands.export(settings, "shpo", None)
    (tmp_path / "tenants").mkdir()
    (tmp_path / "tenants" / "shop.yaml").touch()
    assert await memory_commands.export(settings, "shop", None) == []


async def test_the_commands_show_search_export_and_import(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    here, there = (Settings(data_dir=tmp_path / name, config_dir=tmp_path / "config") for name in ("here", "there"))
    file = tmp_path / "here" / "longterm" / SHOP / "line:U1.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"tenant_id": SHOP, "user_id": HER, "events": [], "attributes": {"city": "Bangkok"}}))
    assert await memory_commands.show(here, SHOP, HER) == ["line:U1", "- city = Bangkok  (fact, high)"]
    (found,) = await memory_commands.search(here, SHOP, HER, "bangkok", 10)
    assert found.endswith("fact  city: Bangkok")
    exported = await memory_commands.export(here, SHOP, None)
    (tmp_path / "all.jsonl").write_text("\n".join(exported))
    with pytest.raises(Failed, match="nothing is known of line:U1 at store_001"):
        await memory_commands.show(there, SHOP, HER)
    assert await memory_commands.import_(there, SHOP, [tmp_path / "all.jsonl"]) == ["line:U1 taken in"]
    (again,) = map(json.loads, await memory_commands.export(there, SHOP, HER))
    assert again["memory"]["attributes"] == {"city": "Bangkok"}
    (tmp_path / "all.jsonl").write_text('{"format": "another"}')
    with pytest.raises(Failed, match="line 1: no export"):
        await memory_commands.import_(there, SHOP, [tmp_path / "all.jsonl"])


@pytest.mark.parametrize("line", ["null", "[1]", "5", "{}"])
async def test_what_is_no_export_is_refused_in_plain_words(line: str, tmp_path: Path) -> None:
    file = tmp_path / "taken.jsonl"
    file.write_text(line + "\n")
    settings = Settings(data_dir=tmp_path / "data", config_dir=tmp_path / "config")
    with pytest.raises(Failed, match="line 1: no export: its format is not"):
        await memory_commands.import_(settings, SHOP, [file])
