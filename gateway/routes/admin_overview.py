"""`/admin/<tenant>/overview`: how a shop's chats go, what they cost, what nobody could answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, HTTPException, Request, Response
from redis.asyncio import Redis

from config.tenants import Tenant, TenantStatus
from gateway.board import Board
from gateway.dead_letters import DeadLetter, DeadLetters
from gateway.intake import policy_for
from gateway.routes.admin_page import Pages, picked, see, with_
from gateway.routes.admin_shop import USER
from gateway.tally import Day, days, together
from memory.memory_manager import MemoryManager
from processors.models import Band, EventType

RANGES = (7, 30, 90)  # days
_SHOWN = 50  # dead letters
_QUESTIONS = 10
_ID = re.compile(r"[0-9]{1,19}-[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Chart:
    """A table, drawn as a chart where scripts run. `rows` are a day and a number for each of the columns; `how` is
    bars, stacked or lines; `unit` says in what."""

    name: str
    columns: Sequence[str]  # names of texts
    rows: Sequence[tuple[date, Sequence[float | None]]]
    how: str
    unit: str = ""

    @property
    def empty(self) -> bool:
        return not any(value for _, values in self.rows for value in values)


def router(
    pages: Pages,
    manager: MemoryManager,
    client: Redis,
    letters: DeadLetters,
    board: Board,
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
        span = int(picked(request.query_params, "days", map(str, RANGES)) or 30)
        row = next((one for one in statuses() if one.id == shop.id), None)
        told = await described(row) if row is not None else {"channels": [], "llm": None}
        names = [one["name"] for one in told["channels"]]
        channel = picked(request.query_params, "channel", names)
        today = clock().astimezone(ZoneInfo(shop.timezone)).date()
        dates = [today - timedelta(days=n) for n in range(2 * span - 1, -1, -1)]
        found = await days(client, shop.id, dates, channel)
        now, before = found[span:], together(found[:span])
        whole = together(now)
        return pages.render(
            request,
            "overview.html",
            staff,
            shop,
            tab="overview",
            days=span,
            ranges=RANGES,
            channel=channel,
            channels=names,
            told=told,
            whole=whole,
            before=before,
            today=found[-1],
            waiting=sum(row.entry.needs for row in await board.rows(shop.id) if row.entry.customer.user_id != USER),
            charts=_charts(dates[span:], now, whole_shop=not channel),
            languages=whole.languages.most_common(6),
            questions=(await asyncio.to_thread(manager.unanswered.all, shop.id))[:_QUESTIONS],
            letters=await letters.list(shop.id, _SHOWN),
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
        path = f"/admin/{shop.id}/overview"
        if do == "drop" and form.one("sure") != "1":
            return pages.confirm(
                request, staff, shop, tab="overview", what="drop", do=form.one("do"), go="drop", action=path, back=path
            )
        await _done(shop, do, letter)
        return see(with_(path, done="retried" if do == "retry" else "dropped"))

    async def _done(shop: Tenant, do: str, letter: DeadLetter) -> None:
        if do == "retry":
            await letters.retry(letter, policy_for(shop, letter.message))
        elif do == "drop":
            await letters.drop(shop.id, [letter.id])
        else:
            raise HTTPException(400, "There is nothing of that name to do")

    return routes


def _charts(dates: Sequence[date], found: Sequence[Day], *, whole_shop: bool) -> list[Chart]:
    """What the model takes is counted for the whole shop alone."""

    def rows(values: Callable[[Day], Iterable[float | None]]) -> list[tuple[date, Sequence[float | None]]]:
        return [(at, tuple(values(day))) for at, day in zip(dates, found, strict=True)]

    kinds = [one.value for one in EventType]
    answered = ("c.messages", "c.by_model", "c.by_shop", "c.by_staff")
    charts = [
        Chart("messages", answered, rows(lambda d: (d.messages, d.by_model, d.by_shop, d.by_staff)), "lines"),
        Chart("latency", ("c.half", "c.most"), rows(lambda d: (d.within(0.5), d.within(0.9))), "lines", "s"),
        Chart("types", [f"type.{one}" for one in kinds], rows(lambda d: (d.types[one] for one in kinds)), "stacked"),
        Chart("bands", [f"band.{one}" for one in Band], rows(lambda d: (d.bands[one] for one in Band)), "stacked"),
    ]
    if whole_shop:
        charts += [
            Chart("tokens", ("c.tokens",), rows(lambda d: (d.tokens,)), "bars"),
            Chart("dollars", ("c.dollars",), rows(lambda d: (round(d.dollars, 4),)), "bars", "$"),
        ]
    return charts
