"""Who is forgotten stays forgotten, whoever is at work on them meanwhile."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory import MemoryConfig, MemoryManager
from memory import archive as archive_module
from memory.archive import Archive
from memory.facts import Fact
from memory.keys import ConversationRef
from memory.long_term.forgotten import FOLDER, Marks
from memory.long_term.json_files import JsonFiles
from memory.long_term.place import Place
from memory.models import Changes, Message
from processors.extraction import Found, Reading
from processors.models import EventType, Language, MemoryEvent

SHOP, ANN = "shop", "line:U1"
START = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)


class House:
    """A manager with a clock of its own, whose person is forgotten in the middle of a call to the model."""

    def __init__(self, folder: Path) -> None:
        self.now = START
        self.at_work = False
        config = MemoryConfig(lm_base_path=str(folder / "longterm"))
        self.manager = MemoryManager(config, clock=self.clock, read_session=self.read, processor=self)

    def clock(self) -> datetime:
        self.now += timedelta(milliseconds=5)
        return self.now

    async def forgets(self) -> None:
        if self.at_work:
            self.at_work = False
            await self.manager.forget(SHOP, ANN)

    async def read(
        self, tenant: str, said: Sequence[Message], before: str, known: Mapping[str, Any], language: Language | None
    ) -> Reading:
        await self.forgets()
        found = (Found(message=0, key="dog", value="Rex", text="has a dog, Rex", type="fact", confidence=0.9),)
        return Reading(understood=True, summary="told of a dog", facts=found, by_rules=False)

    async def analyze_message(self, message: str, context: Mapping[str, Any] | None = None, **_: object) -> MemoryEvent:
        await self.forgets()
        return MemoryEvent(
            event_type=EventType.INQUIRY,
            importance_score=0.9,
            payload={"original_message": message},
            timestamp=self.now,
        )

    async def says(self, text: str) -> None:
        await self.manager.add_message_to_context(SHOP, ANN, text)

    def kept(self, folder: Path) -> list[str]:
        return [str(one) for one in folder.rglob("*") if one.is_file() and b"Rex" in one.read_bytes()]


async def test_a_session_that_is_read_at_its_end_is_not_kept_of_who_is_forgotten_meanwhile(tmp_path: Path) -> None:
    house = House(tmp_path)
    await house.says("my dog is Rex")
    await house.says("what food have you got for him")
    assert house.kept(tmp_path) != []
    house.now += timedelta(hours=1)
    house.at_work = True
    await house.manager.cleanup_expired_sessions()
    assert not house.at_work
    assert house.kept(tmp_path) == []
    assert await house.manager.longterm.load(SHOP, ANN) is None


async def test_a_message_that_is_classified_while_its_writer_is_forgotten_is_not_kept(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.at_work = True
    await house.says("my dog is Rex")
    assert house.kept(tmp_path) == []
    assert await house.manager.sessions.load(ConversationRef(SHOP, ANN)) is None
    await house.says("his name is Rex")
    assert house.kept(tmp_path) != []


async def test_events_that_waited_for_the_disk_elsewhere_do_not_bring_a_forgotten_person_back(tmp_path: Path) -> None:
    house = House(tmp_path)
    before = await house.analyze_message("my dog is Rex")
    await house.manager.forget(SHOP, ANN)
    await house.manager.saving.save(SHOP, ANN, [before], heard=[before])
    assert house.kept(tmp_path) == []
    after = (await house.analyze_message("Rex again")).model_copy(update={"timestamp": house.clock()})
    await house.manager.saving.save(SHOP, ANN, [after])
    assert house.kept(tmp_path) != []


def test_the_mark_of_somebody_forgotten_names_nobody_and_goes_after_a_day(tmp_path: Path) -> None:
    marks = Marks(tmp_path)
    marks.set(SHOP, ANN, START)
    [file] = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert ANN.encode() not in str(file).encode() + file.read_bytes()
    assert marks.at(SHOP, ANN) == START
    assert marks.at(SHOP, "line:U2") is None
    marks.tidy(SHOP, START + timedelta(hours=23))
    assert marks.at(SHOP, ANN) == START
    file.with_name("torn").write_text("")
    marks.tidy(SHOP, START + timedelta(hours=25))
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []


def test_a_mark_holds_at_once_for_who_has_looked_before_also_in_a_folder_that_was_quiet(tmp_path: Path) -> None:
    here, elsewhere = Marks(tmp_path), Marks(tmp_path)
    assert here.surely_not(SHOP, "line:U0")
    for number in range(3):
        assert here.at(SHOP, f"line:U{number}") is None
        elsewhere.set(SHOP, f"line:U{number}", START + timedelta(minutes=number))
        assert not here.surely_not(SHOP, f"line:U{number}")
        assert here.at(SHOP, f"line:U{number}") == START + timedelta(minutes=number)
        long_ago = START.timestamp() + number  # from then on the names in the folder are known
        os.utime(tmp_path / SHOP / ".forgotten", (long_ago, long_ago))
        assert (here.at(SHOP, f"line:U{number}"), here.at(SHOP, "line:U9")) == (START + timedelta(minutes=number), None)
        assert (here.surely_not(SHOP, f"line:U{number}"), here.surely_not(SHOP, "line:U9")) == (False, True)
        elsewhere.set(SHOP, f"line:U{number}", START + timedelta(days=1))
        assert here.at(SHOP, f"line:U{number}") == START + timedelta(days=1)
    here.tidy(SHOP, START + timedelta(days=3))
    assert here.at(SHOP, "line:U0") is None


def test_a_mark_that_another_process_sets_is_seen_by_who_looked_before(tmp_path: Path) -> None:
    here, there = Marks(tmp_path), Marks(tmp_path)
    (tmp_path / SHOP).mkdir()
    assert here.at(SHOP, ANN) is None
    an_hour_ago = time.time() - 3600
    os.utime(tmp_path / SHOP / FOLDER, (an_hour_ago, an_hour_ago))  # as of a folder that was made at a first look
    assert here.at(SHOP, ANN) is None
    assert here.surely_not(SHOP, ANN)
    there.set(SHOP, ANN, START)
    assert not here.surely_not(SHOP, ANN)
    assert here.at(SHOP, ANN) == START


def test_where_nothing_can_be_made_a_look_tells_the_same(tmp_path: Path) -> None:
    assert Marks(tmp_path).at(SHOP, ANN) is None  # the shop has no folder yet
    assert Marks(tmp_path).surely_not(SHOP, ANN)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("deed", ["compact", "known", "document"])
async def test_who_is_forgotten_while_somebody_waits_for_their_files_gets_none_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    house = House(tmp_path)
    await house.says("I like tea")
    here = JsonFiles(tmp_path / "longterm")._files
    other = JsonFiles(tmp_path / "longterm")._files
    lock = {"compact": "exclusive"}.get(deed, "shared")
    held = getattr(Place, lock)

    def after_who_forgets(place: Place) -> Any:
        monkeypatch.setattr(Place, lock, held)
        assert other.forget(SHOP, ANN)["longterm_files"]
        return held(place)

    here.load(SHOP, ANN)
    monkeypatch.setattr(Place, lock, after_who_forgets)
    got = here.compact(SHOP, ANN, START) if deed == "compact" else getattr(here, deed)(SHOP, ANN)
    assert got in (0, None)
    assert [path.name for path in (tmp_path / "longterm" / SHOP).iterdir() if path.is_file()] == []
    await house.manager.close()


async def test_what_had_faded_is_not_put_aside_of_who_is_forgotten_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(tmp_path)
    await house.manager.remember(SHOP, ANN, text="has a dog, Rex")
    load = house.manager.longterm.load

    async def before_they_are_forgotten(tenant: str, user: str) -> Any:
        monkeypatch.undo()
        memory = await load(tenant, user)
        await house.manager.forget(SHOP, ANN)
        return memory

    monkeypatch.setattr(house.manager.longterm, "load", before_they_are_forgotten)
    assert await house.manager.prune(SHOP, ANN, threshold=2.0)
    assert house.kept(tmp_path) == []
    await house.manager.close()


@pytest.mark.parametrize("where", ["the file", "the archive"])
async def test_who_forgets_waits_for_the_first_that_is_just_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    store, archive = JsonFiles(tmp_path / "longterm"), Archive(tmp_path / "archive")
    forgets: dict[str, Callable[[], object]] = {
        "the file": lambda: JsonFiles(tmp_path / "longterm")._files.forget(SHOP, ANN),
        "the archive": lambda: Archive(tmp_path / "archive")._forget(SHOP, ANN),
    }
    forgetting = threading.Thread(target=forgets[where])

    def beside_who_forgets(write: Callable[..., None]) -> Callable[..., None]:
        def written(*args: Any, **more: Any) -> None:
            forgetting.start()
            forgetting.join(0.5)  # it can't end before the lock is free
            write(*args, **more)

        return written

    fact = Fact(
        id="f1", key="dog", value="Rex", text="a dog, Rex", confidence=0.9, created_at=START, last_used_at=START
    )
    if where == "the file":
        monkeypatch.setattr(Place, "write", beside_who_forgets(Place.write))
        await store.change(SHOP, ANN, lambda memory: Changes(facts=[fact]))
    else:
        monkeypatch.setattr("memory.archive._write", beside_who_forgets(archive_module._write))
        await archive.add(SHOP, ANN, [fact], START)
    forgetting.join()
    assert [path for path in tmp_path.rglob("*") if path.is_file() and b"Rex" in path.read_bytes()] == []
    await store.close()
