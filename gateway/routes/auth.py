"""Who is asking: the admin key opens every tenant, a tenant's own keys open that tenant alone, as far as their scope
goes: `read` looks, `write` changes things and talks to the bot, `admin` does everything."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from fastapi import HTTPException, Request

from config.tenants import Tenant
from gateway.key_ring import KeyRing, MadeKey
from gateway.routes.known import check_known, one_tenant
from memory.errors import LongTermUnavailable

ADMIN = "admin"  # the admin key's name
ADMIN_OPENS = "*"  # every tenant; no tenant's id
_READS = ("GET", "HEAD", "OPTIONS")
# What takes or removes everything of somebody at once: (method, path).
_ADMINS = {
    ("GET", "/api/v1/memory/export"),
    ("DELETE", "/api/v1/memory"),
    ("POST", "/api/v1/memory-users/batch-delete"),
}


class Keys:
    """Checks `Authorization: Bearer <key>`; every comparison takes the same time."""

    def __init__(
        self,
        admin: str,
        tenants: Callable[[], Iterable[Tenant]],
        ring: KeyRing | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._admin = _hash(admin)
        self._tenants = tenants
        self._ring = ring
        self._clock = clock

    def opens(self, request: Request) -> str | None:
        """The one tenant that the key opens, None for the admin key. Raises 401; 403 for what its scope does not
        cover; LongTermUnavailable where it can't be told whether it is one of ours."""
        if (key := _bearer(request)) and (found := self._found(key)) is not None:
            whose, made = found
            if made is not None:
                _check_scope(made.scope, request)
            return None if whose == ADMIN_OPENS else whose
        raise HTTPException(401, "A valid key is needed: Authorization: Bearer <key>", {"WWW-Authenticate": "Bearer"})

    def whose(self, key: str) -> str | None:
        """The tenant of which a key opens everything, ADMIN_OPENS for the admin key, None for any other. Raises
        LongTermUnavailable."""
        found = self._found(key)
        return found[0] if found is not None and (found[1] is None or found[1].scope == "admin") else None

    def known(self, key: str) -> bool:
        """Whether it is one of ours, whatever it may do; or may be, while that can't be told."""
        try:
            return self._found(key) is not None
        except LongTermUnavailable:
            return True

    def _found(self, key: str) -> tuple[str, MadeKey | None] | None:
        hashed = _hash(key)
        if hmac.compare_digest(hashed, self._admin):
            return ADMIN_OPENS, None
        tenants = list(self._tenants())
        for tenant in tenants:  # what the files name opens also while a database is away
            if any(hmac.compare_digest(hashed, known.removeprefix("sha256:")) for known in tenant.api_keys):
                return tenant.id, None
        for tenant in tenants:
            for made in self._made(tenant):
                if self._ring is not None and hmac.compare_digest(hashed, made.hash):
                    self._ring.used(tenant.id, made, self._clock())
                    return tenant.id, made
        return None

    def holds(self, tenant: str, name: str) -> bool:
        """Whether a tenant's key of that name (see `name_of`) still opens it. Raises LongTermUnavailable."""
        found = self.find(tenant)
        return found is not None and any(hmac.compare_digest(name, f"key:{one[:24]}") for one in self._hashes(found))

    def find(self, tenant: str) -> Tenant | None:
        return next((one for one in self._tenants() if one.id == tenant), None)

    def all(self) -> list[Tenant]:
        return sorted(self._tenants(), key=lambda one: one.id)

    def _hashes(self, tenant: Tenant) -> Iterator[str]:
        yield from (known.removeprefix("sha256:") for known in tenant.api_keys)
        yield from (one.hash for one in self._made(tenant))

    def _made(self, tenant: Tenant) -> list[MadeKey]:
        now = self._clock()
        return [one for one in self._ring.of(tenant.id) if not one.expired(now)] if self._ring else []

    def owner(self, request: Request) -> str:
        """A name for the key itself, which does not give it away: what one key opened, another does not find. Raises
        401."""
        if self.opens(request) is None:
            return ADMIN
        return name_of(_bearer(request))

    def tenant(self, request: Request, tenant: str | None = None) -> Tenant:
        """A dependency of every route about one tenant's data: the tenant that a key opens; with the admin key the one
        that `?tenant=` names. Raises 401, 422 for an admin's call that names none, for one that names two and for a
        parameter that the route doesn't know, 404 for another's or an unknown one."""
        own = self.opens(request)
        tenant = one_tenant(request, tenant)
        name = own if tenant is None else tenant
        if name is None:
            raise HTTPException(422, "tenant: the admin key opens every tenant, so say which: ?tenant=…")
        found = {one.id: one for one in self._tenants()}.get(name)
        if found is None or own not in (None, name):
            raise HTTPException(404, "There is no such tenant")
        check_known(request)
        return found


def _check_scope(scope: str, request: Request) -> None:
    """Raises 403."""
    asked = request.scope.get("method", "GET"), request.scope.get("path", "")
    needed = "admin" if asked in _ADMINS else "read" if asked[0] in _READS else "write"
    if scope != "admin" and needed != "read" and (scope, needed) != ("write", "write"):
        raise HTTPException(403, f"This key's scope is {scope!r}; this takes {needed!r}")


def name_of(key: str) -> str:
    """A tenant's key by a name that does not give it away."""
    return f"key:{_hash(key)[:24]}"


def _bearer(request: Request) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
