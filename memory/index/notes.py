"""Who changed since the index last looked: one line a save, appended to `<tenant>.changed`. Blocking, for threads.

A line is the user's id as JSON, or `*`: anybody may have changed. The first line names the file's generation, so that
whoever read an earlier one knows that this is another.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from pathlib import Path

from memory import keys
from memory.errors import CatalogUnavailable

log = logging.getLogger(__name__)

MOST = 1024 * 1024  # bytes; what nobody read by then is found by comparing everybody
EVERYBODY = b"*\n"
_HEAD = re.compile(rb"#[0-9a-f]{16}\n")


@dataclass(frozen=True, slots=True)
class Mark:
    """How far somebody has read."""

    generation: str = ""
    end: int = 0


@dataclass(frozen=True, slots=True)
class News:
    users: frozenset[str]
    everybody: bool
    mark: Mark


class Notes:
    """`base` is `DATA_DIR/index`. Writers share a lock, so that whoever empties the file has it alone."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._plain_base = str(base)
        self._paths: dict[str, str] = {}  # of tenants, for each save

    def note(self, tenant: str, user: str) -> None:
        """Never raises: what could not be noted is found when everybody is compared."""
        path = self._paths.get(tenant)
        if path is None:
            path = self._paths[tenant] = keys.changes_file(self._plain_base, tenant)
        line = encode_basestring_ascii(user).encode() + b"\n"  # as json.dumps does
        try:
            file = _locked(path, fcntl.LOCK_SH, create=True)
            try:
                size = os.fstat(file).st_size
                os.write(file, line if size else _head() + line)
            finally:
                os.close(file)
            if size > MOST:
                with _open(path, fcntl.LOCK_EX, create=True) as file:
                    if os.fstat(file).st_size > MOST:
                        os.ftruncate(file, 0)
                        os.write(file, _head() + EVERYBODY)
        except OSError as error:
            log.warning("a change is not noted in %s: %s", path, error.strerror)

    def since(self, tenant: str, mark: Mark) -> News:
        """What was noted after that mark. Raises CatalogUnavailable."""
        try:
            with _faults(path := keys.changes_file(self._base, tenant)), open(path, "rb") as file:
                here = _generation(file.readline(64))
                if here == mark.generation:
                    file.seek(mark.end)
                elif not here:
                    file.seek(0)
                end = file.tell()
                raw = file.read()
        except FileNotFoundError:
            return News(frozenset(), False, Mark())
        whole = raw[: raw.rfind(b"\n") + 1] if here else raw
        users, everybody = set(), bool(raw) and not here
        for line in whole.splitlines():
            if line == EVERYBODY.strip():
                everybody = True
            elif not line.startswith(b"#"):
                user = _user(line)
                everybody |= user is None
                users.add(user or "")
        return News(frozenset(users), everybody, Mark(here, end + len(whole)))

    def behind(self, tenant: str, mark: Mark) -> bool:
        """Whether something was noted after it: a look at the file alone. Raises CatalogUnavailable."""
        try:
            with _faults(path := keys.changes_file(self._base, tenant)), open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                here = _generation(file.readline(64))
        except FileNotFoundError:
            return False
        return size > (mark.end if here == mark.generation else len(here) + 1 if here else 0)

    def drop(self, tenant: str, mark: Mark, *, at_least: int = 0, everybody: bool = False) -> bool:
        """Empties the file if it is longer than `at_least`, or none that we wrote, and nothing was noted after the
        mark; whether it did. `everybody`: all that it says then is that anybody may have changed. Raises
        CatalogUnavailable."""
        try:
            with _faults(path := keys.changes_file(self._base, tenant)), _open(path, fcntl.LOCK_EX) as file:
                size, here = os.fstat(file).st_size, _generation(os.pread(file, 64, 0))
                if size and size <= at_least and here:
                    return False
                if size and (size != mark.end or here != mark.generation):
                    return False
                os.ftruncate(file, 0)
                if everybody:
                    os.write(file, _head() + EVERYBODY)
        except FileNotFoundError:
            pass
        return True


def _head() -> bytes:
    return b"#" + secrets.token_hex(8).encode() + b"\n"


def _generation(beginning: bytes) -> str:
    """What a file's first line names; "": it is none of ours, or was written over."""
    found = _HEAD.match(beginning)
    return found[0].decode().strip() if found else ""


@contextmanager
def _faults(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CatalogUnavailable(f"who changed can't be read in {path}: {error.strerror or error}") from error


def _user(line: bytes) -> str | None:
    try:
        user = json.loads(line)
    except ValueError:
        return None
    return user if isinstance(user, str) else None


class _open:
    """The file under a lock of that kind."""

    __slots__ = ("_create", "_descriptor", "_kind", "_path")

    def __init__(self, path: str, kind: int, *, create: bool = False) -> None:
        self._path = path
        self._kind = kind
        self._create = create

    def __enter__(self) -> int:
        self._descriptor = _locked(self._path, self._kind, create=self._create)
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _locked(path: str, kind: int, *, create: bool) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        if not create:
            raise
        os.makedirs(os.path.dirname(path), exist_ok=True)
        descriptor = os.open(path, flags, 0o600)
    try:
        fcntl.flock(descriptor, kind)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
