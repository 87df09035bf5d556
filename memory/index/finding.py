"""What a list's `q` finds in the index: by its terms, by its letters as they stand, by what it means."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import orjson

from memory.index import queries, schema
from memory.index.rows import words
from memory.listing import Kind, Wanted
from memory.recall.lexical import slips
from memory.recall.sought import Meant, Order, Sought, least, score


class Found(NamedTuple):
    """`shares` by row; `meant` the same. What has neither is not found."""

    order: Order
    shares: dict[int, float]
    meant: dict[int, float]

    @property
    def rows(self) -> str:
        """As JSON, for `queries.conditions`."""
        return orjson.dumps(sorted(self.shares.keys() | self.meant.keys())).decode()


class Ranked(NamedTuple):
    score: float
    user: str
    id: str
    row: int


def find(db: sqlite3.Connection, kind: Kind, q: str, meant: Meant, day: int, order: str = "") -> Found:
    """`order`: what the first page was ranked by, where this is another; `day` since 1970."""
    sought = Sought.of(q)
    having = [_having(db, kind, term) for term in sought.indexed]
    literal, runs = _standing(db, kind, q, sought.runs)
    kept = Order.of(order, sought)
    if kept is not None:
        weights = kept.weights
    else:
        (total,) = db.execute(f"SELECT COUNT(*) FROM {kind}").fetchone()
        weights = sought.weights([*map(len, having), *map(len, runs)], total)
    held: dict[int, int] = {}
    for at, rows in enumerate([*having, *runs, literal]):
        if at == len(weights) or weights[at]:
            for row in rows:
                held[row] = held.get(row, 0) | 1 << at
    shares = {mine: sought.share(weights, mine) for mine in set(held.values())}
    kept = kept or Order(day, least(sought, max(shares.values(), default=0.0)), weights)
    good = {mine: share for mine, share in shares.items() if share * 100 >= kept.least}
    return Found(kept, {row: good[mine] for row, mine in held.items() if mine in good}, _rows_of(db, kind, meant))


def ranked(db: sqlite3.Connection, kind: Kind, wanted: Wanted, found: Found) -> list[Ranked]:
    """Those that the other conditions let through, the best first."""
    table = schema.OF[kind]
    where, values = queries.conditions(kind, wanted, found.rows)
    sql = f"SELECT rowid, user, id, LENGTH(terms) / 4, {table.weight}, {table.fresh} FROM {kind}{queries.joined(where)}"
    out: list[Ranked] = []
    for row, user, name, length, weight, at in db.execute(sql, values):
        fit = score(found.shares.get(row, 0.0), length, found.meant.get(row, 0.0), weight, at, found.order.day)
        out.append(Ranked(fit, user, name, row))
    out.sort(key=lambda one: (-one.score, one.user, one.id))
    return out


def _having(db: sqlite3.Connection, kind: Kind, term: str) -> list[int]:
    """The rows with a term; of a Latin word that nobody wrote those with words that are close to it."""
    found = _posted(db, "SELECT id FROM terms WHERE kind = ? AND term = ?", [kind, term])
    if found or not (term[0].isascii() and term[0].isalpha()):
        return found
    listed = db.execute(
        "SELECT term FROM terms WHERE kind = ? AND term >= ? AND term < ?", [kind, term[0], chr(ord(term[0]) + 1)]
    )
    near = slips(term, [one for (one,) in listed])
    asked = "SELECT id FROM terms WHERE kind = ? AND term IN (SELECT value FROM json_each(?))"
    return sorted(set(_posted(db, asked, [kind, orjson.dumps(near).decode()]))) if near else []


def _posted(db: sqlite3.Connection, ids: str, values: list[str]) -> list[int]:
    return [row for (row,) in db.execute(f"SELECT row FROM postings WHERE term IN ({ids})", values)]


def _standing(db: sqlite3.Connection, kind: Kind, q: str, runs: tuple[str, ...]) -> tuple[list[int], list[list[int]]]:
    """The rows in which all of it stands as it is written, in this order; and those with each of some short words."""
    parts = words(q).split()
    looked = [*(("instr(words, ?) > 0", one) for one in runs)]
    if len(parts) == 1:
        looked.append(("instr(words, ?) > 0", parts[0]))
    elif parts:
        looked.append(("words LIKE ? ESCAPE '\\'", f"%{'%'.join(map(queries.literal, parts))}%"))
    if not looked:
        return [], []
    conditions, values = [one for one, _ in looked], [value for _, value in looked]
    found = db.execute(
        f"SELECT rowid, {', '.join(conditions)} FROM {kind} WHERE {' OR '.join(conditions)}", [*values, *values]
    ).fetchall()
    standing = [[one[0] for one in found if one[at]] for at in range(1, len(looked) + 1)]
    return (standing[-1] if parts else []), standing[: len(runs)]


def _rows_of(db: sqlite3.Connection, kind: Kind, meant: Meant) -> dict[int, float]:
    asked = f"SELECT rowid FROM {kind} WHERE user = ? AND id = ?"
    out: dict[int, float] = {}
    for (user, name), value in meant.items():
        if (found := db.execute(asked, [user, name]).fetchone()) is not None:
            out[found[0]] = value
    return out
