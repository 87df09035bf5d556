"""A worker keeps to a core while it need not wait for it, with the threads that take turns with it, and no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from config.cores import LONGEST_AWAY, Resting, Spent

_KEEPS = """
import asyncio, json, os, subprocess, sys, threading
from config import cores
from memory.threads import Threads

cores.LOOK_EVERY = 0.02
waits = threading.Event()
calls = iter(range(10**6))
cores.spent = lambda: cores.Spent(1.0, next(calls) if waits.is_set() else 0.0)
where = os.sched_getaffinity

async def until(told):
    async with asyncio.timeout(20):
        while not told():
            await asyncio.sleep(0.01)

def child():
    cores.loosen()
    told = subprocess.run([sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"], capture_output=True)
    return int(told.stdout)

async def main():
    everywhere, stop, seen = where(0), asyncio.Event(), {}
    keeping = asyncio.create_task(cores.keep(stop))
    files = Threads(1)
    companion = await files.run(threading.get_native_id)
    other = await asyncio.to_thread(threading.get_native_id)
    await until(lambda: len(where(0)) == 1 and where(companion) == where(0))
    await until(lambda: where(other) == everywhere)
    late = threading.Thread(target=waits.wait, daemon=True)  # begins where the one is that begins it
    late.start()
    await until(lambda: where(late.native_id) == everywhere)
    seen["child"] = await asyncio.to_thread(child)
    seen["rests"] = len(where(0))
    waits.set()
    await until(lambda: where(0) == where(companion) == everywhere)
    waits.clear()
    await until(lambda: len(where(0)) == 1)
    stop.set()
    await keeping
    seen["end"] = where(0) == where(companion) == everywhere
    print(json.dumps(seen))

asyncio.run(main())
"""


def looks(resting: Resting, waited: float, ran: float = 0.1, times: int = 1) -> list[bool]:
    """What it says after so many seconds of each."""
    out = []
    for _ in range(times):
        last = resting._last or Spent(0.0, 0.0)
        out.append(resting.look(Spent(last.ran + ran, last.waited + waited), 1.0))
    return out


def test_it_comes_to_rest_where_it_need_not_wait() -> None:
    assert looks(Resting(), waited=0.01, times=3) == [False, True, True]


def test_a_quiet_process_may_wait_for_longer_than_it_runs() -> None:
    assert looks(Resting(), waited=0.008, ran=0.001, times=2) == [False, True]


def test_where_others_are_on_its_core_it_leaves_and_stays_away_for_longer_each_time() -> None:
    resting = Resting()
    assert looks(resting, waited=0.0, times=2) == [False, True]
    for away in (2, 4, LONGEST_AWAY, LONGEST_AWAY):
        assert looks(resting, waited=0.06) == [False]
        assert looks(resting, waited=0.0, times=away + 1) == [False] * away + [True]


def test_it_does_not_rest_while_it_waits_anywhere() -> None:
    resting = Resting()
    assert not any(looks(resting, waited=0.5, times=10))
    assert looks(resting, waited=0.0, times=2) == [False, True]  # nor is it away for longer because of that


@pytest.mark.skipif(sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores")
def test_companions_go_along_and_others_and_children_run_anywhere() -> None:
    told = subprocess.run([sys.executable, "-c", _KEEPS], capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 0, told.stderr
    cores = len(os.sched_getaffinity(0))
    assert json.loads(told.stdout) == {"child": cores, "rests": 1, "end": True}
