"""What the lists over memory are filtered by, and their cursors."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import HTTPException, Query

from gateway.routes.lists import cursor_of, place_of
from memory.listing import Listed, Place
from memory.memory_manager import MemoryManager

User = Annotated[str | None, Query(min_length=1, max_length=512, description="one person, by any of their ids")]
Words = Annotated[
    str,
    Query(max_length=200, description="words in it, in this order; in any case, Thai also inside a run"),
]
Since = Annotated[datetime | None, Query(description="not before; UTC where it has no zone")]
Until = Annotated[datetime | None, Query(description="before; UTC where it has no zone")]


def utc(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


async def whom(manager: MemoryManager, tenant: str, user: str | None) -> str | None:
    """Ids that were merged lead to the one that stands for them."""
    return None if user is None else await manager.knowledge.canonical(tenant, user)


def after(cursor: str, sort: str) -> Place | None:
    """The place that a list sorted by `sort` gave out. Raises HTTPException 422."""
    place = place_of(cursor, 4)
    if place is None:
        return None
    name, by, user, record_id = place
    well = name == sort and type(by) in (int, float) and abs(by) < 2**62
    if not well or not isinstance(user, str) or not isinstance(record_id, str):
        raise HTTPException(422, "cursor is not one that this list gave out")
    return by, user, record_id


def following(listed: Listed, sort: str) -> str | None:
    """The cursor of the next page."""
    return cursor_of(sort, *listed.last) if listed.last else None
