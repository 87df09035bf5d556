"""What a broadcast costs on LINE, where each recipient is a push, against what is left of the month."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from config.tenants import LineChannel, Tenant
from gateway.errors import SendFault
from gateway.ledger import Ledger, Month

Quota = Callable[[Tenant, str], Awaitable[tuple[int | None, int] | None]]  # asks LINE: see LineSender.quota


@dataclass(frozen=True, slots=True)
class Cost:
    """One LINE channel. `limit` and `left` are None where LINE sets no limit, or can't be asked (then `known` is
    False). What other broadcasts have still to send is not left."""

    channel: str
    pushes: int
    known: bool
    limit: int | None
    left: int | None

    @property
    def fits(self) -> bool:
        return self.known and (self.left is None or self.pushes <= self.left)


class Costs:
    """`quota` asks LINE afresh; without it what was last heard counts, which workers ask for every five minutes."""

    def __init__(self, ledger: Ledger, quota: Quota | None = None) -> None:
        self._ledger = ledger
        self._quota = quota

    async def of(self, tenant: Tenant, pushes: Mapping[str, int], promised: Mapping[str, int]) -> list[Cost]:
        """`pushes` and `promised` (to other broadcasts) by channel."""
        costs = []
        for name, channel in tenant.channels.items():
            if isinstance(channel, LineChannel) and pushes.get(name):
                month = await self._month(tenant, name)
                left = spare(month, promised.get(name, 0))
                costs.append(Cost(name, pushes[name], month.used is not None, month.limit, left))
        return costs

    async def left(self, tenant: Tenant, channel: str, promised: int) -> int | None:
        """What is left of a channel's quota; None: no limit."""
        return spare(await self._ledger.of(tenant, channel), promised)

    async def own_left(self, tenant: Tenant, promised: Mapping[str, int]) -> int | None:
        """What is left of `broadcasts.monthly_pushes`; None: the shop sets itself no limit."""
        limit = tenant.broadcasts.monthly_pushes
        if limit is None:
            return None
        lines = [name for name, channel in tenant.channels.items() if isinstance(channel, LineChannel)]
        paid = [(await self._ledger.of(tenant, name)).paid for name in lines]
        return max(0, limit - sum(paid) - sum(promised.get(name, 0) for name in lines))

    async def _month(self, tenant: Tenant, channel: str) -> Month:
        if self._quota is not None:
            try:
                told = await self._quota(tenant, channel)
            except SendFault:
                told = None
            if told is not None:
                await self._ledger.note_quota(tenant, channel, *told)
        return await self._ledger.of(tenant, channel)


def spare(month: Month, promised: int = 0) -> int | None:
    """Pushes left of LINE's quota; None: no limit. Of two counts, LINE's and our own, the higher one holds."""
    return None if month.limit is None else max(0, month.limit - max(month.used or 0, month.paid) - promised)
