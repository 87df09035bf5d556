"""Keys that were made for a tenant, beside those that its file names: hashed, in `DATA_DIR/keys/<tenant>.json`."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from memory import keys
from memory.file_locks import exclusive
from processors.models import iso

LONGEST_NAME = 60  # characters
MOST = 50  # keys of one tenant
_RACY = 1.0  # seconds: a folder that changed this shortly ago may change again within the same tick of its clock


@dataclass(frozen=True, slots=True)
class MadeKey:
    """`hash` is SHA-256 in hex; `made_at` ISO 8601 in UTC; `hint` the key's first characters, to tell keys apart."""

    id: str
    name: str
    hint: str
    hash: str
    made_at: str


class KeyRing:
    """Any process may change it; the others see it with their next look. Blocking, but only for small files."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "keys"
        self._seen: tuple[int, Mapping[str, list[MadeKey]]] | None = None

    def of(self, tenant: str) -> list[MadeKey]:
        """The oldest first."""
        return self._all().get(tenant, [])

    def make(self, tenant: str, name: str, now: datetime) -> tuple[MadeKey, str]:
        """The new one and the key itself, which nobody can look up later. Raises ValueError for too many, OSError."""
        key = f"ck_{secrets.token_urlsafe(32)}"
        made = MadeKey(
            id=f"k_{secrets.token_hex(6)}",
            name=" ".join(name.split())[:LONGEST_NAME],
            hint=key[:7],
            hash=hashlib.sha256(key.encode()).hexdigest(),
            made_at=iso(now),
        )
        path = keys.key_file(self._folder, tenant)
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with exclusive(self._folder, tenant):
            there = _read(path)
            if len(there) >= MOST:
                raise ValueError(f"{tenant} has {MOST} keys: revoke one first")
            _write(path, [*there, made])
        return made, key

    def revoke(self, tenant: str, key_id: str) -> bool:
        """Whether there was one. Raises OSError."""
        path = keys.key_file(self._folder, tenant)
        if not path.exists():
            return False
        with exclusive(self._folder, tenant):
            there = _read(path)
            left = [one for one in there if one.id != key_id]
            if len(left) != len(there):
                _write(path, left)
        return len(left) != len(there)

    def _all(self) -> Mapping[str, list[MadeKey]]:
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


def _read(path: Path) -> list[MadeKey]:
    """What can't be read opens nothing."""
    try:
        listed: Any = orjson.loads(path.read_bytes())
        return [MadeKey(**{name: str(one[name]) for name in MadeKey.__slots__}) for one in listed]
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return []


def _write(path: Path, listed: list[MadeKey]) -> None:
    beside = path.with_name(f".{path.name}.new")
    descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps([asdict(one) for one in listed], option=orjson.OPT_INDENT_2))
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
