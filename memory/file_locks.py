"""Locks between tasks, threads and processes: flock on a few lock files a folder.

Every call opens the file anew, so two threads of one process exclude each other as two processes do. The kernel
lets go of a lock when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

STRIPES = 64
FOLDER = ".locks"  # no user's file has this name: a leading dot of an id is encoded


@contextmanager
def exclusive(folder: Path, *names: str) -> Iterator[None]:
    """Alone with these names in `folder`, which is made if need be. Names of one stripe wait for each other; several
    are taken in one order, so that nobody waits in a circle.

    Raises OSError where the folder can't be written.
    """
    with ExitStack() as held:
        for path in sorted({_lock_file(folder, name) for name in names}):
            held.enter_context(_held(path, os.O_CREAT | os.O_RDWR, fcntl.LOCK_EX))
        yield


@contextmanager
def shared(folder: Path, name: str) -> Iterator[None]:
    """Beside other readers, without a writer. In a folder where nobody can write no lock is needed, nor made."""
    try:
        descriptor = _open(_lock_file(folder, name), os.O_CREAT | os.O_RDWR)
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _held(path: Path, flags: int, kind: int) -> Iterator[None]:
    descriptor = _open(path, flags)
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)


def _lock_file(folder: Path, name: str) -> Path:
    return folder / FOLDER / f"{zlib.crc32(name.encode()) % STRIPES:02d}"


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, flags | os.O_CLOEXEC, 0o600)
