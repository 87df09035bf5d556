"""People whom staff blocked on the admin page, beside those that the tenant's file names: whatever they write is passed
over. And people who want no news. Both are lists of memory.lists."""

from __future__ import annotations

import time
from collections.abc import Collection

from memory.errors import LongTermUnavailable
from memory.lists import BLOCKED, OPTED_OUT, KeptLists

LOOK_EVERY = 0.1  # seconds: many messages of a shop come in that time


class Blocked:
    """By canonical ids. Any process may change it; the others see it with their next look."""

    NAME = BLOCKED

    def __init__(self, lists: KeptLists) -> None:
        self._lists = lists(self.NAME)
        self._seen: dict[str, tuple[float, frozenset[str]]] = {}  # what `of` saw last of each tenant, and when

    def of(self, tenant: str) -> frozenset[str]:
        """While a database can't be asked, as it was last, and nobody where that was never told: no message is refused
        for it. What another process changes is seen within LOOK_EVERY seconds."""
        at, there = self._seen.get(tenant, (-LOOK_EVERY, frozenset()))
        if (now := time.monotonic()) - at < LOOK_EVERY:
            return there
        try:
            there = self._read(tenant)
        except LongTermUnavailable:
            there = frozenset()
        self._seen[tenant] = now, there
        return there

    def _read(self, tenant: str) -> frozenset[str]:
        return frozenset(one for one in self._lists.of(tenant, however_old=True) if isinstance(one, str))

    def block(self, tenant: str, ids: Collection[str]) -> None:
        """Raises OSError, LongTermUnavailable."""
        self._lists.change(tenant, lambda there: [*there, *sorted(set(ids) - set(there))])
        self._seen.pop(tenant, None)

    def unblock(self, tenant: str, ids: Collection[str]) -> None:
        """Raises OSError, LongTermUnavailable."""
        self._lists.change(tenant, lambda there: [one for one in there if one not in ids])
        self._seen.pop(tenant, None)


class OptedOut(Blocked):
    """People who want no news of the shop: nothing is sent to them unasked."""

    NAME = OPTED_OUT

    def of(self, tenant: str) -> frozenset[str]:
        """As it was last while a database can't be asked. Raises LongTermUnavailable where that was never told: then
        nobody is sent anything."""
        return self._read(tenant)
