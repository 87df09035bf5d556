"""What the lists over a tenant do, on the SQLite index; and what that index survives."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from memory import MemoryConfig, MemoryManager, parts
from memory.config import MemoryRules
from memory.copying import Whole
from memory.errors import CatalogUnavailable
from memory.index import finding, notes, schema
from memory.index.catalog import SqliteCatalog
from memory.index.file import IndexFile
from memory.index.notes import Notes
from memory.listing import SORTS, Kind, Wanted
from memory.long_term.json_files import JsonFiles
from memory.protocols import Catalog
from memory.recall import sought
from processors.models import EventType, MemoryEvent

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
RULES = MemoryRules()
TENANT, ANN, BEE = "store_001", "line:U1", "telegram:2"


def event(number: int, kind: str = "INQUIRY", score: float = 0.5, text: str = "") -> MemoryEvent:
    return MemoryEvent(
        event_type=EventType(kind),
        payload={"original_message": text or f"said {number}"},
        importance_score=score,
        timestamp=NOW + timedelta(minutes=number),
        event_id=f"e{number}",
    )


def manager_on(base: Path) -> MemoryManager:
    return MemoryManager(MemoryConfig(lm_base_path=base / "longterm"), clock=lambda: NOW)


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[MemoryManager]:
    manager = manager_on(tmp_path)
    yield manager
    await manager.close()


async def listed(catalog: Catalog, kind: Kind = "facts", wanted: Wanted = Wanted(), **more: Any) -> list[str]:
    page = await catalog.page(TENANT, kind, wanted, **more)
    return [one.get("key") or one.get("event_id") or one.get("id") or one["user_id"] for one in page.records]


class Contract:
    """The suite; a backend gives a `manager` whose long-term memory and catalog belong together."""

    async def test_an_unknown_tenant_has_empty_lists(self, manager: MemoryManager) -> None:
        for kind in SORTS:
            page = await manager.catalog.page(TENANT, kind, Wanted())
            assert (page.records, page.total, page.last) == ([], 0, None)
        assert (await manager.catalog.counts(TENANT, "facts", Wanted())).total == 0
        assert await manager.catalog.per_day(TENANT, Wanted(), UTC) == {}

    async def test_what_was_just_saved_is_in_the_next_answer(self, manager: MemoryManager) -> None:
        for number in range(3):
            await manager.remember(TENANT, ANN, key=f"k{number}", value=number)
            assert len(await listed(manager.catalog)) == number + 1
        await manager.remember(TENANT, ANN, key="k1", value="another")
        page = await manager.catalog.page(TENANT, "facts", Wanted(q="k1"))
        assert [one["value"] for one in page.records] == ["another"]

    async def test_tenants_do_not_meet(self, manager: MemoryManager) -> None:
        fact = await manager.remember("store_002", ANN, key="secret", value="x")
        await manager.remember(TENANT, ANN, key="open", value="y")
        assert await listed(manager.catalog) == ["open"]
        assert await manager.catalog.whose(TENANT, "facts", fact.id) == []
        assert await manager.catalog.whose("store_002", "facts", fact.id) == [ANN]

    async def test_two_people_with_a_record_of_one_id_are_told_apart(self, manager: MemoryManager) -> None:
        assert isinstance(manager.longterm, Whole)
        fact = {"id": "f_1", "key": "size", "value": "M", "text": "size: M", "created_at": "2026-03-01T09:00:00Z"}
        for user in (ANN, BEE):
            facts = [{**fact, "last_used_at": fact["created_at"]}]
            await manager.longterm.put(TENANT, user, {"tenant_id": TENANT, "user_id": user, "facts": facts})
        assert await manager.catalog.whose(TENANT, "facts", "f_1") == [ANN, BEE]
        assert len(await listed(manager.catalog)) == 2
        await manager.longterm.rewrite(TENANT, BEE, lambda memory: memory.model_copy(update={"facts": []}))
        await manager.catalog.purge(TENANT, [BEE])
        assert await manager.catalog.whose(TENANT, "facts", "f_1") == [ANN]
        page = await manager.catalog.page(TENANT, "facts", Wanted())
        assert [(one["user_id"], one["id"]) for one in page.records] == [(ANN, "f_1")]

    async def test_equal_ones_are_paged_each_once(self, manager: MemoryManager) -> None:
        for user in (ANN, BEE, "line:U3"):
            for number in range(5):
                await manager.remember(TENANT, user, key=f"k{number}", value=number)  # all at one moment
        for sort in SORTS["facts"]:
            seen, after = [], None
            while True:
                page = await manager.catalog.page(TENANT, "facts", Wanted(), sort=sort, limit=4, after=after)
                seen += [one["id"] for one in page.records]
                if (after := page.last) is None:
                    break
            assert (len(seen), len(set(seen)), page.total) == (15, 15, 15)

    async def test_pages_neither_skip_nor_repeat_while_things_come_and_go(self, manager: MemoryManager) -> None:
        await manager.longterm.save_events(TENANT, ANN, [event(number) for number in range(0, 20, 2)])
        first = await manager.catalog.page(TENANT, "events", Wanted(), limit=3)
        assert [one["event_id"] for one in first.records] == ["e18", "e16", "e14"]
        await manager.longterm.save_events(TENANT, BEE, [event(19), event(13)])
        await manager.longterm.rewrite(
            TENANT,
            ANN,
            lambda memory: memory.model_copy(
                update={"events": [one for one in memory.events if one.event_id not in ("e14", "e10")]}
            ),
        )
        assert await listed(manager.catalog, "events", limit=3, after=first.last) == ["e13", "e12", "e8"]

    async def test_an_unknown_order_is_a_mistake(self, manager: MemoryManager) -> None:
        with pytest.raises(ValueError, match="sort"):
            await manager.catalog.page(TENANT, "facts", Wanted(), sort="record; DROP TABLE facts")

    @pytest.mark.parametrize(
        ("text", "q", "found"),
        [
            ("ลูกค้าชอบกาแฟเย็นมาก", "กาแฟ", True),
            ("ลูกค้าชอบกาแฟเย็นมาก", "ขา", False),
            ("ฉันชอบกินข้าวเช้าทุกวัน", "ข้าว", True),
            ("ฉันชอบกินข้าวเช้าทุกวัน", "ข่าว", False),
            ("แพ้กุ้งและปู", "allergy", True),
            ("แพ้กุ้งและปู", "ลูกค้าแพ้กุ้งไหมคะ", True),
            ("She opened two boxes", "opening box", True),
            ("He likes cappuccino", "cap", True),
            ("He likes cappuccino", "captain", False),
            ("Likes Iced LATTE", "latte", True),
            ("Likes iced latte", "ATT", True),
            ("lesson_local_time_command", "local time", True),
            ("get-local-time", "local_time", True),
            ("time, local", "local time", True),
            ("100% cotton", "100%", True),
            ("100 cotton", "0%c", False),
            ("a_b", "x%y", False),
            ("STRASSE ÄÖÜ", "äöü", True),
            ("say 'hi'; --", "'hi'; --", True),
            ("size ๓๘", "38", True),
            ("anything", "...", False),
        ],
    )
    async def test_words_are_found_as_they_are_written(
        self, manager: MemoryManager, text: str, q: str, found: bool
    ) -> None:
        await manager.remember(TENANT, ANN, key="x", value=1, text=text)
        assert bool(await listed(manager.catalog, wanted=Wanted(q=q))) is found

    async def test_a_latin_word_is_found_with_a_slip_of_the_finger(self, manager: MemoryManager) -> None:
        await manager.remember(TENANT, ANN, key="x", value=1, text="He likes cappuccino")
        assert await listed(manager.catalog, wanted=Wanted(q="capuccino")) == ["x"]

    async def test_of_everybody_the_newest_event_that_is_wanted_is_told(self, manager: MemoryManager) -> None:
        await manager.longterm.save_events(TENANT, ANN, [event(1), event(3), event(2, "COMPLAINT")])
        await manager.longterm.save_events(TENANT, BEE, [event(4)])
        await manager.longterm.save_events("store_002", BEE, [event(5, "COMPLAINT")])
        last = await manager.catalog.last_events(TENANT, Wanted())
        assert {user: one["event_id"] for user, one in last.items()} == {ANN: "e3", BEE: "e4"}
        complaints = await manager.catalog.last_events(TENANT, Wanted(types=("COMPLAINT",)))
        assert {user: one["payload"]["original_message"] for user, one in complaints.items()} == {ANN: "said 2"}
        assert await manager.catalog.last_events(TENANT, Wanted(since=NOW + timedelta(minutes=9))) == {}

    async def test_what_fits_best_comes_first_whatever_is_newer(self, manager: MemoryManager) -> None:
        said = ["ขอเปลี่ยนที่อยู่จัดส่งได้ไหม", "ที่อยู่ร้านอยู่ตรงไหน", "อยากได้กาแฟเย็น", "ส่งของไปที่อยู่ใหม่แล้วหรือยัง"]
        await manager.longterm.save_events(TENANT, ANN, [event(n, text=text) for n, text in enumerate(said)])
        q = "เปลี่ยนที่อยู่จัดส่ง"
        assert (await listed(manager.catalog, "events", Wanted(q=q)))[0] == "e0"
        newest = await listed(manager.catalog, "events", Wanted(q=q), sort="at")
        assert (newest[-1], "e2" in newest) == ("e0", False)
        found = await manager.catalog.page(TENANT, "events", Wanted(q=q))
        assert (await manager.catalog.counts(TENANT, "events", Wanted(q=q))).total == found.total == len(newest)
        assert sum((await manager.catalog.per_day(TENANT, Wanted(q=q), UTC)).values()) == found.total

    async def test_a_search_keeps_to_the_other_conditions(self, manager: MemoryManager) -> None:
        for user in (ANN, BEE):
            await manager.longterm.save_events(TENANT, user, [event(1, "COMPLAINT", text="my coffee was cold")])
        assert len(await listed(manager.catalog, "events", Wanted(q="cold coffee"))) == 2
        page = await manager.catalog.page(TENANT, "events", Wanted(q="cold coffee", user=BEE, types=("COMPLAINT",)))
        assert [one["user_id"] for one in page.records] == [BEE]
        assert await listed(manager.catalog, "events", Wanted(q="cold coffee", types=("INQUIRY",))) == []

    async def test_pages_of_a_search_neither_skip_nor_repeat_while_others_come(self, manager: MemoryManager) -> None:
        def text(number: int) -> str:
            return ("iced coffee please", "coffee, and something else that goes with it", "iced tea")[number % 3]

        await manager.longterm.save_events(TENANT, ANN, [event(n, text=text(n)) for n in range(12)])
        expected = await listed(manager.catalog, "events", Wanted(q="iced coffee"))
        seen: list[str] = []
        sort, after = None, None
        while True:
            page = await manager.catalog.page(
                TENANT, "events", Wanted(q="iced coffee"), limit=3, sort=sort, after=after
            )
            seen += [one["event_id"] for one in page.records]
            sort, after = page.order, page.last
            if after is None:
                break
            new = [event(100 + len(seen) * 9 + n, text="coffee and only coffee") for n in range(9)]
            await manager.longterm.save_events(TENANT, BEE, new)
        assert [one for one in seen if one in expected] == expected
        assert len(seen) == len(set(seen))

    async def test_events_are_filtered_and_counted(self, manager: MemoryManager) -> None:
        await manager.longterm.save_events(TENANT, ANN, [event(1), event(2, "COMPLAINT", 0.9)])
        await manager.longterm.save_events(TENANT, BEE, [event(3, "COMPLAINT", 0.6)])
        catalog = manager.catalog
        assert await listed(catalog, "events", Wanted(types=("COMPLAINT",))) == ["e3", "e2"]
        assert await listed(catalog, "events", Wanted(importance=0.6)) == ["e3", "e2"]
        assert await listed(catalog, "events", Wanted(user=ANN)) == ["e2", "e1"]
        between = Wanted(since=NOW + timedelta(minutes=2), until=NOW + timedelta(minutes=3))
        assert await listed(catalog, "events", between) == ["e2"]
        assert await listed(catalog, "events", sort="importance") == ["e2", "e3", "e1"]
        counts = await catalog.counts(TENANT, "events", Wanted(importance=0.6))
        assert (counts.total, counts.by) == (2, {"type": {"COMPLAINT": 2}})

    async def test_a_day_begins_where_the_clock_of_that_zone_says(self, manager: MemoryManager) -> None:
        late = [event(number) for number in (14 * 60 + 59, 15 * 60 - 1 + 120, 18 * 60 + 14, 18 * 60 + 15)]
        await manager.longterm.save_events(TENANT, ANN, late)
        first, second = date(2026, 3, 1), date(2026, 3, 2)
        zones = ("UTC", "Asia/Bangkok")
        days = {zone: await manager.catalog.per_day(TENANT, Wanted(), ZoneInfo(zone)) for zone in zones}
        assert days == {"UTC": {first: 1, second: 3}, "Asia/Bangkok": {second: 4}}
        # An hour that is off by a quarter: 18:15 UTC is midnight there.
        assert await manager.catalog.per_day(TENANT, Wanted(since=NOW), ZoneInfo("Asia/Kathmandu")) == {second: 4}

    async def test_history_is_shown_to_who_asks_for_it(self, manager: MemoryManager) -> None:
        for value in ("M", "L"):
            await manager.remember(TENANT, ANN, key="size", value=value)
        assert len(await listed(manager.catalog)) == 1
        assert len(await listed(manager.catalog, wanted=Wanted(superseded=True))) == 2
        assert (await manager.catalog.counts(TENANT, "facts", Wanted())).total == 1

    async def test_what_is_forgotten_is_in_no_list(self, manager: MemoryManager) -> None:
        await manager.remember(TENANT, ANN, key="a", value=1)
        await manager.remember(TENANT, BEE, key="b", value=2)
        assert len(await listed(manager.catalog, "users")) == 2
        await manager.forget(TENANT, ANN)
        assert (await listed(manager.catalog), await listed(manager.catalog, "users")) == (["b"], [BEE])

    async def test_compared_twice_nothing_is_taken_in(self, manager: MemoryManager) -> None:
        await manager.remember(TENANT, ANN, key="a", value=1)
        await manager.catalog.refresh(TENANT)
        assert await manager.catalog.refresh(TENANT) == 0
        told: list[tuple[int, int]] = []
        assert await manager.catalog.refresh(TENANT, anew=True, progress=lambda *done: told.append(done)) == 1
        assert told == [(0, 1), (1, 1)]
        assert await listed(manager.catalog) == ["a"]


class TestSqlite(Contract):
    """The index of the JSON files."""

    def index(self, base: Path, ending: str = "sqlite") -> Path:
        return base / "index" / f"{TENANT}.{ending}"

    @pytest.mark.parametrize("damage", ["gone", "empty", "rubbish", "torn", "zeroes inside", "older", "no tables"])
    async def test_an_index_that_can_not_be_used_is_made_anew(
        self, manager: MemoryManager, tmp_path: Path, damage: str
    ) -> None:
        told = {f"k{number}": "x" * 200 for number in range(300)}
        await manager.longterm.save_events(TENANT, ANN, (), attributes=told)
        assert (await manager.catalog.page(TENANT, "facts", Wanted())).total == 300
        await manager.catalog.purge(TENANT)  # all of it in the one file
        path = self.index(tmp_path)
        whole = path.read_bytes()
        if damage == "gone":
            path.unlink()
        elif damage in ("older", "no tables"):
            with sqlite3.connect(path) as db:
                db.executescript("PRAGMA user_version = 0" if damage == "older" else "DROP TABLE facts")
            db.close()
        else:
            path.write_bytes(
                {
                    "empty": b"",
                    "rubbish": b"no database" * 1000,
                    "torn": whole[: len(whole) // 2],
                    "zeroes inside": whole[:8192] + bytes(len(whole) - 8192),
                }[damage]
            )
        await manager.remember(TENANT, ANN, key="new", value="since")
        page = await manager.catalog.page(TENANT, "facts", Wanted(q="new"))
        assert (page.total, (await manager.catalog.counts(TENANT, "facts", Wanted())).total) == (1, 301)

    async def test_while_it_can_not_be_used_nobody_is_kept_from_saving(
        self, manager: MemoryManager, tmp_path: Path
    ) -> None:
        (tmp_path / "index").write_text("no folder")
        await manager.remember(TENANT, ANN, key="a", value=1)
        with pytest.raises(CatalogUnavailable):
            await manager.catalog.page(TENANT, "facts", Wanted())
        (tmp_path / "index").unlink()
        assert await listed(manager.catalog) == ["a"]

    async def test_what_was_changed_by_hand_is_found_by_a_comparison(
        self, manager: MemoryManager, tmp_path: Path
    ) -> None:
        await manager.remember(TENANT, ANN, key="a", value=1)
        await manager.remember(TENANT, BEE, key="b", value=2)
        assert len(await listed(manager.catalog)) == 2
        folder = tmp_path / "longterm" / TENANT
        (folder / f"{ANN}.json").write_text(json.dumps({"tenant_id": TENANT, "user_id": ANN, "attributes": {"c": 3}}))
        (folder / f"{BEE}.json").unlink()
        (folder / "line:U3.json").write_text('{"attributes": {"d": 4}}')
        assert await manager.refresh_lists(TENANT) == 3
        assert sorted(await listed(manager.catalog)) == ["c", "d"]
        assert await listed(manager.catalog, "users", Wanted(user=BEE)) == []

    async def test_a_file_that_nobody_can_read_hides_nobody_else(self, manager: MemoryManager, tmp_path: Path) -> None:
        await manager.remember(TENANT, ANN, key="a", value=1)
        (tmp_path / "longterm" / TENANT / f"{BEE}.json").mkdir()
        assert await listed(manager.catalog) == ["a"]

    async def test_deleted_pages_hold_nothing(self, manager: MemoryManager, tmp_path: Path) -> None:
        word = "rhubarb"
        for number in range(50):
            await manager.remember(TENANT, ANN, key=f"k{number}", value=f"{word} {number} " + "x" * 500)
            await manager.catalog.page(TENANT, "facts", Wanted())
        held = [path.name for path in (tmp_path / "index").iterdir() if word.encode() in path.read_bytes()]
        assert held != []
        await manager.longterm.forget(TENANT, ANN)
        await manager.catalog.purge(TENANT, [ANN])
        for path in (tmp_path / "index").iterdir():
            assert (path.name, word.encode() in path.read_bytes(), ANN.encode() in path.read_bytes()) == (
                path.name,
                False,
                False,
            )

    @pytest.mark.parametrize("how", ["forgotten", "by retention"])
    async def test_nothing_of_anybody_is_left_where_pages_were_divided(
        self, manager: MemoryManager, tmp_path: Path, how: str
    ) -> None:
        chance = Random(3)
        people = [f"person-{number:03}-{chance.randrange(10**9)}" for number in range(120)]

        async def save(user: str, many: int) -> None:
            for _ in range(many):
                said = f"{user} " + "คำถาม เรื่องกาแฟ " * chance.randrange(1, 12)
                await manager.longterm.save_events(TENANT, user, [event(chance.randrange(10**6), text=said)])

        for user in people:
            await save(user, chance.randrange(1, 6))
        await manager.catalog.refresh(TENANT)
        left = []
        for number, user in enumerate(people[:60]):
            await save(people[100 + number % 20], 2)
            await manager.catalog.refresh(TENANT)
            if how == "forgotten":
                await manager.forget(TENANT, user)
            else:
                await manager.longterm.forget(TENANT, user)
                await manager.catalog.refresh(TENANT)
                await manager.refresh_lists(TENANT)  # as the clean-up does
            left += [(user, one.name) for one in self.index(tmp_path).parent.glob("*.sqlite*") if user in _raw(one)]
        assert left == []
        with closing(sqlite3.connect(self.index(tmp_path))) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    async def test_before_it_was_ever_made_nothing_is_left_either(self, manager: MemoryManager, tmp_path: Path) -> None:
        await manager.remember(TENANT, ANN, key="a", value=1)
        await manager.forget(TENANT, ANN)
        assert [path.name for path in (tmp_path / "index").iterdir() if ANN.encode() in path.read_bytes()] == []

    async def test_whoever_reads_a_slow_list_keeps_nobody_from_deleting_for_good(
        self, manager: MemoryManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memory.index.file._WAIT", 0.2)
        await manager.remember(TENANT, ANN, key="a", value=1)
        assert await listed(manager.catalog) == ["a"]
        with sqlite3.connect(self.index(tmp_path)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT COUNT(*) FROM facts").fetchone() == (1,)
            await manager.longterm.forget(TENANT, ANN)
            with pytest.raises(CatalogUnavailable):  # it says so, and is to be asked again
                await manager.catalog.purge(TENANT, [ANN])
            reader.rollback()
        reader.close()
        await manager.catalog.purge(TENANT, [ANN])
        assert await listed(manager.catalog) == []

    async def test_many_questions_at_once_are_answered_whole(self, tmp_path: Path) -> None:
        """While it is being made, and by two of our processes' catalogs."""
        managers = [manager_on(tmp_path), manager_on(tmp_path)]
        for number in range(40):
            await managers[0].remember(TENANT, f"line:U{number}", key="k", value=number)
        asked = [one.catalog.page(TENANT, "facts", Wanted(), limit=200) for one in managers for _ in range(10)]
        assert {page.total for page in await asyncio.gather(*asked)} == {40}
        for manager in managers:
            await manager.close()

    async def test_who_waits_too_long_is_told_to_come_again(
        self, manager: MemoryManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await manager.remember(TENANT, ANN, key="a", value=1)
        source = manager.longterm
        catalog = SqliteCatalog(tmp_path / "index", source, patience=0.0)  # type: ignore[arg-type]
        goes_on, caught_up = threading.Event(), IndexFile.catch_up

        def catch_up(file: IndexFile) -> int:
            goes_on.wait(60)
            return caught_up(file)

        monkeypatch.setattr(IndexFile, "catch_up", catch_up)
        with pytest.raises(CatalogUnavailable, match="ask again"):
            await catalog.page(TENANT, "facts", Wanted())
        goes_on.set()
        async with asyncio.timeout(60):
            while True:  # it went on being made meanwhile
                try:
                    assert await listed(catalog) == ["a"]
                    break
                except CatalogUnavailable:
                    await asyncio.sleep(0.01)
        await catalog.close()

    async def test_what_was_broken_off_is_no_whole_index_and_goes_on_later(
        self, manager: MemoryManager, tmp_path: Path
    ) -> None:
        folder = tmp_path / "longterm" / TENANT
        folder.mkdir(parents=True)
        for number in range(250):
            (folder / f"line:U{number}.json").write_text('{"attributes": {"a": 1}}')
        catalog = parts.make_catalog(MemoryConfig(lm_base_path=tmp_path / "longterm"), lambda _: RULES, lambda: NOW)
        closing: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()

        def told(done: int, of: int) -> None:
            if done == 100:
                closing.append(asyncio.run_coroutine_threadsafe(_begun(catalog), loop).result(10))

        assert await catalog.refresh(TENANT, progress=told) == 100
        await closing[0]
        assert (await manager.catalog.page(TENANT, "users", Wanted())).total == 250

    async def test_processes_that_save_and_ask_side_by_side_lose_nothing(
        self, manager: MemoryManager, tmp_path: Path
    ) -> None:
        spawn = multiprocessing.get_context("spawn")
        others = [spawn.Process(target=_saves_and_asks, args=(tmp_path, number)) for number in range(2)]
        for other in others:
            other.start()
        while any(other.is_alive() for other in others):
            await manager.catalog.page(TENANT, "facts", Wanted())
            await asyncio.sleep(0.01)
        assert [other.exitcode for other in others] == [0, 0]
        assert (await manager.catalog.page(TENANT, "facts", Wanted())).total == 60
        assert await manager.catalog.refresh(TENANT) == 0

    async def test_what_is_meant_alike_is_found_where_there_are_vectors(self, tmp_path: Path) -> None:
        asked: list[tuple[str, str]] = []

        async def meant(tenant: str, question: str) -> dict[tuple[str, str], float]:
            asked.append((tenant, question))
            return {(ANN, "e1"): 0.2, (BEE, "e1"): 0.2}

        source = JsonFiles(tmp_path / "longterm")
        manager = MemoryManager(
            MemoryConfig(lm_base_path=tmp_path / "longterm"),
            catalog=SqliteCatalog(tmp_path / "index", source, meant=meant),
        )
        await manager.longterm.save_events(
            TENANT, ANN, [event(1, text="the parcel never came"), event(2, text="lost it")]
        )
        page = await manager.catalog.page(TENANT, "events", Wanted(q="lost"))
        assert [one["event_id"] for one in page.records] == ["e2", "e1"]
        assert asked == [(TENANT, "lost")]
        await manager.close()

    async def test_terms_that_nobody_has_any_more_are_not_kept(self, manager: MemoryManager, tmp_path: Path) -> None:
        await manager.remember(TENANT, ANN, key="a", value="rhubarb")
        await manager.remember(TENANT, BEE, key="b", value="rhubarb and custard")
        assert len(await listed(manager.catalog, wanted=Wanted(q="rhubarb"))) == 2
        await manager.forget(TENANT, BEE)
        assert len(await listed(manager.catalog, wanted=Wanted(q="rhubarb"))) == 1
        with sqlite3.connect(self.index(tmp_path)) as db:
            held = {term for (term,) in db.execute("SELECT term FROM terms WHERE kind = 'facts'")}
            loose = db.execute("SELECT COUNT(*) FROM postings WHERE row NOT IN (SELECT rowid FROM facts)"
                               " AND term IN (SELECT id FROM terms WHERE kind = 'facts')").fetchone()  # fmt: skip
        db.close()
        assert ("rhubarb" in held, "custard" in held, loose) == (True, False, (0,))

    async def test_a_search_costs_what_is_found(self, manager: MemoryManager, monkeypatch: pytest.MonkeyPatch) -> None:
        """In a large list nobody reads where that stands which nearly all have, nor every row for what is inside."""
        monkeypatch.setattr(sought, "_LARGE", 20)
        await manager.longterm.save_events(TENANT, ANN, [event(n, text=f"coffee number {n}") for n in range(100, 140)])
        read: list[int] = []
        resolved = finding._Look.resolved

        def noting(self: finding._Look, having: finding._Having) -> finding._Having:
            found = resolved(self, having)
            read.append(len(found.rows or ()))
            return found

        monkeypatch.setattr(finding._Look, "resolved", noting)
        assert await listed(manager.catalog, "events", Wanted(q="coffee number 117")) == ["e117"]
        assert sum(read) < 5

    async def test_a_person_with_many_events_is_taken_in_at_the_cost_of_the_new_ones(
        self, manager: MemoryManager, tmp_path: Path
    ) -> None:
        await manager.longterm.save_events(TENANT, ANN, [event(number) for number in range(500)])
        await manager.catalog.page(TENANT, "events", Wanted())
        with sqlite3.connect(self.index(tmp_path)) as db:
            before = dict(db.execute("SELECT id, rowid FROM events"))
        await manager.longterm.save_events(TENANT, ANN, [event(1000)])
        assert (await manager.catalog.page(TENANT, "events", Wanted())).total == 501
        with sqlite3.connect(self.index(tmp_path)) as db:
            after = dict(db.execute("SELECT id, rowid FROM events"))
        db.close()
        assert {name: row for name, row in after.items() if name in before} == before

    async def test_the_same_event_without_a_name_is_listed_as_often_as_it_was_saved(
        self, manager: MemoryManager
    ) -> None:
        nameless = event(1).model_copy(update={"event_id": None})
        for _ in range(2):
            await manager.longterm.save_events(TENANT, ANN, [nameless])
        assert (await manager.catalog.page(TENANT, "events", Wanted())).total == 2

    async def test_a_mark_of_what_was_deleted_is_listed_nowhere(self, manager: MemoryManager) -> None:
        fact = await manager.remember(TENANT, ANN, key="a", value=1, source="m1")
        assert await manager.curation.delete_facts(TENANT, [fact.id]) == 1
        memory = await manager.longterm.load(TENANT, ANN)
        assert memory is not None
        assert [(one.deleted, one.text, one.value, one.sources) for one in memory.facts] == [(True, "", None, {"m1"})]
        assert await listed(manager.catalog, wanted=Wanted(superseded=True)) == []

    async def test_lists_that_lack_a_table_are_made_anew_by_whoever_finds_out(self, tmp_path: Path) -> None:
        manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"))
        await manager.remember(TENANT, ANN, text="likes walnut")
        assert await manager.refresh_lists(TENANT) == 1
        for again in (manager.refresh_lists(TENANT), manager.longterm.expire(TENANT, datetime.now(UTC))):
            with closing(sqlite3.connect(tmp_path / "index" / f"{TENANT}.sqlite")) as db, db:
                db.execute("DROP TABLE people")
            await again
            assert (await manager.catalog.page(TENANT, "facts", Wanted())).total == 1
        await manager.close()

    def test_every_kind_has_a_table_with_its_orders(self) -> None:
        assert {kind: tuple(table.sorts) for kind, table in schema.OF.items()} == SORTS


class TestNotes:
    def test_what_was_noted_is_read_once(self, tmp_path: Path) -> None:
        noted = Notes(tmp_path)
        for user in ("line:U1", "", "a\nb", "ก", "\ud800"):
            noted.note(TENANT, user)
        news = noted.since(TENANT, notes.Mark())
        assert (news.users, news.everybody) == ({"line:U1", "", "a\nb", "ก", "\ud800"}, False)
        assert noted.behind(TENANT, notes.Mark()) is True
        assert noted.behind(TENANT, news.mark) is False
        noted.note(TENANT, "line:U2")
        assert noted.behind(TENANT, news.mark) is True
        assert noted.since(TENANT, news.mark).users == {"line:U2"}

    def test_a_file_that_began_anew_is_read_from_its_beginning(self, tmp_path: Path) -> None:
        noted = Notes(tmp_path)
        noted.note(TENANT, "line:U1")
        mark = noted.since(TENANT, notes.Mark()).mark
        assert noted.drop(TENANT, mark) is True
        for user in ("line:U2", "line:U3"):
            noted.note(TENANT, user)
        assert noted.since(TENANT, mark).users == {"line:U2", "line:U3"}

    def test_what_nobody_has_read_yet_is_not_dropped(self, tmp_path: Path) -> None:
        noted = Notes(tmp_path)
        noted.note(TENANT, "line:U1")
        mark = noted.since(TENANT, notes.Mark()).mark
        noted.note(TENANT, "line:U2")
        assert noted.drop(TENANT, mark) is False
        assert noted.since(TENANT, mark).users == {"line:U2"}

    def test_it_never_grows_beyond_its_bound(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(notes, "MOST", 1000)
        noted = Notes(tmp_path)
        for number in range(500):
            noted.note(TENANT, f"line:U{number}")
        assert (tmp_path / f"{TENANT}.changed").stat().st_size < 1100
        assert noted.since(TENANT, notes.Mark()).everybody is True

    def test_a_broken_line_means_that_anybody_may_have_changed(self, tmp_path: Path) -> None:
        (tmp_path / f"{TENANT}.changed").write_bytes(b"#1\nrubbish\n")
        assert Notes(tmp_path).since(TENANT, notes.Mark()).everybody is True

    @pytest.mark.parametrize("spoiled", [b"\xee\x80 rubbish\nmore of it\n", b"\0" * 300, b"#12 34\n", b"no line's end"])
    def test_a_file_that_is_none_of_ours_means_so_once_and_goes(self, tmp_path: Path, spoiled: bytes) -> None:
        noted = Notes(tmp_path)
        (tmp_path / f"{TENANT}.changed").write_bytes(spoiled)
        assert noted.behind(TENANT, notes.Mark("#0123456789abcdef", 10_000)) is True
        news = noted.since(TENANT, notes.Mark("#0123456789abcdef", 10_000))
        assert (news.everybody, noted.behind(TENANT, news.mark)) == (True, False)
        assert noted.since(TENANT, news.mark).everybody is False
        assert noted.drop(TENANT, news.mark, at_least=10_000) is True
        noted.note(TENANT, "line:U1")
        assert noted.since(TENANT, news.mark).users == {"line:U1"}

    async def test_one_that_cant_be_read_is_told_as_lists_that_cant_be_had(self, tmp_path: Path) -> None:
        (tmp_path / f"{TENANT}.changed").mkdir()
        noted = Notes(tmp_path)
        for look in (noted.since, noted.behind, noted.drop):
            with pytest.raises(CatalogUnavailable, match="who changed can't be read"):
                look(TENANT, notes.Mark())

    def test_a_folder_that_takes_nothing_keeps_nobody_from_saving(self, tmp_path: Path) -> None:
        (tmp_path / "index").write_text("no folder")
        Notes(tmp_path / "index").note(TENANT, "line:U1")
        assert (tmp_path / "index").read_text() == "no folder"


def _raw(path: Path) -> str:
    return path.read_bytes().decode("latin-1")


async def _begun(catalog: Catalog) -> asyncio.Task[None]:
    """Closing it has begun when this returns."""
    closing = asyncio.create_task(catalog.close())
    await asyncio.sleep(0)
    return closing


def _saves_and_asks(base: Path, number: int) -> None:
    async def work() -> None:
        manager = manager_on(base)
        for at in range(30):
            await manager.remember(TENANT, f"line:U{at % 7}", key=f"k{number}-{at}", value=at)
            if at % 5 == 0:
                await manager.catalog.page(TENANT, "facts", Wanted())
        await manager.close()

    asyncio.run(work())
