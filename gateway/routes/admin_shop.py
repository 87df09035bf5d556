"""`/admin/<tenant>/…`: how a tenant stands, and its keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, HTTPException, Request, Response

from config.tenants import Tenant, TenantStatus
from gateway.chat import Unheard
from gateway.key_ring import KeyRing
from gateway.routes.admin_page import Pages, see, with_
from gateway.routes.admin_session import Staff
from gateway.routes.knowledge import Forget
from gateway.routes.visitors import web_channel
from memory.keys import ConversationRef
from memory.memory_manager import MemoryManager

if TYPE_CHECKING:
    from gateway.trying import Trying

USER = "web:tryout"  # who tries the bot
_WORDS, _LINES = 2000, 12


class NoAnswer(Exception):
    """None came in time."""


def router(
    pages: Pages,
    ring: KeyRing,
    statuses: Callable[[], list[TenantStatus]],
    described: Callable[[TenantStatus], Awaitable[dict[str, Any]]],
    manager: MemoryManager,
    forget: Forget,
    trying: Callable[[], Trying],
    clock: Callable[[], datetime],
) -> APIRouter:
    """`trying` makes what a turn is tried with when that is first asked for: it loads what answering needs."""
    routes = APIRouter(route_class=pages.route_class())
    sessions = pages.sessions

    @routes.get("/admin/{tenant}/keys")
    async def keys(request: Request, tenant: str) -> Response:
        staff = await sessions.staff(request)
        return _keys(request, staff, tenant, "")

    @routes.post("/admin/{tenant}/keys")
    async def change(request: Request, tenant: str) -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        form = await sessions.form(request, staff)
        do, _, about = form.one("do").partition(":")
        if do == "new":
            try:
                _, key = await asyncio.to_thread(ring.make, shop.id, form.one("name"), clock())
            except ValueError as error:
                raise HTTPException(422, str(error)) from None
            return _keys(request, staff, tenant, key)
        if do != "revoke":
            raise HTTPException(400, "There is nothing of that name to do")
        if form.one("sure") != "1":
            where = f"/admin/{shop.id}/keys"
            return pages.confirm(
                request, staff, shop, tab="keys", what="revoke", do=f"revoke:{about}", go="revoke", action=where,
                back=where,
            )  # fmt: skip
        if not await asyncio.to_thread(ring.revoke, shop.id, about):
            raise HTTPException(404, "There is no such key")
        return see(with_(f"/admin/{shop.id}/keys", done="revoked"))

    def _keys(request: Request, staff: Staff, tenant: str, made: str) -> Response:
        shop = sessions.tenant(staff, tenant)
        return pages.render(
            request, "keys.html", staff, shop, tab="keys", listed=ring.of(shop.id), in_file=len(shop.api_keys),
            made=made,
        )  # fmt: skip

    @routes.get("/admin/{tenant}/status")
    async def status(request: Request, tenant: str) -> Response:
        staff = await sessions.staff(request)
        return await _status(request, staff, sessions.tenant(staff, tenant))

    @routes.post("/admin/{tenant}/status")
    async def try_it(request: Request, tenant: str) -> Response:
        """One turn of the test customer's, or their memory forgotten, to begin anew."""
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        form = await sessions.form(request, staff)
        if form.one("do") == "anew":
            await forget(shop.id, USER)
            return see(with_(f"/admin/{shop.id}/status", done="anew"))
        said = form.one("say").strip()[:_WORDS]
        if not said:
            raise HTTPException(422, "There is nothing to say")
        try:
            tried = await trying().turn(shop, staff.key, said)
        except NoAnswer:
            return await _status(request, staff, shop, no_answer=True)
        except Unheard:
            raise HTTPException(403, "The shop does not hear the test customer") from None
        return await _status(request, staff, shop, tried=tried)

    async def _status(request: Request, staff: Staff, shop: Tenant, **more: Any) -> Response:
        row = next((one for one in statuses() if one.id == shop.id), None)
        if row is None:
            raise HTTPException(404, "There is no such tenant")
        lines = await manager.transcripts.tail(ConversationRef(shop.id, USER), _LINES)
        return pages.render(
            request, "status.html", staff, shop, tab="tenant", told=await described(row), mistakes=row.errors,
            web=web_channel(shop) is not None, longest=_WORDS, lines=[one for one in lines if one["message"]],
            **({"tried": None, "no_answer": False} | more),
        )  # fmt: skip

    return routes
