"""What a list's `q` finds in the index: by its terms, by its letters as they stand, by what it means. In a large list
what most records have is not looked for, where something else is."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from memory.index import queries, schema, tallies
from memory.index.postings import PIECE
from memory.index.rows import words
from memory.listing import Kind, Wanted
from memory.recall.lexical import slips
from memory.recall.sought import Meant, Order, Sought, least, score, tells
from memory.recall.terms import groups, thai

RAREST = 3  # pieces that are looked up of one text
COMMONER = 10  # times as many records as the rarest piece has: reading them all takes longer than it spares
_SLIPS = 2  # letters that a word may be longer or shorter by


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
    look, sought = _Look(db, kind), Sought.of(q)
    kept = Order.of(order, sought)
    total = tallies.everything(counted(db), kind)
    having = [*map(look.term, sought.indexed), *(look.standing([run]) for run in sought.runs)]
    having = [look.resolved(one) if tells(one.number, total) else one for one in having]
    literal = look.standing(words(q).split())
    weights = kept.weights if kept else sought.weights([one.number for one in having], total)
    wanted = [(at, one) for at, one in enumerate(having) if weights[at]]
    if tells(literal.number, total):
        wanted.append((len(weights), literal))
    held: dict[int, int] = {}
    for at, one in wanted:
        for row in look.resolved(one).rows or ():
            held[row] = held.get(row, 0) | 1 << at
    shares = {mine: sought.share(weights, mine) for mine in set(held.values())}
    best = kept or Order(day, least(sought, max(shares.values(), default=0.0)), weights)
    good = {mine: share for mine, share in shares.items() if share * 100 >= best.least}
    return Found(best, {row: good[mine] for row, mine in held.items() if mine in good}, _rows_of(db, kind, meant))


def ranked(db: sqlite3.Connection, kind: Kind, wanted: Wanted, found: Found) -> list[Ranked]:
    """Those that the other conditions let through, the best first."""
    table = schema.OF[kind]
    where, values = queries.conditions(kind, wanted, found.rows)
    sql = f"SELECT rowid, user, id, length, {table.weight}, {table.fresh} FROM {kind}{queries.joined(where)}"
    out: list[Ranked] = []
    for row, user, name, length, weight, at in db.execute(sql, values):
        fit = score(found.shares.get(row, 0.0), length, found.meant.get(row, 0.0), weight, at, found.order.day)
        out.append(Ranked(fit, user, name, row))
    out.sort(key=lambda one: (-one.score, one.user, one.id))
    return out


def counted(db: sqlite3.Connection) -> tallies.Tallies:
    return dict(db.execute("SELECT facet, number FROM tallies"))


class _Having(NamedTuple):
    """Of `number` records, at most that as long as their `rows` were not looked up: they have all of `terms`, or any of
    them, and `parts` stand there in this order."""

    number: int
    terms: tuple[int, ...]
    parts: tuple[str, ...] = ()
    any_of: bool = False
    rows: set[int] | None = None


class _Look:
    def __init__(self, db: sqlite3.Connection, kind: Kind) -> None:
        self._db = db
        self._kind = kind

    def term(self, term: str) -> _Having:
        """Of a Latin word that nobody wrote those with words that are close to it."""
        found = self._counts([f"~{term}" if thai(term) else term])
        if found or not (term[0].isascii() and term[0].isalpha()):
            return _Having(*_all(found))
        near = self._counts(slips(term, self._words_like(term)))
        return self.resolved(_Having(*_any(near), any_of=True))

    def standing(self, parts: Sequence[str]) -> _Having:
        """In which all parts stand, in this order."""
        if long := {f"~{piece}" for part in parts if len(part) >= PIECE for piece in groups(part)}:
            found = self._counts(long)
            if len(found) < len(long):
                return _Having(0, ())
            rarest = sorted(found, key=lambda one: one[1])[:RAREST]
            rarest = [one for one in rarest if one[1] <= COMMONER * rarest[0][1]]
            return _Having(*_all(rarest), tuple(parts))
        begun = self._beginning(f"~{max(parts, key=len)}") if parts else []
        return _Having(*_any(begun), tuple(parts), any_of=True)

    def resolved(self, having: _Having) -> _Having:
        """With the rows."""
        if having.rows is not None or not having.terms:
            return having if having.rows is not None else having._replace(number=0, rows=set())
        asked = "SELECT row FROM postings WHERE term = ?"
        sets = [{row for (row,) in self._db.execute(asked, [term])} for term in having.terms]
        rows = set().union(*sets) if having.any_of else set.intersection(*sets)
        if rows and having.parts:
            stands = f"%{'%'.join(map(queries.literal, having.parts))}%"
            told = f"SELECT rowid FROM {self._kind} WHERE rowid IN (SELECT value FROM json_each(?)) AND words LIKE ?"
            rows = {row for (row,) in self._db.execute(f"{told} ESCAPE '\\'", [_json(rows), stands])}
        return having._replace(number=len(rows), rows=rows)

    def _counts(self, terms: Sequence[str] | set[str]) -> list[tuple[int, int]]:
        """The ids of those that anybody has, and how many have each."""
        asked = "SELECT id, number FROM terms WHERE kind = ? AND term IN (SELECT value FROM json_each(?))"
        return self._db.execute(asked, [self._kind, orjson.dumps(sorted(terms)).decode()]).fetchall()

    def _beginning(self, piece: str) -> list[tuple[int, int]]:
        """The terms that begin like this one."""
        asked = "SELECT id, number FROM terms WHERE kind = ? AND term >= ? AND term < ?"
        return self._db.execute(asked, [self._kind, piece, f"{piece}\U0010ffff"]).fetchall()

    def _words_like(self, word: str) -> list[str]:
        """With the same first letter, and longer than it or of about its length."""
        asked = (
            "SELECT term FROM terms WHERE kind = ? AND term >= ? AND term < ?"
            " AND (LENGTH(term) BETWEEN ? AND ? OR substr(term, 1, ?) = ?)"
        )
        about = [len(word) - _SLIPS, len(word) + _SLIPS, len(word), word]
        return [one for (one,) in self._db.execute(asked, [self._kind, word[0], chr(ord(word[0]) + 1), *about])]


def _all(found: Sequence[tuple[int, int]]) -> tuple[int, tuple[int, ...]]:
    return min((number for _, number in found), default=0), tuple(term for term, _ in found)


def _any(found: Sequence[tuple[int, int]]) -> tuple[int, tuple[int, ...]]:
    return sum(number for _, number in found), tuple(term for term, _ in found)


def _json(rows: set[int]) -> str:
    return orjson.dumps(sorted(rows)).decode()


def _rows_of(db: sqlite3.Connection, kind: Kind, meant: Meant) -> dict[int, float]:
    asked = f"SELECT rowid FROM {kind} WHERE user = ? AND id = ?"
    out: dict[int, float] = {}
    for (user, name), value in meant.items():
        if (found := db.execute(asked, [user, name]).fetchone()) is not None:
            out[found[0]] = value
    return out
