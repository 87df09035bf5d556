"""What takes seconds to load: SDKs and models."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_AT_WORK: set[threading.Thread] = set()


async def loaded(load: Callable[[], T]) -> T:
    """What `load` gives, called in a thread that the end of a process does not wait for: an executor's threads are
    waited for, and a worker that is told to end while a busy machine imports an SDK would outlive its grace.
    A process that calls this ends by `leave`."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, failed = None, None
        try:
            result = load()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            failed = error
        _AT_WORK.discard(threading.current_thread())
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(tell, result, failed)

    thread = threading.Thread(target=run, name="loading", daemon=True)
    _AT_WORK.add(thread)
    thread.start()
    return await done


def leave(status: int) -> None:
    """Ends the process at once when something is still being loaded, else does nothing. The interpreter's own end takes
    the ground from under a thread that is in the middle of an extension module: it aborts or hangs."""
    if _AT_WORK:
        atexit._run_exitfuncs()  # the last lines of the log
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
