"""Who was forgotten a short while ago: so that whoever was at work on the person meanwhile keeps nothing of them.

A mark holds when that was; its name is a hash of the id. A day later nobody can be at work any more, and it goes.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from memory import keys

KEPT_FOR = timedelta(days=1)
_RACY = 2_000_000_000  # ns
FOLDER = ".forgotten"  # no user's file has this name: a leading dot of an id is encoded


class Marks:
    """`<base>/<tenant>/.forgotten/`. Blocking; raises OSError."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._plain_base = str(base)  # for each turn's look: pathlib costs more than the look itself
        self._folders: dict[str, str] = {}  # by tenant
        self._names: dict[str, tuple[int, frozenset[str]]] = {}  # of a folder: its time of change, and what is there

    def set(self, tenant: str, user: str, now: datetime) -> None:
        path = self._path(tenant, user)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
        beside.write_text(str(now.timestamp()), "ascii")
        beside.replace(path)

    def at(self, tenant: str, user: str) -> datetime | None:
        """When this person was forgotten last; None: not within a day."""
        folder = self._folders.get(tenant) or self._folder(tenant)
        try:
            changed = os.stat(folder).st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            with suppress(OSError):  # made for the looks to come: one that finds nothing takes several times as long
                os.mkdir(folder)
            return None
        known = self._names.get(folder)
        if known is not None and known[0] == changed and not known[1]:  # nearly always
            return None
        try:
            if not self._may_hold(folder, changed, user):
                return None
            name = _name(user)
            with open(f"{folder}/{name}", encoding="ascii") as file:
                return datetime.fromtimestamp(float(file.read()), UTC)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    def surely_not(self, tenant: str, user: str) -> bool:
        """Whether one look at the folder tells that there is no mark. For an event loop: it comes right behind a write
        to the same folder's files, so that the file system has it in memory; what takes longer is left to `at`."""
        folder = self._folders.get(tenant) or self._folder(tenant)
        try:
            changed = os.stat(folder).st_mtime_ns
        except FileNotFoundError:
            return True
        except OSError:
            return False
        known = self._names.get(folder)
        return known is not None and known[0] == changed and not (known[1] and _name(user) in known[1])

    def _folder(self, tenant: str) -> str:
        found = self._folders[tenant] = f"{self._plain_base}/{keys.check_tenant(tenant)}/{FOLDER}"
        return found

    def _may_hold(self, folder: str, changed: int, user: str) -> bool:
        """By the names in a folder that has been as it is for a while; of a younger one nobody knows: what comes within
        one tick of the file system's clock leaves its time as it is."""
        known = self._names.get(folder)
        if known is None or known[0] != changed:
            if time.time_ns() - changed < _RACY:
                return True
            # Its time stands for what is listed after it was read, or for less than that.
            known = self._names[folder] = changed, frozenset(os.listdir(folder))
        return bool(known[1]) and _name(user) in known[1]

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
        return keys.tenant_file(self._base, tenant).parent / FOLDER / _name(user)


def _name(user: str) -> str:
    return hashlib.sha256(keys.escape(user).encode()).hexdigest()
