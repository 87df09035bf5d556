"""What a list's `q` finds: by its terms, by its letters as they stand. The same as in the index of the files
(`memory/index/finding.py`), but that in a large list what most records have is not looked for, where something else
is."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from memory.index import schema
from memory.index.finding import COMMONER, RAREST
from memory.index.postings import PIECE
from memory.index.rows import words
from memory.listing import Kind, Wanted
from memory.postgres import queries
from memory.postgres.database import Connection
from memory.postgres.records import clean
from memory.postgres.texts import BLOCK, LONGEST, unpacked
from memory.recall.lexical import slips
from memory.recall.sought import Order, Sought, least, score, tells
from memory.recall.terms import groups, thai

_SLIPS = 2  # letters that a word may be longer or shorter by

Numbers = Collection[int]


class Ranked(NamedTuple):
    """`user` is the key of a user's rows."""

    score: float
    user: str
    id: str


class Found(NamedTuple):
    order: Order
    ranked: list[Ranked]  # the best first

    @property
    def places(self) -> queries.Places:
        return [one.user for one in self.ranked], [one.id for one in self.ranked]


async def find(db: Connection, tenant: str, kind: Kind, wanted: Wanted, total: int, day: int, order: str = "") -> Found:
    """`total`: how many records of the kind there are. `order`: what the first page was ranked by, where this is
    another; `day` since 1970."""
    look, sought = _Look(db, tenant, kind), Sought.of(wanted.q)
    kept = Order.of(order, sought)
    whole = [clean(part) for part in words(wanted.q).split()]
    await look.count([*map(_key, sought.indexed), *_parts(sought.runs), *_parts(whole)])
    terms = [await look.term(one) for one in sought.indexed]
    standing = [await look.standing([one]) for one in sought.runs]
    literal = await look.standing(whole)
    await look.fetch([*terms, *standing, literal], total)
    having = [await look.resolved(one, total) for one in [*terms, *standing]]
    weights = kept.weights if kept else sought.weights([one.number for one in having], total)
    for at, one in enumerate(having):
        if weights[at] and one.numbers is None:
            having[at] = await look.all_of(one)
    numbers = [one.numbers or () if weights[at] else () for at, one in enumerate(having)]
    numbers.append((await look.resolved(literal, total)).numbers or ())
    best, shares = await asyncio.to_thread(_shares, sought, weights, numbers, kept, day)
    return Found(best, await look.ranked(wanted, best, shares))


class _Having(NamedTuple):
    """Of `number` records, at most that as long as their `numbers` were not looked up: they have all of `keys`, or any
    of them, and `parts` stand there in this order."""

    number: int
    keys: tuple[str, ...]
    parts: tuple[str, ...] = ()
    any_of: bool = False
    numbers: Numbers | None = None


