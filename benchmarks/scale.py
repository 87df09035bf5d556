"""Whether anything costs more because there is more of it: `python -m benchmarks.scale PART …`.

    workers    messages a second and the 99th percentile with 1, 2 and 4 workers, the model taking 300 ms
    sessions   10 000, 100 000 and 1 000 000 sessions in Redis: bytes each, time to claim and to load one
    people     100, 10 000 and 100 000 people of one tenant, in files and (with --url) in PostgreSQL: save an event,
               load somebody, a page of a list, its search, clean-up of the one event in a hundred that has expired

Sizes by options. Each time is the median of many calls, in microseconds or milliseconds as it says; the last column is
the largest size's over the smallest one's, which should be below 1.5. On a busy machine look at the ratio alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from benchmarks import shop_talk
from benchmarks.house import full_session, open_house, seed
from benchmarks.load import Door, answered, answered_at
from benchmarks.processes import in_order, resident_mb
from benchmarks.tenant_lists import NOW, TENANT, write
from gateway.inbox.base import Policy
from gateway.inbox.redis import RedisInbox
from gateway.messages import InboundMessage
from gateway.redis_server import EmbeddedRedis
from memory import MemoryConfig, MemoryManager, keys
from memory.copying import Copy, Whole
from memory.keys import ConversationRef
from memory.listing import Wanted
from memory.models import Message
from memory.redis_client import connect
from memory.session import append, new_session
from memory.short_term import codec, lua
from memory.short_term.redis import RedisSessions
from processors.models import EventType, MemoryEvent, iso

ROUNDS = 400
PEOPLE_ROUNDS = 200
TTL = 30 * 86_400
THINKS = 0.3  # seconds
IN_FLIGHT = 48  # conversations waiting for their answer, a worker

Rows = dict[str, list[float]]


async def median(call: Callable[[int], Awaitable[object]], rounds: int, unit: float) -> float:
    taken = []
    for number in range(rounds):
        begin = time.perf_counter()
        await call(number)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken) * unit


def show(sizes: Sequence[int], rows: Rows) -> None:
    print(f"{'':34}{''.join(f'{size:>12,}' for size in sizes)}{'ratio':>10}")
    for name, values in rows.items():
        ratio = f"{values[-1] / values[0]:10.2f}" if values[0] else ""
        print(f"{name:34}{''.join(f'{value:12.2f}' for value in values)}{ratio}")


# -- workers -----------------------------------------------------------------------------------------------------------


async def workers(sizes: Sequence[int], seconds: float) -> None:
    rows: Rows = {
        name: []
        for name in ("messages a second", "p50 ms, as many as can be", "p99 ms", "p99 ms at half that rate", "MB each")
    }
    for number in sizes:
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chat-chat-benchmark-")))
            house = await open_house(folder, stack)
            house.standin.model_seconds = THINKS
            port = await house.start_serve()
            crew = [house.start(f"worker{n}", ["-m", "gateway", "worker"]) for n in range(number)]
            door = Door("line", port, "/webhooks/line/{tenant}/line-main", shop_talk.TENANTS)
            await seed(house)
            await house.warm(door)
            await house.quiet()
            most = await answered(house.standin, door, seconds, full=True, at_once=IN_FLIGHT * number)
            half = await answered_at(house.standin, door, max(1.0, most.rate / 2), seconds, full=True)
            found = (
                most.rate,
                most.at(0.5),
                most.at(0.99),
                half.at(0.99),
                sum(resident_mb(p.pid) for p in crew) / number,
            )
            for values, value in zip(rows.values(), found, strict=True):
                values.append(value)
    show(sizes, rows)


# -- sessions ----------------------------------------------------------------------------------------------------------


def session_ref(number: int) -> ConversationRef:
    return ConversationRef(f"shop-{number % 100}", f"line:U{number:032x}")


def short_session(ref: ConversationRef, now: datetime) -> Any:
    """One question and its answer."""
    said: list[Message] = [
        {"role": "user" if role == "user" else "bot", "message": text, "timestamp": iso(now), "message_id": f"m{at}"}
        for at, (role, text) in enumerate(shop_talk.history(2))
    ]
    return append(new_session(ref, "sess_benchmark", None, [], now, TTL), said, max_messages=20, now=now, ttl=TTL)


async def fill(client: Redis, start: int, end: int) -> None:
    """Sessions as the product leaves them: with their mark for the clean-up; one in a hundred is over."""
    sample, now = {}, datetime.now(UTC)
    for over in (False, True):
        at = now - timedelta(days=31) if over else now
        session = short_session(session_ref(0), at)
        sample[over] = (codec.encode(session, 1), lua.score(session))
    for first in range(start, end, 2000):
        pipe: Any = client.pipeline(transaction=False)
        marks = {}
        for number in range(first, min(first + 2000, end)):
            ref = session_ref(number)
            value, score = sample[number % 100 == 99]
            pipe.set(keys.session(ref), value, px=TTL * 1000)
            marks[lua.member(ref)] = float(score)
        pipe.zadd(lua.INDEX, marks)
        await pipe.execute()


async def sessions(sizes: Sequence[int]) -> None:
    rows: Rows = {
        name: []
        for name in (
            "bytes each, of 2 messages",
            "load, us",
            "put, claim with session, finish, us",
            "find 100 that are over, us",
        )
    }
    with tempfile.TemporaryDirectory(prefix="chat-chat-benchmark-") as folder:
        server = EmbeddedRedis(Path(folder))
        client = connect(await asyncio.to_thread(server.start))
        try:
            before = (await client.info("memory"))["used_memory"]
            inbox, stored, luck, filled = RedisInbox(client, "benchmark"), RedisSessions(client), random.Random(3), 0

            async def load(number: int) -> None:
                assert await stored.load(session_ref(luck.randrange(filled))) is not None

            async def turn(number: int) -> None:
                message = message_of(session_ref(luck.randrange(filled)), f"{filled}-{number}")
                await inbox.put([(message, Policy())])
                (claim,) = (await inbox.claim(1)).claims
                assert claim.session
                await inbox.finish(claim, None)

            async def over(number: int) -> None:
                found = 0
                async for _ in stored.expired(datetime.now(UTC), 100):
                    if (found := found + 1) == 100:
                        break
                assert found == min(100, filled // 100)

            for size in sizes:
                await fill(client, filled, size)
                filled = size
                used = (await client.info("memory"))["used_memory"]
                rows["bytes each, of 2 messages"].append((used - before) / size)
                for name, call, rounds in zip(list(rows)[1:], (load, turn, over), (ROUNDS, ROUNDS, 40), strict=True):
                    await median(call, 20, 1e6)
                    rows[name].append(await median(call, rounds, 1e6))
            full = await bytes_of(client, 1000)
        finally:
            await client.aclose()
            server.stop()
    show(sizes, rows)
    print(f"{'bytes each, of 20 messages':34}{full:12.0f}")


async def bytes_of(client: Redis, number: int) -> float:
    """Of a session as full as it gets, with all that belongs to it."""
    before = (await client.info("memory"))["used_memory"]
    stored = RedisSessions(client)
    for one in range(number):
        ref = ConversationRef("full", f"line:U{one:032x}")
        await stored.save(ref, full_session(ref), TTL)
    return float((await client.info("memory"))["used_memory"] - before) / number


def message_of(ref: ConversationRef, name: str) -> InboundMessage:
    return InboundMessage(
        tenant=ref.tenant,
        channel="line-main",
        platform="line",
        event_id=name,
        user_id=ref.user,
        chat_id=ref.user.removeprefix("line:"),
        text="ราคาเท่าไหร่คะ",
        received_at=time.time(),
    )


# -- people ------------------------------------------------------------------------------------------------------------

EVENTS, FACTS = 5, 3
_SOME = 100  # people that are written one by one; in a database the others are their copies
_COPIES = """
INSERT INTO chat_chat.{table} ({columns}) SELECT {values} FROM chat_chat.{table} CROSS JOIN
    generate_series(%s::bigint, %s::bigint) AS n WHERE user_id = 'line:U' || lpad(to_hex((n %% {some})::int), 32, '0')
