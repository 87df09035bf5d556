"""Whether anything costs more because there is more of it: `python -m benchmarks.scale PART …`.

    workers    messages a second and the 99th percentile with 1, 2 and 4 workers, the model taking 300 ms
    sessions   10 000, 100 000 and 1 000 000 sessions in Redis: bytes each, time to claim and to load one
    people     100, 10 000 and 100 000 people of one tenant, in files and (with --url) in PostgreSQL: save an event,
               load somebody, a page of a list, its search, clean-up of the one event in a hundred that has expired,
               and of nothing; the files lie in --folder (in /dev/shm a slow disk does not count)

Sizes by options. The last column is the largest size's over the smallest one's, which should be below 1.5. Linux only.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from benchmarks import shop_talk
from benchmarks.copied_index import copy_index
from benchmarks.house import full_session, open_house, seed
from benchmarks.load import KNOWN, Door, answered, answered_at
from benchmarks.processes import in_order, resident_mb
from benchmarks.tenant_lists import NOW, TENANT, customer, write
from gateway.inbox.base import Policy
from gateway.inbox.redis import RedisInbox
from gateway.messages import InboundMessage
from gateway.redis_server import EmbeddedRedis
from memory import MemoryConfig, MemoryManager, keys
from memory.copying import Copy, Whole
from memory.errors import CatalogUnavailable
from memory.keys import ConversationRef
from memory.listing import Wanted
from memory.long_term.json_files import JsonFiles
from memory.models import Message
from memory.postgres.database import Database
from memory.postgres.store import PostgresLongTerm
from memory.protocols import LongTerm
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


class Cost:
    """Of calls, one after the other: by the clock (median), and what they take of all processors (mean), in this
    process and those of `pids`; the second does not change with what else the machine does."""

    def __init__(self, rows: Rows, pids: Callable[[], Iterable[int]] = tuple) -> None:
        self._rows = rows
        self._pids = pids

    def worked(self) -> float:
        """CPU seconds until now, of processes that go on as long as it is asked."""
        return time.process_time() + _cpu(self._pids())

    async def of(self, name: str, call: Callable[[int], Awaitable[object]], rounds: int) -> None:
        await call(0)
        taken, began = [], self.worked()
        for number in range(rounds):
            begin = time.perf_counter()
            await call(number)
            taken.append(time.perf_counter() - begin)
        worked = self.worked() - began
        self._rows.setdefault(f"{name}, CPU ms", []).append(worked * 1e3 / rounds)
        self._rows.setdefault(f"{name}, ms", []).append(statistics.median(taken) * 1e3)


def _cpu(pids: Iterable[int]) -> float:
    """Seconds on a processor, all threads."""
    found = 0
    for pid in pids:
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            found += int(path.read_text("ascii").split()[0])
    return found / 1e9


def show(sizes: Sequence[int], rows: Rows) -> None:
    print(f"{'':34}{''.join(f'{size:>12,}' for size in sizes)}{'ratio':>10}")
    for name, values in rows.items():
        ratio = f"{values[-1] / values[0]:10.2f}" if values[0] else ""
        print(f"{name:34}{''.join(f'{value:12.2f}' for value in values)}{ratio}")


# -- workers -----------------------------------------------------------------------------------------------------------


async def workers(sizes: Sequence[int], seconds: float, rate: float | None) -> None:
    """`rate`: messages a second at which it is measured too; half of what that many workers can do by default."""
    held = f"{rate:g} a second" if rate else "half that rate"
    names = ("messages a second", "p50 ms, as many as can be", "p99 ms", f"p50 ms at {held}", f"p99 ms at {held}")
    rows: Rows = {name: [] for name in (*names, "CPU ms of workers a message", "MB each")}
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
            # Who writes again before they are answered gets one answer for both, which looks like a lost one here.
            at_once = min(IN_FLIGHT * number, KNOWN)
            most = await answered(house.standin, door, seconds, full=True, at_once=at_once)
            began = _cpu(one.pid for one in crew)
            half = await answered_at(house.standin, door, rate or max(1.0, most.rate / 2), seconds, full=True)
            worked = _cpu(one.pid for one in crew) - began
            found = (
                most.rate,
                most.at(0.5),
                most.at(0.99),
                half.at(0.5),
                half.at(0.99),
                worked * 1e3 / max(half.sent, 1),
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
    rows: Rows = {}
    with tempfile.TemporaryDirectory(prefix="chat-chat-benchmark-") as folder:
        server = EmbeddedRedis(Path(folder))
        client = connect(await asyncio.to_thread(server.start))
        try:
            before = (await client.info("memory"))["used_memory"]
            pid = int((await client.info("server"))["process_id"])
            cost = Cost(rows, lambda: (pid,))
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
                rows.setdefault("bytes each, of 2 messages", []).append((used - before) / size)
                await cost.of("load", load, ROUNDS)
                await cost.of("put, claim with session, finish", turn, ROUNDS)
                await cost.of("find 100 that are over", over, 40)
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
_SOME = 100  # people that are made one by one; the others are their copies
_TAKEN = 1000  # people in files that are taken into the index as the product does it; of more the index is copied, too
_COPIES = """
INSERT INTO chat_chat.{table} ({columns}) SELECT {values} FROM chat_chat.{table} CROSS JOIN
    generate_series(%s::bigint, %s::bigint) AS n WHERE user_id = 'line:U' || lpad(to_hex((n %% {some})::int), 32, '0')
