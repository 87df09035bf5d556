"""Locks between tasks, threads and processes: flock on a few lock files a folder.

Every call opens the file anew, so two threads of one process exclude each other as two processes do. The kernel
lets go of a lock when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

STRIPES = 64
_FLAGS = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
FOLDER = ".locks"  # no user's file has this name: a leading dot of an id is encoded


def exclusive(folder: Path | str, *names: str) -> AbstractContextManager[None]:
    """Alone with these names in `folder`, which is made if need be. Names of one stripe wait for each other; several
    are taken in one order, so that nobody waits in a circle.

    Raises OSError where the folder can't be written.
    """
    if len(names) == 1:
        return _Held(lock_file(folder, names[0]))
    return _all_held(sorted({lock_file(folder, name) for name in names}))


def taken(path: str) -> int:
    """A lock file (see `lock_file`) held alone, until the descriptor is closed: `exclusive` for what every turn does.
    Raises OSError where the folder can't be written."""
    try:
        descriptor = os.open(path, _FLAGS, 0o600)
    except FileNotFoundError:
        descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def shared(folder: Path | str, name: str) -> AbstractContextManager[None]:
    """Beside other readers, without a writer. In a folder where nobody can write no lock is needed, nor made."""
    return _Shared(lock_file(folder, name))


class _Shared:
    """See `shared`. A class: half of contextmanager's cost."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> None:
        try:
            self._descriptor = _open(self._path)
        except OSError:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


class _Held:
    """One lock file, alone."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1

    def __enter__(self) -> None:
        self._descriptor = taken(self._path)

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


@contextmanager
def _all_held(paths: Sequence[str]) -> Iterator[None]:
    with ExitStack() as held:
        for path in paths:
            held.enter_context(_Held(path))
        yield


def lock_file(folder: Path | str, name: str) -> str:
    return f"{folder}/{FOLDER}/{zlib.crc32(name.encode()) % STRIPES:02d}"


def _open(path: str) -> int:
    try:
        return os.open(path, _FLAGS, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, _FLAGS, 0o600)
