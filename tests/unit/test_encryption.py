"""What lies on disk while it is encrypted: nothing of what was said, and everything to whoever has the key."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

import pytest

from config.settings import Settings, SettingsError
from config.tenants import Tenants
from config.vault import Damaged, Locked, Vault, key_id, key_of, parse_keys
from gateway import assembly, encryption
from gateway.inbox.base import Policy
from gateway.inbox.spool import Spool
from gateway.messages import InboundMessage
from gateway.moving import commands as moving
from memory import MemoryManager, keys
from memory.conversations import Conversation
from memory.errors import LongTermUnavailable
from memory.facts import new as new_fact
from memory.keys import ConversationRef
from memory.listing import Wanted
from processors import corrections
from processors.corrections import Correction
from processors.models import EventType
from tests.story.test_every_byte import bytes_at_rest
from tests.unit.test_recall import Everything

FIRST, SECOND, OTHER = (bytes([number]) * 32 for number in (1, 2, 3))
ANN = "line:U4af"
NOW = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)
SECRETS = (b"pistachio", "พิสตาชิโอ".encode(), b"picture of ann")
TENANT = "name: Shop\nchannels: {web: {platform: web}}\n"


def settings(folder: Path, *main: bytes, **more: object) -> Settings:
    tenants = folder / "config" / "tenants"
    tenants.mkdir(parents=True, exist_ok=True)
    if not (tenants / "shop.yaml").exists():
        (tenants / "shop.yaml").write_text(TENANT, "utf-8")
    given = Settings(data_dir=folder / "data", config_dir=folder / "config", encryption_key=main)
    return replace(given, **more)  # type: ignore[arg-type]


def memory(given: Settings) -> MemoryManager:
    tenants = Tenants(given)
    tenants.load()
    config = assembly.memory_config(given, None)
    encryption.check(given)
    letters = Everything({}) if find_spec("numpy") else None
    return MemoryManager(config, rules=assembly.rules_of(tenants, config), embeddings=letters, clock=lambda: NOW)


async def told(given: Settings) -> None:
    """Ann leaves her words in every kind of file."""
    manager = memory(given)
    ref = ConversationRef("shop", ANN)
    for number, words in enumerate(("I am allergic to pistachio", "แพ้พิสตาชิโอ")):
        await manager.add_message_to_context("shop", ANN, words, metadata={"message_id": f"m{number}"})
    await manager.remember("shop", ANN, text="likes no pistachio", key="allergy", value="pistachio")
    await manager.longterm.compact("shop", ANN, NOW)
    await manager.remember("shop", ANN, text="a second pistachio", key="second", value="pistachio")
    await manager.archive.add("shop", ANN, [new_fact(now=NOW, key="old", value="pistachio", owner=ANN)], NOW)
    path = await manager.media.save("shop", ANN, "m1", "ogg", b"picture of ann")
    await manager.media.save_words("shop", path, "pistachio, she says")
    opened = Conversation("shop", "order-1", ANN, "admin", "pistachio order", NOW, NOW)
    await manager.conversations.open(opened)
    manager.unanswered.note("shop", ANN, "is there pistachio?", NOW)
    safe = manager.vault.of("shop")
    folder = keys.understanding_dir(given.data_dir / "understanding", "shop")
    corrections.add(folder, Correction("no pistachio", EventType.REQUEST, user=ANN), safe)
    message = InboundMessage(
        tenant="shop", channel="web", platform="web", event_id="s1", user_id=ANN, chat_id=ANN, text="pistachio waits"
    )
    for entry in Spool(given.data_dir / "spool", vault=manager.vault).add([(message, Policy())]):
        assert entry is not None
        entry.mark_begun(b'{"text":"pistachio"}')
        entry.release()
    await manager.catalog.page("shop", "facts", Wanted(q="pistachio"), limit=10)
    await manager.search("shop", ANN, "pistachio")
    assert (await manager.transcripts.tail(ref, 1))[0]["message"] == "แพ้พิสตาชิโอ"
    await manager.close()


async def everything_is_there(given: Settings) -> None:
    manager = memory(given)
    known = await manager.longterm.load("shop", ANN)
    assert known is not None
    assert {fact.text for fact in known.facts} >= {"likes no pistachio", "a second pistachio"}
    said = await manager.transcripts.everything("shop", ANN)
    assert [line["message"] for line in said] == ["I am allergic to pistachio", "แพ้พิสตาชิโอ"]
    assert [fact.value for fact in await manager.archive.load("shop", ANN)] == ["pistachio"]
    found = await manager.media.find("shop", ANN, "m1")
    assert found is not None
    assert (await manager.media.read("shop", found[0]), found[1]) == (b"picture of ann", "pistachio, she says")
    assert [one.name for one in await manager.conversations.all("shop")] == ["pistachio order"]
    assert [one.question for one in manager.unanswered.all("shop")] == ["is there pistachio?"]
    folder = keys.understanding_dir(given.data_dir / "understanding", "shop")
    assert [one.text for one in corrections.read(folder, manager.vault.of("shop"))] == ["no pistachio"]
    waiting = Spool(given.data_dir / "spool", vault=manager.vault).free()
    assert [entry.spooled.message.text for entry in waiting] == ["pistachio waits"]
    for entry in waiting:
        entry.release()
    listed = await manager.catalog.page("shop", "facts", Wanted(q="second pistachio"), limit=10)
    assert "a second pistachio" in [one["text"] for one in listed.records]
    await manager.close()


@contextmanager
def _bar(name: str) -> Iterator[object]:
    yield lambda done, of: None


def applied(given: Settings) -> list[str]:
    lines, whole = encryption.apply(given, None, _bar)  # type: ignore[arg-type]
    assert whole, lines
    return lines


def states(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file() and ".locks" not in str(one)}


async def test_no_byte_of_what_was_said_lies_on_an_encrypted_disk(tmp_path: Path) -> None:
    plain, sealed = settings(tmp_path / "plain"), settings(tmp_path / "sealed", FIRST)
    await told(plain)
    kinds = {name.split("/")[0] for name in bytes_at_rest(plain.data_dir, *SECRETS)}
    every = ("archive", "conversations", "index", "longterm", "media", "spool", "transcripts", "unanswered")
    assert kinds == {*every, "understanding"}
    await told(sealed)
    assert bytes_at_rest(sealed.data_dir, *SECRETS) == []
    spoken = base64.b64encode(b"I am allergic to pistachio")[4:-4]
    assert bytes_at_rest(sealed.data_dir, spoken) == []
    await everything_is_there(sealed)
    assert bytes_at_rest(sealed.data_dir, *SECRETS) == []


async def test_what_was_plain_is_encrypted_re_encrypted_and_decrypted_by_one_command(tmp_path: Path) -> None:
    await told(settings(tmp_path))
    first, second = settings(tmp_path, FIRST), settings(tmp_path, SECOND, FIRST)
    await everything_is_there(first)  # what was written before is read as it is
    used = (await memory(first).conversations.all("shop"))[0].used_at
    assert "0 of them" not in applied(first)[0]
    for entry in Spool(first.data_dir / "spool", vault=memory(first).vault).free():
        entry.remove()  # what waits there is not rewritten: it is on its way into the inbox
    assert bytes_at_rest(first.data_dir, *SECRETS) == []
    assert (await memory(first).conversations.all("shop"))[0].used_at == used
    before = states(first.data_dir)
    assert "0 of them changed" in applied(first)[0]
    assert states(first.data_dir) == before
    assert f"No file needs these keys any more: {key_id(FIRST)}" in applied(second)
    assert bytes_at_rest(first.data_dir, *SECRETS, key_id(FIRST).encode()) == []
    message = await memory(settings(tmp_path, SECOND)).transcripts.everything("shop", ANN)
    assert [line["message"] for line in message] == ["I am allergic to pistachio", "แพ้พิสตาชิโอ"]
    off = settings(tmp_path, SECOND, encrypt_at_rest=False)
    assert "Nothing here is encrypted any more; ENCRYPTION_KEY may go" in applied(off)
    assert bytes_at_rest(off.data_dir, key_id(SECOND).encode()) == []
    person = json.loads((off.data_dir / "longterm" / "shop" / f"{ANN}.json").read_bytes())
    assert person["user_id"] == ANN
    encryption.check(settings(tmp_path))


async def test_a_missing_key_is_one_clear_error_and_nothing_is_replaced(tmp_path: Path) -> None:
    await told(settings(tmp_path, FIRST))
    before = states(tmp_path / "data")
    for wrong in (settings(tmp_path), settings(tmp_path, OTHER)):
        with pytest.raises(SettingsError, match=f"longterm.* encrypted with key {key_id(FIRST)}.* put that key back"):
            encryption.check(wrong)
        vault = Vault(wrong.encryption_key)
        with pytest.raises(Locked, match=key_id(FIRST)):
            vault.of("shop").open((tmp_path / "data" / "longterm" / "shop" / f"{ANN}.json").read_bytes())
        # Also for who goes past that check, as a program that uses the memory alone.
        config = assembly.memory_config(wrong, None)
        manager = MemoryManager(config, clock=lambda: NOW)
        with pytest.raises(LongTermUnavailable, match=f"encrypted with key {key_id(FIRST)}"):
            await manager.longterm.load("shop", ANN)
        with pytest.raises(LongTermUnavailable, match="put that key back"):
            await manager.remember("shop", ANN, text="new", key="new", value="new")
        with pytest.raises(LongTermUnavailable):
            await manager.transcripts.everything("shop", ANN)
        with pytest.raises(LongTermUnavailable):
            await manager.archive.add("shop", ANN, [new_fact(now=NOW, key="x", value="y", owner=ANN)], NOW)
        with pytest.raises(LongTermUnavailable):
            manager.unanswered.note("shop", ANN, "and almonds?", NOW)
        assert await manager.longterm.expire("shop", NOW + timedelta(days=1)) == 0
        assert Spool(tmp_path / "data" / "spool", vault=manager.vault).free() == []
        await manager.close()
    after = states(tmp_path / "data")
    assert {name: after.get(name) for name in before if "/index/" not in name} == {
        name: raw for name, raw in before.items() if "/index/" not in name
    }
    assert [name for name in after if "corrupt" in name or name.endswith(".broken")] == []
    await everything_is_there(settings(tmp_path, FIRST))


async def test_a_person_can_be_forgotten_without_the_key(tmp_path: Path) -> None:
    await told(settings(tmp_path, FIRST))
    manager = MemoryManager(assembly.memory_config(settings(tmp_path, OTHER), None), clock=lambda: NOW)
    with pytest.raises(LongTermUnavailable):  # whether other ids are theirs too can't be read
        await manager.forget("shop", ANN)
    await manager.close()
    left = {name.split("/")[0] for name in bytes_at_rest(tmp_path / "data", b"U4af")}
    assert left.isdisjoint({"longterm", "transcripts", "media", "archive"})


async def test_a_damaged_file_is_set_aside_and_a_torn_line_spoils_no_other(tmp_path: Path) -> None:
    given = settings(tmp_path, FIRST)
    await told(given)
    folder = given.data_dir / "longterm" / "shop"
    journal, whole = folder / f"{ANN}.journal", folder / f"{ANN}.json"
    journal.write_bytes(journal.read_bytes() + b'{"sealed":"' + key_id(FIRST).encode() + b'","data":"AAAA')
    transcript = next((given.data_dir / "transcripts" / "shop" / ANN).glob("*.jsonl"))
    transcript.write_bytes(transcript.read_bytes()[:-20])
    broken = whole.read_bytes()[:-5]
    whole.write_bytes(broken)
    manager = memory(given)
    known = await manager.longterm.load("shop", ANN)
    assert known is not None
    assert "a second pistachio" in {fact.text for fact in known.facts}
    aside = [one for one in folder.iterdir() if ".json.corrupt-" in one.name]
    assert [one.read_bytes() for one in aside] == [broken]
    assert len(await manager.transcripts.everything("shop", ANN)) == 1
    await manager.add_message_to_context("shop", ANN, "and almonds", metadata={"message_id": "m9"})
    assert len(await manager.transcripts.everything("shop", ANN)) == 2
    await manager.close()
    assert bytes_at_rest(given.data_dir, *SECRETS) == []


async def test_one_shop_may_ask_for_it_alone_and_no_shop_opens_anothers(tmp_path: Path) -> None:
    given = settings(tmp_path, FIRST, encrypt_at_rest=False)
    own = tmp_path / "config" / "tenants" / "own.yaml"
    own.write_text(TENANT + "privacy: {encrypt: true}\n", "utf-8")
    manager = memory(given)
    for tenant in ("shop", "own"):
        await manager.remember(tenant, ANN, text="likes pistachio", key="likes", value="pistachio")
    await manager.close()
    assert bytes_at_rest(given.data_dir / "longterm", b"pistachio") == [f"shop/{ANN}.json"]
    sealed = next((given.data_dir / "longterm" / "own").glob("*.json")).read_bytes()
    with pytest.raises(Damaged):
        manager.vault.of("shop").open(sealed)
    Tenants(settings(tmp_path)).load()
    without = Tenants(settings(tmp_path))
    without.load()
    (status,) = [one for one in without.status() if one.id == "own"]
    assert "privacy.encrypt" in str(status)
    assert "ENCRYPTION_KEY" in str(status)


async def test_an_archive_of_a_shop_is_plain_and_arrives_under_another_key(tmp_path: Path) -> None:
    old, new = settings(tmp_path / "old", FIRST), settings(tmp_path / "new", SECOND)
    (tmp_path / "new" / "config" / "tenants" / "shop.yaml").unlink()
    await told(old)
    await moving.export(old, "shop", tmp_path / "shop.tar.gz", _bar)  # type: ignore[arg-type]
    lines, whole = await moving.arrive(new, tmp_path / "shop.tar.gz", None, False, _bar)  # type: ignore[arg-type]
    assert whole, lines
    assert bytes_at_rest(new.data_dir, *SECRETS) == []
    manager = memory(new)
    known = await manager.longterm.load("shop", ANN)
    assert known is not None
    assert {fact.text for fact in known.facts} >= {"likes no pistachio", "a second pistachio"}
    await manager.close()
    again, whole = await moving.arrive(new, tmp_path / "shop.tar.gz", None, True, _bar)  # type: ignore[arg-type]
    assert whole, again


def test_a_file_is_shown_as_it_would_stand_there_plain(tmp_path: Path) -> None:
    given = settings(tmp_path, FIRST)
    safe = Vault(given.encryption_key).of("shop")
    path = given.data_dir / "transcripts" / "shop" / ANN / "2026-03.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(safe.seal_line(b'{"role":"user"}') + b"\n" + b'{"role":"bot"}\n')
    assert encryption.shown(given, path) == b'{"role":"user"}\n{"role":"bot"}\n'
    assert key_of(path.read_bytes()) == key_id(FIRST)
    with pytest.raises(SettingsError, match="below DATA_DIR"):
        encryption.shown(given, tmp_path / "elsewhere")


@pytest.mark.parametrize("raw", ["short", "zz" * 32, base64.b64encode(b"x" * 31).decode(), f"{'ab' * 32} {'ab' * 32}"])
def test_what_is_no_key_is_refused_without_repeating_it(raw: str) -> None:
    with pytest.raises(ValueError, match="allowed: ") as told:
        parse_keys(raw)
    assert raw[:5] not in str(told.value)


def test_several_keys_are_read_the_current_one_first() -> None:
    raw = f"{FIRST.hex()}, {base64.b64encode(SECOND).decode()}\n"
    assert parse_keys(raw) == (FIRST, SECOND)
    assert Vault(parse_keys(raw)).ids == [key_id(FIRST), key_id(SECOND)]


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
async def test_ids_too_long_for_a_files_name_are_listed_whatever_the_file_is_packed_in(
    tmp_path: Path, compression: str
) -> None:
    long = f"line:{'U' * 300}"
    for keys_at_hand in ((), (FIRST,)):
        given = settings(tmp_path / str(len(keys_at_hand)), *keys_at_hand, lm_compression=compression)
        manager = memory(given)
        await manager.remember("shop", long, text="likes tea", key="likes", value="tea")
        await manager.longterm.compact("shop", long, NOW)
        assert [user async for user in manager.longterm.users("shop")] == [long]
        await manager.close()
