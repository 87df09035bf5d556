"""Vectors on disk, one file a tenant: derived from what is known, made anew where they are missing. Blocking, for
threads. A file that can't be read is thrown away: nothing is lost by it."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from heapq import nlargest
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from config.vault import PLAIN, Locked, Safe, Vault
from memory import sqlite_files
from memory.errors import LongTermUnavailable
from memory.recall.meaning import cosines
from memory.scrubbing import scrub

T = TypeVar("T")

log = logging.getLogger(__name__)

ENDING = "vectors.sqlite"
_PART = 4096  # vectors that are read at a time
_PATIENCE = 5.0  # seconds for whoever writes
_SCHEMA = """CREATE TABLE IF NOT EXISTS vectors (
    owner TEXT NOT NULL, id TEXT NOT NULL, model TEXT NOT NULL, digest BLOB NOT NULL, vector BLOB NOT NULL,
    PRIMARY KEY (owner, id)) WITHOUT ROWID"""


class Stored(NamedTuple):
    """`digest` is of the text that the vector was made of."""

    digest: bytes
    vector: bytes


class VectorFile:
    """`base` is `DATA_DIR/index`. An entry has one vector, of the model that made it last."""

    def __init__(self, base: Path, vault: Vault = PLAIN) -> None:
        self._base = base
        self._vault = vault

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

    def made_by(self, tenant: str, model: str) -> bool:
        """Whether there is any vector of that model."""

        def look(db: sqlite3.Connection) -> bool:
            return db.execute("SELECT 1 FROM vectors WHERE model = ? LIMIT 1", (model,)).fetchone() is not None

        return self._step(tenant, look, False, make=False)

    def closest(self, tenant: str, model: str, question: Any, least: float, most: int) -> dict[tuple[str, str], float]:
        """By owner and id the `most` highest cosines from `least` on, over all owners. Nothing is kept in memory: what
        is deleted here is found no more, and a search of a hundred thousand reads them all."""

        def look(db: sqlite3.Connection) -> dict[tuple[str, str], float]:
            found: list[tuple[float, str, str]] = []
            rows = db.execute("SELECT owner, id, vector FROM vectors WHERE model = ?", (model,))
            while part := rows.fetchmany(_PART):
                close = cosines([vector for _, _, vector in part], question)
                found += [(c, owner, name) for c, (owner, name, _) in zip(close, part, strict=True) if c >= least]
            return {(owner, name): value for value, owner, name in nlargest(most, found)}

        return self._step(tenant, look, {}, make=False)

    def remove(self, tenant: str) -> None:
        """The file: it is made anew. Raises LongTermUnavailable."""
        try:
            for path in sqlite_files.every(self._base, tenant, ENDING):
                sqlite_files.remove(path)
        except OSError as error:
            raise LongTermUnavailable(f"vectors of tenant {tenant} can't be removed: {error.strerror}") from error

    def renew(self, tenant: str) -> None:
        """Takes over what was written under another key, or none, and removes it; what no key at hand opens stays.
        Raises OSError."""
        safe = self._vault.of(tenant)
        path = sqlite_files.path_of(self._base, tenant, ENDING, safe)
        for other in sqlite_files.every(self._base, tenant, ENDING):
            if other == path:
                continue
            try:
                with closing(sqlite_files.connect(other, safe, make=False)) as db:
                    rows = db.execute("SELECT owner, id, model, digest, vector FROM vectors").fetchall()
                with _opened(path, safe) as db, db:
                    db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?, ?)", rows)
            except Locked as error:
                log.warning("%s is left alone: %s", other.name, error.strerror)
                continue
            except sqlite_files.errors() as error:
                log.warning("vectors in %s are made anew: %s", other.name, error)
            sqlite_files.remove(other)

    def _step(
        self, tenant: str, work: Callable[[sqlite3.Connection], T], otherwise: T, *, make: bool = True,
        clean: bool = False,
    ) -> T:  # fmt: skip
        """One transaction. `clean`: what was removed is not left in the log beside the file either; raises
        LongTermUnavailable where it can't be removed."""
        try:
            safe = self._vault.of(tenant)
            path = sqlite_files.path_of(self._base, tenant, ENDING, safe)
            if not path.exists():
                self.renew(tenant)
            if not make and not path.exists():
                return otherwise
            with _opened(path, safe) as db:
                with db:
                    done = work(db)
                if clean:
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if clean and done:
                _scrubbed(path, safe)
            if clean:  # what was written under a key that is not at hand may hold what must go
                for other in sqlite_files.every(self._base, tenant, ENDING):
                    if other != path:
                        sqlite_files.remove(other)
            return done
        except sqlite_files.errors(OSError) as error:
            log.warning("vectors of tenant %s can't be used: %s", tenant, error)
            broken = getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
            if broken or (clean and isinstance(error, Locked)):
                self.remove(tenant)
            elif clean:
                raise LongTermUnavailable(f"vectors of tenant {tenant} can't be removed: {error}") from error
            return otherwise


def _scrubbed(path: Path, safe: Safe) -> None:
    """What was removed is not left in its free space either. Raises OSError where others have it open for long."""
    deadline = time.monotonic() + _PATIENCE
    with _lock(path) as descriptor:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)
        if path.exists():
            with closing(sqlite_files.connect(path, safe, make=False)) as db:  # closed by who is alone, its log goes
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            scrub(path)


@contextmanager
def _lock(path: Path) -> Iterator[int]:
    descriptor = os.open(path.with_name(f"{path.name}-lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _opened(path: Path, safe: Safe) -> Iterator[sqlite3.Connection]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _lock(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        path.touch(mode=0o600)
        with closing(sqlite_files.connect(path, safe, timeout=_PATIENCE)) as db:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=OFF")  # a power cut costs making them anew, no more
            db.execute("PRAGMA secure_delete=ON")
            db.execute(_SCHEMA)
            yield db
