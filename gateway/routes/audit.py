"""What the audit log hears of over HTTP, and `/api/v1/audit`, which gives it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

import orjson
from fastapi import APIRouter, Depends, HTTPException
from pydantic import BaseModel

from config.tenants import Tenant
from gateway.audit import DEED, AuditLog, Deed, Place
from gateway.routes.admin_session import COOKIE
from gateway.routes.auth import ADMIN, ADMIN_OPENS, Keys, name_of
from gateway.routes.filters import Since, User, utc
from gateway.routes.lists import Cursor, Limit, cursor_of, place_of
from gateway.routes.problems import problems

Scope = MutableMapping[str, Any]
_PEOPLES = (
    "/api/v1/",
    "/api/memories",
    "/memories/",
    "/admin/{tenant}/talk",
    "/admin/{tenant}/teach",
    "/admin/{tenant}/corr",
)
_NOBODYS = ("/api/v1/tenants", "/api/v1/audit")


class Audited(BaseModel):
    at: str
    who: str
    did: str
    whose: str
    by: str
    status: int


class AuditedPage(BaseModel):
    items: list[Audited]
    next_cursor: str | None = None
    total: int


def router(keys: Keys, audit: AuditLog) -> APIRouter:
    routes = APIRouter(prefix="/api/v1", tags=["memory"], responses=problems(401, 404, 422, 503))

    @routes.get("/audit", summary="Who read, changed, exported or deleted whose data, the newest first")
    async def listed(
        limit: Limit = 50,
        cursor: Cursor = "",
        user: User = None,
        since: Since = None,
        tenant: Tenant = Depends(keys.tenant),
    ) -> AuditedPage:
        """`whose` is no id: `user` finds a person's lines by the id that you know."""
        before = going(cursor)
        try:
            found = await asyncio.to_thread(lambda: list(audit.placed(tenant.id, user, utc(since))))
        except OSError:
            raise HTTPException(503, "The audit log can't be read now") from None
        rest = [one for one in found if before is None or one[0] < before]
        items = [Audited(**asdict(entry)) for _, entry in rest[:limit]]
        following = cursor_of(*rest[limit - 1][0]) if len(rest) > limit else None
        return AuditedPage(items=items, next_cursor=following, total=len(found))

    return routes


def going(cursor: str) -> Place | None:
    """Raises HTTPException 422."""
    place = place_of(cursor, 2)
    if place is None:
        return None
    if not isinstance(place[0], str) or type(place[1]) is not int:
        raise HTTPException(422, "cursor is not one that this list gave out")
    return place[0], place[1]


class Auditing:
    """Around the application: notes each request to people's data once it was answered."""

    def __init__(self, application: Any, keys: Keys, audit: AuditLog, clock: Callable[[], datetime]) -> None:
        self._application = application
        self._keys = keys
        self._audit = audit
        self._clock = clock

    @property
    def routes(self) -> Any:
        return self._application.routes

    async def __call__(
        self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._application(scope, receive, send)
            return
        status = 0

        async def heard(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = 401 if _sent_away(message) else message["status"]
            elif message["type"] == "websocket.accept":
                status = 101
            await send(message)

        try:
            await self._application(scope, receive, heard)
        finally:
            if 0 < status < 400:
                await self._note(scope, status)

    async def _note(self, scope: Scope, status: int) -> None:
        path = _template(scope)
        if not path.startswith(_PEOPLES) or path.startswith(_NOBODYS):
            return
        asked = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        who, opens = self._who(scope)
        tenant = (scope.get("path_params") or {}).get("tenant") or (asked.get("tenant") or [opens])[0]
        if not who or not isinstance(tenant, str) or tenant == ADMIN_OPENS:
            return
        did, users = scope.get(DEED) or (_did(scope.get("method", "GET"), path), ())
        by = f"{scope.get('method', 'WS')} {path}"
        for user in users or [(asked.get("user") or [None])[0]]:
            await asyncio.to_thread(self._audit.note, tenant, self._clock(), who, did, by, user=user, status=status)

    def _who(self, scope: Scope) -> tuple[str, str]:
        """By its name, and what it opens: the key that was sent, or the one behind a signed-in page."""
        headers = dict(scope.get("headers") or ())
        scheme, _, key = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() == "bearer" and (whose := self._keys.whose(key.strip())) is not None:
            return (ADMIN if whose == ADMIN_OPENS else name_of(key.strip())), whose
        for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
            name, _, value = part.strip().partition("=")
            if name == COOKIE and value.count(".") == 2:  # it was good: the page was given
                with suppress(ValueError, AttributeError):
                    claims = orjson.loads(base64.urlsafe_b64decode(value.split(".")[1] + "=="))
                    return str(claims.get("k") or ""), str(claims.get("t") or ADMIN_OPENS)
        return "", ""


def _sent_away(message: Any) -> bool:
    """Whether somebody is to sign in first."""
    where = next((value for name, value in message.get("headers") or () if name.lower() == b"location"), b"")
    return bool(where.partition(b"?")[0] == b"/admin")


def _template(scope: Scope) -> str:
    """The route's path with its parts unnamed, so that no id gets into the log."""
    path = getattr(scope.get("route"), "path", "") or scope.get("path", "")
    given = scope.get("path_params") or {}
    for name, value in given.items():
        path = path.replace(f"/{value}", f"/{{{name}}}") if isinstance(value, str) and value else path
    return path


def _did(method: str, path: str) -> Deed:
    if path.endswith("/export"):
        return "export"
    if method == "DELETE" or path.endswith("batch-delete"):
        return "delete"
    return "read" if method in ("GET", "HEAD", "WS") else "change"
