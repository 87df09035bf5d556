"""Long-term memory in PostgreSQL: the suite of every backend, the lists, and what is a database's own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from memory import MemoryConfig, MemoryManager
from memory.errors import LongTermUnavailable
from memory.models import Changes, LongTermMemory, fresh_start
from memory.postgres.database import Database, counted
from memory.postgres.migrate import migrate
from memory.postgres.person import PersonRows
from memory.postgres.said import PostgresTranscripts
from memory.postgres.store import PostgresLongTerm
from tests import postgres
from tests.acceptance.processes import descendants
from tests.contracts.longterm import NOW, TENANT, USER, LongTermContract, event, ids, telling
from tests.contracts.test_catalog import Contract as CatalogContract
from tests.unit import test_transcripts as said


@pytest.fixture
def url(socket_folder: Path) -> Iterator[str]:
    with postgres.emptied(socket_folder) as url:
        yield url


@pytest.fixture
async def another(url: str) -> AsyncIterator[Callable[..., PostgresLongTerm]]:
    made: list[PostgresLongTerm] = []

    def store(**options: object) -> PostgresLongTerm:
        made.append(PostgresLongTerm(Database(url, size=4), clock=lambda: NOW, **options))  # type: ignore[arg-type]
        return made[-1]

    yield store
    for one in made:
        await one.close()


@pytest.fixture
def store(another: Callable[..., PostgresLongTerm]) -> PostgresLongTerm:
    return another()


class TestContract(LongTermContract):
    """What every backend does."""


class TestLists(CatalogContract):
    @pytest.fixture
    async def manager(self, url: str, tmp_path: Path) -> AsyncIterator[MemoryManager]:
        config = MemoryConfig(lm_base_path=tmp_path / "longterm", longterm_url=url)
        manager = MemoryManager(config, clock=lambda: NOW)
        yield manager
        await manager.close()


class TestWall:
    """What holds even where one of our own queries forgets whose rows it asks for."""

    TABLES = ("people", "events", "facts", "episodes", "procedures", "said", "forgotten", "lists", "conversations")

    async def test_whoever_says_no_tenant_sees_and_writes_nothing(self, url: str, store: PostgresLongTerm) -> None:
        await store.save_events(TENANT, USER, [event(1)], attributes={"a": 1})
        await store.mark_forgotten(TENANT, "line:U2")
        async with store.database.all_tenants() as db:
            assert await (
                await db.execute("SELECT current_user, current_setting('chat_chat.tenant', true)")
            ).fetchone() in (
                ("chat_chat_app", ""),
                ("chat_chat_app", None),
            )
            for table in self.TABLES:
                assert await (await db.execute(f"SELECT COUNT(*) FROM chat_chat.{table}")).fetchone() == (0,)
                assert await counted(db, f"SELECT FROM chat_chat.{table}", []) == 0
        with psycopg.connect(url) as owner:  # they are there
            assert owner.execute("SELECT COUNT(*) FROM chat_chat.events").fetchone() == (1,)

    async def test_whoever_says_a_tenant_sees_and_writes_that_one_alone(
        self, url: str, store: PostgresLongTerm
    ) -> None:
        for tenant in (TENANT, "store_002"):
            await store.save_events(tenant, USER, [event(1)], attributes={"a": tenant})
        async with store.database.tenant(TENANT) as db:
            for table in ("people", "events", "facts"):
                seen = await (await db.execute(f"SELECT DISTINCT tenant FROM chat_chat.{table}")).fetchall()
                assert seen == [(TENANT,)]
            assert await counted(db, "UPDATE chat_chat.events SET words = 'x'", []) == 1
        with pytest.raises(LongTermUnavailable, match="may not"):
            async with store.database.tenant(TENANT) as db:
                await db.execute("INSERT INTO chat_chat.forgotten VALUES ('store_002', 'x', 1)")
        assert (await store.load("store_002", USER)) is not None

    async def test_a_connection_that_served_a_tenant_remembers_none(self, store: PostgresLongTerm) -> None:
        await store.save_events(TENANT, USER, [event(1)])
        for _ in range(8):
            async with store.database.all_tenants() as db:
                assert await (await db.execute("SELECT COUNT(*) FROM chat_chat.events")).fetchone() == (0,)

    async def test_every_table_begins_its_keys_and_indexes_with_the_tenant(self, url: str) -> None:
        """So that the rows could be spread over many servers by it."""
        with psycopg.connect(url) as owner:
            found = owner.execute(
                "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'chat_chat'"
                " AND tablename <> 'migrations'"
            ).fetchall()
            walls = owner.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'chat_chat'::regnamespace AND relkind = 'r'"
                " AND relrowsecurity AND relforcerowsecurity"
            ).fetchall()
        # The list of tenants itself is what a cluster has on every server.
        assert [index for table, index, asked in found if "(tenant" not in asked and table != "tenants"] == []
        assert {table for (table,) in walls} == {table for table, *_ in found} - {"tenants"}


class TestReading:
    async def test_what_another_added_is_read_alone(
        self, store: PostgresLongTerm, another: Callable[..., PostgresLongTerm], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of a person with many events a change costs what is new, whichever process made the last one."""
        await store.save_events(TENANT, USER, [event(n) for n in range(300)])
        assert len(await ids(store)) == 300
        read: list[int] = []
        whole = PersonRows.whole

        async def counting(self: PersonRows, *args: Any) -> Any:
            read.append(1)
            return await whole(self, *args)

        monkeypatch.setattr(PersonRows, "whole", counting)
        other = another()
        for number in range(300, 310):
            await other.change(TENANT, USER, lambda known, n=number: telling(known, n))  # type: ignore[misc]
            await store.change(TENANT, USER, lambda known, n=number: Changes(events=[event(n)]))  # type: ignore[misc]
        assert len(read) == 1  # the other's first look
        assert len(await ids(store)) == len(await ids(other)) == 310

    async def test_processes_that_write_one_person_at_once_lose_nothing(
        self, url: str, store: PostgresLongTerm
    ) -> None:
        """Each with connections, a loop and a cache of its own, as a process has them."""
        others = [asyncio.to_thread(_tell, url, number) for number in range(2)]
        mine = [store.change(TENANT, USER, lambda known, n=n: telling(known, n)) for n in range(20, 30)]  # type: ignore[misc]
        await asyncio.gather(*others, *mine)
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert [(fact.value, fact.times_confirmed) for fact in memory.facts] == [("blue", 29)]

    async def test_two_merges_across_each_other_end(
        self, store: PostgresLongTerm, another: Callable[..., PostgresLongTerm]
    ) -> None:
        for user in ("line:A", "line:B"):
            await store.save_events(TENANT, user, [event(1)])

        def swapped(a: LongTermMemory, b: LongTermMemory) -> tuple[LongTermMemory, LongTermMemory]:
            summaries = a.history_summary + "x", b.history_summary + "x"
            return tuple(  # type: ignore[return-value]
                one.model_copy(update={"history_summary": text}) for one, text in zip((a, b), summaries, strict=True)
            )

        other = another()
        await asyncio.gather(
            *(store.rewrite_both(TENANT, "line:A", "line:B", swapped) for _ in range(5)),
            *(other.rewrite_both(TENANT, "line:B", "line:A", swapped) for _ in range(5)),
        )
        found = [await store.load(TENANT, user) for user in ("line:A", "line:B")]
        assert [one.history_summary for one in found if one] == ["x" * 10, "x" * 10]


