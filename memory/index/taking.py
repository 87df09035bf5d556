"""A person's rows put in place of the ones before, within the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from memory import decay
from memory.index import postings, rows, schema
from memory.index.notes import Mark
from memory.listing import Kind
from memory.long_term.due import Known

_CACHE = 32 * 1024  # KiB: what is filled touches pages all over the index


class Source(Protocol):
    """Where long-term memory is read; blocking. Raises LongTermUnavailable."""

    def everybody(self, tenant: str) -> Mapping[str, str]:
        """Each user's stamp."""
        ...

    def stamp(self, tenant: str, user: str) -> str:
        """The same as long as nothing changed; "": nothing is kept of this user."""
        ...

    def known(self, tenant: str, user: str) -> Known | None: ...


New = dict[Kind, list[tuple[str, tuple[Any, ...]]]]  # rows that are to be put, each with its words


def take(db: sqlite3.Connection, source: Source, tenant: str, user: str, new: New, *, anew: bool = False) -> None:
    """Takes out what is not so any more, and adds to `new` what is to be `put`. `anew`: also where nothing changed.
    Raises LongTermUnavailable before anything is written."""
    stamp = source.stamp(tenant, user)  # before it is read: what changes meanwhile is looked at again
    known = db.execute("SELECT stamp FROM people WHERE user = ?", [user]).fetchone()
    if stamp and known and known[0] == stamp and not anew:
        return
    whole = source.known(tenant, user) if stamp else None
    db.execute(f"PRAGMA cache_size = -{_CACHE}")
    found = rows.of(whole.memory) if whole is not None else {}
    for kind in schema.OF:
        new.setdefault(kind, []).extend(_changed(db, kind, user, found.get(kind, [])))
    if whole is None:
        db.execute("DELETE FROM people WHERE user = ?", [user])
        return
    oldest = None if whole.oldest is None else rows.milliseconds(whole.oldest)
    fades = min((rows.milliseconds(at) for one in whole.memory.facts if (at := decay.gone_at(one))), default=None)
    row = [user, stamp, oldest, whole.events, fades]
    db.execute("INSERT OR REPLACE INTO people (user, stamp, oldest, events, fades) VALUES (?, ?, ?, ?, ?)", row)


def put(db: sqlite3.Connection, new: New) -> None:
    """All of a step together: their terms are mostly the same, and each is looked up once."""
    for kind, told in new.items():
        if told:
            postings.put(db, kind, ("user", "id", "digest", *schema.OF[kind].columns, "words", "record"), told)


def _changed(
    db: sqlite3.Connection, kind: Kind, user: str, new: list[rows.Row]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What is to be put, once what it replaces and what is gone is taken out."""
    known = dict(db.execute(f"SELECT id, digest FROM {kind} WHERE user = ?", [user]))
    changed = [(row, digest) for row in new if known.get(row.id) != (digest := row.digest)]
    gone = known.keys() - {row.id for row in new} | (known.keys() & {row.id for row, _ in changed})
    if gone:
        postings.remove(db, kind, user, gone)
    for row, digest in changed:
        yield row.words, (user, row.id, digest, *row.values, row.words, row.record.decode())


def taken(db: sqlite3.Connection) -> dict[str, str]:
    """Each user's stamp when they were taken in."""
    return dict(db.execute("SELECT user, stamp FROM people"))


def whole(db: sqlite3.Connection) -> bool:
    """Whether everybody was in it once."""
    return db.execute("SELECT 1 FROM state WHERE name = 'whole'").fetchone() is not None


def set_whole(db: sqlite3.Connection) -> None:
    db.execute("INSERT OR REPLACE INTO state VALUES ('whole', '1')")


def compared(db: sqlite3.Connection) -> tuple[float, float]:
    """When everybody was compared last, in seconds since 1970, and what that took of a core, in seconds."""
    found = db.execute("SELECT value FROM state WHERE name = 'compared'").fetchone()
    at, _, cost = (found[0] if found else "0 0").partition(" ")
    return float(at), float(cost)


def set_compared(db: sqlite3.Connection, at: float, cost: float) -> None:
    db.execute("INSERT OR REPLACE INTO state VALUES ('compared', ?)", [f"{at} {cost}"])


def mark_of(db: sqlite3.Connection) -> Mark:
    """How far the notes were read."""
    found = db.execute("SELECT value FROM state WHERE name = 'notes'").fetchone()
    generation, _, end = (found[0] if found else " 0").partition(" ")
    return Mark(generation, int(end))


def set_mark(db: sqlite3.Connection, mark: Mark) -> None:
    db.execute("INSERT OR REPLACE INTO state VALUES ('notes', ?)", [f"{mark.generation} {mark.end}"])
