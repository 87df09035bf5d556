"""Passages on disk, one file a tenant: derived from the shop's files, made anew where it is missing. Blocking, for
threads. A file that can't be read is thrown away: nothing is lost by it."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from config.vault import PLAIN, Vault
from memory import sqlite_files
from processors.documents.parts import Passage

T = TypeVar("T")
Stamp = tuple[int, int]  # mtime in ns, size

log = logging.getLogger(__name__)

ENDING = "knowledge.sqlite"
_VERSION = 1  # of how files become passages: another one is made anew
_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (
    name TEXT PRIMARY KEY, mtime INTEGER NOT NULL, size INTEGER NOT NULL, error TEXT NOT NULL, remedy TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS passages (
    file TEXT NOT NULL, number INTEGER NOT NULL, title TEXT NOT NULL, heading TEXT NOT NULL, page INTEGER,
    text TEXT NOT NULL, PRIMARY KEY (file, number)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Shelved:
    """A file as it was last read. With an `error` its passages are those of its last good version, if there was one."""

    stamp: Stamp
    error: str = ""
    remedy: str = ""


class PassageFile:
    """`base` is `DATA_DIR/index`."""

    def __init__(self, base: Path, vault: Vault = PLAIN) -> None:
        self._base = base
        self._vault = vault

    def load(self, tenant: str) -> tuple[dict[str, Shelved], dict[str, list[Passage]]]:
        """By the files' names; nothing where there is no file of ours."""

        def look(db: sqlite3.Connection) -> tuple[dict[str, Shelved], dict[str, list[Passage]]]:
            files = {
                name: Shelved((mtime, size), error, remedy)
                for name, mtime, size, error, remedy in db.execute("SELECT name, mtime, size, error, remedy FROM files")
            }
            passages: dict[str, list[Passage]] = {name: [] for name in files}
            rows = db.execute("SELECT file, text, title, heading, page FROM passages ORDER BY file, number")
            for name, text, title, heading, page in rows:
                passages.setdefault(name, []).append(Passage(text, title, heading, page))
            return files, passages

        nothing: tuple[dict[str, Shelved], dict[str, list[Passage]]] = ({}, {})
        return self._step(tenant, look, nothing)

    def put(self, tenant: str, name: str, file: Shelved, passages: Sequence[Passage] | None) -> None:
        """`passages`: None keeps those that are there."""

        def write(db: sqlite3.Connection) -> None:
            db.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?)", (name, *file.stamp, file.error, file.remedy)
            )
            if passages is not None:
                db.execute("DELETE FROM passages WHERE file = ?", (name,))
                rows = [(name, n, one.title, one.heading, one.page, one.text) for n, one in enumerate(passages)]
                db.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", rows)

        self._step(tenant, write, None)

    def drop(self, tenant: str, names: Collection[str]) -> None:
        def remove(db: sqlite3.Connection) -> None:
            for table, column in (("files", "name"), ("passages", "file")):
                db.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(name,) for name in names])

        if names:
            self._step(tenant, remove, None)

    def exists(self, tenant: str) -> bool:
        return bool(sqlite_files.every(self._base, tenant, ENDING))

    def remove(self, tenant: str) -> None:
        for path in sqlite_files.every(self._base, tenant, ENDING):
            sqlite_files.remove(path)

    def renew(self, tenant: str) -> None:
        """Removes what was written under another key, or none: it is made anew. Raises OSError."""
        path = sqlite_files.path_of(self._base, tenant, ENDING, self._vault.of(tenant))
        for other in sqlite_files.every(self._base, tenant, ENDING):
            if other != path:
                sqlite_files.remove(other)

    def _step(self, tenant: str, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """One transaction."""
        try:
            safe = self._vault.of(tenant)
            path = sqlite_files.path_of(self._base, tenant, ENDING, safe)
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                self.renew(tenant)
            path.touch(mode=0o600)
            with closing(sqlite_files.connect(path, safe, timeout=5.0)) as db:
                db.execute("PRAGMA journal_mode=WAL")
                db.execute("PRAGMA synchronous=OFF")  # a power cut costs making it anew, no more
                if db.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                    db.executescript("DROP TABLE IF EXISTS files; DROP TABLE IF EXISTS passages;")
                    db.execute(f"PRAGMA user_version = {_VERSION}")
                db.executescript(_SCHEMA)
                with db:
                    return work(db)
        except sqlite_files.errors(OSError) as error:
            log.warning("the index of tenant %s's files can't be used: %s", tenant, error)
            if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                self.remove(tenant)
            return otherwise


def stamps(folder: Path) -> Mapping[str, Stamp]:
    """The files of a folder, hidden ones and editors' copies left out; empty where there is no folder."""
    found: dict[str, Stamp] = {}
    try:
        listed = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return found
    for path in listed:
        if (
            path.name.startswith((".", "~"))
            or path.name.endswith("~")
            or any("\ud800" <= c <= "\udfff" for c in path.name)
        ):
            continue
        try:
            state = path.stat()
        except OSError:
            continue
        if path.is_file():
            found[path.name] = (state.st_mtime_ns, state.st_size)
    return found
