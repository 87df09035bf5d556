"""Who was forgotten a short while ago: so that whoever was at work on the person meanwhile keeps nothing of them.

A mark holds when that was; its name is a hash of the id. A day later nobody can be at work any more, and it goes.
"""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory import keys

KEPT_FOR = timedelta(days=1)
FOLDER = ".forgotten"  # no user's file has this name: a leading dot of an id is encoded


class Marks:
    """`<base>/<tenant>/.forgotten/`. Blocking; raises OSError."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def set(self, tenant: str, user: str, now: datetime) -> None:
        path = self._path(tenant, user)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
        beside.write_text(str(now.timestamp()), "ascii")
        beside.replace(path)

    def at(self, tenant: str, user: str) -> datetime | None:
        """When this person was forgotten last; None: not within a day."""
        try:
            return datetime.fromtimestamp(float(self._path(tenant, user).read_text("ascii")), UTC)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    def tidy(self, tenant: str, now: datetime) -> None:
        """Removes marks of more than a day ago."""
        folder = self._path(tenant, "any").parent
        for path in list(folder.iterdir()) if folder.is_dir() else ():
            try:
                old = now.timestamp() - float(path.read_text("ascii")) > KEPT_FOR.total_seconds()
            except (FileNotFoundError, ValueError):
                old = True
            if old:
                path.unlink(missing_ok=True)

    def _path(self, tenant: str, user: str) -> Path:
        name = hashlib.sha256(keys.escape(user).encode()).hexdigest()
        return keys.tenant_file(self._base, tenant).parent / FOLDER / name
