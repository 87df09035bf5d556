"""Long-term memory in JSON files and in PostgreSQL beside each other, with more and more people in one tenant:
`python -m benchmarks.longterm_stores --url postgresql://… [--users 100 1000 10000]`.

What is in the database is removed first. Each row is a median in milliseconds: saving an event of somebody new to this
process and of somebody known to it, loading somebody, a page of events, a page found by a word; and in all what
retention takes when one in a hundred events has expired. `copied` is people a second from the files to the database.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import psycopg

from benchmarks.tenant_lists import NOW, TENANT, write
from memory import MemoryConfig, MemoryManager
from memory.copying import Copy, Whole
from memory.listing import Wanted
from memory.postgres.migrate import migrate
from processors.models import EventType, MemoryEvent

ROUNDS = 60
EVENTS, FACTS = 10, 5


def event(name: str) -> MemoryEvent:
    payload = {"original_message": "ราคาสินค้านี้เท่าไหร่ครับ", "language": "th", "classified_by": "rules"}
    return MemoryEvent(
        event_type=EventType.INQUIRY, payload=payload, importance_score=0.8, event_id=name, timestamp=NOW
    )


async def median(call: Callable[[int], Awaitable[object]]) -> float:
    taken = []
    for number in range(ROUNDS):
        begin = time.perf_counter()
        await call(number)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * 1000


async def measured(config: MemoryConfig, users: int) -> list[str]:
    # Of thirty days of events, about one in a hundred is too old a third of a day later.
    later = NOW + timedelta(days=365 - 30 + 0.3)
    manager = MemoryManager(config, clock=lambda: NOW)
    luck = random.Random(2)
    people = [f"line:U{luck.randrange(users):032x}" for _ in range(ROUNDS)]
    await manager.refresh_lists(TENANT)

    async def save(number: int) -> None:
        await manager.longterm.save_events(TENANT, people[number], [event(f"new{time.time_ns()}")])

    async def load(number: int) -> None:
        await manager.longterm.load(TENANT, people[number])

    async def page(number: int) -> None:
        await manager.catalog.page(TENANT, "events", Wanted(), limit=50)

    async def found(number: int) -> None:
        await manager.catalog.page(TENANT, "events", Wanted(q="refund"), limit=50)

    times = [await median(call) for call in (load, save, save, page, found)]
    begin = time.perf_counter()
    removed = await manager.longterm.expire(TENANT, later)
    times.append((time.perf_counter() - begin) * 1000)
    await manager.close()
    return [*(f"{one:10.2f}" for one in times), f"{removed:10}"]


async def main(url: str, sizes: list[int]) -> None:
    print(f"{'':22}{'load':>10}{'save':>10}{'again':>10}{'page':>10}{'found':>10}{'expire':>10}{'events':>10}")
    for users in sizes:
        with tempfile.TemporaryDirectory() as folder:
            with psycopg.connect(url, autocommit=True) as db:
                db.execute("DROP SCHEMA IF EXISTS chat_chat CASCADE")
            await asyncio.to_thread(migrate, url)
            base = Path(folder) / "longterm"
            await asyncio.to_thread(write, base, users, EVENTS, FACTS)
            files = MemoryManager(MemoryConfig(lm_base_path=base), clock=lambda: NOW)
            rows = MemoryManager(MemoryConfig(lm_base_path=base, longterm_url=url), clock=lambda: NOW)
            assert isinstance(files.longterm, Whole)
            assert isinstance(rows.longterm, Whole)
            begin = time.perf_counter()
            copied = await Copy(files.longterm, rows.longterm, Path(folder) / "notes").once(TENANT, lambda *_: None)
            rate = copied / (time.perf_counter() - begin)
            await rows.close()
            with psycopg.connect(url, autocommit=True) as db:
                db.execute("ANALYZE")
            for name, config in (
                ("PostgreSQL", MemoryConfig(lm_base_path=base, longterm_url=url)),
                ("JSON", MemoryConfig(lm_base_path=base)),
            ):
                print(f"{name:12}{users:10}{''.join(await measured(config, users))}")
            print(f"{'copied':12}{rate:10.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--users", nargs="+", type=int, default=[100, 1000, 10000])
    given = parser.parse_args()
    asyncio.run(main(given.url, given.users))
