"""The processes under test: begun, watched through /proc and ended by their own id. Linux only."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from gateway.cli import in_loop

R = TypeVar("R")

_PR_SET_PDEATHSIG = 1
_PATIENCE = 10.0  # seconds in which a process that is asked to end may do so
_LIBC = ctypes.CDLL(None)

_CPU_OF_PROCESS = 2  # what Linux makes a clock of, with a process id: see clock_getcpuclockid(3)
ROOT = Path(__file__).resolve().parent.parent


def in_order(work: Coroutine[Any, Any, R]) -> R:
    """Runs a coroutine. When it is asked to end, what it has begun ends with it.

    The collector does not walk over what was loaded before: who measures would stand still for it for a tenth of a
    second, and count that as somebody's being slow.
    """
    gc.freeze()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as ./start does: else each process compiles everything anew

    async def main() -> R:
        working = asyncio.current_task()
        assert working is not None
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, working.cancel)
        return await work

    try:
        return in_loop(main())
    except asyncio.CancelledError:
        raise SystemExit(128 + signal.SIGTERM) from None


class Process:
    """One process of ours with what it writes in a file. `name` is what the table calls it. It ends with the thread
    that made it, however that ends."""

    def __init__(self, name: str, command: list[str], env: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, *command],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=_ends_with_us,
            )
        self.pid = self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        stop_all([self])

    def ask_to_end(self) -> None:
        if self.alive():
            self._process.send_signal(signal.SIGTERM)

    def ended(self, patience: float) -> None:
        """Waits for it; kills it after `patience` seconds."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def stop_all(processes: Iterable[Process]) -> None:
    """All at once: together they take as long as the slowest."""
    some = list(processes)
    for process in some:
        process.ask_to_end()
    deadline = time.monotonic() + _PATIENCE
    for process in some:
        process.ended(max(0.0, deadline - time.monotonic()))


def _ends_with_us() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads, also those that ended, without its children. To the
    nanosecond, where /proc counts in hundredths of a second: a tenth of a millisecond a message."""
    return time.clock_gettime(~pid << 3 | _CPU_OF_PROCESS)


def resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: Process, patience: float = 300.0) -> None:
    """Until somebody listens, with a thousand tenants on a busy machine after minutes. Raises RuntimeError with the end
    of the log when the process is gone."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if not process.alive():
            break
        time.sleep(0.02)
    raise RuntimeError(f"{process.name} does not listen: {process.log.read_text('utf-8', 'replace')[-2000:]}")
