"""What live sessions alone hold, as a page of a list: pure. The same rules as the lists over a tenant."""

from __future__ import annotations

from collections.abc import Sequence

from memory.curation import Held
from memory.index.rows import milliseconds, words
from memory.listing import Listed, Place, Wanted
from memory.long_term.document import plain


def listed(held: Sequence[Held], wanted: Wanted, sort: str, limit: int, after: Place | None) -> Listed:
    found = sorted((_place(one, sort), at) for at, one in enumerate(held) if _fits(one, wanted))
    place = None if after is None else (-after[0], after[1], after[2])
    rest = [one for one in found if place is None or one[0] > place]
    shown = [held[at] for _, at in rest[:limit]]
    records = [{**plain(one.fact), "user_id": one.user} for one in shown]
    last: Place | None = None
    if len(rest) > limit:
        by, user, fact_id = rest[limit - 1][0]
        last = -by, user, fact_id
    return Listed(records, len(found), last)


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
    if wanted.confidence is not None and fact.confidence < wanted.confidence:
        return False
    text, at = words(f"{fact.key} {fact.text}"), 0
    for part in words(wanted.q).split():
        if (found := text.find(part, at)) < 0:
            return False
        at = found + len(part)
    return True