"""


async def people(sizes: Sequence[int], url: str | None) -> None:
    with tempfile.TemporaryDirectory(prefix="chat-chat-benchmark-") as folder:
        files: Rows = {}
        for size in sizes:
            base = Path(folder) / str(size) / "longterm"
            await asyncio.to_thread(write, base, size, EVENTS, FACTS)
            await measured(MemoryConfig(lm_base_path=base), size, files)
        print("files (a list's index made before)")
        show(sizes, files)
        if url:
            rows: Rows = {}
            for size in sizes:
                await in_database(url, Path(folder) / str(sizes[0]) / "longterm", size)
                await measured(MemoryConfig(lm_base_path=Path(folder) / "no", longterm_url=url), size, rows)
            print("PostgreSQL")
            show(sizes, rows)


async def measured(config: MemoryConfig, size: int, rows: Rows) -> None:
    later = NOW + timedelta(days=365 - 30 + 0.3)  # of thirty days of events, about one in a hundred is too old then
    manager = MemoryManager(config, clock=lambda: NOW)
    luck = random.Random(2)
    somebody = [f"line:U{luck.randrange(size):032x}" for _ in range(PEOPLE_ROUNDS)]
    await manager.refresh_lists(TENANT)

    async def load(number: int) -> None:
        await manager.longterm.load(TENANT, somebody[number])

    async def save(number: int) -> None:
        payload = {"original_message": "ราคาสินค้านี้เท่าไหร่ครับ", "language": "th", "classified_by": "rules"}
        new = MemoryEvent(event_type=EventType.INQUIRY, payload=payload, importance_score=0.8, timestamp=NOW)
        await manager.longterm.save_events(TENANT, somebody[number], [new])

    async def page(number: int) -> None:
        await manager.catalog.page(TENANT, "events", Wanted(), limit=50)

    async def found(number: int) -> None:
        await manager.catalog.page(TENANT, "users", Wanted(q=f"Customer {number}"), limit=50)

    for name, call, rounds in (
        ("load somebody, ms", load, PEOPLE_ROUNDS),
        ("save an event, ms", save, PEOPLE_ROUNDS),
        ("a page of events, ms", page, 40),
        ("a list's search, ms", found, 20),
    ):
        rows.setdefault(name, []).append(await median(call, rounds, 1e3))
    begin = time.perf_counter()
    removed = await manager.longterm.expire(TENANT, later)
    took = time.perf_counter() - begin
    rows.setdefault("expired events", []).append(removed)
    rows.setdefault("clean-up, ms an expired event", []).append(took * 1e3 / max(removed, 1))
    await manager.close()


async def in_database(url: str, base: Path, size: int) -> None:
    """`size` people: those of the smallest folder, and copies of them."""
    import psycopg

    from memory.postgres.migrate import migrate

    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS chat_chat CASCADE")
    await asyncio.to_thread(migrate, url)
    source = MemoryManager(MemoryConfig(lm_base_path=base), clock=lambda: NOW)
    target = MemoryManager(MemoryConfig(lm_base_path=base, longterm_url=url), clock=lambda: NOW)
    assert isinstance(source.longterm, Whole)
    assert isinstance(target.longterm, Whole)
    await Copy(source.longterm, target.longterm, base.parent / "notes", anew=True).once(TENANT, lambda *_: None)
    await target.close()
    some = min(_SOME, size)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SELECT set_config('chat_chat.tenant', %s, false)", [TENANT])
        for table in ("people", "events", "facts") if size > some else ():
            columns = [one.name for one in db.execute(f"SELECT * FROM chat_chat.{table} LIMIT 0").description or ()]
            of = {"user_id": "'line:U' || lpad(to_hex(n), 32, '0')", "named": "NULL"}
            if table == "people":
                of["words"] = "replace(words, 'customer', 'customer ' || n)"
            values = ", ".join(of.get(name, name) for name in columns)
            text = _COPIES.format(table=table, columns=", ".join(columns), values=values, some=some)
            db.execute(text.encode(), [some, size - 1])
        db.execute("ANALYZE")


PARTS = ("workers", "sessions", "people")


async def run(given: argparse.Namespace) -> None:
    print(f"{datetime.now(UTC).isoformat(timespec='minutes')}  {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for part in given.parts or PARTS:
        print(f"\n{part}")
        if part == "workers":
            await workers(given.workers, given.seconds)
        elif part == "sessions":
            await sessions(given.sessions)
        else:
            await people(given.people, given.url)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all where none is named")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement with workers")
    parser.add_argument("--sessions", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--people", nargs="+", type=int, default=[100, 10_000, 100_000])
    parser.add_argument("--url", help="a PostgreSQL database for `people`; what is in it is removed")
    in_order(run(parser.parse_args()))


if __name__ == "__main__":
    main()