class TestMigrations:
    def test_several_at_once_take_each_step_once(self, socket_folder: Path) -> None:
        name = "migrated_at_once"
        with psycopg.connect(postgres.url_of(socket_folder), autocommit=True) as owner:
            owner.execute(f"CREATE DATABASE {name}")
            try:
                where = postgres.url_of(socket_folder, name)
                with ThreadPoolExecutor(3) as threads:
                    taken = list(threads.map(migrate, [where] * 3))
                assert sorted(map(len, taken))[:2] == [0, 0]
                assert max(taken)[0] == "0001"
                assert migrate(where) == []
            finally:
                owner.execute(f"DROP DATABASE {name} WITH (FORCE)")

    async def test_without_our_tables_one_line_says_what_to_do(self, socket_folder: Path) -> None:
        with psycopg.connect(postgres.url_of(socket_folder), autocommit=True) as owner:
            owner.execute("CREATE DATABASE bare")
            store = PostgresLongTerm(Database(postgres.url_of(socket_folder, "bare")))
            try:
                with pytest.raises(LongTermUnavailable, match="chat-chat migrate"):
                    await store.load(TENANT, USER)
                assert "chat-chat migrate" in str(await store.database.examine())
            finally:
                await store.close()
                owner.execute("DROP DATABASE bare WITH (FORCE)")

    async def test_a_newer_versions_step_does_not_stop_this_one(self, url: str, store: PostgresLongTerm) -> None:
        with psycopg.connect(url, autocommit=True) as owner:
            (at,) = owner.execute("SELECT version_num FROM chat_chat.migrations").fetchone() or ("",)
            owner.execute("ALTER TABLE chat_chat.people ADD COLUMN new_one text NOT NULL DEFAULT ''")
            owner.execute("UPDATE chat_chat.migrations SET version_num = '9999'")
            try:
                await store.save_events(TENANT, USER, [event(1)])
                assert await ids(store) == ["e1"]
                assert await store.database.examine() is None
            finally:
                owner.execute("ALTER TABLE chat_chat.people DROP COLUMN new_one")
                owner.execute("UPDATE chat_chat.migrations SET version_num = %s", [at])


def _tell(url: str, number: int) -> None:
    async def run() -> None:
        store = PostgresLongTerm(Database(url, size=2), clock=lambda: NOW)
        for n in range(10):
            await store.change(TENANT, USER, lambda known, n=n: telling(known, number * 10 + n))  # type: ignore[misc]
        await store.close()

    asyncio.run(run())


