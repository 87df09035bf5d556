"""Short work with files, off the event loop: a hop into a thread and back at less than half of what asyncio.to_thread
takes. What is asked for in the same moment goes over together, and comes back together."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE = 10.0  # seconds
MOST = 6  # threads of a process: so many may wait for the disk at once


_Job = tuple[Callable[[], Any], Context, "asyncio.Future[Any]"]
_Batch = list[_Job]
_Outcome = tuple["asyncio.Future[Any]", Any, BaseException | None]


class Threads:
    """Threads that wait for work, started as they are needed; at the process's end what they have in hand is done."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._queue: SimpleQueue[tuple[asyncio.AbstractEventLoop, _Batch] | None] = SimpleQueue()
        self._waiting: dict[asyncio.AbstractEventLoop, _Batch] = {}  # of each loop, by that loop alone
        self._threads: list[threading.Thread] = []
        self._idle: deque[None] = deque()  # one for each that waits; its steps need no lock
        self._starting = threading.Lock()
        atexit.register(self.close)

    def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """The work's outcome, awaited; begun also if nobody waits for it any more. It must be short: others that were
        asked for in the same moment may stand behind it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        job = partial(work, *args, **kwargs), copy_context(), done
        if (batch := self._waiting.get(loop)) is not None:
            batch.append(job)
        else:
            self._waiting[loop] = [job]
            loop.call_soon(self._send, loop)
        return done

    def close(self) -> None:
        """Waits for what was asked for; not for ever, as a disk may hang."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(_PATIENCE)
        self._threads.clear()

    def _send(self, loop: asyncio.AbstractEventLoop) -> None:
        self._queue.put((loop, self._waiting.pop(loop)))
        if self._idle:
            self._idle.pop()
        elif len(self._threads) < self._most:
            with self._starting:
                thread = threading.Thread(target=self._work, name=f"files-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _work(self) -> None:
        while (taken := self._queue.get()) is not None:
            loop, batch = taken
            outcomes = [_outcome(job) for job in batch]
            taken = batch = None  # type: ignore[assignment]  # nothing is held while there is nothing to do
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(_settle, outcomes)
            del outcomes, loop
            self._idle.append(None)


def _outcome(job: _Job) -> _Outcome:
    work, context, done = job
    try:
        return done, context.run(work), None
    except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
        return done, None, error


def _settle(outcomes: list[_Outcome]) -> None:
    for done, value, error in outcomes:
        if done.done():  # whoever waited was cancelled
            continue
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(value)


_threads = Threads()


def in_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    """See Threads.run: in the threads of this process."""
    return _threads.run(work, *args, **kwargs)


def _after_fork() -> None:
    global _threads
    _threads = Threads()


os.register_at_fork(after_in_child=_after_fork)
