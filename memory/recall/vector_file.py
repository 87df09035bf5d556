"""Vectors on disk, one file a tenant: derived from what is known, made anew where they are missing. Blocking, for
threads. A file that can't be read is thrown away: nothing is lost by it."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TypeVar

from memory import keys

T = TypeVar("T")

log = logging.getLogger(__name__)

ENDING = "vectors.sqlite"
_SCHEMA = """CREATE TABLE IF NOT EXISTS vectors (
    owner TEXT NOT NULL, id TEXT NOT NULL, model TEXT NOT NULL, digest BLOB NOT NULL, vector BLOB NOT NULL,
    PRIMARY KEY (owner, id)) WITHOUT ROWID"""


class Stored(NamedTuple):
    """`digest` is of the text that the vector was made of."""

    digest: bytes
    vector: bytes


class VectorFile:
    """`base` is `DATA_DIR/index`. An entry has one vector, of the model that made it last."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def load(self, tenant: str, owner: str, model: str) -> dict[str, Stored]:
        """Those of a model; none where there is no file."""

        def look(db: sqlite3.Connection) -> dict[str, Stored]:
            rows = db.execute("SELECT id, digest, vector FROM vectors WHERE owner = ? AND model = ?", (owner, model))
            return {name: Stored(digest, vector) for name, digest, vector in rows}

        return self._step(tenant, look, {}, make=False)

    def put(self, tenant: str, owner: str, model: str, vectors: Mapping[str, Stored]) -> None:
        rows = [(owner, name, model, one.digest, one.vector) for name, one in vectors.items()]

        def write(db: sqlite3.Connection) -> None:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?, ?)", rows)

        self._step(tenant, write, None)

    def keep(self, tenant: str, owner: str, wanted: Mapping[str, bytes]) -> int:
        """Removes the owner's others; `wanted` maps ids to digests. How many went."""

        def remove(db: sqlite3.Connection) -> int:
            rows = db.execute("SELECT id, digest FROM vectors WHERE owner = ?", (owner,)).fetchall()
            gone = [(owner, name) for name, digest in rows if wanted.get(name) != digest]
            db.executemany("DELETE FROM vectors WHERE owner = ? AND id = ?", gone)
            return len(gone)

        return self._step(tenant, remove, 0, make=False, clean=True)

    def drop(self, tenant: str, owners: Collection[str]) -> int:
        """Everything of these; how many vectors."""

        def remove(db: sqlite3.Connection) -> int:
            return sum(db.execute("DELETE FROM vectors WHERE owner = ?", (owner,)).rowcount for owner in owners)

        return self._step(tenant, remove, 0, make=False, clean=True)

    def owners(self, tenant: str) -> list[str]:
        def look(db: sqlite3.Connection) -> list[str]:
            return [owner for (owner,) in db.execute("SELECT DISTINCT owner FROM vectors")]

        return self._step(tenant, look, [], make=False)

    def remove(self, tenant: str) -> None:
        """The file: it is made anew."""
        path = keys.index_file(self._base, tenant, ENDING)
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)

    def _step(
        self, tenant: str, work: Callable[[sqlite3.Connection], T], otherwise: T, *, make: bool = True,
        clean: bool = False,
    ) -> T:  # fmt: skip
        """One transaction. `clean`: what was removed is not left in the log beside the file either."""
        path = keys.index_file(self._base, tenant, ENDING)
        if not make and not path.exists():
            return otherwise
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            with closing(sqlite3.connect(path, timeout=5.0)) as db:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("PRAGMA synchronous=OFF")  # a power cut costs making them anew, no more
                db.execute("PRAGMA secure_delete=ON")
                db.execute(_SCHEMA)
                with db:
                    done = work(db)
                if clean:
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return done
        except (sqlite3.Error, OSError) as error:
            log.warning("vectors of tenant %s can't be used: %s", tenant, error)
            if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                self.remove(tenant)
            return otherwise
