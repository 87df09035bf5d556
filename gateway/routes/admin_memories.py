"""`/memories/<tenant>/<tab>`: the lists, and what is done with what stands in them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import StreamingResponse
from redis.asyncio import Redis

from config.tenants import Tenant
from gateway.routes.admin_lists import (
    CHOICES,
    OF_A_TIME,
    OF_A_USER,
    SORTS,
    Asked,
    days,
    everything,
    named,
    names,
    shown,
    statistics,
)
from gateway.routes.admin_page import TABS, Pages, deed, ours, see, with_
from gateway.routes.admin_session import Form, Staff
from gateway.routes.knowledge import Forget
from gateway.routes.memory import exported
from gateway.undo import Undo
from memory.curation import tag
from memory.errors import Changed
from memory.facts import Priority
from memory.long_term.document import dump
from memory.memory_manager import MemoryManager
from processors.models import EventType

_LONGEST = 10_000  # characters of a fact or a rule
_KEPT = ("q", "type", "priority", "scope", "outcome", "importance", "user", "since", "until", "sort", "superseded")
_OWN = None  # instead of a user's id: what belongs to the tenant itself is found by its own


def router(
    pages: Pages, manager: MemoryManager, client: Redis, forget: Forget, clock: Callable[[], datetime]
) -> APIRouter:
    routes = APIRouter(route_class=pages.route_class())
    sessions, undo = pages.sessions, Undo(client)

    @routes.get("/memories/{tenant}/export")
    async def export_all(request: Request, tenant: str) -> Response:
        shop = sessions.tenant(await sessions.staff(request), tenant)
        return _download(exported(manager, shop.id, None, clock()), f"{shop.id}-memory.json")

    @routes.get("/memories/{tenant}/episode")
    async def episode(request: Request, tenant: str, ref: str = "") -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        user, episode_id = named(ref)
        found = await manager.curation.episode(shop.id, episode_id, user or _OWN)
        if found is None:
            raise HTTPException(404, "There is no such episode")
        called = await names(manager, shop.id, {user} if user else set())
        return pages.render(
            request, "episode.html", staff, shop, tab="episodes", one=found[1], user=found[0], names=called, ref=ref
        )

    @routes.get("/memories/{tenant}/{tab}/export")
    async def export_some(request: Request, tenant: str, tab: str) -> Response:
        shop = sessions.tenant(await sessions.staff(request), tenant)
        asked = Asked.of(_tab(tab), request.query_params)
        return _download(_as_json(manager, shop, asked), f"{shop.id}-{tab}.json")

    @routes.get("/memories/{tenant}/{tab}")
    async def listed(request: Request, tenant: str, tab: str) -> Response:
        staff = await sessions.staff(request)
        return await _list(request, staff, sessions.tenant(staff, tenant), _tab(tab))

    @routes.post("/memories/{tenant}/{tab}")
    async def act(request: Request, tenant: str, tab: str) -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        form = await sessions.form(request, staff)
        do, _, about = form.one("do").partition(":")
        back = ours(form.one("back"), f"/memories/{shop.id}/{_tab(tab)}")
        if do == "delete":
            return await _delete(request, staff, shop, tab, [about] if about else form.many("ref"), form, back)
        work = {
            ("facts", "pin"): _pin,
            ("facts", "unpin"): _pin,
            ("facts", "save"): _save,
            ("facts", "undo"): _undo,
            ("facts", "clear"): _clear,
            ("procedures", "on"): _switch,
            ("procedures", "off"): _switch,
            ("procedures", "save"): _save_procedure,
            ("procedures", "teach"): _teach,
            ("checkpoints", "roll"): _roll,
        }.get((tab, do))
        if work is None:
            raise HTTPException(400, "There is nothing of that name to do")
        return await work(request, staff, shop, do, about, form, back)

    async def _list(request: Request, staff: Staff, shop: Tenant, tab: str, **more: Any) -> Response:
        asked, cursor = Asked.of(tab, request.query_params), request.query_params.get("cursor", "")
        page = await shown(manager, shop, asked, cursor)
        stats: dict[str, Any] | None = None
        counted = request.query_params.get("stats") == "1"
        if counted and tab == "facts":
            stats = await statistics(manager, shop, clock())
        elif counted and tab == "events":
            stats = await days(manager, shop, asked, clock())
        number = request.query_params.get("p", "1")
        return pages.render(
            request,
            "list.html",
            staff,
            shop,
            tab=tab,
            asked=asked,
            page=page,
            names=await names(
                manager, shop.id, {one["user_id"] for one in page.items if one["user_id"] and tab != "users"}
            ),
            page_number=int(number) if number.isascii() and number.isdigit() and len(number) < 7 else 1,
            cursor=cursor,
            paging={name: value for name, value in request.query_params.items() if name in _KEPT and value},
            stats=stats,
            choices=CHOICES[tab],
            types=tuple(EventType),
            sorts=SORTS[tab],
            of_a_time=tab in OF_A_TIME,
            of_a_user=tab in OF_A_USER,
            editing=request.query_params.get("edit", ""),
            priorities=tuple(Priority),
            longest=_LONGEST,
            **more,
        )

    async def _delete(
        request: Request, staff: Staff, shop: Tenant, tab: str, refs: list[str], form: Form, back: str
    ) -> Response:
        if tab == "events":
            raise HTTPException(400, "Events go with their person")
        found = [named(ref) for ref in refs]
        if not found:
            return see(back)
        if form.one("sure") != "1":
            return pages.confirm(
                request, staff, shop, tab=tab, what=tab, do="delete", go="forget" if tab == "users" else "delete",
                action=f"/memories/{shop.id}/{tab}", back=back, refs=refs,
            )  # fmt: skip
        deed(request, "delete", sorted({user for user, _ in found}))
        count = 0
        if tab == "users":
            for user, _ in found:
                receipt = await forget(shop.id, user)
                count += any(isinstance(number, int) and number > 0 for number in receipt.values())
            return see(with_(back, done="forgotten", n=count))
        by_user: dict[str, set[str]] = {}
        for user, one in found:
            by_user.setdefault(user, set()).add(one)
        for user, ids in by_user.items():
            if tab == "facts":
                count += await manager.curation.delete_facts(shop.id, ids, user or _OWN)
            elif tab == "episodes":
                count += await manager.curation.delete_episodes(shop.id, ids, user or _OWN)
            elif tab == "procedures":
                count += await manager.curation.delete_procedures(shop.id, ids)
            else:
                count += await manager.talks.drop(shop.id, sorted(ids))
        return see(with_(back, done="deleted", n=count))

    async def _pin(
        request: Request, staff: Staff, shop: Tenant, do: str, about: str, form: Form, back: str
    ) -> Response:
        user, fact_id = named(about)
        deed(request, "change", [user])
        held = await manager.curation.mend(shop.id, fact_id, user or _OWN, pinned=do == "pin")
        if held is None:
            raise HTTPException(404, "There is no such memory")
        return see(with_(back, done="pinned" if do == "pin" else "unpinned"))

    async def _save(
        request: Request, staff: Staff, shop: Tenant, do: str, about: str, form: Form, back: str
    ) -> Response:
        user, fact_id = named(form.one("ref"))
        deed(request, "change", [user])
        before = await manager.curation.fact(shop.id, fact_id, user or _OWN)
        text = form.one("text").strip()
        if before is None or not text:
            raise HTTPException(404 if text else 422, "There is no such memory")
        if len(text) > _LONGEST:
            raise HTTPException(413, f"At most {_LONGEST} characters")
        priority = Priority(form.one("priority")) if form.one("priority") in tuple(Priority) else None
        seen = tag(before.fact)
        after = await manager.curation.mend(
            shop.id, fact_id, user or _OWN, text=text, priority=priority, expected=lambda known: known == seen
        )
        if after is None:
            raise HTTPException(404, "There is no such memory")
        token = await undo.keep(shop.id, form.one("ref"), user, before.fact, after.fact)
        return see(with_(back, done="saved", **({"undo": token} if token else {})))

    async def _undo(
        request: Request, staff: Staff, shop: Tenant, do: str, about: str, form: Form, back: str
    ) -> Response:
        kept = await undo.take(shop.id, about)
        if kept is None:
            return see(with_(back, done="undo_late"))
        (ref, before, became), done = kept, "undone"
        user, fact_id = named(ref)
        deed(request, "change", [user])
        try:
            held = await manager.curation.mend(
                shop.id, fact_id, user or _OWN, instead=before, expected=lambda known: known == became
            )
        except Changed:
            held = None
        return see(with_(back, done=done if held else "undo_late"))

    async def _clear(
        request: Request, staff: Staff, shop: Tenant, do: str, about: str, form: Form, back: str
    ) -> Response:
        typed = " ".join(form.one("name").split())
        if typed in (" ".join(shop.name.split()), shop.id):
            deed(request, "delete")
            count = await manager.curation.clear(shop.id)
            return see(with_(f"/memories/{shop.id}/facts", done="cleared", n=count))
        return pages.confirm(
            request, staff, shop, tab="facts", what="clear", do="clear", go="clear_go", back=back, name=shop.name,
            action=f"/memories/{shop.id}/facts", wrong="wrong_name" if form.one("sure") == "1" else "",
        )  # fmt: skip

    async def _switch(
        request: Request, staff: Staff, shop: Tenant, do: str, about: str, form: Form, back: str
    ) -> Response:
        if await manager.curation.mend_procedure(shop.id, named(about)[1], enabled=do == "on") is None:
            raise HTTPException(404, "There is no such procedure")
        return see(with_(back, done="switched"))

    async def _save_procedure(
        request: Request, staff: Staff, shop: Tenant, do: str, about: str, form: Form, back: str
    ) -> Response:
        content = form.one("text").strip()
        if not content or len(content) > _LONGEST:
            raise HTTPException(413 if content else 422, f"Up to {_LONGEST} characters")
        if await manager.curation.mend_procedure(shop.id, named(form.one("ref"))[1], content=content) is None:
            raise HTTPException(404, "There is no such procedure")
        return see(with_(back, done="saved"))

    async def _teach(
        request: Request, staff: Staff, shop: Tenant, do: str, about: str, form: Form, back: str
    ) -> Response:
        rule = form.one("rule").strip()[:_LONGEST]
        try:
            await manager.teach(shop.id, rule)
        except ValueError:
            return await _list(request, staff, shop, "procedures", rule=rule, no_rule=True)
        return see(with_(back, done="taught"))

    async def _roll(
        request: Request, staff: Staff, shop: Tenant, do: str, about: str, form: Form, back: str
    ) -> Response:
        ref = about or form.one("ref")
        found = await manager.talks.point(shop.id, named(ref)[1])
        if found is None:
            raise HTTPException(404, "There is no such checkpoint")
        if form.one("sure") != "1":
            return pages.confirm(
                request, staff, shop, tab="checkpoints", what="roll", do="roll", go="roll_go", back=back, refs=[ref],
                action=f"/memories/{shop.id}/checkpoints",
            )  # fmt: skip
        return see(with_(back, done="rolled", n=await manager.talks.roll_back(found[0])))

    return routes


async def _as_json(manager: MemoryManager, shop: Tenant, asked: Asked) -> AsyncIterator[bytes]:
    yield b'{"tenant_id":' + dump(shop.id) + b',"items":['
    comma = b""
    async for one in everything(manager, shop, asked):
        yield comma + dump(one)
        comma = b",\n"
    yield b"]}\n"


def _download(told: AsyncIterator[bytes], name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"}
    return StreamingResponse(told, media_type="application/json", headers=headers)


def _tab(tab: str) -> str:
    if tab not in TABS:
        raise HTTPException(404, "There is no such list")
    return tab
