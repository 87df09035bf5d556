"""`/api/v1/events`: what customers' messages meant, over a tenant."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Query

from config.tenants import Tenant
from gateway.routes.auth import Keys
from gateway.routes.filters import Since, Until, User, Words, following, going, utc, whom
from gateway.routes.lists import Cursor, Limit
from gateway.routes.memory_models import Event, EventPage, EventStats
from gateway.routes.problems import problems
from memory.listing import Wanted
from memory.memory_manager import MemoryManager
from processors.models import Band, EventType, band, floor

Types = Annotated[list[EventType], Query(description="any of these")]
Importance = Annotated[
    Band | Annotated[float, Query(ge=0, le=1)] | None, Query(description="at least: a band, or a score of 0 to 1")
]


def router(keys: Keys, manager: MemoryManager) -> APIRouter:
    routes = APIRouter(prefix="/api/v1/events", tags=["events"], responses=problems(401, 404, 422, 503))

    async def wanted(
        tenant: str, user: str | None, types: list[EventType], importance: Band | float | None,
        since: datetime | None, until: datetime | None, q: str,
    ) -> Wanted:  # fmt: skip
        return Wanted(
            user=await whom(manager, tenant, user),
            types=tuple(one.value for one in types),
            importance=floor(importance) if isinstance(importance, Band) else importance,
            since=utc(since),
            until=utc(until),
            q=q,
        )

    async def per_day(tenant: Tenant, asked: Wanted) -> dict[str, int]:
        days = await manager.catalog.per_day(tenant.id, asked, ZoneInfo(tenant.timezone))
        return {day.isoformat(): count for day, count in days.items()}

    @routes.get("", summary="Events, the newest first, and how many there are a day")
    async def events(
        limit: Limit = 50,
        cursor: Cursor = "",
        user: User = None,
        type: Types = [],  # noqa: B006
        importance: Importance = None,
        since: Since = None,
        until: Until = None,
        q: Words = "",
        sort: Annotated[Literal["at", "importance"] | None, Query(description="the greatest first; else `at`")] = None,
        tenant: Tenant = Depends(keys.tenant),
    ) -> EventPage:
        asked = await wanted(tenant.id, user, type, importance, since, until, q)
        on = going("events", cursor, sort, q)
        listed = await manager.catalog.page(tenant.id, "events", asked, limit=limit, **on)
        return EventPage(
            items=[Event.model_validate(_shown(record)) for record in listed.records],
            next_cursor=following(listed),
            total=listed.total,
            per_day=await per_day(tenant, asked) if on["after"] is None else None,
        )

    @routes.get("/stats", summary="How many there are, by type and by day")
    async def stats(
        user: User = None,
        type: Types = [],  # noqa: B006
        importance: Importance = None,
        since: Since = None,
        until: Until = None,
        q: Words = "",
        tenant: Tenant = Depends(keys.tenant),
    ) -> EventStats:
        asked = await wanted(tenant.id, user, type, importance, since, until, q)
        counts = await manager.catalog.counts(tenant.id, "events", asked)
        return EventStats(total=counts.total, by_type=counts.by["type"], per_day=await per_day(tenant, asked))

    return routes


def _shown(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "id": record.get("event_id"), "importance": band(record["importance_score"])}