class _Look:
    def __init__(self, db: Connection, tenant: str, kind: Kind) -> None:
        self._db = db
        self._of = [tenant, kind]
        self._kind: Kind = kind
        self._counts: dict[str, int] = {}
        self._sets: dict[str, set[int]] = {}

    async def count(self, keys: Collection[str]) -> None:
        found = await self._db.execute(
            "SELECT term, SUM(octet_length(numbers)) / 2 FROM chat_chat.postings"
            " WHERE tenant = %s AND kind = %s AND term = ANY(%s) GROUP BY term",
            [*self._of, list(set(keys))],
        )
        self._counts = {term: int(number) for term, number in await found.fetchall()}

    async def term(self, term: str) -> _Having:
        """Of a Latin word that nobody wrote those with words that are close to it."""
        key = _key(term)
        if (number := self._counts.get(key, 0)) or not (term[0].isascii() and term[0].isalpha()):
            return _Having(number, (key,))
        near = slips(term, await self._words_like(term))
        return await self.all_of(_Having(0, tuple(near), any_of=True))

    async def standing(self, parts: Sequence[str]) -> _Having:
        """In which all parts stand, in this order."""
        if keys := _parts(parts):
            rarest = sorted(set(keys), key=lambda one: (self._counts.get(one, 0), one))[:RAREST]
            number = self._counts.get(rarest[0], 0)
            rarest = [one for one in rarest if self._counts.get(one, 0) <= COMMONER * number]
            return _Having(number, tuple(rarest), tuple(parts))
        begun = await self._beginning(f"~{clean(max(parts, key=len))}") if parts else {}
        return _Having(sum(begun.values()), tuple(begun), tuple(parts), any_of=True)

    async def fetch(self, wanted: Iterable[_Having], total: int) -> None:
        """Together what `resolved` will ask for."""
        await self._read({key for one in wanted if one.number and tells(one.number, total) for key in one.keys})

    async def resolved(self, having: _Having, total: int) -> _Having:
        """With the numbers, in a large list only where these tell records apart."""
        if having.numbers is not None or not tells(having.number, total):
            return having
        return await self.all_of(having)

    async def all_of(self, having: _Having) -> _Having:
        if not having.number and not having.any_of:
            return having._replace(numbers=())
        await self._read(having.keys)
        sets = [self._sets[key] for key in having.keys]
        numbers = set().union(*sets) if having.any_of else set.intersection(*sets)
        if numbers and having.parts:
            pattern = f"%{'%'.join(map(queries.literal, having.parts))}%"
            found = await self._db.execute(
                "SELECT number FROM chat_chat.texts WHERE tenant = %s AND kind = %s AND number = ANY(%s)"
                " AND words LIKE %s",
                [*self._of, list(numbers), pattern],
            )
            numbers = {number for (number,) in await found.fetchall()}
        return having._replace(number=len(numbers), numbers=numbers)

    async def ranked(self, wanted: Wanted, order: Order, shares: Mapping[int, float]) -> list[Ranked]:
        """Those that the other conditions let through, the best first."""
        if not shares:
            return []
        asked = (
            "SELECT user_id, id, number, length FROM chat_chat.texts"
            " WHERE tenant = %s AND kind = %s AND number = ANY(%s)"
        )
        found = await (await self._db.execute(asked, [*self._of, list(shares)])).fetchall()
        texts = {(user, name): (shares[number], length) for user, name, number, length in found}
        table, name = schema.OF[self._kind], queries.id_of(self._kind)
        places = [user for user, _ in texts], [name for _, name in texts]
        where, values = queries.conditions(self._of[0], self._kind, wanted, places)
        told = f"SELECT user_id, {name}, {table.weight}, {table.fresh} FROM {queries.rows_of(self._kind, where)}"
        rows = await (await self._db.execute(told.encode(), values)).fetchall()

        def scored() -> list[Ranked]:
            out = []
            for user, name, weight, at in rows:
                share, length = texts[user, name]
                out.append(Ranked(score(share, length, 0.0, float(weight), at, order.day), user, name))
            return sorted(out, key=lambda one: (-one.score, one.user, one.id))

        return await asyncio.to_thread(scored)

    async def _read(self, keys: Iterable[str]) -> None:
        new = [key for key in keys if key not in self._sets]
        self._sets |= {key: set() for key in new}
        asked = "SELECT term, block, numbers FROM chat_chat.postings WHERE tenant = %s AND kind = %s AND term = ANY(%s)"
        for term, block, raw in await (await self._db.execute(asked, [*self._of, new])).fetchall() if new else ():
            self._sets[term].update(block * BLOCK + one for one in unpacked(raw))

    async def _beginning(self, piece: str) -> dict[str, int]:
        """The terms that begin like this one."""
        found = await self._db.execute(
            "SELECT term, SUM(octet_length(numbers)) / 2 FROM chat_chat.postings"
            " WHERE tenant = %s AND kind = %s AND term >= %s AND term < %s GROUP BY term",
            [*self._of, piece, f"{piece}\U0010ffff"],
        )
        return {term: int(number) for term, number in await found.fetchall()}

    async def _words_like(self, word: str) -> list[str]:
        """With the same first letter, and longer than it or of about its length."""
        found = await self._db.execute(
            "SELECT DISTINCT term FROM chat_chat.postings WHERE tenant = %s AND kind = %s AND term >= %s AND term < %s"
            " AND (length(term) BETWEEN %s AND %s OR starts_with(term, %s))",
            [*self._of, word[0], chr(ord(word[0]) + 1), len(word) - _SLIPS, len(word) + _SLIPS, word],
        )
        return [term for (term,) in await found.fetchall()]


def _key(term: str) -> str:
    return f"~{clean(term)}" if thai(term) else clean(term)[:LONGEST]


def _parts(parts: Sequence[str]) -> list[str]:
    """The pieces of those that are long enough to have one."""
    return [f"~{piece}" for part in map(clean, parts) if len(part) >= PIECE for piece in groups(part)]


def _shares(
    sought: Sought, weights: tuple[int, ...], having: Sequence[Numbers], kept: Order | None, day: int
) -> tuple[Order, dict[int, float]]:
    """By number, of those that have enough of what is looked for."""
    held: dict[int, int] = {}
    for at, numbers in enumerate(having):
        for number in numbers:
            held[number] = held.get(number, 0) | 1 << at
    shares = {mine: sought.share(weights, mine) for mine in set(held.values())}
    order = kept or Order(day, least(sought, max(shares.values(), default=0.0)), weights)
    good = {mine: share for mine, share in shares.items() if share * 100 >= order.least}
    return order, {number: good[mine] for number, mine in held.items() if mine in good}
