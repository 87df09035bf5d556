"""Loading what takes seconds."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from processors.loading import loaded


async def test_what_was_loaded_is_given_and_an_error_is_raised_where_it_is_waited_for() -> None:
    assert await loaded(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await loaded(lambda: 1 // 0)


async def test_one_who_stops_waiting_hears_no_more_of_it() -> None:
    waiting = asyncio.create_task(loaded(lambda: asyncio.run(asyncio.sleep(0.05))))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await loaded(lambda: None)


def test_a_process_ends_without_waiting_for_what_still_loads() -> None:
    code = """
import asyncio, threading
from processors.loading import loaded
async def main():
    asyncio.create_task(loaded(threading.Event().wait))
    await asyncio.sleep(0)
asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_a_process_that_leaves_in_the_middle_of_an_extension_module_neither_aborts_nor_hangs() -> None:
    """A thread that holds no lock of the interpreter's when it ends, and asks for one afterwards, is ended by force: in
    the code of an extension module that is an abort."""
    code = """
import asyncio, threading, time
from processors.loading import leave, loaded
begun = threading.Event()
def load():
    begun.set()
    while True:
        time.sleep(0.0001)
async def main():
    asyncio.create_task(loaded(load))
    await asyncio.sleep(0)
    begun.wait()
asyncio.run(main())
print("said")
leave(3)
raise AssertionError("still here")
"""
    ended = subprocess.run([sys.executable, "-c", code], timeout=60, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "said\n", "")


def test_leaving_is_left_to_the_interpreter_when_nothing_loads() -> None:
    code = """
import asyncio
from processors.loading import leave, loaded
asyncio.run(loaded(lambda: None))
leave(3)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
