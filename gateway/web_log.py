"""What a web client sees of a conversation as it happens: a short log in Redis, told to whoever follows it.

While Redis is away the answers of this process go to its own followers directly.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Collection
from typing import Any, Literal, Protocol

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateway.messages import Media, QuickReply, Tokens
from gateway.wire import Listener, Wire
from memory import keys

log = logging.getLogger(__name__)

KEPT_FOR = 600  # seconds a conversation's log outlives its last entry
MOST = 2000  # entries of one conversation
AT_ONCE = 8  # calls to Redis of one process: each takes a connection, and hardly any time
WAITING = 2 * MOST  # entries that one follower may be behind
_LOCAL = 1000  # conversations answered from here while Redis is away

STREAMED = "s-"  # how a request's id begins when its answer is to be seen while it grows


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """`said`: what the person wrote. `delta`: more of an answer (`anew`: what was shown before is not part of it).
    `done`: the whole answer. `error`: there will be none, `status` says why as HTTP would. `told`: what nobody asked
    for just now, such as words of the shop's people."""

    kind: Literal["said", "delta", "done", "error", "told"]
    request: str = ""
    text: str = ""
    anew: bool = False
    watch: str = ""  # whose piece of an answer it is: a worker that stands in for a dead one begins again
    status: int = 0
    model: str | None = None
    provider: str | None = None
    tokens: Tokens = Tokens()
    quick_replies: tuple[QuickReply, ...] = ()
    media: tuple[Media, ...] = ()


encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode

# KEYS: the log, the mark of somebody who has gone. ARGV: entries kept, seconds kept, the entry.
_ADD = """
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'e', ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[2])
redis.call('PUBLISH', KEYS[1], id .. ' ' .. ARGV[3])
return redis.call('EXISTS', KEYS[2])
"""


class WebLog(Protocol):
    """Where answers for web clients go. `name` is the conversation's: its session's key. Raises RedisError."""

    async def add(self, name: str, entry: Entry) -> bool:
        """True: whoever asked this request has gone, and wants no more."""
        ...

    async def gone(self, name: str, request: str) -> bool: ...


class RedisLog:
    def __init__(self, client: Redis) -> None:
        self._redis = client
        self._add = client.register_script(_ADD)
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def add(self, name: str, entry: Entry) -> bool:
        where = [log_key(name), _mark(name, "gone", entry.request)]
        async with self._at_once:
            return bool(await self._add(keys=where, args=[MOST, KEPT_FOR, encode(entry)]))

    async def gone(self, name: str, request: str) -> bool:
        async with self._at_once:
            return bool(await self._redis.exists(_mark(name, "gone", request)))

    async def leave(self, name: str, request: str, here: str) -> None:
        """Notes that nobody waits for this answer any more, unless somebody came back for it after `here`."""
        latest: Any = await self._redis.get(_mark(name, "here", request))
        if (latest or b"").decode() == here:
            await self._redis.set(_mark(name, "gone", request), 1, ex=KEPT_FOR)

    async def came_back(self, name: str, request: str, here: str) -> None:
        await self._redis.set(_mark(name, "here", request), here, ex=KEPT_FOR)

    async def all(self, name: str) -> list[tuple[str, bytes]]:
        """The entries that are kept, oldest first."""
        rows: Any = await self._redis.xrange(log_key(name))
        return [(entry_id.decode(), fields[b"e"]) for entry_id, fields in rows]

    async def forget(self, name: str) -> None:
        await self._redis.delete(log_key(name))


class LocalLog:
    """For this process's followers alone, while Redis is away."""

    def __init__(self) -> None:
        self._logs: OrderedDict[str, deque[tuple[str, bytes]]] = OrderedDict()
        self._followers: dict[str, list[Follower]] = {}
        self._gone: set[str] = set()
        self._count = 0

    async def add(self, name: str, entry: Entry) -> bool:
        self._count += 1
        entry_id, raw = f"{time.time_ns() // 1_000_000}-{self._count}", encode(entry)
        self._logs.setdefault(name, deque(maxlen=MOST)).append((entry_id, raw))
        self._logs.move_to_end(name)
        while len(self._logs) > _LOCAL:
            self._logs.popitem(last=False)
        for follower in self._followers.get(name, ()):
            follower.take(entry_id, raw)
        return entry.request in self._gone

    async def gone(self, name: str, request: str) -> bool:
        return request in self._gone

    def leave(self, request: str) -> None:
        if len(self._gone) >= _LOCAL:
            self._gone.clear()
        self._gone.add(request)

    def all(self, name: str) -> list[tuple[str, bytes]]:
        return list(self._logs.get(name, ()))

    def join(self, name: str, follower: Follower) -> None:
        self._followers.setdefault(name, []).append(follower)

    def quit(self, name: str, follower: Follower) -> None:
        followers = self._followers.get(name, [])
        if follower in followers:
            followers.remove(follower)
        if not followers:
            self._followers.pop(name, None)


