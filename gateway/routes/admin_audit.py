"""`/admin/<tenant>/audit`: who read, changed, exported or deleted whose data."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import get_args
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request, Response

from config.tenants import Tenant
from gateway.audit import AuditLog, Deed, Entry, Place
from gateway.key_ring import KeyRing
from gateway.routes.admin_lists import A_PAGE, day
from gateway.routes.admin_page import Pages, picked
from gateway.routes.audit import going
from gateway.routes.lists import cursor_of

DEEDS: tuple[Deed, ...] = get_args(Deed)
_LOOKED_AT = 20_000  # lines of one look; then "next" goes on from there
_FILTERS = ("did", "who", "user", "whose", "since", "until")


def router(pages: Pages, audit: AuditLog, ring: KeyRing) -> APIRouter:
    routes = APIRouter(route_class=pages.route_class())
    sessions = pages.sessions

    @routes.get("/admin/{tenant}/audit")
    async def listed(request: Request, tenant: str) -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        given = request.query_params
        asked = {name: given.get(name, "").strip()[:512] for name in _FILTERS}
        asked |= {"did": picked(given, "did", DEEDS), "since": day(asked["since"]), "until": day(asked["until"])}
        cursor = given.get("cursor", "")
        names = {f"key:{one.hash[:24]}": one.name for one in ring.of(shop.id)}
        items, following = await asyncio.to_thread(_page, audit, shop, asked, names, going(cursor))
        return pages.render(
            request, "audit.html", staff, shop, tab="audit", items=items, asked=asked, deeds=DEEDS, cursor=cursor,
            names=names, next_cursor=cursor_of(*following) if following else None,
            paging={name: value for name, value in asked.items() if value}, filtered=sum(map(bool, asked.values())),
        )  # fmt: skip

    return routes


def _page(
    audit: AuditLog, shop: Tenant, asked: dict[str, str], names: dict[str, str], before: Place | None
) -> tuple[list[Entry], Place | None]:
    """Blocking. Where nothing fits for long the page is short, and the next one goes on."""
    zone = ZoneInfo(shop.timezone)
    since = datetime.fromisoformat(asked["since"]).replace(tzinfo=zone) if asked["since"] else None
    until = datetime.fromisoformat(asked["until"]).replace(tzinfo=zone) + timedelta(days=1) if asked["until"] else None
    who = asked["who"].casefold()
    shown: list[Entry] = []
    last: Place | None = None
    for looked, (place, entry) in enumerate(audit.placed(shop.id, asked["user"] or None, since, before)):
        if len(shown) == A_PAGE or looked == _LOOKED_AT:
            return shown, last
        last = place
        if asked["did"] not in ("", entry.did) or asked["whose"] not in ("", entry.whose):
            continue
        if who in f"{entry.who} {names.get(entry.who, '')}".casefold() and (
            until is None or datetime.fromisoformat(entry.at) < until
        ):
            shown.append(entry)
    return shown, None
