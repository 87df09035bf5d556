"""All of our keys in Redis, read by their types and written back, so that any server takes what any other had.

What belongs to one conversation (its session, its queue, its state) is read in one step. Marks of who is to be looked
at next are left out: they are made anew, for however many shards there are.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from redis.asyncio import Redis

from memory.short_term import lua

OURS = (b"sm:", b"cc:")
MADE_ANEW = re.compile(rb"cc:(workers$|i:\{[^}]*\}:(due|lease|held|again|tenants|wake|ready:.*)$)")
READABLE_FOR = 3_600_000  # ms at the least that a restored session stays, so that one that is over is consolidated

_CONVERSATION = re.compile(rb"cc:[qc]:\{(.+)\}$")
_AT_ONCE = 200  # keys
_LONG = 5_000  # members of a sorted set that are read in one step

# Of each of KEYS that there is: key, type, ms since 1970 when it ends (-1: never), ms until then, what it holds.
_READ = """
local ways = {
  string = function(key) return redis.call('GET', key) end,
  hash = function(key) return redis.call('HGETALL', key) end,
  list = function(key) return redis.call('LRANGE', key, 0, -1) end,
  set = function(key) return redis.call('SMEMBERS', key) end,
  zset = function(key)
    if redis.call('ZCARD', key) > tonumber(ARGV[1]) then return false end
    return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  end,
  stream = function(key) return redis.call('XRANGE', key, '-', '+') end,
}
local found = {}
for _, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  if ways[kind] then
    found[#found + 1] = {key, kind, redis.call('PEXPIRETIME', key), redis.call('PTTL', key), ways[kind](key)}
  end
end
return found
"""


class Record(msgspec.Struct, frozen=True, array_like=True):
    """A key, or part of a long sorted set."""

    key: bytes
    kind: bytes  # string | hash | list | set | zset | stream, or `part` of a long zset
    ends: int  # milliseconds since 1970, -1: never
    left: int  # milliseconds when it was read
    value: Any  # as Redis answers: bytes, or bytes in a list

    @property
    def conversation(self) -> str | None:
        """Whose queue this is."""
        found = _CONVERSATION.match(self.key) if self.kind == b"list" else None
        return found[1].decode() if found else None


def write(records: Iterable[Record], path: Path) -> None:
    """Adds them to the file."""
    encode = msgspec.msgpack.encode
    with gzip.open(path, "ab", compresslevel=1) as file:
        for one in map(encode, records):
            file.write(len(one).to_bytes(8, "big") + one)


def read(path: Path) -> Iterator[Record]:
    decode = msgspec.msgpack.Decoder(Record).decode
    with gzip.open(path, "rb") as file:
        while size := file.read(8):
            yield decode(file.read(int.from_bytes(size, "big")))


class Keyspace:
    """`cluster`: a step may only touch keys of one slot. Raises RedisError."""

    def __init__(self, client: Redis, *, cluster: bool) -> None:
        self._redis = client
        self._cluster = cluster

    async def records(self) -> AsyncIterator[list[Record]]:
        """Every key, some at a time. A session whose queue came up meanwhile comes again, as it is then: the later one
        counts."""
        pending: set[bytes] = set()  # conversations that were read with their queues
        async for keys in self._some():
            steps: dict[bytes, list[bytes]] = {}
            for key in keys:
                name = found[1] if (found := _CONVERSATION.match(key)) else key
                if name in pending or MADE_ANEW.match(key):
                    continue
                steps[name] = [name, b"cc:q:{%b}" % name, b"cc:c:{%b}" % name] if name.startswith(b"sm:") else [name]
            read = await self._read(list(steps.values()))
            pending.update(one.key[6:-1] for one in read if _CONVERSATION.match(one.key))
            whole = [one for one in read if one.value is not None]
            for one in read:
                if one.value is None:
                    whole += await self._long(one)
            yield [_in_one_index(one) for one in whole]

    async def any(self) -> bool:
        """Whether there is anything of ours."""
        async for _ in self._some():
            return True
        return False

    async def clear(self) -> None:
        async for keys in self._some():
            pipe: Any = self._redis.pipeline(transaction=False)
            for key in keys:
                pipe.unlink(key)
            await pipe.execute()

    async def put(self, records: Sequence[Record]) -> list[bytes]:
        """Writes them where nothing is, and reads them again; the keys that are not as they were."""
        now = int(time.time() * 1000)
        kept = [one for one in records if one.ends < 0 or one.ends > now or one.key.startswith(b"sm:")]
        pipe: Any = self._redis.pipeline(transaction=False)
        for one in kept:
            _put(pipe, one)
            if one.ends >= 0:
                ends = now + max(one.left, READABLE_FOR) if one.key.startswith(b"sm:") else one.ends
                pipe.pexpireat(one.key, ends)
        await pipe.execute()
        last = {one.key: one for one in kept}
        there = {one.key: one for one in await self._read([[key] for key in last])}
        wrong = [key for key, one in last.items() if key not in there or not _same(one, there[key])]
        soon = int(time.time() * 1000)
        return [key for key in wrong if not now <= last[key].ends <= soon]

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _some(self) -> AsyncIterator[list[bytes]]:
        keys: list[bytes] = []
        async for key in self._redis.scan_iter(count=1000):
            if key.startswith(OURS):
                keys.append(key)
            if len(keys) >= _AT_ONCE:
                yield keys
                keys = []
        if keys:
            yield keys

    async def _read(self, steps: list[list[bytes]]) -> list[Record]:
        """The keys of each step at one moment."""
        if not self._cluster:  # where a script may touch any key
            steps = [[key for step in steps for key in step]] if steps else []
        asked = [self._redis.eval(_READ, len(keys), *keys, str(_LONG)) for keys in steps]
        answers: Any = await asyncio.gather(*asked)
        return [Record(*row) for answer in answers for row in answer]

    async def _long(self, one: Record) -> list[Record]:
        """A sorted set that is read while it changes: what is in it all the time is in the answer."""
        found: list[Record] = []
        part: list[bytes] = []
        async for member, score in self._redis.zscan_iter(one.key, count=_LONG, score_cast_func=bytes):
            part += [member, score]
            if len(part) >= 2 * _LONG:
                found.append(msgspec.structs.replace(one, kind=b"part", value=part))
                part = []
        return [*found, msgspec.structs.replace(one, kind=b"part", value=part)] if part else found


def _in_one_index(one: Record) -> Record:
    """When sessions are over is kept as on a plain server: a cluster takes that over, in however many parts."""
    if one.key.decode("utf-8", "replace") in lua.INDEXES:
        return msgspec.structs.replace(one, key=lua.INDEX.encode(), kind=b"part")
    return one


def _put(pipe: Any, one: Record) -> None:
    if one.kind == b"string":
        pipe.set(one.key, one.value)
    elif one.kind == b"hash":
        pipe.hset(one.key, mapping=_plain(one))
    elif one.kind == b"list":
        pipe.rpush(one.key, *one.value)
    elif one.kind == b"set":
        pipe.sadd(one.key, *one.value)
    elif one.kind in (b"zset", b"part"):
        pipe.zadd(one.key, _plain(one))
    else:
        for name, fields in one.value:
            pipe.xadd(one.key, dict(zip(fields[::2], fields[1::2], strict=True)), id=name)


def _same(one: Record, there: Record) -> bool:
    if one.kind == b"part":
        return there.value is None or _plain(one).items() <= _plain(there).items()
    return one.kind == there.kind and _plain(one) == _plain(there)


def _plain(one: Record) -> Any:
    pairs = one.value[::2], one.value[1::2]
    if one.kind in (b"zset", b"part"):
        return dict(zip(pairs[0], map(float, pairs[1]), strict=True))
    if one.kind == b"hash":
        return dict(zip(*pairs, strict=True))
    return sorted(one.value) if one.kind == b"set" else one.value
