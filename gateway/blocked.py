"""People whom staff blocked on the admin page, beside those that the tenant's file names: whatever they write is passed
over. Kept in `DATA_DIR/blocked/<tenant>.json`. And people who want no news, in `DATA_DIR/opted_out/<tenant>.json`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from gateway.small_lists import SmallLists


class Blocked:
    """By canonical ids. Any process may change it; the others see it with their next look."""

    FOLDER = "blocked"

    def __init__(self, data_dir: Path) -> None:
        self._lists = SmallLists(data_dir / self.FOLDER)

    def of(self, tenant: str) -> frozenset[str]:
        return frozenset(one for one in self._lists.of(tenant) if isinstance(one, str))

    def block(self, tenant: str, ids: Collection[str]) -> None:
        """Raises OSError."""
        self._lists.change(tenant, lambda there: [*there, *sorted(set(ids) - set(there))])

    def unblock(self, tenant: str, ids: Collection[str]) -> None:
        """Raises OSError."""
        if self.of(tenant) & set(ids):
            self._lists.change(tenant, lambda there: [one for one in there if one not in ids])


class OptedOut(Blocked):
    """People who want no news of the shop: nothing is sent to them unasked."""

    FOLDER = "opted_out"
