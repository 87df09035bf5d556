"""Short lists that staff change while everything runs, followed by every process: the keys that were made for a tenant,
whom it blocked. One JSON file a tenant and list here; in a database in `memory.postgres.lists`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import orjson

from memory import keys
from memory.file_locks import exclusive

KEYS, BLOCKED, OPTED_OUT = NAMES = ("keys", "blocked", "opted_out")  # what lies in the database where there is one

LOOK_EVERY = 0.1  # seconds: many messages of many shops come in that time
_RACY = 1.0  # seconds: a folder that changed this shortly ago may change again within the same tick of its clock

Listed = list[Any]
Change = Callable[[Listed], Listed]


class Lists(Protocol):
    """Of one name. Nothing here waits for a database but `change` and the first look of a process, which blocks.

    Raises OSError or LongTermUnavailable where they can't be read or written.
    """

    def of(self, tenant: str, *, however_old: bool = False) -> Listed:
        """As it is, or was seconds ago. With `however_old` what was seen within LOOK_EVERY is not looked up again,
        and what is known of it is good enough when it can't be."""
        ...

    def change(self, tenant: str, change: Change) -> None:
        """One writer at a time, over all processes. Raises whatever `change` does, too."""
        ...

    def note(self, tenant: str, change: Change) -> None:
        """As `change` for what is no loss when it can't be written; does not wait for it."""
        ...

    def tenants(self) -> list[str]: ...


class KeptLists(Protocol):
    """All lists of a process, each by its name. Made without anything being read."""

    def __call__(self, name: str) -> Lists: ...

    def begin(self) -> None:
        """Waits for the first look, however it ends."""
        ...

    def close(self) -> None: ...


class FileLists:
    """Below DATA_DIR."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def __call__(self, name: str) -> SmallLists:
        return SmallLists(self._data_dir / name)

    def begin(self) -> None: ...

    def close(self) -> None: ...


class SmallLists:
    """`folder` is made when something is first written. Blocking, but only for small files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: tuple[int, Mapping[str, Listed]] | None = None
        self._lately: tuple[float, Mapping[str, Listed]] = -LOOK_EVERY, {}  # when anybody looked last, and at what

    def of(self, tenant: str, *, however_old: bool = False) -> Listed:
        at, there = self._lately
        if not however_old or (now := time.monotonic()) - at >= LOOK_EVERY:
            there = self._all()
            if however_old:
                self._lately = now, there
        return there.get(tenant, [])

    def change(self, tenant: str, change: Change) -> None:
        path = keys.list_file(self._folder, tenant)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with exclusive(self._folder, tenant):
            there = _read(path)
            after = change(list(there))
            if after != there:
                _write(path, after)
            else:
                _beside(path).unlink(missing_ok=True)
        self._lately = -LOOK_EVERY, {}

    def note(self, tenant: str, change: Change) -> None:
        with suppress(OSError):  # as of a full disk
            self.change(tenant, change)

    def tenants(self) -> list[str]:
        return sorted(self._all())

    def _all(self) -> Mapping[str, Listed]:
        """Read anew when the folder changed: every change puts a file in its place."""
        try:
            changed = self._folder.stat().st_mtime_ns
        except FileNotFoundError:
            return {}
        if self._seen is not None and self._seen[0] == changed and time.time() - changed / 1e9 > _RACY:
            return self._seen[1]
        found = {path.stem: _read(path) for path in self._folder.glob("*.json") if keys.TENANT_ID.match(path.stem)}
        self._seen = (changed, found)
        return found


def _read(path: Path) -> Listed:
    """What can't be read holds nothing."""
    try:
        listed = orjson.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return []
    return listed if isinstance(listed, list) else []


def _beside(path: Path) -> Path:
    """Where the file is written before it takes its place; what a crash left there may name whom it no longer names."""
    return path.with_name(f".{path.name}.new")


def _write(path: Path, listed: Listed) -> None:
    beside = _beside(path)
    descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps(listed, option=orjson.OPT_INDENT_2))
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
