"""SQLite files of a tenant's, all derived, under `DATA_DIR/index`: opened plain, or where the tenant's files are
encrypted through SQLCipher, which encrypts every page and the log beside it.

An encrypted one has its key's id in its name: `<tenant>.<key id>.<ending>`. So what was written with another key, or
before any, is never met by mistake; it is taken over where that is worth it, else made anew, and removed.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from pathlib import Path
from typing import Any, cast

from config.vault import Safe
from memory import keys

PAGE = 8192  # bytes
_BESIDE = ("", "-wal", "-shm", "-journal")
_KEYED = re.compile(r"([0-9a-f]{8})\.(.+)\Z")


def path_of(base: Path, tenant: str, ending: str, safe: Safe) -> Path:
    """Where it is written now."""
    key = safe.key_id
    return keys.index_file(base, tenant, f"{key}.{ending}" if key else ending)


def connect(path: Path, safe: Safe, *, make: bool = True, **options: Any) -> sqlite3.Connection:
    """`path` as `path_of` or `every` gave it; with `make` a missing file is made. Raises Locked."""
    key = _key_of(path)
    library = _sqlcipher() if key else sqlite3
    where = f"{path.absolute().as_uri()}?mode={'rwc' if make else 'rw'}"
    db = library.connect(where, uri=True, **options)
    if key:
        db.execute("PRAGMA cipher_log_level = NONE")  # it would write to standard error
        db.execute(f"PRAGMA key = \"x'{safe.database_key(key).hex()}'\"")
        db.execute(f"PRAGMA cipher_page_size = {PAGE}")  # it can't be read out of the file
    return cast("sqlite3.Connection", db)


def errors(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """What both may raise, for an `except`; SQLCipher's own only where it was loaded."""
    loaded = sys.modules.get("sqlcipher3.dbapi2")
    return (sqlite3.Error, *more) if loaded is None else (sqlite3.Error, loaded.Error, *more)


def every(base: Path, tenant: str, ending: str) -> list[Path]:
    """The same database, plain and under whatever keys."""
    plain = keys.index_file(base, tenant, ending)
    keyed = [one for one in base.glob(f"{tenant}.????????.{ending}") if _key_of(one)]
    return [*([plain] if plain.exists() else []), *keyed]


def remove(path: Path) -> None:
    """With what lies beside it. Raises OSError."""
    for ending in _BESIDE:
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _key_of(path: Path) -> str | None:
    found = _KEYED.match(path.name.partition(".")[2])
    return found[1] if found else None


def _sqlcipher() -> Any:
    from sqlcipher3 import dbapi2  # loaded by whoever encrypts

    return dbapi2
