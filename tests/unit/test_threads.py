"""Short work in threads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar
from pathlib import Path

import pytest

from memory.threads import Threads, in_thread

HERE: ContextVar[str] = ContextVar("HERE", default="nowhere")


async def test_what_is_asked_for_in_one_moment_goes_over_together_and_each_hears_its_own_outcome() -> None:
    def fails() -> int:
        raise ValueError("no")

    HERE.set("the caller")
    first, failed, context = in_thread(threading.get_ident), in_thread(fails), in_thread(HERE.get)
    last = in_thread(threading.get_ident)
    assert await first == await last != threading.get_ident()
    assert await context == "the caller"
    with pytest.raises(ValueError, match="no"):
        await failed


async def test_one_that_waits_for_another_is_not_waited_for_by_the_rest() -> None:
    threads, go = Threads(2), threading.Event()
    slow = threads.run(go.wait, 90)
    await asyncio.sleep(0)
    assert await threads.run(int, "7") == 7
    assert not slow.done()
    go.set()
    assert await slow
    threads.close()


async def test_who_worked_last_is_woken_and_what_finds_nobody_idle_is_done_all_the_same() -> None:
    threads, both = Threads(2), threading.Barrier(3, timeout=90)

    def meets() -> int:
        both.wait()
        return threading.get_ident()

    first = threads.run(meets)
    await asyncio.sleep(0)
    second = threads.run(meets)
    await asyncio.sleep(0)
    behind = threads.run(threading.get_ident)  # both are at work by now
    await asyncio.to_thread(both.wait)
    known = {await first, await second}
    assert len(known) == 2
    assert await behind in known
    last = await threads.run(threading.get_ident)
    assert {await threads.run(threading.get_ident) for _ in range(20)} == {last}
    threads.close()


async def test_work_that_came_after_the_end_is_done() -> None:
    threads = Threads(2)
    assert await threads.run(int, "7") == 7
    threads.close()
    assert await threads.run(int, "8") == 8


async def test_where_the_machine_gives_no_thread_it_is_done_here_and_behind_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threads, go = Threads(2), threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        async with asyncio.timeout(90):
            assert await threads.run(threading.get_ident) == threading.get_ident()
    slow = threads.run(go.wait, 90)
    await asyncio.sleep(0)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        behind = threads.run(threading.get_ident)
        await asyncio.sleep(0)
    go.set()
    async with asyncio.timeout(90):
        assert await slow
        assert await behind != threading.get_ident()
    assert await threads.run(int, "7") == 7
    threads.close()


async def test_what_no_future_takes_is_told_and_the_others_of_that_moment_hear_theirs() -> None:
    def ends() -> object:
        return next(iter(()))

    ended, other = in_thread(ends), in_thread(int, "7")
    async with asyncio.timeout(90):
        with pytest.raises(RuntimeError, match="ended an iteration"):
            await ended
        assert await other == 7


async def test_work_whose_caller_was_cancelled_is_done_all_the_same() -> None:
    threads, done = Threads(1), threading.Event()
    asked = threads.run(done.set)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert await threads.run(done.is_set)
    threads.close()


def test_a_process_that_ends_finishes_what_it_has_in_hand(tmp_path: Path) -> None:
    program = """
import asyncio, pathlib, sys, time
from memory.threads import in_thread
def work():
    time.sleep(0.2)
    pathlib.Path(sys.argv[1]).write_text("done")
async def main():
    in_thread(work)
    await asyncio.sleep(0)
asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")], check=True, timeout=90)
    assert (tmp_path / "file").read_text() == "done"
