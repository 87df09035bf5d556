"""Short lists that staff change while everything runs: one JSON file a tenant, followed by every process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from memory import keys
from memory.file_locks import exclusive

_RACY = 1.0  # seconds: a folder that changed this shortly ago may change again within the same tick of its clock

Listed = list[Any]


class SmallLists:
    """`folder` is made when something is first written. Blocking, but only for small files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: tuple[int, Mapping[str, Listed]] | None = None

    def of(self, tenant: str) -> Listed:
        return self._all().get(tenant, [])

    def change(self, tenant: str, change: Callable[[Listed], Listed]) -> None:
        """One writer at a time, over all processes. Raises OSError, and whatever `change` does."""
        path = keys.list_file(self._folder, tenant)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with exclusive(self._folder, tenant):
            there = _read(path)
            after = change(list(there))
            if after != there:
                _write(path, after)

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


def _write(path: Path, listed: Listed) -> None:
    beside = path.with_name(f".{path.name}.new")
    descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps(listed, option=orjson.OPT_INDENT_2))
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
