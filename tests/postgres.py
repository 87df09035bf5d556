"""A real PostgreSQL for tests, started by the project's script: one server for all, emptied after each test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from memory.postgres.migrate import migrate

SCRIPT = Path(__file__).parent.parent / "scripts" / "postgres.sh"
HERE = any(Path("/usr/lib/postgresql").glob("*/bin/postgres")) or shutil.which("postgres") is not None


@contextmanager
def server() -> Iterator[Path]:
    """The folder of a server that runs and has our tables."""
    with place() as folder, started(folder):
        migrate(url_of(folder))
        yield folder


@contextmanager
def place() -> Iterator[Path]:
    """A folder for a server's socket and data. Skips where PostgreSQL is missing, fails there where CI is set."""
    if not HERE:
        if os.environ.get("CI"):
            pytest.fail("PostgreSQL is missing")
        pytest.skip("PostgreSQL is missing")
    # Not pytest's own folder: a socket's path may be 107 bytes long, and another user runs the server.
    folder = Path(tempfile.mkdtemp(prefix="cc-pg-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def started(folder: Path, port: int = 5432, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    options = [one for name, value in settings.items() for one in ("-c", f"{name}={value}")]
    command = ["bash", SCRIPT, folder, "-c", f"port={port}", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None, "PostgreSQL ended at its start"
            try:
                psycopg.connect(f"{url_of(folder)}&port={port}").close()
                break
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "PostgreSQL was not ready within a minute"
                time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGINT)  # what was committed is written, as that is synced by no commit here
        process.wait(30)


def url_of(folder: Path, database: str = "postgres", user: str = "postgres") -> str:
    return f"postgresql://{user}@/{database}?host={folder}"


@contextmanager
def emptied(folder: Path) -> Iterator[str]:
    """The URL of the database with our tables; nothing is left in them afterwards."""
    yield url_of(folder)
    with psycopg.connect(url_of(folder), autocommit=True) as owner:
        asked = "SELECT tablename FROM pg_tables WHERE schemaname = 'chat_chat' AND tablename <> 'migrations'"
        tables = [name for (name,) in owner.execute(asked).fetchall()]
        owner.execute(sql.SQL(";").join(sql.SQL("DELETE FROM chat_chat.{}").format(sql.Identifier(t)) for t in tables))
