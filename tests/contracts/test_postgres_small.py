"""Keys, blocked people and opened conversations in PostgreSQL: the suite of tests/contracts/small.py, and what is a
database's own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient

from config.settings import Settings
from config.tenants import Tenant
from gateway.blocked import Blocked, OptedOut
from gateway.key_ring import KeyRing
from gateway.longterm_commands import copy
from gateway.routes.auth import Keys
from gateway.routes.problems import handle_problems
from memory.conversation_files import ConversationFiles
from memory.errors import LongTermUnavailable
from memory.lists import KEYS, FileLists
from memory.postgres.conversations import NOTED_EVERY, TRUSTED, PostgresConversations
from memory.postgres.database import Database
from memory.postgres.lists import PostgresLists
from memory.small import Small
from tests import postgres
from tests.contracts.small import NEW, NOW, ConversationsContract, ListsContract, filled, tenant
from tests.unit.test_moving import no_bar

EVERY = 0.05


@pytest.fixture
def url(socket_folder: Path) -> Iterator[str]:
    with postgres.emptied(socket_folder) as url:
        yield url


@pytest.fixture
def lists(url: str) -> Iterator[Callable[..., PostgresLists]]:
    """Each call is another process's."""
    made: list[PostgresLists] = []

    def one(where: str = url, trusted: float = 90.0) -> PostgresLists:
        made.append(PostgresLists(where, every=EVERY, trusted=trusted, patience=60.0))
        return made[-1]

    yield one
    for each in made:
        each.close()


@pytest.fixture
def here(lists: Callable[..., PostgresLists]) -> PostgresLists:
    return lists()


@pytest.fixture
def there(lists: Callable[..., PostgresLists]) -> PostgresLists:
    return lists()


@pytest.fixture
def looked(here: PostgresLists, there: PostgresLists) -> Callable[[], None]:
    def wait() -> None:
        """What one process wrote the other one has seen, and the other way round."""
        for writer, reader in ((here, there), (there, here)):
            mark = f"line:{time.monotonic_ns()}"
            writer("mark").change("zz", lambda there, mark=mark: [mark])  # type: ignore[misc]
            until(lambda reader=reader, mark=mark: reader("mark").of("zz") == [mark])  # type: ignore[misc]

    return wait


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not true():
        assert time.monotonic() < deadline
        time.sleep(EVERY)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tenants that transactions were begun for, "" for those over all."""
    seen: list[str] = []
    begun = Database._transaction

    def counting(self: Database, tenant: str, *args: Any) -> Any:
        seen.append(tenant)
        return begun(self, tenant, *args)

    monkeypatch.setattr(Database, "_transaction", counting)
    return seen


class TestLists(ListsContract):
    """What every backend does."""

    def test_a_note_that_is_on_its_way_is_known_here_at_once_and_outlives_this_process(
        self, here: PostgresLists, there: PostgresLists
    ) -> None:
        ring = KeyRing(here)
        made, _ = ring.make("shop", "", NOW)
        ring.used("shop", made, NOW)
        assert ring.of("shop")[0].last_used == "2026-03-01T09:00:00Z"
        here.close()
        assert KeyRing(there).of("shop")[0].last_used == "2026-03-01T09:00:00Z"

    def test_a_database_that_was_put_back_to_an_earlier_day_is_read_anew(
        self, url: str, here: PostgresLists, there: PostgresLists, looked: Callable[[], None]
    ) -> None:
        Blocked(here).block("shop", ["line:U1"])
        looked()
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("DELETE FROM chat_chat.lists")
            owner.execute("DELETE FROM chat_chat.tenants")
            owner.execute("INSERT INTO chat_chat.tenants VALUES ('shop', 1)")
            owner.execute("INSERT INTO chat_chat.lists VALUES ('shop', 'blocked', '[\"line:U2\"]')")
        until(lambda: Blocked(there).of("shop") == {"line:U2"})

    def test_many_questions_are_no_queries(self, url: str, counted: list[str]) -> None:
        patient = PostgresLists(url, every=3600, patience=60.0)
        try:
            ring = KeyRing(patient)
            _, key = ring.make("shop", "", NOW)
            ring.used("shop", ring.of("shop")[0], datetime.now(UTC))
            until(lambda: len(counted) == 3)  # the first look, the key, and that it was used
            keys = Keys("admin", lambda: [tenant("shop")], ring)
            assert [keys.whose(one) for one in (key, "ck_wrong") * 500] == ["shop", None] * 500
            assert counted == ["", "shop", "shop"]
        finally:
            patient.close()


class TestAway:
    """While the database can't be asked."""

    def test_a_key_is_neither_right_nor_wrong_until_it_is_back(
        self, lists: Callable[..., PostgresLists], url: str
    ) -> None:
        KeyRing(lists()).make("shop", "", NOW)
        one = lists(trusted=0.0)  # whatever was read is too old to be trusted
        keys = Keys("the admin key", lambda: [in_file()], KeyRing(one))
        api = FastAPI()
        handle_problems(api)

        @api.get("/")
        def opens(request: Request) -> str | None:
            return keys.opens(request)

        client = TestClient(api)

        def asked(key: str) -> int:
            return client.get("/", headers={"Authorization": f"Bearer {key}"}).status_code

        assert [asked(key) for key in ("ck_unknown", "the admin key", "in the file")] == [503, 200, 200]
        answer = client.get("/", headers={"Authorization": "Bearer ck_unknown"})
        assert (answer.headers["Retry-After"], "memory" in answer.json()["detail"].lower()) == ("5", True)
        assert keys.known("ck_unknown")  # so that it is not taken for a guess

    def test_who_was_blocked_stays_so_and_a_process_that_knows_nothing_refuses_nobody(
        self, lists: Callable[..., PostgresLists], tmp_path: Path
    ) -> None:
        known = lists(trusted=0.0)
        Blocked(known).block("shop", ["line:U1"])
        assert Blocked(known).of("shop") == {"line:U1"}
        nothing = PostgresLists(postgres.url_of(tmp_path), every=EVERY, patience=0.5)
        try:
            assert Blocked(nothing).of("shop") == frozenset()
            for asks in (lambda: OptedOut(nothing).of("shop"), lambda: KeyRing(nothing).of("shop")):
                with pytest.raises(LongTermUnavailable):
                    asks()
            with pytest.raises(LongTermUnavailable):
                Blocked(nothing).block("shop", ["line:U1"])
        finally:
            nothing.close()

    def test_without_the_tables_nothing_is_known(self, socket_folder: Path) -> None:
        with psycopg.connect(postgres.url_of(socket_folder), autocommit=True) as owner:
            owner.execute("CREATE DATABASE without")
            bare = PostgresLists(postgres.url_of(socket_folder, "without"), every=EVERY)
            try:
                with pytest.raises(LongTermUnavailable):
                    bare(KEYS).of("shop")
            finally:
                bare.close()
                owner.execute("DROP DATABASE without WITH (FORCE)")


