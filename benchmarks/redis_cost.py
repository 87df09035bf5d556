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
_BLOCK = 20
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


async def of_a_session(client: Redis, blocks: int) -> dict[str, float]:
    """Load and save of a session of 20 Thai messages, beside one pipelined round trip that moves the same bytes: by
    themselves, two round trips, and as turns do it, with the claim and the end that they make anyway. All of it in
    turn, `_BLOCK` times each; a ratio is the median of the blocks' ratios."""
    ways = _Ways(client)
    await ways.begin()
    found = []
    for _ in range(blocks):
        took: dict[str, list[float]] = {name: [] for name in ("apart", "full", "empty", "bare", "coded")}
        for _ in range(_BLOCK):
            took["apart"].append(await ways.apart())
            took["full"].append(await ways.claimed_and_ended(full=True))
            took["bare"].append(await ways.bare())
            took["empty"].append(await ways.claimed_and_ended(full=False))
            took["coded"].append(ways.coded())
        found.append({name: median(times) for name, times in took.items()})
    text = sum(len(line["message"].encode()) for line in ways.session.history)
    held: Any = await client.memory_usage(keys.session(ways.ref))
    await ways.end()
    return {
        "load_save_us": median([one["apart"] for one in found]) * 1e6,
        "bare_us": median([one["bare"] for one in found]) * 1e6,
        "decode_encode_us": median([one["coded"] for one in found]) * 1e6,
        "ratio": median([one["apart"] / one["bare"] for one in found]),
        "riding_us": median([one["full"] - one["empty"] for one in found]) * 1e6,
        "riding_ratio": median([(one["full"] - one["empty"]) / one["bare"] for one in found]),
        "text_bytes": text,
        "value_bytes": len(ways.raw),
        "redis_bytes": held,
        "bytes_ratio": held / text,
    }


class _Ways:
    """Each way of loading and saving a full session, and what it is held against; all say how many seconds it took."""

    def __init__(self, client: Redis) -> None:
        self._client = client
        self._inbox = RedisInbox(client, "benchmark")
        self._sessions = RedisSessions(client)
        self.ref = ref_of("line", 9_999_999)
        self.session = full_session(self.ref)
        self.raw = codec.encode(self.session, 1)

    async def begin(self) -> None:
        await self._sessions.delete(self.ref)
        await self._sessions.save(self.ref, self.session, TTL)

    async def apart(self) -> float:
        begin = time.perf_counter()
        session = await self._sessions.load(self.ref)
        assert session is not None
        assert await self._sessions.save(self.ref, session, TTL)
        return time.perf_counter() - begin

    async def bare(self) -> float:
        key = f"{keys.session(self.ref)}:bare"
        begin = time.perf_counter()
        pipe: Any = self._client.pipeline(transaction=False)
        pipe.get(key).set(key, self.raw, px=TTL * 1000)
        await pipe.execute()
        return time.perf_counter() - begin

    def coded(self) -> float:
        begin = time.perf_counter()
        codec.encode(codec.decode(self.raw), 2)
        return time.perf_counter() - begin

    async def claimed_and_ended(self, *, full: bool) -> float:
        """A batch of one message, of somebody with that session or without any."""
        ref = self.ref._replace(user=f"{self.ref.user}:{full}")
        await self._sessions.delete(ref)
        if full:
            await self._client.set(keys.session(ref), self.raw)
        message = InboundMessage(
            tenant=ref.tenant,
            channel="line-main",
            platform="line",
            event_id=f"{time.time_ns()}",
            user_id=ref.user,
            chat_id="",
        )
        await self._inbox.put([(message, Policy())])
        begin = time.perf_counter()
        [claim] = (await self._inbox.claim(1)).claims
        write = None
        if claim.session:
            session = codec.decode(claim.session)
            value = codec.encode(session, session.rev + 1)
            write = SessionWrite(value, session.rev, codec.ttl_ms(TTL), lua.member(ref), lua.score(session))
        assert await self._inbox.finish(claim, write) == (Outcome.DONE, None)
        took = time.perf_counter() - begin
        await self._sessions.delete(ref)
        return took

    async def end(self) -> None:
        await self._client.delete(f"{keys.session(self.ref)}:bare")
        await self._sessions.delete(self.ref)
