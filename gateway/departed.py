"""Tenants whose file is gone while what is kept of their customers is still here."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from memory.keys import TENANT_ID

GRACE = timedelta(days=7)  # a file that is away for less is being edited, moved or mounted, and may set longer days
_HOMES = ("longterm", "transcripts", "media")


class Departed:
    """`data` is DATA_DIR. Since when a tenant's file has been missing is the time of a mark in `data/departed`."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._marks = data / "departed"

    def for_good(self, present: Collection[str], now: datetime, elsewhere: Collection[str] = ()) -> list[str]:
        """The tenants that have data here or `elsewhere`, in a database, and have had no file for a week. `present`
        names every file that there is, also those that can't be used; with none at all the folder itself may be
        missing, and nobody counts as gone. Blocks."""
        if not present:
            return []
        here = {name for home in _HOMES for name in _folders(self._data / home)} | set(elsewhere)
        for name in _folders(self._marks):
            if name in present or name not in here:
                (self._marks / name).rmdir()
        return [name for name in sorted(here - set(present)) if now - self._since(name, now) >= GRACE]

    def _since(self, tenant: str, now: datetime) -> datetime:
        mark = self._marks / tenant
        with suppress(FileExistsError):
            mark.mkdir(parents=True)
            os.utime(mark, (now.timestamp(), now.timestamp()))
        return datetime.fromtimestamp(mark.stat().st_mtime, now.tzinfo)


def _folders(place: Path) -> list[str]:
    if not place.is_dir():
        return []
    return [path.name for path in place.iterdir() if TENANT_ID.match(path.name) and path.is_dir()]
