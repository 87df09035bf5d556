"""What the lists over a tenant are counted and searched by in PostgreSQL: kept up by who asks, emptied at once. What
they answer is in the suite of every catalog (`test_postgres.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from memory import MemoryConfig, MemoryManager
from memory.errors import CatalogUnavailable
from memory.index import schema
from memory.index.tallies import tell
from memory.listing import SORTS, Counts, Kind, Wanted
from memory.postgres import queries, tallies, texts
from memory.postgres.catalog import PostgresCatalog
from memory.postgres.database import counted
from memory.postgres.store import PostgresLongTerm
from memory.recall import sought
from tests import postgres
from tests.contracts.test_catalog import ANN, BEE, NOW, TENANT, event, listed

TABLES = ("catalogs", "taken", "tallies", "texts", "postings")


@pytest.fixture
def url(socket_folder: Path) -> Iterator[str]:
    with postgres.emptied(socket_folder) as url:
        yield url


@pytest.fixture
async def manager(url: str, tmp_path: Path) -> AsyncIterator[MemoryManager]:
    manager = manager_on(url, tmp_path)
    yield manager
    await manager.close()


def manager_on(url: str, base: Path) -> MemoryManager:
    return MemoryManager(MemoryConfig(lm_base_path=base / "longterm", longterm_url=url), clock=lambda: NOW)


def held(url: str, *tables: str) -> dict[str, str]:
    """What stands in these tables, as text."""
    with psycopg.connect(url) as owner:
        return {
            table: str(owner.execute(f"SELECT t::text FROM chat_chat.{table} AS t".encode()).fetchall())
            for table in tables or TABLES
        }


async def both_ways(longterm: PostgresLongTerm, *asked: tuple[Kind, Wanted]) -> list[tuple[Counts, Counts]]:
    """As the tallies have it, and counted, at one moment."""
    async with longterm.database.tenant(TENANT, reading=True) as db:
        known = await tallies.read(db, TENANT)
        assert known is not None
        found = []
        for kind, wanted in asked:
            assert tell(kind, wanted)
            by: dict[str, dict[str, int]] = {name: {} for name in schema.OF[kind].counted}
            total = 0
            for *names, number in await (await db.execute(*queries.counts(TENANT, kind, wanted))).fetchall():
                total += number
                for column, name in zip(by, names, strict=True):
                    by[column][name] = by[column].get(name, 0) + number
            found.append((tallies.of(known, kind, wanted), Counts(total, by)))
    return found


class TestKeptUp:
    async def test_who_saves_writes_none_of_it(self, url: str, manager: MemoryManager) -> None:
        await manager.longterm.save_events(TENANT, ANN, [event(1)], attributes={"a": 1})
        await manager.remember(TENANT, BEE, key="b", value=2)
        await manager.forget(TENANT, BEE)
        assert held(url) == dict.fromkeys(TABLES, "[]")

    @pytest.mark.parametrize("few", [tallies.FEW, 0], ids=["while it is read", "beforehand"])
    async def test_counts_are_those_of_the_rows_whatever_happens(
        self, manager: MemoryManager, few: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tallies, "FEW", few)
        monkeypatch.setattr(tallies, "BATCH", 2)
        longterm, catalog = manager.longterm, manager.catalog
        assert isinstance(catalog, PostgresCatalog)
        assert isinstance(longterm, PostgresLongTerm)

        async def agree() -> dict[str, int]:
            if not few:
                await catalog._filling.catch_up(TENANT, searched=False)
            asked: list[tuple[Kind, Wanted]] = [(kind, Wanted()) for kind in SORTS]
            more = (Wanted(superseded=True), Wanted(priorities=("high",)), Wanted(types=("preference", "fact")))
            found = await both_ways(longterm, *asked, *(("facts", wanted) for wanted in more))
            for told, rows in found:
                assert (told.total, told.by) == (rows.total, rows.by)
            return {kind: told.total for (kind, _), (told, _) in zip(asked, found, strict=False)}

        assert set((await agree()).values()) == {0}
        for number, user in enumerate((ANN, BEE, "line:U3")):
            kinds = ("INQUIRY", "COMPLAINT")[: number + 1]
            await longterm.save_events(TENANT, user, [event(n, kind) for n, kind in enumerate(kinds)])
            await manager.remember(TENANT, user, key="size", value="M")
        assert await agree() == {"facts": 3, "episodes": 0, "events": 5, "procedures": 0, "users": 3}
        await manager.remember(TENANT, ANN, key="size", value="L")
        await longterm.rewrite(TENANT, BEE, lambda memory: memory.model_copy(update={"events": memory.events[:1]}))
        assert await agree() == {"facts": 3, "episodes": 0, "events": 4, "procedures": 0, "users": 3}
        await manager.forget(TENANT, BEE)
        assert await agree() == {"facts": 2, "episodes": 0, "events": 3, "procedures": 0, "users": 2}
        await longterm.save_events(TENANT, BEE, [event(9)])  # somebody who comes again
        assert await agree() == {"facts": 2, "episodes": 0, "events": 4, "procedures": 0, "users": 3}

    async def test_many_who_changed_are_counted_once_and_taken_in_behind_it(
        self, url: str, manager: MemoryManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tallies, "FEW", 2)
        for number in range(5):
            await manager.longterm.save_events(TENANT, f"line:U{number}", [event(number)])
        assert (await manager.catalog.page(TENANT, "events", Wanted(), limit=2)).total == 5
        async with asyncio.timeout(90):
            while '"events[""INQUIRY""]",5' not in held(url, "tallies")["tallies"]:
                await asyncio.sleep(0.01)

    async def test_processes_that_fill_and_save_at_once_take_everything_in_once(
        self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each with connections and a loop of its own, as a process has them."""
        monkeypatch.setattr(tallies, "BATCH", 3)
        await asyncio.gather(*(asyncio.to_thread(_saves_and_asks, url, tmp_path, number) for number in range(2)))
        manager = manager_on(url, tmp_path)
        page = await manager.catalog.page(TENANT, "events", Wanted(q="coffee"))
        users = await manager.catalog.page(TENANT, "users", Wanted(), limit=1)
        await manager.close()
        assert (page.total, users.total) == (20, 7)
        with psycopg.connect(url) as owner:
            assert owner.execute("SELECT COUNT(*) FROM chat_chat.texts WHERE kind = 'events'").fetchone() == (20,)
            (raw,) = owner.execute(
                "SELECT string_agg(numbers, '') FROM chat_chat.postings WHERE kind = 'events' AND term = 'coffe'"
            ).fetchone() or (b"",)
        numbers = texts.unpacked(raw)
        assert (len(numbers), len(set(numbers))) == (20, 20)

    async def test_who_waits_too_long_is_told_to_come_again(self, manager: MemoryManager) -> None:
        await manager.remember(TENANT, ANN, key="a", value="coffee")
        assert isinstance(manager.longterm, PostgresLongTerm)
        catalog = PostgresCatalog(manager.longterm, patience=0.0)
        with pytest.raises(CatalogUnavailable, match="ask again"):
            await catalog.page(TENANT, "facts", Wanted(q="coffee"))
        assert await listed(manager.catalog, wanted=Wanted(q="coffee")) == ["a"]
        assert await listed(catalog, wanted=Wanted(q="coffee")) == ["a"]
        await catalog.close()

    async def test_texts_of_older_terms_are_taken_anew_and_those_of_newer_ones_left_alone(
        self, url: str, manager: MemoryManager, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As long as two versions run the older one searches in what the newer one has taken."""
        await manager.remember(TENANT, ANN, key="a", value="coffee")
        assert await listed(manager.catalog, wanted=Wanted(q="coffee")) == ["a"]
        monkeypatch.setattr(schema, "TERMS", schema.TERMS + 1)
        assert await listed(manager.catalog, wanted=Wanted(q="coffee")) == ["a"]
        with psycopg.connect(url) as owner:
            assert owner.execute("SELECT form, next FROM chat_chat.catalogs").fetchone() == (schema.TERMS, 4)
        monkeypatch.setattr(schema, "TERMS", schema.TERMS - 1)
        await manager.remember(TENANT, ANN, key="b", value="coffee")
        assert await listed(manager.catalog, wanted=Wanted(q="coffee")) == ["a"]

    async def test_a_search_costs_what_is_found(self, manager: MemoryManager, monkeypatch: pytest.MonkeyPatch) -> None:
        """In a large list nobody reads where that stands which nearly all have."""
        monkeypatch.setattr(sought, "_LARGE", 20)
        await manager.longterm.save_events(TENANT, ANN, [event(n, text=f"coffee number {n}") for n in range(40)])
        await listed(manager.catalog, "events", Wanted(q="coffee"))
        read: list[int] = []

        def unpacked(raw: bytes) -> tuple[int, ...]:
            read.append(len(raw) // 2)
            return texts.unpacked(raw)

        monkeypatch.setattr("memory.postgres.finding.unpacked", unpacked)
        assert await listed(manager.catalog, "events", Wanted(q="coffee number 17")) == ["e17"]
        assert sum(read) < 5

    async def test_blocks_are_looked_up_together(self, manager: MemoryManager, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in ("texts", "finding"):
            monkeypatch.setattr(f"memory.postgres.{module}.BLOCK", 4)
        said = ("กาแฟเย็นหนึ่งแก้ว", "iced coffee", "iced tea")
        await manager.longterm.save_events(TENANT, ANN, [event(n, text=said[n % 3]) for n in range(30)])
        for q, found in (("iced coffee", 10), ("หนึ่งแก้ว", 10), ("แก้ว", 10), ("offe", 10), ("ปลา", 0)):
            assert (q, (await manager.catalog.page(TENANT, "events", Wanted(q=q), limit=3)).total) == (q, found)


class TestGone:
    async def test_of_who_is_forgotten_no_word_is_left(self, url: str, manager: MemoryManager) -> None:
        await manager.remember(TENANT, ANN, key="a", value="rhubarb")
        await manager.longterm.save_events(TENANT, BEE, [event(1, text="rhubarb and custard")])
        assert await listed(manager.catalog, "events", Wanted(q="custard")) == ["e1"]
        before = held(url)
        assert {table for table, rows in before.items() if BEE in rows} == {"taken", "texts"}
        assert "custard" in before["postings"]
        await manager.forget(TENANT, BEE)
        left = held(url)
        assert "rhubarb" in left["postings"]
        assert [table for table, rows in left.items() if BEE in rows or "cus" in rows or "events" in rows] == []

    async def test_what_is_deleted_or_changed_leaves_no_word(self, url: str, manager: MemoryManager) -> None:
        fact = await manager.remember(TENANT, ANN, key="a", value="rhubarb")
        await manager.remember(TENANT, ANN, key="b", value="custard")
        assert len(await listed(manager.catalog, wanted=Wanted(q="rhubarb"))) == 1
        assert await manager.curation.delete_facts(TENANT, [fact.id]) == 1
        left = held(url, "texts", "postings")
        assert {table: ("rhu" in rows, "cus" in rows) for table, rows in left.items()} == dict.fromkeys(
            left, (False, True)
        )
        kept = (await manager.catalog.page(TENANT, "facts", Wanted())).records[0]["id"]
        await manager.curation.mend(TENANT, kept, text="b: trifle")
        assert await listed(manager.catalog, wanted=Wanted(q="custard")) == []
        assert "cus" not in "".join(held(url, "texts", "postings").values())

    async def test_who_went_without_a_word_is_found_by_the_comparison(self, url: str, manager: MemoryManager) -> None:
        """By a version that knows nothing of these tables, or by hand."""
        for user in (ANN, BEE):
            await manager.remember(TENANT, user, key="a", value="custard")
        assert len(await listed(manager.catalog, wanted=Wanted(q="custard"))) == 2
        await manager.longterm.forget(TENANT, BEE)
        assert len(await listed(manager.catalog, wanted=Wanted(q="custard"))) == 1
        assert await manager.refresh_lists(TENANT) == 1
        assert [table for table, rows in held(url).items() if BEE in rows] == []
        assert isinstance(manager.longterm, PostgresLongTerm)
        assert [(told.total, rows.total) for told, rows in await both_ways(manager.longterm, ("facts", Wanted()))] == [
            (1, 1)
        ]
        assert await manager.refresh_lists(TENANT) == 0

    async def test_the_comparison_goes_on_where_it_was_in_whatever_process(
        self, url: str, manager: MemoryManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(5):
            await manager.remember(TENANT, f"line:U{number}", key="a", value="custard")
        await listed(manager.catalog, wanted=Wanted(q="custard"))
        for number in (0, 1, 3, 4):
            await manager.longterm.forget(TENANT, f"line:U{number}")
        monkeypatch.setattr("memory.postgres.filling._LOOKED_AT", 2)
        found = []
        for _ in range(5):
            other = manager_on(url, tmp_path)
            found.append(await other.refresh_lists(TENANT))
            await other.close()
        assert found == [2, 1, 1, 0, 0]
        await manager.longterm.forget(TENANT, "line:U2")
        assert await manager.catalog.refresh(TENANT) == 1  # who asks for all of it gets that
        assert held(url, "taken") == {"taken": "[]"}


async def test_the_wall_holds_on_these_tables(url: str, manager: MemoryManager) -> None:
    assert isinstance(manager.longterm, PostgresLongTerm)
    for tenant in (TENANT, "store_002"):
        await manager.longterm.save_events(tenant, ANN, [event(1, text="coffee")])
        await manager.catalog.page(tenant, "events", Wanted(q="coffee"))
    async with manager.longterm.database.all_tenants() as db:
        for table in TABLES:
            assert await counted(db, f"SELECT FROM chat_chat.{table}", []) == 0
    async with manager.longterm.database.tenant(TENANT) as db:
        for table in TABLES:
            seen = await db.execute(f"SELECT DISTINCT tenant FROM chat_chat.{table}".encode())
            assert (table, await seen.fetchall()) == (table, [(TENANT,)])


def _saves_and_asks(url: str, base: Path, number: int) -> None:
    async def work() -> None:
        manager = manager_on(url, base)
        for at in range(10):
            new = event(number * 100 + at, text=f"coffee {number} {at}")
            await manager.longterm.save_events(TENANT, f"line:U{at % 7}", [new])
            if at % 3 == 0:
                await manager.catalog.page(TENANT, "events", Wanted(q="coffee"))
        await manager.close()

    asyncio.run(work())