class TooSlow(Exception):
    """A follower was so far behind that it was given up."""


class Follower:
    """One client's place in a conversation's log: entries in order, each once."""

    def __init__(self, name: str, wire: Wire, redis: RedisLog, local: LocalLog) -> None:
        self._name = name
        self._wire = wire
        self._redis = redis
        self._local = local
        self._listener = Listener(self._hear, self._missed)
        self._queue: asyncio.Queue[tuple[str, Entry] | None] = asyncio.Queue()
        self._last = (0, 0)
        self._held: list[bytes] | None = None  # what came while the log is read
        self._catching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Follower:
        self._local.join(self._name, self)
        await self._wire.join(log_key(self._name), self._listener)
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._catching is not None:
            self._catching.cancel()
        self._local.quit(self._name, self)
        await self._wire.leave(log_key(self._name), self._listener)

    async def everything(self) -> list[tuple[str, Entry]]:
        """What is kept from before; `next` goes on behind it. Raises TooSlow."""
        self._last = (0, 0)  # what was heard since it joined stands in the log too, and must not hide what is older
        while not self._queue.empty():
            self._queue.get_nowait()
        self._missed()
        if self._catching is not None:
            await asyncio.wait({self._catching})
        found = []
        while not self._queue.empty():
            if (one := self._queue.get_nowait()) is None:
                raise TooSlow
            found.append(one)
        return found

    async def next(self, timeout: float) -> tuple[str, Entry] | None:
        """The next entry with its id; None after `timeout` seconds without one. Raises TooSlow."""
        try:
            async with asyncio.timeout(timeout):
                found = await self._queue.get()
        except TimeoutError:
            return None
        if found is None:
            raise TooSlow
        return found

    def take(self, entry_id: str, raw: bytes) -> None:
        if (place := place_of(entry_id)) <= self._last:
            return
        self._last = place
        if self._queue.qsize() < WAITING:
            self._queue.put_nowait((entry_id, _decode(raw)))
        elif self._queue.qsize() == WAITING:
            self._queue.put_nowait(None)

    def _hear(self, message: bytes) -> None:
        if self._held is not None:
            self._held.append(message)
            return
        entry_id, _, raw = message.partition(b" ")
        self.take(entry_id.decode(), raw)

    def _missed(self) -> None:
        if self._held is None:
            self._held = []
            self._catching = asyncio.create_task(self._catch_up())

    async def _catch_up(self) -> None:
        rows = self._local.all(self._name)
        try:
            rows += await self._redis.all(self._name)
        except (RedisError, OSError) as error:  # heard of again when it is back
            log.debug("a log is not read: %s", type(error).__name__)
        for entry_id, raw in sorted(rows, key=lambda row: place_of(row[0])):
            self.take(entry_id, raw)
        held, self._held = self._held or [], None
        for message in held:
            self._hear(message)


async def forget_logs(client: Redis, tenant: str, ids: Collection[str]) -> int:
    """Removes what these people's web conversations show; how many keys that were. Looks at every key of this kind:
    people are seldom forgotten. Raises RedisError."""
    gone = {keys.session(keys.ConversationRef(tenant, user)) for user in ids}
    removed = 0
    async for key in client.scan_iter(match=f"cc:web:{{sm:{keys.check_tenant(tenant)}:*", count=1000):
        name = key.decode().removeprefix("cc:web:{").partition("}")[0]
        if name.partition("/")[0] in gone:
            removed += int(await client.delete(key))
    return removed


def log_key(name: str) -> str:
    return keys.beside(name, "web")


def place_of(entry_id: str) -> tuple[int, int]:
    """An entry's place among all. Raises ValueError for what is no id."""
    at, _, count = entry_id.partition("-")
    return int(at), int(count or 0)


def _mark(name: str, kind: str, request: str) -> str:
    return keys.beside(name, "web", kind, request or "-")
