"""What a message's CPU goes to, by stage: a worker of its own that looks at itself every two milliseconds of CPU.

`python -m benchmarks.stages FILE` is that worker: SIGUSR1 begins, SIGUSR2 ends and writes seconds by stage into FILE.
Each look counts with the CPU that the main thread took since the last one, for the outermost of our functions that
names a stage. What threads take is told apart. Looking costs some CPU itself: the shares hold, the sums are those of a
worker that nobody looks at. Linux alone has the timer that it takes.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import runpy
import signal
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.house import House, seed
from benchmarks.load import KNOWN, Door, answered_at

EVERY = 0.002  # seconds of CPU
RATE = 43.7  # messages a second: at fifty the timer, which comes at ticks, would fall on the same places of each turn

# The end of a file's path, a function ("": any), the stage. The first that fits a frame counts, from the outermost in.
_STAGES = (
    ("gateway/worker.py", "_round", "queue"),
    ("gateway/worker.py", "_beat", "queue"),
    ("memory/shared_connection.py", "", "queue"),
    ("gateway/inbox/redis.py", "", "queue"),
    ("redis/asyncio/connection.py", "", "queue"),
    ("gateway/turn.py", "_stored", "load"),
    ("gateway/homes.py", "", "load"),
    ("gateway/events.py", "", "load"),
    ("memory/openings.py", "open_session", "load"),
    ("gateway/minding.py", "of", "recall"),
    ("gateway/hooks.py", "before", "recall"),
    ("gateway/turn.py", "_language", "understanding"),
    ("gateway/turn.py", "_classify", "understanding"),
    ("gateway/responder.py", "own", "understanding"),
    ("gateway/responder.py", "standalone", "understanding"),
    ("gateway/responder.py", "told", "prompt"),
    ("gateway/tools.py", "", "LLM client"),
    ("gateway/minding.py", "run", "reading"),
    ("gateway/patience.py", "pack", "send"),
    ("gateway/outbox.py", "", "send"),
    ("gateway/ending.py", "", "save"),
    ("gateway/record.py", "", "save"),
    ("gateway/hooks.py", "after", "save"),
    ("memory/threads.py", "", "save"),
    ("gateway/turn.py", "", "turn"),
    ("site-packages/aiohttp/", "", "HTTP client"),
)
_OTHER = "loop"


class _Timer:
    """SIGPROF by the CPU of the thread that makes it alone. By that of the whole process some looks come from other
    threads' work: they find the main thread waiting, and count what it did before as the loop's."""

    _CPU_OF_THREAD, _TO_THREAD = 3, 4  # CLOCK_THREAD_CPUTIME_ID, SIGEV_THREAD_ID

    class _Event(ctypes.Structure):  # sigevent
        _fields_ = (
            ("value", ctypes.c_void_p),
            ("signal", ctypes.c_int),
            ("notify", ctypes.c_int),
            ("thread", ctypes.c_int),
            ("rest", ctypes.c_char * 44),
        )

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._made = ctypes.c_void_p()
        event = self._Event(None, signal.SIGPROF, self._TO_THREAD, threading.get_native_id())
        if self._libc.timer_create(self._CPU_OF_THREAD, ctypes.byref(event), ctypes.byref(self._made)):
            raise OSError(ctypes.get_errno(), "no timer by a thread's CPU")

    def every(self, seconds: float) -> None:
        """0: no more."""
        pause = int(seconds * 1e9)
        if self._libc.timer_settime(self._made, 0, ctypes.byref((ctypes.c_long * 4)(0, pause, 0, pause)), None):
            raise OSError(ctypes.get_errno(), "a timer was not set")


class Looks:
    """One process's."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._known: dict[tuple[str, str], str | None] = {}
        self._main, self._all = 0.0, 0.0
        self._timer = _Timer()

    def begin(self, *_: object) -> None:
        self._seconds.clear()
        self._main, self._all = time.thread_time(), time.process_time()
        self._began = self._main, self._all
        signal.signal(signal.SIGPROF, self._look)
        self._timer.every(EVERY)

    def end(self, *_: object) -> None:
        self._timer.every(0.0)
        main, whole = time.thread_time() - self._began[0], time.process_time() - self._began[1]
        self._file.write_text(json.dumps({**self._seconds, "threads": whole - main}))

    def _look(self, _: int, frame: FrameType | None) -> None:
        now = time.thread_time()
        stage, stack = _OTHER, []
        while frame is not None:
            stack.append(frame.f_code)
            frame = frame.f_back
        for code in reversed(stack):
            key = code.co_filename, code.co_name
            if key not in self._known:
                self._known[key] = _stage_of(*key)
            if (found := self._known[key]) and (found != "turn" or stage == _OTHER):
                stage = found
                if found != "turn":
                    break
        self._seconds[stage] += now - self._main
        self._main = time.thread_time()


def _stage_of(path: str, function: str) -> str | None:
    for part, name, stage in _STAGES:
        if part in path and name in ("", function):
            return stage
    return None


async def split(house: House, door: Door, seconds: float, cpu: dict[str, float]) -> dict[str, float]:
    """CPU ms a message by stage, with full histories. `cpu`: what a message took of `serve` and of a worker that nobody
    looked at, in ms."""
    file = house.folder / "stages.json"
    process = house.start("looked at", ["-m", "benchmarks.stages", str(file)])
    await house.warm(door)
    await house.quiet()
    await seed(house)
    await answered_at(house.standin, door, RATE, KNOWN / RATE, full=True)
    os.kill(process.pid, signal.SIGUSR1)
    await answered_at(house.standin, door, RATE, seconds, full=True)
    os.kill(process.pid, signal.SIGUSR2)
    for _ in range(100):
        await asyncio.sleep(0.05)
        if file.exists() and (text := file.read_text()):
            found: dict[str, Any] = json.loads(text)
            break
    process.stop()
    scale = cpu["worker"] / sum(found.values())
    by_cost = sorted(found.items(), key=lambda one: -one[1])
    return {"webhook": cpu["serve"]} | {stage: spent * scale for stage, spent in by_cost}


def main() -> None:
    looks = Looks(Path(sys.argv[1]))
    signal.signal(signal.SIGUSR1, looks.begin)
    signal.signal(signal.SIGUSR2, looks.end)
    sys.argv = ["gateway", "worker"]
    runpy.run_module("gateway", run_name="__main__")


if __name__ == "__main__":
    main()
