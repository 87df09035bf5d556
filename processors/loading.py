"""What takes seconds to load: SDKs and models."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, TypeVar

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


@contextmanager
def in_part(packages: Mapping[str, Mapping[str, str]]) -> Iterator[None]:
    """Within, these packages (parents first) lack what their own `__init__` would bring in: of an SDK only the modules
    are loaded that somebody names, its HTTP client without a thousand models. What is imported from a package itself
    comes from the module that stands here for it. A package that was there before stays whole, and whoever imports one
    afterwards gets it whole."""
    made = []
    try:
        for name, places in packages.items():
            if name not in sys.modules:
                sys.modules[name] = _bare(name, places)
                made.append(name)
        yield
    finally:
        for name in made:
            del sys.modules[name]


def _bare(name: str, places: Mapping[str, str]) -> ModuleType:
    spec = find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module: Any = module_from_spec(spec)

    def member(wanted: str) -> Any:
        if wanted not in places:
            raise AttributeError(f"module {name!r} has no attribute {wanted!r}")
        return getattr(import_module(f"{name}.{places[wanted]}"), wanted)

    module.__getattr__ = member
    return module  # type: ignore[no-any-return]


def leave(status: int) -> None:
    """Ends the process at once when something is still being loaded, else does nothing. The interpreter's own end takes
    the ground from under a thread that is in the middle of an extension module: it aborts or hangs."""
    if _AT_WORK:
        atexit._run_exitfuncs()  # the last lines of the log
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
