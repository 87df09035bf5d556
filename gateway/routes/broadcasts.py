"""`/api/v1/broadcasts`: a message to the people that a filter means, and how far it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request, Response
from pydantic import BaseModel, Field
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.broadcasts.desk import Desk, NoSuch, Preview, Refused, Report
from gateway.broadcasts.draft import Draft
from gateway.broadcasts.store import Broadcast, BroadcastsUnavailable
from gateway.routes.auth import Keys
from gateway.routes.lists import Cursor, Limit, Page, cursor_of, place_of
from gateway.routes.problems import problems

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$"
Name = Annotated[str, Path(pattern=NAME)]
Confirm = Annotated[bool, Query(description="also beyond what is left of LINE's quota")]


class CostOut(BaseModel):
    """LINE pushes on one channel. `limit` and `left` are null where LINE sets no limit, or can't be asked (`known` is
    false). What other broadcasts have still to send is not `left`."""

    channel: str
    pushes: int
    known: bool
    limit: int | None
    left: int | None


class SampleOut(BaseModel):
    user: str
    channel: str
    text: str


class PreviewOut(BaseModel):
    """`left_out`: who fits as well and would not get it, by reason. `own_left`: what is left of the shop's own limit of
    pushes, null for none. `refused`: why it can't be sent; `confirm`: what is to be confirmed first; "" for nothing.
    `quiet`: it would wait for the end of the quiet hours."""

    people: int
    by_channel: dict[str, int]
    left_out: dict[str, int]
    line: list[CostOut]
    own_left: int | None
    samples: list[SampleOut]
    quiet: bool
    refused: str
    confirm: str


class BroadcastOut(BaseModel):
    """`kind`: `once`, or `follow_up` for a rule of the tenant's file. `state`: running, paused, done or cancelled;
    `why`: why it stands still."""

    id: str
    kind: str
    state: str
    why: str
    created_at: str
    ended_at: str | None


class ReportOut(BroadcastOut):
    """With what became of its recipients: `left_out` and `failed` by reason."""

    people: int
    waiting: int
    under_way: int
    sent: int
    left_out: dict[str, int]
    failed: dict[str, int]


class RecipientOut(BaseModel):
    user: str
    channel: str
    fate: str
    why: str


class Sending(Draft):
    id: str | None = Field(default=None, pattern=NAME)
    """A name of your own: sent again under the same one, it is sent once."""


def router(keys: Keys, desk: Desk) -> APIRouter:
    routes = APIRouter(
        prefix="/api/v1/broadcasts", tags=["broadcasts"], responses=problems(401, 403, 404, 409, 422, 503)
    )

    @routes.post("/preview", summary="Who would get it, what it costs, and how it reads; nothing is sent")
    async def preview(draft: Draft, tenant: Tenant = Depends(keys.tenant)) -> PreviewOut:
        async with _faults():
            return _previewed(await desk.preview(tenant, draft))

    @routes.post("", summary="Send it", status_code=201, responses={200: {"description": "It was sent before"}})
    async def send(
        draft: Sending,
        request: Request,
        response: Response,
        confirm: Confirm = False,
        tenant: Tenant = Depends(keys.tenant),
    ) -> ReportOut:
        """409 where it costs more than is left: `preview` tells. It is taken up at once and sent by a worker."""
        plain = Draft(to=draft.to, message=draft.message, buttons=draft.buttons)
        async with _faults():
            report, new = await desk.send(tenant, plain, by=keys.owner(request), name=draft.id, confirmed=confirm)
        response.status_code = 201 if new else 200
        return _reported(report)

    @routes.get("", summary="Broadcasts and follow-ups, the newest first")
    async def listed(
        limit: Limit = 50, cursor: Cursor = "", tenant: Tenant = Depends(keys.tenant)
    ) -> Page[BroadcastOut]:
        place = place_of(cursor, 2)
        if place is not None and not all(isinstance(part, str) for part in place):
            raise HTTPException(422, "cursor is not one that this list gave out")
        async with _faults():
            found = await desk.all(tenant)
        left = [one for one in found if place is None or [one.created, one.id] < place]
        shown = left[:limit]
        return Page(
            items=[BroadcastOut.model_validate(_told(one)) for one in shown],
            next_cursor=cursor_of(shown[-1].created, shown[-1].id) if len(left) > limit else None,
            total=len(found),
        )

    @routes.get("/{name}", summary="One of them, and how far it is")
    async def shown(name: Name, tenant: Tenant = Depends(keys.tenant)) -> ReportOut:
        async with _faults():
            return _reported(await desk.show(tenant, name))

    @routes.get("/{name}/recipients", summary="Who gets it, and what became of each")
    async def recipients(
        name: Name, limit: Limit = 50, cursor: Cursor = "", tenant: Tenant = Depends(keys.tenant)
    ) -> Page[RecipientOut]:
        place = place_of(cursor, 1)
        if place is not None and not isinstance(place[0], str):
            raise HTTPException(422, "cursor is not one that this list gave out")
        async with _faults():
            report = await desk.show(tenant, name)
            found = await desk.recipients(tenant, name, place[0] if place else "", limit + 1)
        people = [
            RecipientOut(user=one.user, channel=one.customer.channel, fate=one.fate, why=one.why)
            for one in found[:limit]
        ]
        more = len(found) > limit
        return Page(items=people, next_cursor=cursor_of(people[-1].user) if more else None, total=report.people)

    @routes.post("/{name}/pause", summary="Send no more of it for now")
    async def pause(name: Name, request: Request, tenant: Tenant = Depends(keys.tenant)) -> ReportOut:
        async with _faults():
            return _reported(await desk.pause(tenant, name, keys.owner(request)))

    @routes.post("/{name}/resume", summary="Go on with it")
    async def resume(name: Name, tenant: Tenant = Depends(keys.tenant)) -> ReportOut:
        async with _faults():
            return _reported(await desk.resume(tenant, name))

    @routes.post("/{name}/cancel", summary="Send no more of it for good")
    async def cancel(name: Name, request: Request, tenant: Tenant = Depends(keys.tenant)) -> ReportOut:
        async with _faults():
            return _reported(await desk.cancel(tenant, name, keys.owner(request)))

    return routes


def _told(one: Broadcast) -> dict[str, Any]:
    return {
        **{name: getattr(one, name) for name in ("id", "kind", "state", "why")},
        "created_at": one.created,
        "ended_at": one.ended or None,
    }


def _reported(report: Report) -> ReportOut:
    counts = {name: getattr(report, name) for name in ("people", "waiting", "under_way", "sent", "left_out", "failed")}
    return ReportOut.model_validate(_told(report.broadcast) | counts)


def _previewed(seen: Preview) -> PreviewOut:
    line = [CostOut.model_validate(one, from_attributes=True) for one in seen.costs]
    samples = [SampleOut.model_validate(one, from_attributes=True) for one in seen.samples]
    return PreviewOut(
        people=seen.people,
        by_channel=dict(seen.by_channel),
        left_out=dict(seen.left_out),
        line=line,
        own_left=seen.own_left,
        samples=samples,
        quiet=seen.quiet,
        refused=seen.refused,
        confirm=seen.confirm,
    )


@asynccontextmanager
async def _faults() -> AsyncIterator[None]:
    try:
        yield
    except NoSuch as error:
        raise HTTPException(404, "There is no such broadcast") from error
    except Refused as error:
        raise HTTPException(409, str(error)) from error
    except BroadcastsUnavailable as error:
        raise HTTPException(503, "Broadcasts can't be read now", headers={"Retry-After": "5"}) from error
    except (RedisError, OSError) as error:
        raise HTTPException(503, "Redis can't be reached", headers={"Retry-After": "5"}) from error
