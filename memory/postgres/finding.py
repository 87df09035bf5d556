"""What a list's `q` finds in the rows: the same terms and shares as in the index (`memory/index/finding.py`), looked
for in the words themselves. Row-level security lets no index of words serve, so this reads the tenant's rows once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from memory.index import schema
from memory.index.rows import words
from memory.listing import Kind, Wanted
from memory.postgres import queries
from memory.postgres.records import clean
from memory.recall.sought import Order, Sought, least, score
from memory.recall.terms import thai, topic_words

_A_TERM = 6  # characters of a text that are one more term of it, about


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


def query(tenant: str, kind: Kind, wanted: Wanted, sought: Sought) -> queries.Query:
    """Rows of (user's key, id, length, weight, time, whether it has each of `sought.all`, whether all of it stands
    there as it is written) of those that have any."""
    looked = [_term(one) for one in sought.indexed] + [("strpos(words, %s) > 0", clean(run)) for run in sought.runs]
    parts = words(wanted.q).split()
    if len(parts) == 1:
        looked.append(("strpos(words, %s) > 0", clean(parts[0])))
    else:
        looked.append(("words LIKE %s", f"%{'%'.join(map(queries.literal, parts))}%" if parts else ""))
    table, has, asked = schema.OF[kind], [one for one, _ in looked], [value for _, value in looked]
    where, values = queries.conditions(tenant, kind, replace(wanted, q=""))
    told = ", ".join(f"({one})" for one in has)
    sql = (
        f"SELECT * FROM (SELECT user_id, {queries.id_of(kind)} AS id, length(words) / {_A_TERM} AS long, {table.weight}"
        f" AS weight, {table.fresh} AS fresh, ARRAY[{told}] AS has FROM {queries.rows_of(kind, where)}) AS looked"
        " WHERE true = ANY(has)"
    )
    return sql, [*asked, *values]


def found(rows: Sequence[Any], total: int, sought: Sought, day: int, order: str = "") -> Found:
    """`total`: of how many rows these are. `order`: what the first page was ranked by, where this is another."""
    kept = Order.of(order, sought)
    having = [sum(row[5][at] for row in rows) for at in range(len(sought.all))]
    weights = kept.weights if kept else sought.weights(having, total)
    held = [sum(has << at for at, has in enumerate(row[5])) for row in rows]
    shares = {mine: sought.share(weights, mine) for mine in set(held)}
    kept = kept or Order(day, least(sought, max(shares.values(), default=0.0)), weights)
    ranked = [
        Ranked(score(shares[mine], long, 0.0, float(weight), at, kept.day), user, name)
        for mine, (user, name, long, weight, at, _) in zip(held, rows, strict=True)
        if shares[mine] * 100 >= kept.least
    ]
    ranked.sort(key=lambda one: (-one.score, one.user, one.id))
    return Found(kept, ranked)


def _term(term: str) -> tuple[str, str]:
    if term.startswith("#"):
        return "words ~ %s", "|".join(
            one if thai(one) else rf"\m{one}\M" for one in map(_safe, topic_words(term))
        ) or "#"
    if thai(term):
        return "strpos(words, %s) > 0", clean(term)
    stem = _safe(term)
    return "words ~ %s", rf"\m(?:{stem}|{stem[:-1]}i)" if stem.endswith("y") else rf"\m{stem}"


def _safe(word: str) -> str:
    return re.escape(clean(word))
