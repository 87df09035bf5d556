"""Health, metrics and `/api/v1/tenants`; what else the API has comes as routers."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from config.tenants import TenantStatus
from gateway import spending
from gateway.channel_states import ChannelState
from gateway.ledger import Month
from gateway.metrics import Metrics
from gateway.routes import api_page
from gateway.routes.auth import Keys
from gateway.routes.known import check_known
from gateway.routes.lists import Cursor, Limit, cursor_of, place_of
from gateway.routes.problems import handle_problems, problems
from processors.models import iso


def build(
    *,
    keys: Keys,
    metrics: Metrics,
    ready: Callable[[], Awaitable[dict[str, Any]]],
    statuses: Callable[[], list[TenantStatus]],
    states: Callable[[Iterable[tuple[str, str]]], Awaitable[dict[tuple[str, str], ChannelState]]],
    months: Callable[[Iterable[str]], Awaitable[dict[tuple[str, str], Month]]],
    spent: Callable[[Iterable[str]], Awaitable[dict[str, spending.Month]]],
    measure: Callable[[], Awaitable[None]],
    version: str,
    routers: Sequence[APIRouter] = (),
) -> FastAPI:
    """`ready` gives `{"status": "ok" | "degraded" | "down", …}`; `routers` raise HTTPException like everything here."""
    api = FastAPI(
        title="chat-chat",
        version=version,
        redirect_slashes=False,
        responses=problems(403, 429),
        docs_url=None,  # those load scripts from elsewhere
        redoc_url=None,
    )

    @api.get("/healthz", summary="Alive")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @api.get("/readyz", summary="Messages can be taken", responses={503: {"description": "They can't"}})
    async def readyz() -> JSONResponse:
        state = await ready()
        return JSONResponse(state, 503 if state["status"] == "down" else 200)

    @api.get(
        "/metrics",
        summary="Prometheus",
        response_class=PlainTextResponse,
        responses=problems(401, 404) | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def page(request: Request) -> Response:
        if not _loopback(request) and keys.opens(request) is not None:
            raise HTTPException(404, "Not found")
        await measure()
        return Response(metrics.page(), media_type="text/plain; version=0.0.4")

    @api.get(
        "/api/v1/tenants",
        summary="Each tenant's file, state, channels and last error",
        responses=problems(401, 404, 422),
    )
    async def tenants(
        request: Request,
        limit: Limit = 50,
        cursor: Cursor = "",
        tenant: str | None = None,
        own: str | None = Depends(keys.opens),  # asked first: a stranger is told nothing of the rest
    ) -> dict[str, Any]:
        """All that the key opens; with `tenant` that one alone."""
        check_known(request)
        only = own if tenant is None else tenant
        rows = sorted((row for row in statuses() if only in (None, row.id)), key=lambda row: row.id)
        if tenant is not None and (not rows or own not in (None, tenant)):
            raise HTTPException(404, "There is no such tenant")
        place = place_of(cursor, 1)
        page_rows = [row for row in rows if place is None or row.id > str(place[0])][: limit + 1]
        more = len(page_rows) > limit
        shown = page_rows[:limit]
        return {
            "items": await described(shown, states, months, spent),
            "next_cursor": cursor_of(shown[-1].id) if more else None,
            "total": len(rows),
        }

    for router in routers:
        api.include_router(router)
    api_page.add_to(api)
    handle_problems(api)
    return api


States = Callable[[Iterable[tuple[str, str]]], Awaitable[dict[tuple[str, str], ChannelState]]]
Months = Callable[[Iterable[str]], Awaitable[dict[tuple[str, str], Month]]]
Spent = Callable[[Iterable[str]], Awaitable[dict[str, spending.Month]]]


async def described(rows: Sequence[TenantStatus], states: States, months: Months, spent: Spent) -> list[dict[str, Any]]:
    """Each tenant's file, state, channels and last error, as people may see it."""
    troubles = await states((row.id, channel) for row in rows for channel in row.channels)
    of_channels = await months(row.id for row in rows)
    of_models = await spent(row.id for row in rows)
    return [_public(row, troubles, of_channels, of_models.get(row.id)) for row in rows]


def _public(
    row: TenantStatus,
    troubles: Mapping[tuple[str, str], ChannelState],
    months: Mapping[tuple[str, str], Month],
    llm: spending.Month | None,
) -> dict[str, Any]:
    channels = []
    for name, platform in row.channels.items():
        trouble = troubles.get((row.id, name))
        channels.append(
            {
                "name": name,
                "platform": platform,
                "state": trouble.trouble.value if trouble else "ok",
                "detail": trouble.why if trouble else None,
                "since": iso(datetime.fromtimestamp(trouble.since, UTC)) if trouble else None,
                "month": asdict(months[row.id, name]) if (row.id, name) in months else None,
            }
        )
    return {
        "id": row.id,
        "file": row.file.name,
        "state": row.state,
        "channels": channels,
        "llm": {**asdict(llm), "a_message": llm.a_message} if llm else None,
        "last_error": str(row.errors[0]) if row.errors else None,
        "errors": [str(mistake) for mistake in row.errors],
    }


def _loopback(request: Request) -> bool:
    """A request through a proxy on this machine comes from loopback too, so a forwarded one does not count."""
    if request.client is None or "x-forwarded-for" in request.headers or "forwarded" in request.headers:
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False
