"""A benchmark that is asked to end takes along what it began."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tests.acceptance.processes import ROOT, alive, launch, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def children_of(pid: int) -> list[int]:
    of_each_thread = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in of_each_thread for child in file.read_text("ascii").split()]


async def test_a_benchmark_asked_to_end_leaves_no_process_behind(tmp_path: Path) -> None:
    # Not the test's own folder: the server's socket may have a path of 107 bytes and no longer.
    with tempfile.TemporaryDirectory(prefix="cc-", dir="/tmp") as folder:
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TMPDIR": folder}
        command = [sys.executable, "-m", "benchmarks.soak", "--messages", "1000000", "--users", "10"]
        soak = await launch(tmp_path / "log", command, env, ROOT)

        async def begun() -> list[int]:
            assert not soak.ended, soak.said
            found = children_of(soak.pid)
            return found if len(found) >= 3 else []  # the server's keeper, serve and worker

        try:
            children = await until(begun, 150)
            children += [grandchild for child in children for grandchild in children_of(child)]
        finally:
            status = await soak.end(60)
        assert status == 128 + signal.SIGTERM, soak.said
        assert [child for child in children if alive(child)] == []
        assert [one for one in Path(folder).rglob("*") if not one.is_dir()] == []