class TestConversations(ConversationsContract):
    @pytest.fixture
    async def processes(self, url: str) -> AsyncIterator[list[PostgresConversations]]:
        self.now = [0.0]
        databases = [Database(url, size=4), Database(url, size=4)]
        yield [PostgresConversations(one, clock=lambda: self.now[0]) for one in databases]
        for one in databases:
            await one.close()

    @pytest.fixture
    def store(self, processes: list[PostgresConversations]) -> PostgresConversations:
        return processes[0]

    @pytest.fixture
    def other(self, processes: list[PostgresConversations]) -> PostgresConversations:
        return processes[1]

    async def test_each_message_in_it_asks_the_database_nothing_for_a_while(
        self, store: PostgresConversations, other: PostgresConversations, counted: list[str]
    ) -> None:
        await store.open(NEW)
        await other.rename("shop", "order-1", "new")
        counted.clear()
        for second in range(50):
            assert (await store.open(NEW)).name == "Order 1"
            await store.used("shop", "order-1", NOW + timedelta(seconds=second))
        assert counted == []
        self.now[0] += TRUSTED
        assert (await store.open(NEW)).name == "new"
        await store.used("shop", "order-1", NOW + NOTED_EVERY)
        assert (await other.all("shop"))[0].used_at == NOW + NOTED_EVERY

    async def test_one_that_was_removed_elsewhere_is_known_to_be_gone_by_its_next_note(
        self, store: PostgresConversations, other: PostgresConversations
    ) -> None:
        await store.open(NEW)
        await other.remove("shop", "order-1")
        assert await store.get("shop", "order-1") == NEW
        await store.used("shop", "order-1", NOW + NOTED_EVERY)
        assert await store.get("shop", "order-1") is None

    async def test_no_more_are_kept_in_mind_than_there_is_room_for(
        self, store: PostgresConversations, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memory.postgres.conversations._KNOWN", 2)
        for number in range(4):
            await store.open(replace(NEW, id=f"c{number}"))
        assert [name for _, name in store._known] == ["c2", "c3"]


async def test_they_are_copied_both_ways_and_compared(url: str, tmp_path: Path) -> None:
    settings = Settings(config_dir=tmp_path / "config", data_dir=tmp_path / "data")
    folder = str(tmp_path / "data" / "longterm")
    files = FileLists(tmp_path / "data"), ConversationFiles(tmp_path / "data" / "conversations")
    known = await filled(Small(*files), *files)
    assert sorted(known) == ["the conversation order-1", "the list blocked", "the list keys"]
    lines, whole = await copy(settings, folder, url, None, False, no_bar)
    assert (whole, next(line.split(",")[0] for line in lines)) == (
        True,
        "shop: 3 lists and opened conversations copied and compared",
    )
    lists, database = PostgresLists(url, every=EVERY, trusted=90.0, patience=60.0), Database(url)
    conversations = PostgresConversations(database, trusted=0)
    try:
        assert await Small(lists, conversations).stamps("shop") == known
        # What changed since is what the next call copies, also what is gone.
        await files[1].remove("shop", "order-1")
        await asyncio.to_thread(Blocked(files[0]).block, "shop", ["line:U2"])
        _, whole = await copy(settings, folder, url, "shop", False, no_bar, small_alone=True)
        assert (whole, await conversations.all("shop")) == (True, [])
        await asyncio.to_thread(until, lambda: Blocked(lists).of("shop") == {"line:U1", "line:U2"})
        # Who blocked somebody there meanwhile is told of, and theirs stays.
        await asyncio.to_thread(Blocked(lists).block, "shop", ["line:U3"])
        lines, whole = await copy(settings, folder, url, None, False, no_bar, small_alone=True)
        assert (whole, "are there otherwise than they were copied: the list blocked" in lines[1]) == (False, True)
        # And back, to another place.
        back = tmp_path / "back"
        _, whole = await copy(settings, url, str(back / "longterm"), None, False, no_bar)
        assert (whole, Blocked(FileLists(back)).of("shop")) == (True, frozenset({"line:U1", "line:U2", "line:U3"}))
        assert KeyRing(FileLists(back)).of("shop") == KeyRing(files[0]).of("shop")
    finally:
        lists.close()
        await database.close()


def in_file() -> Tenant:
    hashed = f"sha256:{sha256(b'in the file').hexdigest()}"
    return tenant("shop").model_copy(update={"api_keys": [hashed]})
