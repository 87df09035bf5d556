"""`/admin/<tenant>/overview`: how a shop's chats go, what they cost this month, and messages nobody could answer."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, HTTPException, Request, Response

from config.tenants import Tenant, TenantStatus
from gateway.dead_letters import DeadLetter, DeadLetters
from gateway.intake import policy_for
from gateway.routes.admin_page import Pages, see, with_
from memory.listing import Wanted
from memory.memory_manager import MemoryManager
from processors.models import Band, floor

RANGES = (7, 30, 90)  # days
_SHOWN = 50  # dead letters
_ID = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")


def router(
    pages: Pages,
    manager: MemoryManager,
    letters: DeadLetters,
    statuses: Callable[[], list[TenantStatus]],
    described: Callable[[TenantStatus], Awaitable[dict[str, Any]]],
    clock: Callable[[], datetime],
) -> APIRouter:
    routes = APIRouter(route_class=pages.route_class())
    sessions = pages.sessions

    @routes.get("/admin/{tenant}/overview")
    async def overview(request: Request, tenant: str) -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        asked = request.query_params.get("days", "")
        days = int(asked) if asked in map(str, RANGES) else 30
        row = next((one for one in statuses() if one.id == shop.id), None)
        told = await described(row) if row is not None else {"channels": [], "llm": None}
        return pages.render(
            request,
            "overview.html",
            staff,
            shop,
            tab="overview",
            days=days,
            ranges=RANGES,
            told=told,
            letters=await letters.list(shop.id, _SHOWN),
            **await _events(shop, days),
        )

    @routes.post("/admin/{tenant}/overview")
    async def act(request: Request, tenant: str) -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        form = await sessions.form(request, staff)
        do, _, about = form.one("do").partition(":")
        letter = await letters.get(shop.id, about) if _ID.fullmatch(about) else None
        if letter is None:
            raise HTTPException(404, "There is no such message")
        await _done(shop, do, letter)
        return see(with_(f"/admin/{shop.id}/overview", done="retried" if do == "retry" else "dropped"))

    async def _done(shop: Tenant, do: str, letter: DeadLetter) -> None:
        if do == "retry":
            await letters.retry(letter, policy_for(shop, letter.message))
        elif do == "drop":
            await letters.drop(shop.id, [letter.id])
        else:
            raise HTTPException(400, "There is nothing of that name to do")

    async def _events(shop: Tenant, days: int) -> dict[str, Any]:
        """`total`, `important` (at least so) and `by_type` in the range, `bars` of its days, `before`: the total of as
        many days before it."""
        zone = ZoneInfo(shop.timezone)
        first = clock().astimezone(zone).date() - timedelta(days=days - 1)
        begin = datetime.combine(first, datetime.min.time(), zone)
        catalog, wanted = manager.catalog, Wanted(since=begin)
        counts = await catalog.counts(shop.id, "events", wanted)
        serious = Wanted(since=begin, importance=floor(Band.IMPORTANT))
        important = await catalog.counts(shop.id, "events", serious)
        before = await catalog.counts(shop.id, "events", Wanted(since=begin - timedelta(days=days), until=begin))
        found = await catalog.per_day(shop.id, Wanted(), zone)
        bars = [(begin + timedelta(days=n), found.get(first + timedelta(days=n), 0)) for n in range(days)]
        return {
            "total": counts.total,
            "important": important.total,
            "before": before.total,
            "by_type": counts.by["type"],
            "bars": bars,
        }

    return routes
