"""What the lists over a tenant cost: `python -m benchmarks.tenant_lists [--users 10000] [--events 10] [--facts 5]`.

How long the index takes to be made, how long a page of each list takes (median, 99th percentile and what it takes
of a core, with its total, as the API asks for it), and how long until a list shows what one person just said.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from memory import MemoryConfig, MemoryManager, facts, keys
from memory.keys import ConversationRef
from memory.listing import Wanted
from memory.long_term.document import dump, plain
from memory.person import new as new_person
from processors.models import EventType, MemoryEvent

TENANT = "shop"
ROUNDS = 60
NOW = datetime(2026, 11, 28, 9, 0, tzinfo=UTC)
SAID = ("ราคาสินค้านี้เท่าไหร่ครับ", "ขอเปลี่ยนที่อยู่จัดส่ง", "Where is my order?", "กาแฟเย็นหวานน้อย", "I want a refund")
LIKES = ("กาแฟเย็น", "ชาเขียว", "iced latte", "quiet corner", "โต๊ะริมหน้าต่าง")


def customer(number: int) -> ConversationRef:
    return ConversationRef(TENANT, f"line:U{number:032x}")


def write(
    base: Path, users: int, events: int, known: int, who: Callable[[int], ConversationRef] = customer, first: int = 0
) -> None:
    """Long-term files as the gateway leaves them."""
    luck = random.Random(1)
    for number in range(first, users):
        tenant, user = who(number)[:2]
        said = [
            MemoryEvent(
                event_type=luck.choice(list(EventType)),
                payload={"original_message": f"{luck.choice(SAID)} {n}", "language": "th", "classified_by": "rules"},
                importance_score=round(luck.random(), 2),
                timestamp=NOW - timedelta(seconds=luck.randrange(30 * 86400)),
                event_id=f"{number}-{n}",
            )
            for n in range(events)
        ]
        said.sort(key=lambda one: one.timestamp)  # as they come
        told = [
            facts.new(now=NOW - timedelta(seconds=luck.randrange(86400)), owner=user, confidence=luck.random(),
                      key=f"key {n}", value=luck.choice(LIKES), type=luck.choice(list(facts.FactType)))
            for n in range(known)
        ]  # fmt: skip
        document: dict[str, Any] = {
            "tenant_id": tenant,
            "user_id": user,
            "events": [plain(one) for one in said],
            "attributes": facts.attributes(told),
            "history_summary": "asked about prices",
            "facts": [plain(one) for one in told],
            "person": plain(new_person(user, NOW, f"Customer {number}")),
        }
        path = keys.longterm_file(base, tenant, user)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dump(document, readable=True))


async def taken(call: Callable[[], Awaitable[Any]], rounds: int = ROUNDS) -> str:
    times, worked = [], time.process_time()
    for _ in range(rounds):
        begin = time.perf_counter()
        await call()
        times.append((time.perf_counter() - begin) * 1000)
    worked = (time.process_time() - worked) * 1000 / rounds
    times.sort()
    return f"{times[len(times) // 2]:9.1f}{times[min(len(times) - 1, int(len(times) * 0.99))]:9.1f}{worked:9.1f}"


async def main(users: int, events: int, known: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "longterm"
        write(base, users, events, known)
        print(f"{users} people, {users * events} events, {users * known} facts")
        manager = MemoryManager(MemoryConfig(lm_base_path=base))
        catalog = manager.catalog
        begin, worked = time.perf_counter(), time.process_time()
        await catalog.refresh(TENANT)
        worked = time.process_time() - worked
        size = keys.index_file(Path(folder) / "index", TENANT).stat().st_size / 1e6
        print(f"made in {time.perf_counter() - begin:.1f} s ({worked:.1f} s of a core), {size:.0f} MB")
        begin = time.perf_counter()
        await catalog.refresh(TENANT)
        print(f"compared again in {time.perf_counter() - begin:.1f} s")

        async def thousandth() -> None:
            after = None
            for _ in range(5):
                after = (await catalog.page(TENANT, "events", Wanted(), limit=200, after=after)).last

        print(f"{'ms':36}{'p50':>9}{'p99':>9}{'core':>9}")
        zone = ZoneInfo("Asia/Bangkok")
        for name, call in {
            "facts, newest": lambda: catalog.page(TENANT, "facts", Wanted()),
            "facts, surest": lambda: catalog.page(TENANT, "facts", Wanted(), sort="confidence"),
            "facts of a type": lambda: catalog.page(TENANT, "facts", Wanted(types=("preference",))),
            "facts with “ชาเขียว”": lambda: catalog.page(TENANT, "facts", Wanted(q="ชาเขียว")),
            "statistics": lambda: catalog.counts(TENANT, "facts", Wanted()),
            "events": lambda: catalog.page(TENANT, "events", Wanted()),
            "events, five pages of 200": thousandth,
            "events with “refund”": lambda: catalog.page(TENANT, "events", Wanted(q="refund")),
            "events with what nobody said": lambda: catalog.page(TENANT, "events", Wanted(q="elephant")),
            "events of one person": lambda: catalog.page(TENANT, "events", Wanted(user=f"line:U{7:032x}")),
            "events a day": lambda: catalog.per_day(TENANT, Wanted(), zone),
            "people": lambda: catalog.page(TENANT, "users", Wanted()),
        }.items():
            print(f"{name:36}{await taken(call)}")

        async def said_and_seen() -> None:
            user = f"line:U{random.randrange(users):032x}"
            await manager.remember(TENANT, user, text=f"said {random.random()}")
            await catalog.page(TENANT, "facts", Wanted())

        print(f"{'one person said something, seen':36}{await taken(said_and_seen)}")
        await manager.close()


if __name__ == "__main__":
    asked = argparse.ArgumentParser()
    asked.add_argument("--users", type=int, default=10_000)
    asked.add_argument("--events", type=int, default=10)
    asked.add_argument("--facts", type=int, default=5)
    given = asked.parse_args()
    asyncio.run(main(given.users, given.events, given.facts))
