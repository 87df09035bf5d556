"""People whom staff blocked on the admin page, beside those that the tenant's file names: whatever they write is passed
over. Kept in `DATA_DIR/blocked/<tenant>.json`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from gateway.small_lists import SmallLists


class Blocked:
    """By canonical ids. Any process may change it; the others see it with their next look."""

    def __init__(self, data_dir: Path) -> None:
        self._lists = SmallLists(data_dir / "blocked")

    def of(self, tenant: str) -> frozenset[str]:
        return frozenset(one for one in self._lists.of(tenant) if isinstance(one, str))

    def block(self, tenant: str, ids: Collection[str]) -> None:
        """Raises OSError."""
        self._lists.change(tenant, lambda there: [*there, *sorted(set(ids) - set(there))])

    def unblock(self, tenant: str, ids: Collection[str]) -> None:
        """Raises OSError."""
        if self.of(tenant) & set(ids):
            self._lists.change(tenant, lambda there: [one for one in there if one not in ids])
