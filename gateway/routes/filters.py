"""What the lists over memory are filtered by, and their cursors."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, TypedDict

from fastapi import HTTPException, Query

from gateway.routes.lists import cursor_of, place_of
from memory.listing import SORTS, Kind, Listed, Place
from memory.memory_manager import MemoryManager
from memory.recall.sought import BEST

User = Annotated[str | None, Query(min_length=1, max_length=512, description="one person, by any of their ids")]
Words = Annotated[
    str,
    Query(
        max_length=200,
        description="what is looked for: words in whatever form, Thai also inside a run, and their meaning where "
        "there are vectors; the best fit first unless `sort` says otherwise",
    ),
]
Since = Annotated[datetime | None, Query(description="not before; UTC where it has no zone")]
Until = Annotated[datetime | None, Query(description="before; UTC where it has no zone")]


def utc(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


async def whom(manager: MemoryManager, tenant: str, user: str | None) -> str | None:
    """Ids that were merged lead to the one that stands for them."""
    return None if user is None else await manager.knowledge.canonical(tenant, user)


class Going(TypedDict):
    """How a list goes on: what it is asked with."""

    sort: str | None
    after: Place | None


def going(kind: Kind, cursor: str, sort: str | None, q: str) -> Going:
    """The place that this list gave out. Without a `sort` what fits `q` best comes first. Raises HTTPException 422."""
    place = place_of(cursor, 4)
    if place is None:
        return {"sort": sort, "after": None}
    name, by, user, record_id = place
    expected = name == (sort or SORTS[kind][0]) if sort or not q.strip() else str(name).startswith(BEST)
    well = isinstance(name, str) and expected and type(by) in (int, float) and abs(by) < 2**62
    if not well or not isinstance(user, str) or not isinstance(record_id, str):
        raise HTTPException(422, "cursor is not one that this list gave out")
    return {"sort": name, "after": (by, user, record_id)}


def following(listed: Listed) -> str | None:
    """The cursor of the next page."""
    return cursor_of(listed.order, *listed.last) if listed.last else None