class TestTranscripts:
    """Those tests of the files that are about more than files."""

    @pytest.fixture
    def clock(self) -> said.Clock:
        return said.Clock()

    @pytest.fixture
    async def transcripts(self, url: str, clock: said.Clock) -> AsyncIterator[PostgresTranscripts]:
        database = Database(url, size=4)
        yield PostgresTranscripts(database, clock=clock)
        await database.close()

    @pytest.mark.parametrize(
        "same",
        [
            said.test_the_tail_is_the_newest_messages_oldest_first,
            said.test_a_message_comes_back_with_all_that_it_had,
            said.test_each_conversation_has_its_own_tail,
            said.test_a_message_written_twice_is_read_once_in_its_first_place,
            said.test_a_lone_surrogate_is_written_as_a_replacement,
            said.test_many_writers_at_once_lose_nothing,
            said.test_forget_removes_that_person_alone_and_counts,
        ],
    )
    async def test_it_does_what_the_files_do(self, transcripts: PostgresTranscripts, same: Any) -> None:
        await same(transcripts)

    async def test_pruning_removes_what_is_older_and_nothing_else(
        self, transcripts: PostgresTranscripts, clock: said.Clock
    ) -> None:
        for days in (-40, -10, -9, 0):
            clock.now = said.NOW + timedelta(days=days)
            await transcripts.append(said.REF, [said.said(f"{days}")])
        elsewhere = said.REF._replace(tenant="store_002")
        await transcripts.append(elsewhere, [said.said("elsewhere")])
        assert await transcripts.prune("store_001", said.NOW - timedelta(days=9)) == 2
        assert [one["message"] for one in await transcripts.tail(said.REF, 9)] == ["-9", "0"]
        assert [one["message"] for one in await transcripts.tail(elsewhere, 9)] == ["elsewhere"]
        assert await transcripts.tenants() == ["store_001", "store_002"]
        assert await transcripts.users("store_001") == ["line:U1"]

    async def test_a_fresh_start_hides_what_was_said_before_and_keeps_it(
        self, transcripts: PostgresTranscripts
    ) -> None:
        await transcripts.append(said.REF, [said.said("before"), fresh_start("r1"), said.said("after")])
        assert [one["message"] for one in await transcripts.tail(said.REF, 9)] == ["after"]
        kept = (await transcripts.everything("store_001", "line:U1"))[0]
        assert (kept["message"], kept["agent"], kept["conversation"]) == ("before", "default", "main")

    async def test_what_the_platform_names_is_found_changed_and_removed(self, transcripts: PostgresTranscripts) -> None:
        for number in range(3):
            line = said.said(f"text {number}", f"m{number}")
            line["metadata"] = {"platform_id": f'p"{number}\x00'}
            await transcripts.append(said.REF, [line])
        assert await transcripts.find(said.REF, 'p"7') is None
        found = await transcripts.find(said.REF, 'p"1\x00')
        assert found is not None
        assert found["message"] == "text 1"
        await transcripts.amend(said.REF, 'p"1\x00', lambda one: {**one, "message": "corrected"})
        await transcripts.amend(said.REF, 'p"2\x00', lambda one: None)
        assert await transcripts.remove(said.REF, lambda one: one["message"] == "text 0") == 1
        assert [one["message"] for one in await transcripts.tail(said.REF, 9)] == ["corrected"]

    async def test_what_could_not_be_written_is_written_with_the_next_message(self, url: str) -> None:
        database = Database("postgresql://nobody@/none?host=/nowhere", patience=0.1)
        transcripts = PostgresTranscripts(database)
        for text in ("one", "two"):
            with pytest.raises(LongTermUnavailable):
                await transcripts.append(said.REF, [said.said(text, text)])
        await database.close()
        database.url, database._patience = url, 5.0
        database._away_until = 0.0
        await transcripts.append(said.REF, [said.said("three")])
        assert [one["message"] for one in await transcripts.tail(said.REF, 9)] == ["one", "two", "three"]
        await database.close()


async def test_a_server_that_hangs_is_away_and_one_that_is_slow_is_not() -> None:
    with postgres.place() as folder, postgres.started(folder) as server:
        migrate(postgres.url_of(folder))
        database = Database(postgres.url_of(folder), patience=0.3)

        async def asked(question: LiteralString) -> Any:
            async with database.tenant("shop") as db:
                return await (await db.execute(question)).fetchone()

        assert await asked("SELECT 1 FROM pg_sleep(1)") == (1,)
        stopped = [server.pid, *descendants(server.pid)]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(30):
                for _ in range(3):
                    with pytest.raises(LongTermUnavailable):
                        await asked("SELECT 2")
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        async with asyncio.timeout(30):
            while True:
                try:
                    assert await asked("SELECT 3") == (3,)
                    break
                except LongTermUnavailable:
                    await asyncio.sleep(0.1)
        await database.close()
