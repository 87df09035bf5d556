"""The index of a large tenant in files, made of that of a few: for `benchmarks.scale`, where taking everybody in would
take most of an hour. What is in it is what the product would have put there."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.tenant_lists import TENANT, customer
from memory import keys
from memory.index import postings, schema
from memory.index.taking import set_compared
from memory.listing import Kind
from memory.long_term.json_files import JsonFiles

_COPIED: tuple[Kind, ...] = ("events", "facts")  # what says nothing of whose it is
_AT_ONCE = 1000


def copy_index(base: Path, some: int, size: int) -> None:
    """Of `size` people whose files lie in `base`; the first `some` are in the index, and the others are their copies
    (`size` is a multiple of `some`)."""
    stamps = JsonFiles(base).everybody(TENANT)
    with closing(sqlite3.connect(keys.index_file(base.parent / "index", TENANT), isolation_level=None)) as db:
        for pragma in ("synchronous = OFF", "cache_size = -2000000"):
            db.execute(f"PRAGMA {pragma}")
        db.execute("BEGIN")
        db.execute("CREATE TEMP TABLE copies (n INTEGER PRIMARY KEY)")
        db.executemany("INSERT INTO copies VALUES (?)", [(n,) for n in range(1, size // some)])
        db.execute("CREATE TEMP TABLE whose (number INTEGER PRIMARY KEY, user TEXT UNIQUE)")
        db.executemany("INSERT INTO whose VALUES (?, ?)", [(n, customer(n).user) for n in range(size)])
        for kind in _COPIED:
            _copy(db, kind, some)
        _copy_users(db, some, size)
        rows = [(customer(n).user, stamps[customer(n).user], customer(n % some).user) for n in range(some, size)]
        db.executemany("INSERT INTO people SELECT ?, ?, oldest, events, fades FROM people WHERE user = ?", rows)
        set_compared(db, 0, 0)
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _copy(db: sqlite3.Connection, kind: Kind, some: int) -> None:
    first, last = db.execute(f"SELECT MIN(rowid), MAX(rowid) FROM {kind}").fetchone()
    step = last - first + 1
    columns = ["id", "digest", *schema.OF[kind].columns, "words", "length", "terms", "record"]
    named = ", ".join(columns)
    db.execute(
        f"INSERT INTO {kind} (rowid, user, {named}) SELECT k.rowid + n * {step}, new.user, {named} FROM copies"
        f" CROSS JOIN {kind} AS k JOIN whose AS old ON old.user = k.user JOIN whose AS new"
        f" ON new.number = old.number + n * {some}"
    )
    for (term,) in db.execute("SELECT id FROM terms WHERE kind = ?", [kind]).fetchall():
        rows = [row for (row,) in db.execute("SELECT row FROM postings WHERE term = ?", [term]).fetchall()]
        db.execute(
            f"INSERT INTO postings SELECT {term}, value + n * {step} FROM copies CROSS JOIN json_each(?)"
            " ORDER BY n, value",
            [f"[{','.join(map(str, rows))}]"],
        )
    db.execute("UPDATE terms SET number = number * (1 + (SELECT COUNT(*) FROM copies)) WHERE kind = ?", [kind])


def _copy_users(db: sqlite3.Connection, some: int, size: int) -> None:
    own: Sequence[str] = ("digest", "seen", "words", "record")
    known = {user: row for user, *row in db.execute(f"SELECT user, {', '.join(own)} FROM users")}
    for start in range(some, size, _AT_ONCE):
        new = []
        for number in range(start, min(start + _AT_ONCE, size)):
            old, user = customer(number % some).user, customer(number).user
            digest, seen, words, record = known[old]
            words = words.replace(old.lower(), user.lower()).replace(f"customer {number % some}", f"customer {number}")
            record = record.replace(old, user).replace(f'"Customer {number % some}"', f'"Customer {number}"')
            new.append((words, (user, user, digest, seen, words, record)))
        postings.put(db, "users", ("user", "id", "digest", "seen", "words", "record"), new)
