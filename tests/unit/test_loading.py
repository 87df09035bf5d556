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
