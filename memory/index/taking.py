"""A person's rows put in place of the ones before, within the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Protocol

from memory.index import postings, rows, schema
from memory.index.notes import Mark
from memory.listing import Kind
from memory.models import LongTermMemory

_CACHE = 32 * 1024  # KiB: what is filled touches pages all over the index


class Source(Protocol):
    """Where long-term memory is read; blocking. Raises LongTermUnavailable."""

    def everybody(self, tenant: str) -> Mapping[str, str]:
        """Each user's stamp."""
        ...

    def stamp(self, tenant: str, user: str) -> str:
        """The same as long as nothing changed; "": nothing is kept of this user."""
        ...

    def read(self, tenant: str, user: str) -> LongTermMemory | None: ...


def take(db: sqlite3.Connection, source: Source, tenant: str, user: str) -> None:
    """Raises LongTermUnavailable before anything is written."""
    stamp = source.stamp(tenant, user)  # before it is read: what changes meanwhile is looked at again
    known = db.execute("SELECT stamp FROM people WHERE user = ?", [user]).fetchone()
    if stamp and known and known[0] == stamp:
        return
    memory = source.read(tenant, user) if stamp else None
    db.execute(f"PRAGMA cache_size = -{_CACHE}")
    found = rows.of(memory) if memory is not None else {}
    for kind in schema.OF:
        _replace(db, kind, user, found.get(kind, []))
    if memory is None:
        db.execute("DELETE FROM people WHERE user = ?", [user])
    else:
        db.execute("INSERT OR REPLACE INTO people (user, stamp) VALUES (?, ?)", [user, stamp])


def _replace(db: sqlite3.Connection, kind: Kind, user: str, new: list[rows.Row]) -> None:
    """Writes what changed alone."""
    known = dict(db.execute(f"SELECT id, digest FROM {kind} WHERE user = ?", [user]))
    changed = [(row, digest) for row in new if known.get(row.id) != (digest := row.digest)]
    gone = known.keys() - {row.id for row in new} | (known.keys() & {row.id for row, _ in changed})
    if gone:
        postings.remove(db, kind, user, gone)
    if changed:
        columns = ("user", "id", "digest", *schema.OF[kind].columns, "words", "record")
        postings.put(
            db,
            kind,
            columns,
            [
                (row.words, (user, row.id, digest, *row.values, row.words, row.record.decode()))
                for row, digest in changed
            ],
        )


def taken(db: sqlite3.Connection) -> dict[str, str]:
    """Each user's stamp when they were taken in."""
    return dict(db.execute("SELECT user, stamp FROM people"))


def whole(db: sqlite3.Connection) -> bool:
    """Whether everybody was in it once."""
    return db.execute("SELECT 1 FROM state WHERE name = 'whole'").fetchone() is not None


def set_whole(db: sqlite3.Connection) -> None:
    db.execute("INSERT OR REPLACE INTO state VALUES ('whole', '1')")


def mark_of(db: sqlite3.Connection) -> Mark:
    """How far the notes were read."""
    found = db.execute("SELECT value FROM state WHERE name = 'notes'").fetchone()
    generation, _, end = (found[0] if found else " 0").partition(" ")
    return Mark(generation, int(end))


def set_mark(db: sqlite3.Connection, mark: Mark) -> None:
    db.execute("INSERT OR REPLACE INTO state VALUES ('notes', ?)", [f"{mark.generation} {mark.end}"])
