"""What takes seconds to load: SDKs and models."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def loaded(load: Callable[[], T]) -> T:
    """What `load` gives, called in a thread that the end of a process does not wait for: an executor's threads are
    waited for, and a worker that is told to end while a busy machine imports an SDK would outlive its grace."""
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
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            loop.call_soon_threadsafe(tell, result, failed)

    threading.Thread(target=run, name="loading", daemon=True).start()
    return await done
