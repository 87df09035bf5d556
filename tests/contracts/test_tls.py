"""Encrypted ways to Redis and PostgreSQL: everything goes through them, and a wrong certificate says what to do."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest

from config.settings import Settings
from gateway import doctor
from gateway.errors import InboxUnavailable
from gateway.inbox.listening import Listening
from gateway.inbox.redis import RedisInbox
from gateway.wire import Listener, Wire
from memory.errors import LongTermUnavailable
from memory.postgres.database import Database
from memory.postgres.migrate import migrate
from memory.postgres.store import PostgresLongTerm
from memory.redis_client import connect
from processors.models import EventType, MemoryEvent
from tests import postgres
from tests.contracts.test_redis_secured import works
from tests.redis_many import Node, free_port, until
from tests.tls import Certificate, Door, certificate, door


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    one = Node(tmp_path_factory.mktemp("redis"), free_port())
    until(one.answers)
    yield one
    one.kill()


@pytest.fixture
def ours(tmp_path: Path) -> Certificate:
    return certificate(tmp_path / "ours")


@pytest.fixture
async def behind(node: Node, ours: Certificate) -> AsyncIterator[Door]:
    async with door(ours, node.port) as here:
        yield here
    node.asked("FLUSHALL")


def url(port: int, trusted: Path | None, scheme: str = "rediss") -> str:
    return f"{scheme}://127.0.0.1:{port}/0" + (f"?{urlencode({'ssl_ca_certs': str(trusted)})}" if trusted else "")


class TestRedis:
    async def test_sessions_scripts_pipelines_and_listeners_go_through_it(
        self, behind: Door, ours: Certificate
    ) -> None:
        assert await works(url(behind.port, ours.authority))
        assert behind.taken >= 2  # what is heard has a connection of its own

    async def test_what_many_ask_at_once_shares_one_connection_and_each_gets_its_answer(
        self, behind: Door, ours: Certificate
    ) -> None:
        async with connect(url(behind.port, ours.authority), retries=0) as client:
            texts = [str(number) * 5000 for number in range(60)]
            await asyncio.gather(*(client.set(f"k{n}", text, ex=60) for n, text in enumerate(texts)))
            found = await asyncio.gather(*(client.get(f"k{n}") for n in range(60)))
            assert [one.decode() for one in found] == texts
            assert behind.taken == 1
            await client.rpush("cc:i:wake", 1)
            ear = Listening(client, "cc:i:wake", "cc:i:own")
            assert await ear.once_woken(("LLEN", "cc:i:wake"), 60.0, None, None) == 0

    async def test_a_connection_that_was_cut_is_opened_anew(self, behind: Door, ours: Certificate) -> None:
        async with connect(url(behind.port, ours.authority), retries=2) as client:
            await client.set("a", 1, ex=60)
            behind.cut()
            assert await client.get("a") == b"1"
            assert behind.taken == 2

    async def test_listeners_hear_and_are_told_when_they_may_have_missed_something(
        self, behind: Door, ours: Certificate
    ) -> None:
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        missed = asyncio.Event()
        async with connect(url(behind.port, ours.authority)) as client:
            wire = Wire(client)
            await wire.join("told", Listener(heard.put_nowait, missed.set))
            await client.publish("told", "สวัสดี")
            async with asyncio.timeout(30):
                assert (await heard.get()).decode() == "สวัสดี"
                behind.cut()
                await missed.wait()
                await client.publish("told", "again")
                assert await heard.get() == b"again"
            await wire.close()

    async def test_a_certificate_that_nobody_vouches_for_is_refused_and_told_with_the_remedy(
        self, behind: Door, ours: Certificate, tmp_path: Path
    ) -> None:
        stranger = certificate(tmp_path / "stranger")
        for trusted in (None, stranger.authority):
            wrong = url(behind.port, trusted)
            assert not await works(wrong)
            assert behind.taken == 0
            with pytest.raises(InboxUnavailable, match=r"not trusted .* rediss://…\?ssl_ca_certs="):
                await claimed(wrong)
            assert await remedies(wrong, tmp_path) == ["name who signed it, rediss://…?ssl_ca_certs=/path/to/ca.pem"]

    async def test_another_host_than_the_certificate_names_is_refused(
        self, behind: Door, ours: Certificate, tmp_path: Path
    ) -> None:
        other = url(behind.port, ours.authority).replace("127.0.0.1", "localhost")
        assert await remedies(other, tmp_path) == ["write the host into REDIS_URL as its certificate names it"]

    async def test_a_server_without_tls_is_told_apart(self, node: Node, ours: Certificate, tmp_path: Path) -> None:
        assert await remedies(url(node.port, ours.authority), tmp_path) == ["it has to speak TLS, as rediss asks for"]

        async def talks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"-ERR Protocol error\r\n")
            await reader.read()
            writer.close()

        server = await asyncio.start_server(talks, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        told = await remedies(url(port, ours.authority), tmp_path)
        server.close()
        assert told == ["write redis:// in REDIS_URL, or the port that speaks it"]


async def claimed(at: str) -> None:
    async with connect(at, retries=0) as client:
        await RedisInbox(client, "w1").claim(1)


async def remedies(at: str, tmp_path: Path) -> list[str]:
    """What `chat-chat doctor` says to do about Redis."""
    settings = Settings(redis_url=at, data_dir=tmp_path / "data", config_dir=tmp_path / "config")
    return [str(one).rpartition(": ")[2] for one in await doctor.examine(settings) if "REDIS_URL does" in str(one)]


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Certificate]]:
    """The port of a PostgreSQL that speaks TLS, and its certificate."""
    with postgres.place() as folder:
        made = certificate(folder / "ours")
        (folder / "ours").chmod(0o755)
        if os.getuid() == 0:  # the script's server runs as another user, whose the key has to be
            known = {one.pw_name for one in pwd.getpwall()}
            shutil.chown(made.key, "postgres" if "postgres" in known else "nobody")
        port = free_port()
        files = {"ssl_cert_file": str(made.chain), "ssl_key_file": str(made.key)}
        with postgres.started(folder, port, listen_addresses="127.0.0.1", ssl="on", **files):
            yield port, made


class TestPostgres:
    async def test_long_term_memory_is_kept_over_it(self, served: tuple[int, Certificate]) -> None:
        port, made = served
        for mode in ("require", f"verify-full&sslrootcert={made.authority}"):
            at = f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode={mode}"
            migrate(at)
            with psycopg.connect(at) as db:
                assert db.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone() == (True,)
            database = Database(at)
            assert await database.examine() is None
            store = PostgresLongTerm(database)
            event = MemoryEvent(event_type=EventType.INQUIRY, importance_score=0.9, event_id=mode[:7])
            await store.save_events("shop", "line:U1", [event])
            known = await store.load("shop", "line:U1")
            assert known is not None
            assert event.event_id in [one.event_id for one in known.events]
            await store.close()

    async def test_a_wrong_certificate_is_refused_and_told_with_the_remedy(
        self, served: tuple[int, Certificate], tmp_path: Path
    ) -> None:
        port, made = served
        stranger = certificate(tmp_path / "stranger")
        at = f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=verify-full&sslrootcert="
        cases = {
            at + str(stranger.authority): "not trusted: name who signed it, sslrootcert=",
            at + str(tmp_path / "none.pem"): "nothing says whom to trust: name who signed it, sslrootcert=",
            at.replace("127.0.0.1", "localhost") + str(made.authority): "of another name: write its host",
        }
        for wrong, told in cases.items():
            database = Database(wrong, patience=0.5)
            assert told in (await database.examine() or "")
            with pytest.raises(LongTermUnavailable, match="can't be reached"):
                await PostgresLongTerm(database).load("shop", "line:U1")
            await database.close()

    async def test_a_server_without_tls_is_told_apart(self) -> None:
        async def no(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readexactly(8)  # whether TLS is spoken
            writer.write(b"N")
            await reader.read()
            writer.close()

        server = await asyncio.start_server(no, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        told = await Database(f"postgresql://postgres@127.0.0.1:{port}/postgres?sslmode=require").examine()
        server.close()
        assert "speaks no TLS: switch it on" in (told or "")
