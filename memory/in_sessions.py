"""What live sessions alone hold, as a page of a list: pure. The same rules as the lists over a tenant."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from memory import search
from memory.curation import Held
from memory.index.rows import milliseconds
from memory.listing import Listed, Place, Wanted
from memory.long_term.document import plain
from memory.recall.ranking import Ranking
from memory.recall.sought import BEST


def listed(held: Sequence[Held], wanted: Wanted, sort: str | None, limit: int, after: Place | None) -> Listed:
    """`sort` and `after` as in Catalog."""
    best = bool(wanted.q) and (sort is None or sort.startswith(BEST))
    by = "created" if sort is None or sort.startswith(BEST) else sort
    fits = _found(held, wanted.q) if wanted.q else dict.fromkeys(range(len(held)), 0.0)
    found = sorted(
        ((-fits[at], one.user, one.fact.id) if best else _place(one, by), at)
        for at, one in enumerate(held)
        if at in fits and _fits(one, wanted)
    )
    place = None if after is None else (-after[0], after[1], after[2])
    rest = [one for one in found if place is None or one[0] > place]
    shown = [held[at] for _, at in rest[:limit]]
    records = [{**plain(one.fact), "user_id": one.user} for one in shown]
    last: Place | None = None
    if len(rest) > limit:
        value, user, fact_id = rest[limit - 1][0]
        last = -value, user, fact_id
    return Listed(records, len(found), last, BEST if best else by)


def _found(held: Sequence[Held], q: str) -> dict[int, float]:
    """Which have what is looked for, and how well."""
    entries = [replace(search.of_fact(one.fact), id=str(at)) for at, one in enumerate(held)]
    return {int(hit.id): hit.score for hit in Ranking(entries).find(q, len(entries))}


def _place(held: Held, sort: str) -> Place:
    fact = held.fact
    by = {
        "created": milliseconds(fact.created_at),
        "used": milliseconds(fact.last_used_at),
        "confidence": fact.confidence,
        "priority": ("low", "medium", "high").index(fact.priority.value) + 1,
    }
    return -by[sort], held.user, fact.id


def _fits(held: Held, wanted: Wanted) -> bool:
    fact = held.fact
    if wanted.types and fact.type.value not in wanted.types:
        return False
    if wanted.priorities and fact.priority.value not in wanted.priorities:
        return False
    return wanted.confidence is None or fact.confidence >= wanted.confidence
