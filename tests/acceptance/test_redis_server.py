"""The embedded server with real processes, signals and files."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from gateway import redis_keeper, redis_server
from gateway.redis_server import EmbeddedRedis, EmbeddedRedisFault

pytestmark = pytest.mark.slow

# A process of its own: owns or attaches, supervises, says what it became, ends with its standard input.
GATEWAY = """
import asyncio, sys
from pathlib import Path
from typing import Any
from gateway.redis_server import EmbeddedRedis

async def main():
    embedded = EmbeddedRedis(Path(sys.argv[1]))
    url, stop = embedded.start(), asyncio.Event()
    watch = asyncio.create_task(embedded.supervise(stop))
    print(url, embedded.owner, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    stop.set()
    await watch
    embedded.stop()

asyncio.run(main())
"""


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(tmp_path / "da ta ไทย")
    yield server
    server.stop()


@pytest.fixture
def gateway() -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """Starts another process over a data directory; `said` of it is `URL owner`."""
    started: list[subprocess.Popen[str]] = []

    def start(data_dir: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", GATEWAY, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.communicate(timeout=20)


def said(process: subprocess.Popen[str]) -> tuple[str, bool]:
    assert process.stdout is not None
    url, owner = process.stdout.readline().split()
    return url, owner == "True"


def end(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=20)


def ask(url: str, question: Callable[[redis.Redis], Any]) -> Any:
    client = redis.Redis.from_url(url, decode_responses=True)
    try:
        return question(client)
    finally:
        client.close()


def server_pid(url: str) -> int:
    return int(ask(url, lambda client: client.info("server"))["process_id"])


def stat_of(pid: int) -> list[str]:
    """State, parent and the rest."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def running(pid: int) -> bool:
    """Zombies don't count: their parent may be gone or slow to collect them."""
    try:
        return stat_of(pid)[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(condition: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


async def until_async(condition: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.01)


def answers(url: str) -> bool:
    try:
        return bool(ask(url, lambda client: client.ping()))
    except redis.RedisError:
        return False


def test_data_survives_a_stop_and_a_start_in_a_path_with_a_space_and_thai(embedded: EmbeddedRedis) -> None:
    url = embedded.start()
    ask(url, lambda client: client.set("ชา", "เย็น"))
    pid = server_pid(url)
    embedded.stop()
    assert not running(pid)
    assert embedded.start() == url
    assert ask(url, lambda client: client.get("ชา")) == "เย็น"
    assert ask(url, lambda client: client.config_get("dir"))["dir"] == str(embedded.home)


def test_it_keeps_what_is_written_refuses_no_write_to_make_room_and_opens_no_port(embedded: EmbeddedRedis) -> None:
    names = ("appendonly", "appendfsync", "save", "maxmemory-policy", "port", "aof-load-truncated")
    assert ask(embedded.start(), lambda client: client.config_get(*names)) == {
        "appendonly": "yes",
        "appendfsync": "no",  # the keeper syncs
        "save": "",
        "maxmemory-policy": "noeviction",
        "port": "0",
        "aof-load-truncated": "yes",
    }


def test_what_is_acknowledged_is_in_the_file_and_a_second_later_on_disk(
    embedded: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(embedded.start(), lambda client: client.set("kept", "yes"))
    folder, synced = embedded.home / redis_keeper.APPEND_ONLY, []
    (file,) = folder.glob("*.incr.aof")
    assert b"kept" in file.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    seen: dict[str, tuple[int, int]] = {}
    redis_keeper.sync(str(folder), seen)
    assert str(file) in synced
    synced.clear()
    redis_keeper.sync(str(folder), seen)
    assert synced == []  # nothing new
    ask(embedded.url, lambda client: client.set("kept", "still"))
    redis_keeper.sync(str(folder), seen)
    assert synced == [str(file)]


def test_every_write_is_synced_when_asked_for(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path, fsync="always")
    assert ask(server.start(), lambda client: client.config_get("appendfsync")) == {"appendfsync": "always"}
    server.stop()


def test_only_its_user_can_reach_the_socket_or_the_files(embedded: EmbeddedRedis) -> None:
    socket = Path(embedded.start().removeprefix("unix://"))
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert socket.stat().st_mode & 0o777 == 0o700
    assert embedded.home.stat().st_mode & 0o777 == 0o700


def test_the_server_gets_no_secret_of_the_environment(embedded: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-invented")
    pid = server_pid(embedded.start())
    assert b"sk-invented" not in Path(f"/proc/{pid}/environ").read_bytes()


async def test_a_server_killed_with_9_is_launched_again_with_its_data(embedded: EmbeddedRedis) -> None:
    url, stop = embedded.start(), asyncio.Event()
    watch = asyncio.create_task(embedded.supervise(stop))
    for round_ in range(2):
        ask(url, lambda client, round_=round_: client.rpush("kept", round_))
        pid = server_pid(url)
        os.kill(pid, signal.SIGKILL)
        await until_async(lambda pid=pid: answers(url) and server_pid(url) != pid)
    assert ask(url, lambda client: client.lrange("kept", 0, -1)) == ["0", "1"]
    stop.set()
    await watch


async def test_a_server_whose_keeper_was_killed_ends_and_is_launched_again(embedded: EmbeddedRedis) -> None:
    url, stop = embedded.start(), asyncio.Event()
    ask(url, lambda client: client.set("kept", "yes"))
    pid = server_pid(url)
    keeper = int(stat_of(pid)[1])
    watch = asyncio.create_task(embedded.supervise(stop))
    os.kill(keeper, signal.SIGKILL)
    await until_async(lambda: not running(pid) and answers(url))
    assert (ask(url, lambda client: client.get("kept")), embedded.owner) == ("yes", True)
    stop.set()
    await watch


async def test_a_lost_socket_file_is_mended(embedded: EmbeddedRedis) -> None:
    url, stop = embedded.start(), asyncio.Event()
    watch = asyncio.create_task(embedded.supervise(stop))
    os.unlink(url.removeprefix("unix://"))
    await until_async(lambda: answers(url))
    stop.set()
    await watch


def test_a_parent_killed_with_9_leaves_no_orphan_and_no_stale_lock(
    embedded: EmbeddedRedis, gateway: Callable[[Path], subprocess.Popen[str]]
) -> None:
    parent = gateway(embedded.home.parent)
    url, _ = said(parent)
    ask(url, lambda client: client.set("kept", "yes"))
    pid = server_pid(url)
    parent.kill()
    until(lambda: not running(pid))
    assert embedded.start() == url
    assert (embedded.owner, ask(url, lambda client: client.get("kept"))) == (True, "yes")


def test_ctrl_c_does_not_reach_the_server(embedded: EmbeddedRedis) -> None:
    pid = server_pid(embedded.start())
    assert os.getsid(pid) != os.getsid(0)
    assert os.getpgid(pid) != os.getpgid(0)


def test_a_second_process_of_the_same_directory_attaches_and_leaves_the_server_running(
    embedded: EmbeddedRedis, gateway: Callable[[Path], subprocess.Popen[str]]
) -> None:
    url = embedded.start()
    second = gateway(embedded.home.parent)
    assert said(second) == (url, False)
    end(second)
    assert answers(url)


def test_of_processes_that_start_together_one_owns_and_all_share(
    tmp_path: Path, gateway: Callable[[Path], subprocess.Popen[str]]
) -> None:
    processes = [gateway(tmp_path) for _ in range(3)]
    told = [said(process) for process in processes]
    assert len({url for url, _ in told}) == 1
    assert sorted(owner for _, owner in told) == [False, False, True]


@pytest.mark.parametrize("how", ["stop", "kill -9"])
def test_an_attached_process_takes_over_when_the_owner_ends(
    how: str, tmp_path: Path, gateway: Callable[[Path], subprocess.Popen[str]]
) -> None:
    first = gateway(tmp_path)
    url, _ = said(first)
    second = gateway(tmp_path)
    assert said(second) == (url, False)
    ask(url, lambda client: client.set("kept", "yes"))
    pid = server_pid(url)
    if how == "stop":
        end(first)
    else:
        first.kill()
    until(lambda: not running(pid) and answers(url))
    assert ask(url, lambda client: client.get("kept")) == "yes"
    pid = server_pid(url)
    end(second)
    assert not running(pid)


def test_two_data_directories_are_two_servers_also_when_one_is_a_copy_of_the_other(
    embedded: EmbeddedRedis, tmp_path: Path
) -> None:
    url = embedded.start()
    ask(url, lambda client: client.set("whose", "first"))
    shutil.copytree(embedded.home.parent, tmp_path / "copy")
    copy = EmbeddedRedis(tmp_path / "copy")
    other = copy.start()
    ask(other, lambda client: client.set("whose", "copy"))
    assert other != url
    assert ask(url, lambda client: client.get("whose")) == "first"
    copy.stop()


def test_a_server_that_serves_another_directory_is_not_attached_to(embedded: EmbeddedRedis, tmp_path: Path) -> None:
    import fcntl

    url = embedded.start()
    other = EmbeddedRedis(tmp_path / "other")
    other.home.mkdir(parents=True)
    with (other.home / "lock").open("w") as lock:
        lock.write(url.removeprefix("unix://"))
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(EmbeddedRedisFault, match=r"serves .*, not "):
            other.start()


def test_a_moved_data_directory_keeps_its_data(embedded: EmbeddedRedis, tmp_path: Path) -> None:
    ask(embedded.start(), lambda client: client.set("kept", "yes"))
    embedded.stop()
    embedded.home.parent.rename(tmp_path / "moved")
    moved = EmbeddedRedis(tmp_path / "moved")
    assert ask(moved.start(), lambda client: client.get("kept")) == "yes"
    moved.stop()


def test_an_append_only_file_cut_in_the_middle_of_a_command_loses_that_command_alone(embedded: EmbeddedRedis) -> None:
    url = embedded.start()
    ask(url, lambda client: (client.set("whole", "yes"), client.set("cut", "yes" * 100)))
    embedded.stop()
    (increment,) = (embedded.home / "appendonlydir").glob("*.incr.aof")
    with increment.open("r+b") as file:
        file.truncate(increment.stat().st_size - 50)
    assert ask(embedded.start(), lambda client: client.mget("whole", "cut")) == ["yes", None]


def test_a_broken_append_only_file_is_left_as_it_is_and_the_error_says_what_to_do(embedded: EmbeddedRedis) -> None:
    url = embedded.start()
    ask(url, lambda client: [client.set(f"key{number}", "value") for number in range(50)])
    embedded.stop()
    (increment,) = (embedded.home / "appendonlydir").glob("*.incr.aof")
    broken = increment.read_bytes()
    broken = broken[:300] + b"#" * 40 + broken[340:]
    increment.write_bytes(broken)
    with pytest.raises(EmbeddedRedisFault, match=r"append-only file in .*--fix.*move .* away"):
        embedded.start()
    assert increment.read_bytes() == broken
    assert not embedded.owner

    # the remedy works
    tool = embedded.home / "valkey-check-aof"
    shutil.copy(redis_server.find_binary(), tool)
    subprocess.run([tool, "--fix", increment], input=b"y\n", check=True, stdout=subprocess.DEVNULL)
    assert ask(embedded.start(), lambda client: client.get("key0")) == "value"


def test_a_system_without_a_binary_is_told_to_set_redis_url(
    embedded: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_server.platform, "machine", lambda: "riscv64")
    with pytest.raises(EmbeddedRedisFault, match="linux riscv64: set REDIS_URL"):
        embedded.start()


def test_a_binary_that_does_not_run_is_told_with_its_reason(
    embedded: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = tmp_path / "valkey-server"
    wrong.write_bytes(b"\x7fELF")
    wrong.chmod(0o700)
    monkeypatch.setattr(redis_server, "find_binary", lambda: wrong)
    with pytest.raises(EmbeddedRedisFault, match=r"Exec format error\): set REDIS_URL"):
        embedded.start()


def test_a_socket_folder_that_is_a_link_is_passed_over(
    embedded: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "run" / "chat-chat").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    assert Path(embedded.start().removeprefix("unix://")).parent.name == f"chat-chat-{os.geteuid()}"


def test_a_long_runtime_folder_is_passed_over(
    embedded: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runtime = tmp_path / ("r" * 100)
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    assert answers(embedded.start())


def test_another_environment_finds_the_same_socket(
    embedded: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = embedded.start()
    runtime = tmp_path / "run"
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    second = EmbeddedRedis(embedded.home.parent)
    assert (second.start(), second.owner) == (url, False)
    embedded.stop()
    assert (second.start(), second.owner) == (url, True)
    second.stop()