"""


async def people(sizes: Sequence[int], url: str | None, no_files: bool, within: Path | None) -> None:
    with tempfile.TemporaryDirectory(prefix="chat-chat-benchmark-", dir=within) as folder:
        files: Rows = {}
        for size in () if no_files else sizes:
            base = Path(folder) / str(size) / "longterm"
            await asyncio.to_thread(write, base, size if size <= _TAKEN else _SOME, EVENTS, FACTS)
            await measured(
                MemoryConfig(lm_base_path=base), JsonFiles(base, clock=_now, cache_entries=0), size, Cost(files), files
            )
            shutil.rmtree(base.parent)
        if files:
            print(f"files, in {Path(folder).parent}")
            show(sizes, files)
        if not url:
            return
        rows: Rows = {}
        base = Path(folder) / "some" / "longterm"
        await asyncio.to_thread(write, base, min(_SOME, *sizes), EVENTS, FACTS)
        for size in sizes:
            await in_database(url, base, size)
            store = PostgresLongTerm(Database(url), clock=_now, cache_entries=0)
            config = MemoryConfig(lm_base_path=Path(folder) / "no", longterm_url=url)
            await measured(config, store, size, Cost(rows, partial(_backends, url)), rows)
        print("PostgreSQL")
        show(sizes, rows)


def in_files(base: Path, size: int) -> None:
    """The others, as copies of those who are there."""
    some = _SOME
    made = [(customer(number).user, keys.longterm_file(base, *customer(number)[:2])) for number in range(some)]
    known = [(user.encode(), path.read_bytes()) for user, path in made]
    for number in range(some, size):
        (user, raw), new = known[number % some], customer(number).user
        raw = raw.replace(user, new.encode()).replace(b'"Customer %d"' % (number % some), b'"Customer %d"' % number)
        keys.longterm_file(base, TENANT, new).write_bytes(raw)


def _now() -> datetime:
    return NOW


def _backends(url: str) -> list[int]:
    """The database's processes that serve us."""
    import psycopg

    with psycopg.connect(url) as db:
        asked = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        return [pid for (pid,) in db.execute(asked)]


