"""Which records have which terms: what searching a list looks in, in place of all its rows. Within the caller's
transaction, as `taking.py` writes the rows themselves.

A term is a row of `terms` for each kind that it stands in, its records are rows of `postings`; a record keeps the
numbers of its terms, so that it takes out just what it brought, whatever the terms of its text would be today. A term
that no record has is not kept. Stems and topics are as `memory.recall.terms` makes them; for Thai, and for what stands
inside of words, it is every run of up to three letters, with a `~` before it.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence

import orjson

from memory.listing import Kind
from memory.recall.terms import terms

PIECE = 3  # letters


def pieces(words: str) -> set[str]:
    """What begins at each letter: whatever stands inside of a word begins one of these, or is begun by one."""
    return {f"~{word[at : at + PIECE]}" for word in words.split() for at in range(len(word))}


def put(
    db: sqlite3.Connection, kind: Kind, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[object]]]
) -> None:
    """Inserts rows, each with the words it is found by. None of them may be there."""
    told = []
    for words, values in rows:
        found = terms(words)
        told.append((pieces(words).union(found.words), len(set(found.all)), values))
    counts = Counter(term for mine, *_ in told for term in mine)
    numbers = _numbers(db, kind, counts)
    sql = f"INSERT INTO {kind} ({', '.join(columns)}, length, terms) VALUES ({', '.join('?' * (len(columns) + 2))})"
    posted = []
    for mine, length, values in told:
        ids = array("I", sorted(numbers[term] for term in mine))
        at = db.execute(sql, (*values, length, ids.tobytes())).lastrowid
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
    counts = Counter(term for term, _ in gone)
    db.executemany("UPDATE terms SET number = number - ? WHERE id = ?", [(n, term) for term, n in counts.items()])
    db.executemany("DELETE FROM terms WHERE id = ? AND number = 0", [(term,) for term in counts])


def _numbers(db: sqlite3.Connection, kind: Kind, counts: Counter[str]) -> dict[str, int]:
    """The terms' ids, each counted as often as it is had."""
    db.executemany(
        "INSERT INTO terms (kind, term, number) VALUES (?, ?, ?)"
        " ON CONFLICT (kind, term) DO UPDATE SET number = number + excluded.number",
        [(kind, term, number) for term, number in sorted(counts.items())],
    )
    asked = "SELECT term, id FROM terms WHERE kind = ? AND term IN (SELECT value FROM json_each(?))"
    return dict(db.execute(asked, [kind, orjson.dumps(sorted(counts)).decode()]))
