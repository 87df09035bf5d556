"""A full disk and a read-only folder, as real file systems (made by root alone)."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory.long_term.json_files import JsonFiles
from tests.acceptance.processes import RedisServer, line_event, stage, until

pytestmark = pytest.mark.slow

ANN = "U" + "a" * 32
COMPLAINT = "I want to complain, my order arrived broken and I want a refund"


@contextmanager
def small_disk(folder: Path, options: str) -> Iterator[None]:
    """A file system of its own at `folder`; the test is skipped where none can be made."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip(f"no small disk here: {made.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


async def events(data: Path) -> list[str]:
    """The customer's words in long-term memory."""
    known = await JsonFiles(data / "longterm").load("shop", f"line:{ANN}")
    return [event.payload.get("original_message", "") for event in known.events] if known else []


async def test_on_a_full_disk_answers_go_out_and_the_event_is_saved_once_there_is_room(
    tmp_path: Path, server: RedisServer
) -> None:
    with small_disk(tmp_path / "data", "size=4m"):
        async with stage(tmp_path, redis_url=server.url) as s:
            _, url = await s.serve()
            worker = await s.worker()
            fill(s.data / "filler")
            assert await s.line_says(url, line_event(ANN, COMPLAINT)) == 200
            await until(lambda: s.line_shows(ANN))
            await s.quiet()
            assert await s.line_shows(ANN) == [f"echo: {COMPLAINT}"]
            assert await events(s.data) == []
            assert "No space left on device" in worker.said
            (s.data / "filler").unlink()

            async def saved() -> bool:
                return await events(s.data) == [COMPLAINT]

            await until(saved)
            assert await s.line_shows(ANN) == [f"echo: {COMPLAINT}"]


async def test_a_read_only_folder_for_long_term_memory_stops_no_answer(tmp_path: Path, server: RedisServer) -> None:
    with small_disk(tmp_path / "data" / "longterm", "size=1m,ro"):
        async with stage(tmp_path, redis_url=server.url) as s:
            _, url = await s.serve()
            worker = await s.worker()
            assert await s.line_says(url, line_event(ANN, COMPLAINT)) == 200
            await until(lambda: s.line_shows(ANN))
            await s.quiet()
            assert await s.line_shows(ANN) == [f"echo: {COMPLAINT}"]
            assert "Read-only file system" in worker.said


async def test_with_the_inbox_away_and_the_disk_full_nothing_is_taken_and_readiness_says_so(
    tmp_path: Path, server: RedisServer
) -> None:
    with small_disk(tmp_path / "data", "size=4m"):
        async with stage(tmp_path, redis_url=server.url) as s:
            _, url = await s.serve()

            async def ready() -> int:
                async with s.http.get(f"{url}/readyz") as answer:
                    return answer.status

            await server.kill()
            fill(s.data / "filler")
            assert (await s.line_says(url, line_event(ANN, COMPLAINT)), await ready()) == (503, 503)
            (s.data / "filler").unlink()
            assert (await s.line_says(url, line_event(ANN, COMPLAINT)), await ready()) == (200, 200)
