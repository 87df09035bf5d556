"""Which records have which terms: what searching a list looks in, in place of all its rows. Within the caller's
transaction, as `taking.py` writes the rows themselves.

A term is a row of `terms` for each kind that it stands in, its records are rows of `postings`; a record keeps the
numbers of its terms, so that it takes out just what it brought, whatever the terms of its text would be today. A term
that no record has is not kept.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Sequence

import orjson

from memory.listing import Kind
from memory.recall.terms import terms


def put(
    db: sqlite3.Connection, kind: Kind, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[object]]]
) -> None:
    """Inserts rows, each with the words it is found by. None of them may be there."""
    told = [(tuple(dict.fromkeys(terms(words).all)), values) for words, values in rows]
    numbers = _numbers(db, kind, {term for mine, _ in told for term in mine})
    sql = f"INSERT INTO {kind} ({', '.join(columns)}, terms) VALUES ({', '.join('?' * (len(columns) + 1))})"
    posted = []
    for mine, values in told:
        ids = array("I", sorted(numbers[term] for term in mine))
        at = db.execute(sql, (*values, ids.tobytes())).lastrowid
        posted += [(term, at) for term in ids]
    posted.sort()
    db.executemany("INSERT INTO postings (term, row) VALUES (?, ?)", posted)


def remove(db: sqlite3.Connection, kind: Kind, user: str, ids: Iterable[str]) -> None:
    """Removes these records of a user's, and what they alone had."""
    found = db.execute(
        f"SELECT rowid, terms FROM {kind} WHERE user = ? AND id IN (SELECT value FROM json_each(?))",
        [user, orjson.dumps(list(ids)).decode()],
    ).fetchall()
    gone = sorted((term, row) for row, mine in found for term in array("I", mine))
    db.executemany(f"DELETE FROM {kind} WHERE rowid = ?", [(row,) for row, _ in found])
    db.executemany("DELETE FROM postings WHERE term = ? AND row = ?", gone)
    db.executemany(
        "DELETE FROM terms WHERE id = ? AND NOT EXISTS (SELECT 1 FROM postings WHERE term = terms.id)",
        [(term,) for term in {term for term, _ in gone}],
    )


def _numbers(db: sqlite3.Connection, kind: Kind, wanted: set[str]) -> dict[str, int]:
    asked = "SELECT term, id FROM terms WHERE kind = ? AND term IN (SELECT value FROM json_each(?))"
    told = orjson.dumps(sorted(wanted)).decode()
    found: dict[str, int] = dict(db.execute(asked, [kind, told]))
    if new := sorted(wanted - found.keys()):
        db.executemany("INSERT INTO terms (kind, term) VALUES (?, ?)", [(kind, term) for term in new])
        found |= dict(db.execute(asked, [kind, orjson.dumps(new).decode()]))
    return found
