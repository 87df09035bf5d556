"""Visitors of the web chat: a signed token says who somebody is, for one tenant and for a while."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import orjson
from fastapi import APIRouter, HTTPException, Request
from pydantic import BaseModel

from config.tenants import Tenant, WebChannel
from gateway.routes.problems import problems

GOOD_FOR = 24 * 3600  # seconds in which a token opens the chat
RENEWED_WITHIN = 180 * 24 * 3600  # seconds in which it can be exchanged for a new one of the same visitor
NEW_A_MINUTE = 30  # visitors from one address
_ADDRESSES = 10_000


@dataclass(frozen=True, slots=True)
class Visitor:
    tenant: str
    id: str
    issued_at: float  # seconds since 1970


class Visitors:
    """Signs with a key of its own for each tenant, made from `secret`: another secret makes everybody a new visitor."""

    def __init__(self, secret: str, clock: Callable[[], datetime]) -> None:
        self._secret = secret.encode()
        self._clock = clock
        self._made: OrderedDict[str, tuple[int, int]] = OrderedDict()  # address → minute, how many

    def token(self, tenant: str, visitor: str | None = None) -> str:
        """For a new visitor, or the same one again."""
        claims = {"t": tenant, "v": visitor or secrets.token_urlsafe(18), "at": int(self._clock().timestamp())}
        body = base64.urlsafe_b64encode(orjson.dumps(claims)).rstrip(b"=").decode()
        return f"v1.{body}.{self._signature(tenant, body)}"

    def read(self, token: str, within: float = GOOD_FOR) -> Visitor | None:
        """None for what we never signed, and what was signed longer ago."""
        version, _, rest = token.partition(".")
        body, _, signature = rest.partition(".")
        if version != "v1" or not body.isascii() or not signature.isascii():
            return None
        try:
            claims: Any = orjson.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
            visitor = Visitor(str(claims["t"]), str(claims["v"]), float(claims["at"]))
        except (ValueError, KeyError, TypeError):
            return None
        if not hmac.compare_digest(signature, self._signature(visitor.tenant, body)):
            return None
        return visitor if self._clock().timestamp() - visitor.issued_at <= within else None

    def may_come(self, address: str) -> bool:
        """Whether one more new visitor may come from there this minute."""
        minute = int(self._clock().timestamp() // 60)
        before, count = self._made.pop(address, (minute, 0))
        count = count + 1 if before == minute else 1
        self._made[address] = (minute, count)
        while len(self._made) > _ADDRESSES:
            self._made.popitem(last=False)
        return count <= NEW_A_MINUTE

    def _signature(self, tenant: str, body: str) -> str:
        key = hmac.digest(self._secret, b"visitors of " + tenant.encode(), hashlib.sha256)
        signed = hmac.digest(key, body.encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(signed).rstrip(b"=").decode()


class VisitorToken(BaseModel):
    """`expires_in` seconds from now; until much later it can be exchanged for a new one."""

    token: str
    expires_in: int
    tenant: str
    name: str


def web_channel(tenant: Tenant | None) -> WebChannel | None:
    if tenant is None:
        return None
    return next((one for one in tenant.channels.values() if isinstance(one, WebChannel)), None)


def router(visitors: Visitors, tenant_of: Callable[[str], Tenant | None], public_url: str | None) -> APIRouter:
    routes = APIRouter(tags=["Web chat"])

    @routes.post(
        "/web/{tenant}/visitor",
        summary="A token for a visitor of the web chat",
        response_model=VisitorToken,
        responses=problems(403, 404, 422, 429),
    )
    async def visitor(tenant: str, request: Request) -> VisitorToken:
        """With `Authorization: Bearer <an earlier token>` the same visitor's next one, up to 180 days later; without, a
        new visitor's."""
        found = tenant_of(tenant)
        channel = web_channel(found)
        if found is None or channel is None:
            raise HTTPException(404, "There is no web chat of that name")
        check_origin(request, channel, public_url)
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        before = visitors.read(token.strip(), RENEWED_WITHIN) if scheme.lower() == "bearer" else None
        known = before.id if before is not None and before.tenant == tenant else None
        if known is None and not visitors.may_come(request.client.host if request.client else ""):
            raise HTTPException(429, "Too many new visitors from this address", {"Retry-After": "60"})
        made = visitors.token(tenant, known)
        return VisitorToken(token=made, expires_in=GOOD_FOR, tenant=tenant, name=found.name)

    return routes


def check_origin(request: Request, channel: WebChannel, public_url: str | None) -> None:
    """A browser says from which site it asks: our own, or one that the shop allows. Raises 403."""
    origin = request.headers.get("origin")
    if origin is None or origin in channel.allowed_origins:
        return
    own = {request.headers.get("host", ""), urlsplit(public_url or "").netloc}
    if urlsplit(origin).netloc not in own:
        raise HTTPException(403, "This site may not show this shop's chat")
