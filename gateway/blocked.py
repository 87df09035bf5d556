"""People whom staff blocked on the admin page, beside those that the tenant's file names: whatever they write is passed
over. And people who want no news. Both are lists of memory.lists."""

from __future__ import annotations

from collections.abc import Collection

from memory.errors import LongTermUnavailable
from memory.lists import BLOCKED, OPTED_OUT, KeptLists, Listed


class Blocked:
    """By canonical ids. Any process may change it; the others see it with their next look."""

    NAME = BLOCKED

    def __init__(self, lists: KeptLists) -> None:
        self._lists = lists(self.NAME)
        self._seen: dict[str, tuple[Listed, frozenset[str]]] = {}  # what `of` saw last of each tenant, and its ids

    def of(self, tenant: str) -> frozenset[str]:
        """While a database can't be asked, as it was last, and nobody where that was never told: no message is refused
        for it. What another process changes is seen within LOOK_EVERY seconds."""
        try:
            return self._read(tenant)
        except LongTermUnavailable:
            return frozenset()

    def _read(self, tenant: str) -> frozenset[str]:
        listed = self._lists.of(tenant, however_old=True)
        if not listed:
            return frozenset()
        if (seen := self._seen.get(tenant)) is None or seen[0] is not listed:
            seen = self._seen[tenant] = listed, frozenset(one for one in listed if isinstance(one, str))
        return seen[1]

    def block(self, tenant: str, ids: Collection[str]) -> None:
        """Raises OSError, LongTermUnavailable."""
        self._lists.change(tenant, lambda there: [*there, *sorted(set(ids) - set(there))])

    def unblock(self, tenant: str, ids: Collection[str]) -> None:
        """Raises OSError, LongTermUnavailable."""
        self._lists.change(tenant, lambda there: [one for one in there if one not in ids])


class OptedOut(Blocked):
    """People who want no news of the shop: nothing is sent to them unasked."""

    NAME = OPTED_OUT

    def of(self, tenant: str) -> frozenset[str]:
        """As it was last while a database can't be asked. Raises LongTermUnavailable where that was never told: then
        nobody is sent anything."""
        return self._read(tenant)
