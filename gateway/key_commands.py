"""What `chat-chat keys` does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from config.settings import Settings
from config.tenants import Tenants
from gateway.assembly import memory_config
from gateway.cli import Failed
from gateway.cli.common import doubt
from gateway.key_ring import KeyRing, MadeKey, Scope
from memory.keys import check_tenant
from memory.parts import make_lists


def listed(settings: Settings, tenant: str) -> list[str]:
    with _ring(settings) as ring:
        found = ring.of(check_tenant(tenant))
    return [_told(one) for one in found] or [f"none made here{doubt(settings, tenant)}"]


def _told(one: MadeKey) -> str:
    until = f"until {one.expires_at[:10]}" if one.expires_at else "no end"
    used = f"used {one.last_used[:16]}Z" if one.last_used else "never used"
    return f"{one.id}  {one.hint}…  {one.made_at[:10]}  {one.scope:5}  {until}  {used}  {one.name}".rstrip()


def made(settings: Settings, tenant: str, name: str, scope: Scope = "admin", days: int | None = None) -> str:
    """The key itself, alone on its line, so that a script can take it."""
    tenants = Tenants(settings)
    tenants.load()
    if tenants.get(check_tenant(tenant)) is None:
        raise Failed(f"there is no tenant {tenant!r} that works: see `chat-chat tenants check`")
    with _ring(settings) as ring:
        try:
            return ring.make(tenant, name, datetime.now(UTC), scope, days)[1]
        except ValueError as error:
            raise Failed(str(error)) from error


def revoked(settings: Settings, tenant: str, key_id: str) -> str:
    with _ring(settings) as ring:
        if not ring.revoke(check_tenant(tenant), key_id):
            raise Failed(f"{tenant} has no key {key_id}: see `chat-chat keys list --tenant {tenant}`")
    return f"{key_id} opens nothing any more"


@contextmanager
def _ring(settings: Settings) -> Iterator[KeyRing]:
    lists = make_lists(memory_config(settings, None))
    try:
        yield KeyRing(lists)
    finally:
        lists.close()
