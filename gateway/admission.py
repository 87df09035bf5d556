"""Webhooks of one tenant that come faster than anybody could answer them wait a moment before they are read, while
other tenants' come as well: so the taking of a flood leaves the processor to the others' answers. None is refused."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

A_SECOND = 100.0  # webhooks of a tenant, of one process, that never wait: more than a worker answers
AT_ONCE = 200.0  # … and as many more after a while of silence
_EACH, _BURST = 1 / A_SECOND, AT_ONCE / A_SECOND  # seconds that a webhook takes of a share, and those of a whole one
LONGEST = 0.5  # seconds: platforms wait a second or more for their answer
_OTHERS = 5.0  # seconds in which somebody else wrote
_MOST = 10_000  # tenants that are remembered


class Admission:
    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._due: OrderedDict[str, float] = OrderedDict()  # when each tenant's share is whole again; the last one last
        self._last = ""  # whose webhook came last
        self._others = -math.inf  # … and when it was last somebody else's

    async def admitted(self, tenant: str) -> None:
        """Returns when the tenant's next webhook may be taken."""
        if (wait := self.counted(tenant)) > 0:
            await self._sleep(wait)

    def at_once(self, tenant: str) -> bool:
        """Whether the tenant's next webhook need not wait. It counts when it is `counted`."""
        now = self._clock()
        beside = self._last not in ("", tenant) or now - self._others < _OTHERS
        return not beside or self._due.get(tenant, now) - now + _EACH <= _BURST

    def counted(self, tenant: str) -> float:
        """Takes one of its share; seconds that it waits."""
        now = self._clock()
        due = self._due.pop(tenant, now)
        due = (due if due > now else now) + _EACH
        ahead = due - now - _BURST
        self._due[tenant] = due if ahead <= LONGEST else now + _BURST + LONGEST
        if len(self._due) > _MOST:
            self._due.popitem(last=False)
        if self._last not in ("", tenant):
            self._others = now
        self._last = tenant
        return min(ahead, LONGEST) if ahead > 0 and now - self._others < _OTHERS else 0.0
