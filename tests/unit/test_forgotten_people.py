"""The list of who was forgotten: it names nobody, and keeps a restored backup from bringing anybody back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory import MemoryConfig, MemoryManager
from memory.errors import LongTermUnavailable, WasForgotten
from memory.forgotten_people import KEPT_FOR, ForgottenPeople
from memory.pseudonyms import Pseudonyms

ANN, BEA = "telegram:4242424242", "line:U4af"
NOW = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)


def test_the_list_names_nobody_and_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    listed = ForgottenPeople(tmp_path)
    listed.add("shop", [ANN], NOW)
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert [one for one in files if b"4242424242" in one.read_bytes() or "4242424242" in str(one)] == []
    assert {one.stat().st_mode & 0o077 for one in files if one.parent.name != ".locks"} == {0}
    assert (listed.at("shop", ANN), listed.at("shop", BEA), listed.at("other", ANN)) == (NOW, None, None)


def test_another_process_reads_the_same_list_with_the_same_key(tmp_path: Path) -> None:
    ForgottenPeople(tmp_path).add("shop", [ANN], NOW)
    ForgottenPeople(tmp_path).add("shop", [ANN, BEA], NOW + timedelta(days=1))
    assert ForgottenPeople(tmp_path).at("shop", ANN) == NOW + timedelta(days=1)
    assert ForgottenPeople(tmp_path).last() == NOW + timedelta(days=1)


def test_a_key_of_its_own_gives_other_names(tmp_path: Path) -> None:
    first, second = Pseudonyms(tmp_path / "a"), Pseudonyms(tmp_path / "b")
    assert first.of("shop", ANN) == Pseudonyms(tmp_path / "a").of("shop", ANN)
    assert len({first.of("shop", ANN), first.of("other", ANN), first.of("shop", BEA), second.of("shop", ANN)}) == 4


def test_an_empty_key_file_is_not_taken_for_a_key(tmp_path: Path) -> None:
    (tmp_path / "pseudonym_key").write_bytes(b"")
    with pytest.raises(OSError, match="no key"):
        Pseudonyms(tmp_path).of("shop", ANN)


def test_a_line_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    listed = ForgottenPeople(tmp_path)
    listed.add("shop", [ANN], NOW)
    with (tmp_path / "forgotten" / "shop.jsonl").open("ab") as file:
        file.write(b'{"who": 1\n[]\n')
    listed.add("shop", [BEA], NOW)
    assert (listed.at("shop", ANN), listed.at("shop", BEA)) == (NOW, NOW)


def test_what_no_backup_can_be_older_than_is_dropped(tmp_path: Path) -> None:
    listed = ForgottenPeople(tmp_path)
    listed.add("shop", [ANN], NOW)
    listed.add("shop", [BEA], NOW + timedelta(days=2))
    listed.tidy("shop", NOW + KEPT_FOR + timedelta(days=1))
    assert (listed.at("shop", ANN), listed.at("shop", BEA)) == (None, NOW + timedelta(days=2))


async def test_an_export_from_before_somebody_was_forgotten_is_not_taken_in(tmp_path: Path) -> None:
    manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"))
    await manager.remember("shop", ANN, text="has a dog, Rex")
    old = await manager.export("shop", ANN)
    assert old is not None
    await manager.forget("shop", ANN)
    with pytest.raises(WasForgotten, match="not taken in"):
        await manager.import_("shop", old)
    assert await manager.export("shop", ANN) is None
    await manager.remember("shop", ANN, text="has a cat")
    new = await manager.export("shop", ANN)
    assert new is not None
    assert await manager.import_("shop", new) == ANN  # what they told since is theirs to take along
    assert await manager.import_("other", old) == ANN  # and at another shop nobody was forgotten
    await manager.close()


async def test_a_list_that_cannot_be_written_is_told_and_the_rest_is_done(tmp_path: Path) -> None:
    manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"))
    await manager.remember("shop", ANN, text="has a dog, Rex")
    (tmp_path / "forgotten").write_text("in the way")
    with pytest.raises(LongTermUnavailable, match="the list of forgotten people"):
        await manager.forget("shop", ANN)
    assert await manager.export("shop", ANN) is None
    await manager.close()
