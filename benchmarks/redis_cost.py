"""What a turn, a session and a session's bytes cost in Redis."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from redis.asyncio import Redis

from benchmarks.house import TTL, House, full_session, ref_of
from benchmarks.load import Door, answered, answered_at, median
from gateway.inbox.base import Outcome, Policy, SessionWrite
from gateway.inbox.redis import RedisInbox
from gateway.messages import InboundMessage
from memory import keys
from memory.short_term import codec, lua
from memory.short_term.redis import RedisSessions

_INNER = "evalsha"  # what clients send; what scripts do inside stands in the same statistics
_QUIET = 3.0  # seconds over which the idle processes' own commands are counted


async def round_trips(client: Redis, seconds: float) -> dict[str, float]:
    """Round trips a second at full speed, one after the other on one connection and 16 commands a pipeline."""

    async def rate(pipelined: int) -> float:
        pipe: Any = client.pipeline(transaction=False)
        done, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            if pipelined == 1:
                await client.get("cc:benchmark")
            else:
                for _ in range(pipelined):
                    pipe.get("cc:benchmark")
                await pipe.execute()
            done += pipelined
        return done / (time.perf_counter() - begin)

    return {"round_trips": await rate(1), "pipelined_commands": await rate(16)}


async def of_a_turn(house: House, door: Door, seconds: float) -> dict[str, Any]:
    """Scripts, commands (those inside the scripts included) and round trips (reads of the server) a turn."""
    idle = await _count(house.client, asyncio.sleep(_QUIET), _QUIET, 1)
    rows = {}
    slow = answered_at(house.standin, door, 5, seconds, full=True)
    rows["5 a second"] = await _count(house.client, slow, seconds, int(5 * seconds), idle)
    turns: dict[str, int] = {}

    async def busy() -> None:
        outcome = await answered(house.standin, door, seconds, full=True, at_once=32)
        turns["done"] = outcome.sent

    before = await _figures(house.client)
    begin = time.perf_counter()
    await busy()
    after = await _figures(house.client)
    rows["as many as can be"] = _each(before, after, turns["done"], time.perf_counter() - begin, idle)
    return rows


async def _count(
    client: Redis, work: Any, seconds: float, turns: int, idle: dict[str, float] | None = None
) -> dict[str, float]:
    before = await _figures(client)
    await work
    after = await _figures(client)
    if idle is None:
        return {name: (after[name] - before[name]) / seconds for name in after}
    return _each(before, after, turns, seconds, idle)


def _each(
    before: dict[str, float], after: dict[str, float], turns: int, seconds: float, idle: dict[str, float]
) -> dict[str, float]:
    """Without what the processes send while nothing happens."""
    return {name: (after[name] - before[name] - idle[name] * seconds) / turns for name in after}


async def _figures(client: Redis) -> dict[str, float]:
    stats: Any = await client.info("stats")
    commands: Any = await client.info("commandstats")
    return {
        "scripts": float(commands.get(f"cmdstat_{_INNER}", {}).get("calls", 0)),
        "commands": float(sum(one["calls"] for one in commands.values())),
        "round_trips": float(stats["total_reads_processed"]),
    }


async def of_a_session(client: Redis, rounds: int) -> dict[str, float]:
    """Load and save of a session of 20 Thai messages, beside one pipelined round trip that moves the same bytes: by
    themselves, two round trips, and as turns do it, with the claim and the end that they make anyway."""
    sessions, ref = RedisSessions(client), ref_of("line", 9_999_999)
    await sessions.save(ref, full_session(ref), TTL)
    key = keys.session(ref)
    raw: Any = await client.get(key)
    loaded_saved, bare, coded = [], [], []
    for _ in range(rounds):
        begin = time.perf_counter()
        session = await sessions.load(ref)
        assert session is not None
        assert await sessions.save(ref, session, TTL)
        loaded_saved.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        pipe: Any = client.pipeline(transaction=False)
        pipe.get(f"{key}:bare").set(f"{key}:bare", raw, px=TTL * 1000)
        await pipe.execute()
        bare.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        codec.encode(codec.decode(raw), 2)
        coded.append(time.perf_counter() - begin)
    riding = await _riding(client, min(rounds, 500))
    text = sum(len(line["message"].encode()) for line in full_session(ref).history)
    held: Any = await client.memory_usage(key)
    await client.delete(f"{key}:bare")
    await sessions.delete(ref)
    return {
        "load_save_us": median(loaded_saved) * 1e6,
        "bare_us": median(bare) * 1e6,
        "decode_encode_us": median(coded) * 1e6,
        "ratio": median(loaded_saved) / median(bare),
        "riding_us": riding * 1e6,
        "riding_ratio": riding / median(bare),
        "text_bytes": text,
        "value_bytes": len(raw),
        "redis_bytes": held,
        "bytes_ratio": held / text,
    }


async def _riding(client: Redis, rounds: int) -> float:
    """Seconds that claiming and ending a batch take longer with a full session than without any, in turn."""
    inbox, ref = RedisInbox(client, "benchmark"), ref_of("line", 9_999_998)
    sessions = RedisSessions(client)
    took: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * rounds):
        full = number % 2 == 0
        await sessions.delete(ref)
        if full:
            await sessions.save(ref, full_session(ref), TTL)
        message = InboundMessage(
            tenant=ref.tenant,
            channel="line-main",
            platform="line",
            event_id=f"{time.time_ns()}",
            user_id=ref.user,
            chat_id="",
        )
        await inbox.put([(message, Policy())])
        begin = time.perf_counter()
        [claim] = (await inbox.claim(1)).claims
        write = None
        if claim.session:
            session = codec.decode(claim.session)
            value = codec.encode(session, session.rev + 1)
            write = SessionWrite(value, session.rev, codec.ttl_ms(TTL), lua.member(ref), lua.score(session))
        assert await inbox.finish(claim, write) == (Outcome.DONE, None)
        took[full].append(time.perf_counter() - begin)
    await sessions.delete(ref)
    return median(took[True]) - median(took[False])
