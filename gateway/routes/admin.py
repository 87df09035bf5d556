"""The admin page: signing in, the tenant's memory and people, its state and keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, HTTPException, Request, Response
from redis.asyncio import Redis
from starlette.background import BackgroundTask

from config.tenants import TenantStatus
from gateway.audit import AuditLog
from gateway.dead_letters import DeadLetters
from gateway.key_ring import KeyRing
from gateway.routes import (
    admin_audit,
    admin_memories,
    admin_overview,
    admin_person,
    admin_shop,
    admin_talks,
    admin_teach,
)
from gateway.routes.admin_page import Pages, ours, see
from gateway.routes.admin_session import Sessions, SignedOut
from gateway.routes.auth import Keys
from gateway.routes.knowledge import Forget
from gateway.taught import Taught
from memory.memory_manager import MemoryManager

if TYPE_CHECKING:
    from gateway.trying import Trying


def router(
    *,
    admin_key: str,
    keys: Keys,
    ring: KeyRing,
    manager: MemoryManager,
    client: Redis,
    forget: Forget,
    letters: DeadLetters,
    person: admin_person.Parts,
    talks: admin_talks.Parts,
    taught: Taught,
    trying: Callable[[], Trying],
    statuses: Callable[[], list[TenantStatus]],
    described: Callable[[TenantStatus], Awaitable[dict[str, Any]]],
    public_url: str | None,
    clock: Callable[[], datetime],
) -> APIRouter:
    """`described` tells of a tenant's channels and spending as `/api/v1/tenants` does."""
    sessions = Sessions(admin_key, keys, client, public_url, clock)
    pages = Pages(sessions, clock)
    routes = APIRouter(include_in_schema=False, route_class=pages.route_class())

    @routes.get("/admin")
    async def entrance(request: Request, back: str = "") -> Response:
        try:
            await sessions.staff(request)
        except SignedOut:
            shown = pages.render(request, "sign_in.html", back=ours(back, ""), wrong="", wait=0)
            shown.background = BackgroundTask(pages.warm)  # while the key is typed
            return shown
        return see(ours(back, "/memories"))

    @routes.post("/admin/sign-in")
    async def sign_in(request: Request) -> Response:
        form = await sessions.form(request, None)
        back = ours(form.one("back"), "")
        found = await sessions.sign_in(request, form.one("key"))
        if found is None:
            return pages.render(request, "sign_in.html", status=401, back=back, wrong="wrong_key", wait=0)
        if isinstance(found, float):
            seconds = int(found) + 1
            answer = pages.render(request, "sign_in.html", status=429, back=back, wrong="wait", wait=seconds)
            answer.headers["Retry-After"] = str(seconds)
            return answer
        entered = see(back or "/memories")
        sessions.keep(request, entered, found)
        return entered

    @routes.post("/admin/sign-out")
    async def sign_out(request: Request) -> Response:
        staff = await sessions.staff(request)
        await sessions.form(request, staff)
        left = see("/admin")
        await sessions.sign_out(request, left, staff)
        return left

    @routes.get("/memories")
    async def choose(request: Request) -> Response:
        staff = await sessions.staff(request)
        shops = sessions.tenants(staff)
        broken = [one for one in statuses() if one.errors] if staff.tenant is None else []
        if len(shops) == 1 and not broken:
            return see(f"/memories/{shops[0].id}/facts")
        return pages.render(request, "choose.html", staff, shops=shops, broken=broken)

    @routes.get("/memories/{tenant}")
    async def first(request: Request, tenant: str) -> Response:
        staff = await sessions.staff(request)
        return see(f"/memories/{sessions.tenant(staff, tenant).id}/facts")

    routes.include_router(admin_person.router(pages, manager, person, forget, clock))
    routes.include_router(admin_talks.router(pages, manager, talks, letters, statuses, described, clock))
    routes.include_router(admin_teach.router(pages, manager, taught, person.settings, client, clock))
    routes.include_router(admin_audit.router(pages, AuditLog(person.settings.data_dir), ring))
    overview = admin_overview.router(pages, manager, client, letters, talks.board, statuses, described, clock)
    routes.include_router(overview)
    routes.include_router(admin_shop.router(pages, ring, statuses, described, manager, forget, trying, clock))
    routes.include_router(admin_memories.router(pages, manager, client, forget, clock))  # it takes any tab

    @routes.get("/admin/{tenant}")
    @routes.get("/admin/{tenant}/{rest:path}")
    @routes.get("/memories/{tenant}/{rest:path}")
    async def nothing(request: Request) -> Response:
        await sessions.staff(request)
        raise HTTPException(404, "There is no such page")

    return routes
