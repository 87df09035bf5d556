"""What talking on LINE costs: replies, which are free, and pushes, which are paid by the recipient, per channel and
month, beside the month's quota as LINE tells it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.adapters.base import Call
from gateway.counting import month_in
from gateway.messages import Target
from memory import keys

log = logging.getLogger(__name__)

KEPT_FOR = 100 * 86_400  # seconds
_Place = tuple[str, str, int, int]  # tenant, channel, and the shop's year and month: one key of Redis
NEARLY = 0.8  # of the quota: time to tell somebody


@dataclass(frozen=True, slots=True)
class Month:
    """One channel's month. `limit` None: LINE sets none, or has not been asked; `used` is LINE's own count, which also
    knows what was sent by others."""

    free: int = 0
    paid: int = 0
    limit: int | None = None
    used: int | None = None

    @property
    def nearly_spent(self) -> bool:
        return self.limit is not None and max(self.used or 0, self.paid) >= NEARLY * self.limit


class Ledger:
    """Counting is best effort: a send never fails because of it. Pushes, which cost something, are written at once,
    free replies with the heartbeat (`into`). `recipients` tells how many people a push reaches."""

    def __init__(
        self,
        client: Redis,
        recipients: Callable[[Tenant, Target], Awaitable[int]] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._redis = client
        self._recipients = recipients
        self._clock = clock
        self._free: Counter[_Place] = Counter()  # not written yet

    async def sent(self, tenant: Tenant, target: Target, call: Call) -> None:
        """A call that the platform took."""
        if target.platform != "line" or call.method not in ("reply", "push"):
            return
        place = self._place(tenant, target.channel)
        if call.method == "reply":
            self._free[place] += 1
            return
        count = await self._recipients(tenant, target) if self._recipients else 1
        await self._write(_key(place), lambda pipe, key: pipe.hincrby(key, "paid", count))

    def into(self, pipe: Any) -> Callable[[], None]:
        """Adds what was counted to a pipeline; what comes back counts it again, where that could not be sent."""
        counts, self._free = self._free, Counter()
        for place, count in counts.items():
            key = _key(place)
            pipe.hincrby(key, "free", count).expire(key, KEPT_FOR)
        return lambda: self._free.update(counts)

    async def note_quota(self, tenant: Tenant, channel: str, limit: int | None, used: int) -> None:
        """What LINE says of the month."""
        mapping = {"used": used, "limit": -1 if limit is None else limit}
        await self._write(_key(self._place(tenant, channel)), lambda pipe, key: pipe.hset(key, mapping=mapping))

    async def of(self, tenant: Tenant, channel: str) -> Month:
        """This month; nothing counted where Redis can't tell."""
        try:
            found: Any = await self._redis.hgetall(_key(self._place(tenant, channel)))
        except (RedisError, OSError):
            return Month()
        said = {name.decode(): int(value) for name, value in found.items()}
        limit = said.get("limit", -1)
        return Month(said.get("free", 0), said.get("paid", 0), None if limit < 0 else limit, said.get("used"))

    async def all(self, tenants: Iterable[Tenant]) -> dict[tuple[str, str], Month]:
        """This month of every LINE channel."""
        return {
            (tenant.id, name): await self.of(tenant, name)
            for tenant in tenants
            for name, channel in tenant.channels.items()
            if channel.platform == "line"
        }

    def _place(self, tenant: Tenant, channel: str) -> _Place:
        return tenant.id, channel, *month_in(tenant.timezone, self._clock())

    async def _write(self, key: str, write: Callable[[Any, str], Any]) -> None:
        pipe: Any = self._redis.pipeline(transaction=True)
        write(pipe, key)
        pipe.expire(key, KEPT_FOR)
        try:
            await pipe.execute()
        except (RedisError, OSError) as error:
            log.debug("not in the ledger: %s", type(error).__name__)


def _key(place: _Place) -> str:
    tenant, channel, year, month = place
    return keys.shared("ledger", tenant, channel, f"{year}-{month:02}")
