"""What happened in a shop each day: messages and answers, how long they took, what they meant, what the model cost.

Counted in the process and written along with the worker's heartbeat: a message pays a few microseconds for it, and no
round trip. What was counted since the last heartbeat is lost with a process that is killed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from redis.asyncio import Redis

from config.tenants import Tenant
from gateway import counting
from gateway.counting import QUARTER, quarter_of
from gateway.hooks import Exchange
from memory import keys

KEPT_FOR = 100 * 86_400  # seconds
NANO = 1_000_000_000
STEPS = (0.5, 1, 2, 3, 5, 8, 13, 20, 30, 60, 120, 600)  # seconds an answer took at the most
EVERY = ""  # instead of a channel: what belongs to none

_Name = tuple[str, str | int, str]  # what is counted, of which kind, in which channel


@dataclass(slots=True)
class Day:
    """One day of a shop, of one channel or all; `took` by step, one more for what took longer."""

    messages: int = 0
    by_model: int = 0  # answers
    by_shop: int = 0  # answers of the shop's own list, rules and commands
    by_staff: int = 0
    took: list[int] = field(default_factory=lambda: [0] * (len(STEPS) + 1))
    types: Counter[str] = field(default_factory=Counter)
    bands: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)
    tokens: int = 0  # of all channels
    dollars: float = 0.0

    def within(self, share: float) -> float | None:
        """Seconds within which this share of the answers was out, about; None: there were none."""
        return within(self.took, share)


class Tally:
    """A hook. Days are those of the shop's time zone."""

    def __init__(self, tenant_of: Callable[[str], Tenant | None], clock: Callable[[], datetime]) -> None:
        self._tenant_of = tenant_of
        self._clock = clock
        self._counts: dict[str, defaultdict[_Name, int]] = {}
        # Of each tenant those that are counted into, from when and until when: its zone is asked once for all that.
        self._held: dict[str, tuple[Tenant | None, datetime, datetime, defaultdict[_Name, int]]] = {}

    async def after(self, exchange: Exchange) -> None:
        counts, channel = self._of(exchange.ref.tenant, exchange.now), exchange.channel
        messages, told = 0, None
        for line in exchange.said:
            if line["role"] == "user":
                messages += 1
            elif told is None and line["role"] == "bot":
                told = line
        counts["messages", "", channel] += messages
        if told is not None:
            staff = (told.get("metadata") or {}).get("by") == "staff"
            model = exchange.answer is not None and exchange.answer.model is not None
            counts["answers", "staff" if staff else "model" if model else "shop", channel] += 1
            if messages and exchange.last is not None and exchange.sent_at is not None and not staff:
                seconds = exchange.sent_at.timestamp() - exchange.last.received_at
                counts["took", bisect_left(STEPS, seconds), channel] += 1
        if (event := exchange.event) is not None:
            counts["type", event.event_type, channel] += 1
            counts["band", event.band, channel] += 1
            language = event.payload.get("language")
            if isinstance(language, str):
                counts["language", language[:10], channel] += 1

    def used(self, tenant: str, tokens: int, nano: int) -> None:
        """One answer of the language model."""
        counts = self._of(tenant, self._clock())
        counts["tokens", "", EVERY] += tokens
        counts["nano", "", EVERY] += nano

    def into(self, pipe: Any) -> Callable[[], None]:
        """Adds the writing to a pipeline; call what comes back if that fails, and nothing is lost."""
        taken, self._counts, self._held = self._counts, {}, {}
        for key, counts in taken.items():
            counting.add(pipe, key, KEPT_FOR, ((_name(*name), count) for name, count in counts.items() if count))

        def back() -> None:
            for key, counts in taken.items():
                since = self._counts.setdefault(key, defaultdict(int))
                for name, count in counts.items():
                    since[name] += count

        return back

    def _of(self, tenant: str, now: datetime) -> defaultdict[_Name, int]:
        known = self._tenant_of(tenant)
        held = self._held.get(tenant)
        if held is not None and held[0] is known and held[1] <= now < held[2]:
            return held[3]
        key = _key_in(tenant, known.timezone if known else "UTC", int(now.timestamp()) // QUARTER)
        if (counts := self._counts.get(key)) is None:
            counts = self._counts[key] = defaultdict(int)
        self._held[tenant] = known, *quarter_of(now), counts
        return counts


@lru_cache(4096)
def _key_in(tenant: str, zone: str, quarter: int) -> str:
    """Where that quarter of an hour belongs."""
    return _key(tenant, datetime.fromtimestamp(quarter * QUARTER, ZoneInfo(zone)).date())


async def days(client: Redis, tenant: str, dates: Sequence[date], channel: str = EVERY) -> list[Day]:
    """One a date; of a channel, or of all. Raises RedisError."""
    pipe: Any = client.pipeline(transaction=False)
    for one in dates:
        pipe.hgetall(_key(tenant, one))
    return [_day(said, channel) for said in (await pipe.execute() if dates else [])]


def within(took: Sequence[int], share: float) -> float | None:
    total, wanted, seen = sum(took), sum(took) * share, 0
    if not total:
        return None
    edges = (0.0, *STEPS, STEPS[-1])
    for step, count in enumerate(took):
        if count and seen + count >= wanted:
            low, high = edges[step], edges[step + 1]
            return round(low + (high - low) * (wanted - seen) / count, 2)
        seen += count
    return float(STEPS[-1])


def together(some: Iterable[Day]) -> Day:
    whole = Day()
    for one in some:
        whole.messages += one.messages
        whole.by_model += one.by_model
        whole.by_shop += one.by_shop
        whole.by_staff += one.by_staff
        whole.tokens += one.tokens
        whole.dollars += one.dollars
        whole.took = [a + b for a, b in zip(whole.took, one.took, strict=True)]
        whole.types += one.types
        whole.bands += one.bands
        whole.languages += one.languages
    return whole


def _day(said: Mapping[bytes, bytes], channel: str) -> Day:
    day = Day()
    for raw, value in said.items():
        what, of, where = raw.decode().split("|", 2)
        count = int(value)
        if where not in (EVERY, channel) and channel != EVERY:
            continue
        match what:
            case "messages":
                day.messages += count
            case "answers":
                name = f"by_{of}"
                setattr(day, name, getattr(day, name) + count)
            case "took":
                day.took[int(of)] += count
            case "type":
                day.types[of] += count
            case "band":
                day.bands[of] += count
            case "language":
                day.languages[of] += count
            case "tokens":
                day.tokens += count
            case "nano":
                day.dollars += count / NANO
    return day


def _name(what: str, of: str | int, channel: str) -> str:
    return f"{what}|{of}|{channel}"


def _key(tenant: str, day: date) -> str:
    return keys.shared("tally", keys.check_tenant(tenant), day.isoformat())
