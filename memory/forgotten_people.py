"""Who was forgotten and when, under names that can't be read: so that a restored backup does not bring anybody back.

`DATA_DIR/forgotten/<tenant>.jsonl`, a line a person. It has to survive a restore together with the key of
`memory.pseudonyms`; neither belongs into what is put back.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import orjson

from memory import file_locks, keys
from memory.pseudonyms import Pseudonyms
from processors.models import iso

log = logging.getLogger(__name__)

KEPT_FOR = timedelta(days=730)  # no backup older than that is to be restored
FOLDER = "forgotten"


class ForgottenPeople:
    """`data_dir` is DATA_DIR. Blocking; raises OSError."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / FOLDER
        self.names = Pseudonyms(data_dir)
        self._read: dict[str, tuple[tuple[int, int], dict[str, datetime]]] = {}

    def add(self, tenant: str, users: Iterable[str], at: datetime) -> None:
        """On disk when it returns."""
        path = self._path(tenant)
        lines = b"".join(orjson.dumps({"who": self.names.of(tenant, one), "at": iso(at)}) + b"\n" for one in users)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with file_locks.exclusive(path.parent, path.name):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "ab") as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())

    def at(self, tenant: str, user: str) -> datetime | None:
        """When this person was forgotten last; None: never, as far as the list goes back."""
        known = self._known(tenant)
        return known.get(self.names.of(tenant, user)) if known else None

    def tenants(self) -> list[str]:
        """Those of whom anybody was forgotten."""
        found = self._folder.glob("*.jsonl") if self._folder.is_dir() else ()
        return sorted(path.stem for path in found if keys.TENANT_ID.match(path.stem))

    def last(self) -> datetime | None:
        """When anybody was forgotten last."""
        return max((at for tenant in self.tenants() for at in self._known(tenant).values()), default=None)

    def tidy(self, tenant: str, now: datetime) -> None:
        """Drops what is older than any backup that may be restored."""
        path = self._path(tenant)
        if not path.exists():
            return
        with file_locks.exclusive(path.parent, path.name):
            known = self._known(tenant)
            kept = {who: at for who, at in known.items() if now - at < KEPT_FOR}
            if len(kept) < len(known):
                beside = path.with_suffix(".new")
                beside.write_bytes(
                    b"".join(orjson.dumps({"who": one, "at": iso(at)}) + b"\n" for one, at in kept.items())
                )
                beside.chmod(0o600)
                beside.replace(path)

    def _known(self, tenant: str) -> dict[str, datetime]:
        path = self._path(tenant)
        try:
            status = path.stat()
        except FileNotFoundError:
            return {}
        stamp = (status.st_mtime_ns, status.st_size)
        if (seen := self._read.get(tenant)) is None or seen[0] != stamp:
            seen = self._read[tenant] = (stamp, _parsed(path))
        return seen[1]

    def _path(self, tenant: str) -> Path:
        return keys.list_file(self._folder, tenant).with_suffix(".jsonl")


def _parsed(path: Path) -> dict[str, datetime]:
    """The last time of each; a line that can't be read is passed over, with a word."""
    found: dict[str, datetime] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            told = orjson.loads(line)
            who, at = str(told["who"]), datetime.fromisoformat(told["at"])
            found[who] = max(at, found.get(who, at))
        except (ValueError, KeyError, TypeError):
            log.warning("%s, line %d names nobody", path.name, number)
    return found
