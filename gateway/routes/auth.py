"""Who is asking: the admin key opens every tenant, a tenant's own keys open that tenant alone."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path

from fastapi import HTTPException, Request

from config.tenants import Tenant

KEY_FILE = "admin_api_key"
ADMIN = "admin"  # the admin key's name


def admin_key(configured: str | None, data_dir: Path) -> tuple[str, bool]:
    """The admin key and whether it was made just now; then it is kept in `DATA_DIR/admin_api_key`, mode 0600."""
    if configured:
        return configured, False
    path = data_dir / KEY_FILE
    data_dir.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text("ascii").strip(), False
    key = secrets.token_urlsafe(32)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(key + "\n")
    return key, True


class Keys:
    """Checks `Authorization: Bearer <key>`; every comparison takes the same time."""

    def __init__(self, admin: str, tenants: Callable[[], Iterable[Tenant]]) -> None:
        self._admin = _hash(admin)
        self._tenants = tenants

    def opens(self, request: Request) -> str | None:
        """The one tenant that the key opens, None for the admin key. Raises 401."""
        if key := _bearer(request):
            hashed = _hash(key)
            if hmac.compare_digest(hashed, self._admin):
                return None
            for tenant in self._tenants():
                if any(hmac.compare_digest(hashed, known.removeprefix("sha256:")) for known in tenant.api_keys):
                    return tenant.id
        raise HTTPException(401, "A valid key is needed: Authorization: Bearer <key>", {"WWW-Authenticate": "Bearer"})

    def owner(self, request: Request) -> str:
        """A name for the key itself, which does not give it away: what one key opened, another does not find. Raises
        401."""
        if self.opens(request) is None:
            return ADMIN
        return f"key:{_hash(_bearer(request))[:24]}"

    def tenant(self, request: Request, tenant: str | None = None) -> Tenant:
        """A dependency of every route about one tenant's data: the tenant that a key opens; with the admin key the one
        that `?tenant=` names. Raises 401, 422 for an admin's call that names none, 404 for another's or an unknown
        one."""
        own = self.opens(request)
        name = own if tenant is None else tenant
        if name is None:
            raise HTTPException(422, "tenant: the admin key opens every tenant, so say which: ?tenant=…")
        found = {one.id: one for one in self._tenants()}.get(name)
        if found is None or own not in (None, name):
            raise HTTPException(404, "There is no such tenant")
        return found


def _bearer(request: Request) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
