"""Who is signed in to the admin page: a signed cookie, a token in each form, and patience with wrong keys."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
from fastapi import HTTPException, Request, Response
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.routes.auth import ADMIN, ADMIN_OPENS, Keys, name_of
from gateway.routes.bodies import read
from memory import keys

log = logging.getLogger(__name__)

COOKIE = "chat_chat_staff"
GOOD_FOR = 12 * 3600  # seconds
FREE_TRIES = 5  # wrong keys from one address before the next has to wait
_REMEMBERED = 900  # seconds without a wrong key until an address begins anew
_LONGEST_WAIT = 300  # seconds
_MOST_FIELDS = 5000


@dataclass(frozen=True, slots=True)
class Staff:
    """`tenant`: the one that the key opens, None for the admin key. `until` in seconds since 1970."""

    id: str
    key: str
    tenant: str | None
    until: float
    csrf: str


class Form:
    """A posted form; what a browser did to line ends is undone."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def one(self, name: str) -> str:
        return self._fields.get(name, [""])[-1].replace("\r\n", "\n")

    def many(self, name: str) -> list[str]:
        return self._fields.get(name, [])


class SignedOut(Exception):
    """Nobody is signed in (any more)."""


class Sessions:
    """Signs with a key made from the admin key: another admin key signs everybody out."""

    def __init__(
        self, admin_key: str, keys_: Keys, client: Redis, public_url: str | None, clock: Callable[[], datetime]
    ) -> None:
        self._secret = hmac.digest(admin_key.encode(), b"staff of this house", hashlib.sha256)
        self._keys = keys_
        self._redis = client
        self._public = urlsplit(public_url or "")
        self._clock = clock

    async def staff(self, request: Request) -> Staff:
        """Who asks. Raises SignedOut: also for a key that was revoked meanwhile, and after the log-out."""
        staff = self._read(request.cookies.get(COOKIE, ""))
        if staff is None or not (staff.key == ADMIN or self._keys.holds(staff.tenant or "", staff.key)):
            raise SignedOut
        try:
            if await self._redis.exists(_ended(staff.id)):
                raise SignedOut
        except (RedisError, OSError):
            log.debug("nobody knows whether a session was ended")
        request.state.staff = staff
        return staff

    def known(self, request: Request) -> tuple[Staff | None, Tenant | None]:
        """Who was found to ask, and what of theirs they ask about: for a page that says what went wrong."""
        staff: Staff | None = getattr(request.state, "staff", None)
        found = self._keys.find(request.path_params.get("tenant", ""))
        theirs = staff is not None and found is not None and staff.tenant in (None, found.id)
        return staff, found if theirs else None

    def tenant(self, staff: Staff, name: str) -> Tenant:
        """The tenant that a page is about. Raises HTTPException 404 for what is not theirs, and for none."""
        found = self._keys.find(name)
        if found is None or staff.tenant not in (None, name):
            raise HTTPException(404, "There is no such tenant")
        return found

    def tenants(self, staff: Staff) -> list[Tenant]:
        return [one for one in self._keys.all() if staff.tenant in (None, one.id)]

    async def form(self, request: Request, staff: Staff | None) -> Form:
        """What was posted from a page of ours. Raises HTTPException 400, 403, 413."""
        self._check_origin(request)
        raw = await read(request)
        try:
            fields = parse_qs(
                raw.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="replace"
            )
        except ValueError:
            raise HTTPException(400, "This form can't be read") from None
        form = Form(fields)
        if staff is not None and not hmac.compare_digest(form.one("csrf").encode(), staff.csrf.encode()):
            raise HTTPException(403, "This form is too old: load the page again")
        return form

    async def sign_in(self, request: Request, key: str) -> Staff | float | None:
        """Who it is; None for a wrong key; seconds to wait after too many of them."""
        address = _address(request)
        wait = await self._wait(address)
        if wait > 0:
            return wait
        whose = self._keys.whose(key.strip())
        if whose is None:
            await self._failed(address)
            return None
        opens = None if whose == ADMIN_OPENS else whose
        until = self._clock().timestamp() + GOOD_FOR
        return self._staff(secrets.token_urlsafe(18), ADMIN if opens is None else name_of(key.strip()), opens, until)

    def keep(self, request: Request, response: Response, staff: Staff) -> None:
        claims = orjson.dumps({"id": staff.id, "k": staff.key, "t": staff.tenant, "until": int(staff.until)})
        body = _text(claims)
        token = f"v1.{body}.{_text(hmac.digest(self._secret, body.encode(), hashlib.sha256))}"
        response.set_cookie(
            COOKIE, token, max_age=GOOD_FOR, httponly=True, samesite="strict", secure=self.secure(request), path="/"
        )

    async def sign_out(self, request: Request, response: Response, staff: Staff) -> None:
        """For good: a copy of the cookie opens nothing either."""
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict", secure=self.secure(request))
        left = int(staff.until - self._clock().timestamp()) + 1
        try:
            await self._redis.set(_ended(staff.id), 1, ex=max(left, 1))
        except (RedisError, OSError) as error:
            log.warning("a session is ended in the browser alone: %s", type(error).__name__)

    def secure(self, request: Request) -> bool:
        """Whether the browser came over https, as far as a proxy or PUBLIC_URL tells."""
        if request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "").startswith("https"):
            return True
        return self._public.scheme == "https" and request.headers.get("host") == self._public.netloc

    # -- steps -------------------------------------------------------------------------------------------------------

    def _check_origin(self, request: Request) -> None:
        """A browser says from which site a form comes. Raises HTTPException 403."""
        origin = request.headers.get("origin")
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise HTTPException(403, "This form is of another site")
        own = {request.headers.get("host", ""), self._public.netloc}
        if origin is not None and urlsplit(origin).netloc not in own:
            raise HTTPException(403, "This form is of another site")

    def _staff(self, session_id: str, key: str, tenant: str | None, until: float) -> Staff:
        csrf = _text(hmac.digest(self._secret, b"forms of " + session_id.encode(), hashlib.sha256))
        return Staff(session_id, key, tenant, until, csrf)

    def _read(self, token: str) -> Staff | None:
        version, _, rest = token.partition(".")
        body, _, signature = rest.partition(".")
        if version != "v1" or not body.isascii() or not signature.isascii():
            return None
        if not hmac.compare_digest(signature, _text(hmac.digest(self._secret, body.encode(), hashlib.sha256))):
            return None
        claims: Any = orjson.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        staff = self._staff(claims["id"], claims["k"], claims["t"], float(claims["until"]))
        return staff if self._clock().timestamp() < staff.until else None

    async def _wait(self, address: str) -> float:
        try:
            left = await self._redis.pttl(keys.shared("signin", "wait", address))
        except (RedisError, OSError):
            await asyncio.sleep(1.0)  # nobody counts just now: every try is slow
            return 0.0
        return max(left, 0) / 1000

    async def _failed(self, address: str) -> None:
        count_key = keys.shared("signin", "wrong", address)
        try:
            pipe: Any = self._redis.pipeline(transaction=False)
            pipe.incr(count_key).expire(count_key, _REMEMBERED)
            count, _ = await pipe.execute()
            if count >= FREE_TRIES:
                pause = min(2 ** min(count - FREE_TRIES + 1, 10), _LONGEST_WAIT)
                await self._redis.set(keys.shared("signin", "wait", address), 1, ex=pause)
        except (RedisError, OSError) as error:
            log.warning("a wrong key is not counted: %s", type(error).__name__)


def _ended(session_id: str) -> str:
    return keys.shared("signedout", session_id)


def _address(request: Request) -> str:
    """Of the browser; behind a proxy on this machine or net the one that the proxy saw, which it writes last."""
    direct = request.client.host if request.client else "unknown"
    try:
        near = ipaddress.ip_address(direct).is_private
    except ValueError:
        near = False
    seen = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    return (seen or direct)[:100] if near else direct


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