async def measured(config: MemoryConfig, store: LongTerm, size: int, cost: Cost, rows: Rows) -> None:
    """`store` keeps nobody in mind, so that each call reads."""
    later = NOW + timedelta(days=365 - 30 + 0.3)  # of thirty days of events, about one in a hundred is too old then
    manager = MemoryManager(config, clock=_now)
    luck = random.Random(2)
    somebody = [f"line:U{luck.randrange(size):032x}" for _ in range(PEOPLE_ROUNDS)]
    began = cost.worked()
    taken = await manager.refresh_lists(TENANT)
    await searched(manager)
    rows.setdefault("taken into the lists, CPU ms each", []).append((cost.worked() - began) * 1e3 / (taken or size))
    if config.longterm_url is None and size > taken:
        await asyncio.to_thread(in_files, config.lm_base_path, size)
        await asyncio.to_thread(copy_index, config.lm_base_path, taken, size)
        assert await manager.catalog.refresh(TENANT) == 0  # it has everybody as they are

    async def load(number: int) -> None:
        await store.load(TENANT, somebody[number])

    async def save(number: int) -> None:
        payload = {"original_message": "ราคาสินค้านี้เท่าไหร่ครับ", "language": "th", "classified_by": "rules"}
        new = MemoryEvent(event_type=EventType.INQUIRY, payload=payload, importance_score=0.8, timestamp=NOW)
        await store.save_events(TENANT, somebody[number], [new])

    async def page(number: int) -> None:
        await manager.catalog.page(TENANT, "events", Wanted(), limit=50, after=after)

    async def found(number: int) -> None:
        await manager.catalog.page(TENANT, "users", Wanted(q=f"Customer {size - 1 - number}"), limit=50)

    after = (await manager.catalog.page(TENANT, "events", Wanted(), limit=50)).last
    await cost.of("load somebody", load, PEOPLE_ROUNDS)
    await cost.of("save an event", save, PEOPLE_ROUNDS)
    await cost.of("the next page of a list", page, 40)
    after = None
    await cost.of("the first page, with its total", page, 20)
    await cost.of("a list's search", found, 20)

    async def nothing_due(_: int) -> None:
        await manager.refresh_lists(TENANT)
        assert await manager.longterm.expire(TENANT, NOW) == await manager.prune_all(TENANT) == 0

    await cost.of("clean-up with nothing due", nothing_due, 20)
    begin = cost.worked()
    removed = await manager.longterm.expire(TENANT, later)
    rows.setdefault("expired events", []).append(removed)
    rows.setdefault("clean-up, CPU ms each", []).append((cost.worked() - begin) * 1e3 / max(removed, 1))
    await manager.catalog.refresh(TENANT)
    begin = cost.worked()
    await manager.catalog.refresh(TENANT)
    rows.setdefault("everybody compared, CPU ms", []).append((cost.worked() - begin) * 1e3)
    await store.close()
    await manager.close()


async def searched(manager: MemoryManager) -> None:
    """Returns when the lists can be searched."""
    while True:
        try:
            await manager.catalog.page(TENANT, "users", Wanted(q="somebody"))
            return
        except CatalogUnavailable:
            continue


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
            of = {"user_id": "'line:U' || lpad(to_hex(n), 32, '0')", "named": "NULL", "tallied": "0"}
            if table == "people":
                of["words"] = "regexp_replace(words, 'customer [0-9]+', 'customer ' || n)"
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
            await workers(given.workers, given.seconds, given.rate)
        elif part == "sessions":
            await sessions(given.sessions)
        else:
            await people(given.people, given.url, given.no_files, given.folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all where none is named")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement with workers")
    parser.add_argument("--rate", type=float, help="messages a second that workers are also measured at")
    parser.add_argument("--sessions", nargs="+", type=int, default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--people", nargs="+", type=int, default=[100, 10_000, 100_000])
    parser.add_argument("--no-files", action="store_true", help="`people` in the database alone")
    parser.add_argument("--folder", type=Path, help="where the files of `people` lie, e.g. /dev/shm")
    parser.add_argument("--url", help="a PostgreSQL database for `people`; what is in it is removed")
    in_order(run(parser.parse_args()))


if __name__ == "__main__":
    main()
