"""What asking the language model costs: calls, tokens and dollars of each tenant, by what was asked for, and how its
messages were understood. Counted in the process and written along with the worker's heartbeat: a message pays nothing
for it. What was counted since the last heartbeat is lost with a process that is killed."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway import counting
from gateway.counting import month_in, quarter_of
from memory import keys
from processors.llm import PURPOSES, Access, Usage
from processors.prices import Prices

log = logging.getLogger(__name__)

KEPT_FOR = 100 * 86_400  # seconds
NANO = 1_000_000_000  # dollars are counted in whole billionths: a small model's call costs some ten thousand of them
WAYS = ("llm", "local", "rules")  # in which a message is understood
Field = tuple[str, str]  # what is counted, and of which purpose or way


@dataclass(frozen=True, slots=True)
class Month:
    """One tenant's month in its own time zone, as its budget and LINE's quota have it. The mappings are by PURPOSES;
    `understood` by WAYS."""

    calls: dict[str, int] = field(default_factory=dict)
    prompt_tokens: dict[str, int] = field(default_factory=dict)
    completion_tokens: dict[str, int] = field(default_factory=dict)
    dollars: dict[str, float] = field(default_factory=dict)
    understood: dict[str, int] = field(default_factory=dict)

    @property
    def a_message(self) -> dict[str, float]:
        """Calls, tokens and dollars a message."""
        count = sum(self.understood.values())
        tokens = sum(self.prompt_tokens.values()) + sum(self.completion_tokens.values())
        told = {"calls": sum(self.calls.values()), "tokens": tokens, "dollars": sum(self.dollars.values())}
        return {name: round(value / count, 8) if count else 0.0 for name, value in told.items()}


class Spending:
    """One process's counts since they were last written."""

    def __init__(
        self,
        tenant_of: Callable[[str], Tenant | None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        prices: Prices | None = None,
    ) -> None:
        self._tenant_of = tenant_of
        self._clock = clock
        self._prices = prices or Prices()
        # By tenant, year and month: one key of Redis.
        self._counts: dict[tuple[str, int, int], defaultdict[Field, int]] = {}
        # Of each tenant those that are counted into, from when and until when: its zone is asked once for all that.
        self._held: dict[str, tuple[Tenant | None, datetime, datetime, defaultdict[Field, int]]] = {}
        self.also: Callable[[str, int, int], None] | None = None  # hears of tokens and billionths of a dollar

    def used(self, access: Access, model: str, usage: Usage) -> None:
        """One answer of the language model, as `OpenRouter` tells of it; without a tenant it is nobody's."""
        if not access.tenant:
            return
        counts, purpose = self._of(access.tenant), access.purpose
        counts["calls", purpose] += 1
        counts["in", purpose] += usage.prompt_tokens
        counts["out", purpose] += usage.completion_tokens
        nano = round((self._prices.cost(model, usage) or 0.0) * NANO)
        counts["cost", purpose] += nano
        if self.also is not None:
            self.also(access.tenant, usage.prompt_tokens + usage.completion_tokens, nano)

    def understood(self, tenant: str, way: str) -> None:
        """One message became an event."""
        self._of(tenant)["understood", way] += 1

    def into(self, pipe: Any) -> Callable[[], None]:
        """Adds the writing to a pipeline; call what comes back if that fails, and nothing is lost."""
        taken, self._counts, self._held = self._counts, {}, {}
        for (tenant, year, month), counts in taken.items():
            key = _key(tenant, year, month)
            counting.add(pipe, key, KEPT_FOR, ((f"{what}:{of}", n) for (what, of), n in counts.items() if n))

        def back() -> None:
            for key, counts in taken.items():
                since = self._counts.setdefault(key, defaultdict(int))
                for field_, count in counts.items():
                    since[field_] += count

        return back

    def _of(self, tenant: str) -> defaultdict[Field, int]:
        known, now = self._tenant_of(tenant), self._clock()
        held = self._held.get(tenant)
        if held is not None and held[0] is known and held[1] <= now < held[2]:
            return held[3]
        of = tenant, *month_in(known.timezone if known else "UTC", now)
        if (counts := self._counts.get(of)) is None:
            counts = self._counts[of] = defaultdict(int)
        self._held[tenant] = known, *quarter_of(now), counts
        return counts


async def months(
    client: Redis,
    tenants: Iterable[str],
    tenant_of: Callable[[str], Tenant | None],
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> dict[str, Month]:
    """This month of each tenant, in one round trip; nothing where Redis can't tell."""
    ids = list(tenants)
    pipe: Any = client.pipeline(transaction=False)
    now = clock()
    for tenant in ids:
        known = tenant_of(tenant)
        pipe.hgetall(_key(tenant, *month_in(known.timezone if known else "UTC", now)))
    try:
        found = await pipe.execute() if ids else []
    except (RedisError, OSError) as error:
        log.debug("spending not read: %s", type(error).__name__)
        return {}
    return {tenant: _month(said) for tenant, said in zip(ids, found, strict=True)}


def _month(said: dict[bytes, bytes]) -> Month:
    counts = {name.decode(): int(value) for name, value in said.items()}

    def by(what: str, names: Iterable[str]) -> dict[str, int]:
        return {name: counts[f"{what}:{name}"] for name in names if f"{what}:{name}" in counts}

    return Month(
        calls=by("calls", PURPOSES),
        prompt_tokens=by("in", PURPOSES),
        completion_tokens=by("out", PURPOSES),
        dollars={purpose: nano / NANO for purpose, nano in by("cost", PURPOSES).items()},
        understood=by("understood", WAYS),
    )


def _key(tenant: str, year: int, month: int) -> str:
    return keys.shared("spent", tenant, f"{year}-{month:02}")
