"""Short work with files, off the event loop: a hop into a thread and back at less than half of what asyncio.to_thread
takes. What is asked for in the same moment goes over together, and comes back together."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, ParamSpec, TypeVar

from config import cores

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

_PATIENCE = 10.0  # seconds
MOST = 6  # threads of a process: so many may wait for the disk at once

_Job = tuple["asyncio.Future[Any]", Context, Callable[..., Any], tuple[Any, ...], dict[str, Any]]
_Batch = tuple[asyncio.AbstractEventLoop, list[_Job]]
_Outcome = tuple["asyncio.Future[Any]", Any, BaseException | None]


class Threads:
    """Threads that wait for work, started as they are needed; at the process's end what they have in hand is done.

    Each waits at a lock of its own, and who waited last is woken: it alone, where several at one queue wake each other,
    and the one whose memory is still at hand."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._asked: dict[asyncio.AbstractEventLoop, list[_Job]] = {}  # of each loop, by that loop alone
        self._lock = threading.Lock()  # of what follows; held for moments
        self._threads: list[_Thread] = []
        self._idle: list[_Thread] = []
        self._behind: deque[_Batch] = deque()  # what came while nobody was idle and no more could be started
        self._closing = False
        atexit.register(self.close)

    def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """The work's outcome, awaited; begun also if nobody waits for it any more. It must be short: others that were
        asked for in the same moment may stand behind it."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        job = done, copy_context(), work, args, kwargs
        if (batch := self._asked.get(loop)) is not None:
            batch.append(job)
        else:
            self._asked[loop] = [job]
            loop.call_soon(self._send, loop)
        return done

    def close(self) -> None:
        """Waits for what was asked for; not for ever, as a disk may hang."""
        with self._lock:
            self._closing = True
            while self._idle:
                self._idle.pop().woken.release()
            threads = self._threads
            self._threads = []
        for thread in threads:
            thread.join(_PATIENCE)

    def _send(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = loop, self._asked.pop(loop)
        with self._lock:
            if self._idle:
                thread = self._idle.pop()
                thread.given = batch
                thread.woken.release()
                return
            if len(self._threads) < self._most and self._started(batch):
                return
            if self._threads:
                self._behind.append(batch)
                return
        _settle([_outcome(job) for job in batch[1]])  # here, though all else waits: it must be done

    def _started(self, batch: _Batch) -> bool:
        """False: the machine gives this process no more threads now."""
        thread = _Thread(self, batch, f"files-{len(self._threads)}")
        try:
            thread.start()
        except RuntimeError as error:
            log.warning("work with files waits for a thread: %s", error)
            return False
        self._threads.append(thread)
        return True

    def next_of(self, thread: _Thread) -> _Batch | None:
        """What stands behind; None: nothing does, and the thread is idle from now on."""
        with self._lock:
            if self._behind:
                return self._behind.popleft()
            if self._closing:
                thread.woken.release()
            else:
                self._idle.append(thread)
            return None


class _Thread(threading.Thread):
    def __init__(self, threads: Threads, given: _Batch, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.given: _Batch | None = given
        self.woken = threading.Lock()
        self.woken.acquire()
        self._threads = threads

    def run(self) -> None:
        cores.companion()
        given = self.given
        while given is not None:
            self.given = None
            loop, jobs = given
            outcomes = [_outcome(job) for job in jobs]
            given = self._threads.next_of(self)
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(_settle, outcomes)
            del outcomes, loop, jobs  # nothing is held while there is nothing to do
            if given is None:
                self.woken.acquire()
                given = self.given


def _outcome(job: _Job) -> _Outcome:
    done, context, work, args, kwargs = job
    try:
        return done, context.run(work, *args, **kwargs), None
    except StopIteration as error:  # which nobody could be told as it is
        fault = RuntimeError(f"{work} ended an iteration")
        fault.__cause__ = error
        return done, None, fault
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
    atexit.unregister(_threads.close)  # its threads stayed behind
    _threads = Threads()


os.register_at_fork(after_in_child=_after_fork)
