"""The embedded server's append-only file, written anew: real processes, signals and files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.asyncio import Redis as AsyncRedis

from gateway import redis_keeper
from gateway.redis_server import EmbeddedRedis
from gateway.restored import Forgotten
from memory import MemoryConfig, MemoryManager
from tests.acceptance.test_redis_server import ask, running, server_pid, until

pytestmark = pytest.mark.slow

MEGABYTE = 1 << 20
KEYS = 5


@pytest.fixture(params=["everysec", "always"])
def embedded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(tmp_path / "da ta ไทย", fsync=request.param)
    yield server
    server.stop()


def grow(url: str, seconds_each: float) -> None:
    """Writes more than the file may grow by over a few keys, each of which a rewrite takes so long for."""

    def write(client: redis.Redis) -> None:
        client.config_set("rdb-key-save-delay", int(seconds_each * 1_000_000))
        for number in range(redis_keeper.REWRITTEN_FROM // MEGABYTE + 1):
            client.set(f"large{number % KEYS}", b"%d" % number + bytes(MEGABYTE))

    ask(url, write)


def held(folder: Path) -> list[bytes]:
    """What the files hold; of one that goes meanwhile, nothing."""
    found = []
    for file in folder.iterdir():
        with suppress(FileNotFoundError):
            found.append(file.read_bytes())
    return found


def child_of(server: int) -> int:
    until(lambda: bool(redis_keeper.children(server)))
    (child,) = redis_keeper.children(server)
    return child


def gives_way(child: int) -> bool:
    return os.sched_getscheduler(child) == os.SCHED_IDLE


def test_a_grown_file_is_written_anew_by_a_child_that_gives_way(embedded: EmbeddedRedis) -> None:
    url = embedded.start()
    folder = embedded.home / redis_keeper.APPEND_ONLY
    grow(url, seconds_each=0.2)
    server = server_pid(url)
    child = child_of(server)
    until(lambda: gives_way(child))
    assert os.sched_getscheduler(server) == os.SCHED_OTHER
    until(lambda: not running(child) and sum(map(len, held(folder))) < 2 * KEYS * MEGABYTE)
    assert ask(url, lambda client: client.info("persistence"))["aof_last_bgrewrite_status"] == "ok"
    embedded.stop()
    embedded.start()
    last = redis_keeper.REWRITTEN_FROM // MEGABYTE
    assert int(ask(url, lambda client: client.get(f"large{last % KEYS}")).rstrip("\0")) == last


def test_the_child_of_a_rewrite_that_others_asked_for_gives_way(embedded: EmbeddedRedis) -> None:
    url = embedded.start()
    ask(url, lambda client: (client.set("kept", "yes"), client.config_set("rdb-key-save-delay", 60_000_000)))
    ask(url, lambda client: client.bgrewriteaof())
    child = child_of(server_pid(url))
    until(lambda: gives_way(child))


@pytest.mark.parametrize("moment", [0.0, 0.1, 0.9, 1.1])
def test_what_is_acknowledged_survives_kill_9_at_any_moment_of_a_rewrite(
    embedded: EmbeddedRedis, moment: float
) -> None:
    url = embedded.start()
    acknowledged: list[int] = []

    def write() -> None:
        with redis.Redis.from_url(url) as client:
            while True:
                try:
                    client.rpush("kept", len(acknowledged))
                except redis.ConnectionError:
                    return
                acknowledged.append(len(acknowledged))

    grow(url, seconds_each=0.2)
    server = server_pid(url)
    child_of(server)
    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(moment)
    os.kill(server, signal.SIGKILL)
    writer.join()
    embedded.stop()
    embedded.start()
    kept = [int(one) for one in ask(url, lambda client: client.lrange("kept", 0, -1))]
    assert kept[: len(acknowledged)] == acknowledged
    assert len(kept) <= len(acknowledged) + 1  # written, but not acknowledged any more
    assert ask(url, lambda client: client.exists(*(f"large{number}" for number in range(KEYS)))) == KEYS


def test_with_a_killed_server_its_child_ends_and_holds_no_lock(embedded: EmbeddedRedis) -> None:
    url = embedded.start()
    ask(url, lambda client: (client.set("kept", "yes"), client.config_set("rdb-key-save-delay", 60_000_000)))
    ask(url, lambda client: client.bgrewriteaof())
    server = server_pid(url)
    child = child_of(server)
    os.kill(server, signal.SIGKILL)
    until(lambda: not running(child), seconds=10)
    embedded.stop()
    assert ask(embedded.start(), lambda client: client.get("kept")) == "yes"


async def test_the_words_of_who_was_forgotten_are_written_out_of_the_file_after_a_rewrite_that_began_before(
    embedded: EmbeddedRedis, tmp_path: Path
) -> None:
    class NobodyIsBack:
        async def forget_again(self) -> int:
            return 0

    url, now = embedded.start(), datetime.now(UTC)
    ask(url, lambda client: (client.set("said", "pistachio"), client.config_set("rdb-key-save-delay", 1_000_000)))
    ask(url, lambda client: client.bgrewriteaof())
    ask(url, lambda client: client.delete("said"))
    manager: Any = MemoryManager(MemoryConfig(lm_base_path=str(tmp_path / "longterm")))
    manager.forgotten_people.add("shop", ["line:U1"], now)
    back: Any = NobodyIsBack()
    async with AsyncRedis.from_url(url) as client:
        forgotten = Forgotten(manager, back, client, ours=True)
        await forgotten.tidy(now)  # refused
        until(lambda: ask(url, lambda client: client.info("persistence"))["aof_rewrite_in_progress"] == 0)
        await forgotten.tidy(now)
    folder = embedded.home / redis_keeper.APPEND_ONLY
    until(lambda: not any(b"pistachio" in one for one in held(folder)))
    await manager.close()


def test_the_size_of_what_the_last_rewrite_left_is_told_apart(tmp_path: Path) -> None:
    for name, size in {"a.aof.1.base.rdb": 100, "a.aof.1.incr.aof": 20, "a.aof.2.incr.aof": 3, "a.manifest": 7}.items():
        (tmp_path / name).write_bytes(bytes(size))
    assert redis_keeper.sizes(str(tmp_path)) == (130, 100)


def test_when_files_are_to_be_written_anew() -> None:
    def grown(base: int, more: int, quiet: bool) -> bool:
        return redis_keeper.has_grown((base + more) * MEGABYTE, base * MEGABYTE, quiet)

    assert not grown(1, 62, quiet=True)
    assert grown(1, 63, quiet=True)
    assert not grown(100, 99, quiet=True)
    assert grown(100, 100, quiet=True)
    assert not grown(1, 254, quiet=False)
    assert grown(1, 255, quiet=False)
    assert not grown(200, 199, quiet=False)
    assert grown(200, 200, quiet=False)


def test_what_grows_all_the_time_is_written_anew_only_when_there_is_much_of_it(embedded: EmbeddedRedis) -> None:
    url = embedded.start()

    def write(client: redis.Redis) -> int:
        """What was written until a rewrite is over, in bytes."""
        number = 0
        while not client.info("persistence")["aof_rewrites"]:
            assert number < 2 * redis_keeper.REWRITTEN_AT_LATEST // MEGABYTE
            client.set(f"large{number % KEYS}", bytes(MEGABYTE))
            number += 1
            time.sleep(0.01)
        return number * MEGABYTE

    assert ask(url, write) >= redis_keeper.REWRITTEN_AT_LATEST


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    """A process with one child."""
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    until(lambda: len(redis_keeper.children(process.pid)) == 1)
    yield process
    process.communicate(b"\n", timeout=20)


def test_children_are_found_where_the_kernel_lists_none(
    parent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = redis_keeper.children(parent.pid)

    def without_lists(path: str, *others: Any) -> Any:
        if path.endswith("/children"):
            raise FileNotFoundError(path)
        return open(path, *others)

    monkeypatch.setattr(redis_keeper, "open", without_lists, raising=False)
    assert redis_keeper.children(parent.pid) == listed
    monkeypatch.setattr(os, "listdir", refuses(FileNotFoundError))  # no /proc at all
    assert redis_keeper.children(parent.pid) == []


def refuses(error: type[OSError]) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise error

    return refuse


def test_where_the_policy_is_forbidden_a_child_is_nice(
    parent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_setscheduler", refuses(PermissionError))
    (child,) = redis_keeper.children(parent.pid)
    assert redis_keeper.give_way(parent.pid)
    assert os.getpriority(os.PRIO_PROCESS, child) == 19
    assert os.getpriority(os.PRIO_PROCESS, parent.pid) == os.getpriority(os.PRIO_PROCESS, 0)
    monkeypatch.setattr(os, "setpriority", refuses(PermissionError))
    assert redis_keeper.give_way(parent.pid)  # which goes on as it is
