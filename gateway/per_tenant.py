"""What is derived from a tenant's file, kept until the file changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from config.tenants import Tenant

T = TypeVar("T")


class PerTenant(Generic[T]):
    """One value a tenant; made anew when the tenant's object is another one than last time."""

    def __init__(self, make: Callable[[Tenant], T]) -> None:
        self._make = make
        self._kept: dict[str, tuple[Tenant, T]] = {}

    def of(self, tenant: Tenant) -> T:
        kept = self._kept.get(tenant.id)
        if kept is None or kept[0] is not tenant:
            self._kept[tenant.id] = kept = (tenant, self._make(tenant))
        return kept[1]
