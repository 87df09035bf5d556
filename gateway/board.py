"""What staff see of a shop's conversations: which there are, what is new in them, who waits for a person. It holds no
words: those are read where they are kept."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from gateway.hooks import Exchange
from gateway.messages import InboundMessage
from gateway.staff_desk import UNTIL, WANTED, Customer, customer_of
from memory import keys
from memory.keys import ConversationRef
from memory.models import Message
from memory.redis_client import in_company, many
from memory.session import time_of
from processors.models import iso

log = logging.getLogger(__name__)

KEPT_FOR = timedelta(days=35)
SHOWN = 1000  # conversations that are looked through for what is new or waits
TOKEN_FOR = 45  # seconds in which a reply token that the bot left over may be used by staff
_TOGETHER = 0.2  # seconds in which what several turns did is gathered
_RENEWED_EVERY = 3600.0  # seconds
_TIDIED_EVERY = 86_400.0  # seconds
_AT_ONCE = 5000  # conversations that are removed in one step


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One conversation. Times in ms since 1970; 0: never. `held`: by a person, `wanted`: asked for in vain."""

    customer: Customer
    heard: int = 0  # the customer's last words
    told: int = 0  # the last words of the bot or of staff
    held: bool = False
    wanted: bool = False

    @property
    def ref(self) -> tuple[str, str, str]:
        return self.customer.user_id, self.customer.agent, self.customer.conversation_id

    @property
    def needs(self) -> bool:
        """Whether somebody waits for a person."""
        return self.wanted or (self.held and self.heard > self.told)


@dataclass(frozen=True, slots=True)
class Row:
    name: str  # the conversation's
    entry: Entry
    unread: bool

    @property
    def place(self) -> tuple[int, str]:
        return max(self.entry.heard, self.entry.told), self.name


Forgotten = Callable[[Sequence[tuple[ConversationRef, datetime]]], Awaitable[Sequence[bool]]]

_Written = dict[ConversationRef, Exchange]  # the last of each

_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(Entry).decode


class Board:
    """A hook, and what the admin page reads. Writing is done behind the turn, several in one round trip. `forgotten`
    tells who of some was forgotten since a time: of them nothing stays."""

    def __init__(self, client: Redis, forgotten: Forgotten | None = None) -> None:
        self._redis = client
        self._forgotten = forgotten
        self._waiting: _Written = {}
        self._writing: asyncio.Task[None] | None = None
        # Tenant: when it is told anew how long to keep it, and when it is tidied.
        self._renew: defaultdict[str, float] = defaultdict(float)
        self._tidy_at: defaultdict[str, float] = defaultdict(float)

    # -- the worker's side ---------------------------------------------------------------------------------------------

    async def after(self, exchange: Exchange) -> None:
        if exchange.last is None:
            return
        self._waiting[exchange.ref] = exchange
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def close(self) -> None:
        if self._writing is not None:
            await asyncio.wait({self._writing}, timeout=1.0)

    async def _write(self) -> None:
        while self._waiting:
            await asyncio.sleep(_TOGETHER)
            some, self._waiting = self._waiting, {}
            try:
                left = await self._not_forgotten(some)
                await in_company(self._redis, _TOGETHER)
                await self._put_down(left)
                there = await self._not_forgotten(left)  # whoever is forgotten later than this look finds it here
                for ref in left.keys() - there.keys():
                    await self._drop(ref.tenant, [keys.session(ref).encode()])
                now = asyncio.get_running_loop().time()
                for tenant in {ref.tenant for ref in some if self._tidy_at[ref.tenant] <= now}:
                    await self._tidy(tenant)
                    self._tidy_at[tenant] = now + _TIDIED_EVERY
            except (RedisError, OSError) as error:
                log.warning("staff don't see that something was said: %s", type(error).__name__)

    async def _not_forgotten(self, some: _Written) -> _Written:
        # All at once: asked one by one, a busy worker's list would grow faster than it is written.
        if self._forgotten is None or not some:
            return some
        since = [
            (ref, datetime.fromtimestamp(exchange.last.received_at, UTC))
            for ref, exchange in some.items()
            if exchange.last is not None
        ]
        gone = await self._forgotten(since)
        return {ref: some[ref] for (ref, _), left in zip(since, gone, strict=True) if not left}

    async def _put_down(self, some: _Written) -> None:
        entries: defaultdict[str, dict[str, Entry]] = defaultdict(dict)
        tokens: dict[str, bytes] = {}
        for ref, exchange in some.items():
            if (last := exchange.last) is None:
                continue
            name = keys.session(ref)
            entry = entries[ref.tenant][name] = _entry(exchange, last)
            unanswered = entry.held and not any(line["role"] == "bot" for line in exchange.said)
            if unanswered and last.reply_token is not None and last.platform == "line":
                tokens[_key(ref.tenant, "token", name)] = _encode((last.reply_token, last.received_at))
        commands: list[tuple[Any, ...]] = []
        for tenant, named in entries.items():
            told_of: list[Any] = []
            for name, entry in named.items():
                told_of += (name, _encode(entry))
            commands.append(("HSET", _key(tenant), *told_of))
        for tenant, named in entries.items():
            at: list[Any] = []
            for name, entry in named.items():
                at += (max(entry.heard, entry.told), name)
            commands.append(("ZADD", _key(tenant, "at"), *at))
        commands += [("SET", key, token, "EX", TOKEN_FOR) for key, token in tokens.items()]
        if not commands:
            return
        # First of all: how many are new of each tenant's, as all are of a list that is.
        added = await many(self._redis, commands)
        now = asyncio.get_running_loop().time()
        told = {tenant for tenant, new in zip(entries, added, strict=False) if new or self._renew[tenant] <= now}
        if told:
            kept = int(KEPT_FOR.total_seconds())
            names = [name for tenant in told for name in (_key(tenant), _key(tenant, "at"))]
            await many(self._redis, [("EXPIRE", name, kept) for name in names])
            self._renew.update(dict.fromkeys(told, now + _RENEWED_EVERY))

    async def _tidy(self, tenant: str) -> None:
        found: Any = await self._redis.zrange(_key(tenant, "at"), -1, -1, withscores=True)
        newest = int(found[0][1]) if found else 0
        before = newest - KEPT_FOR.total_seconds() * 1000
        while old := await self._old(tenant, before):
            await self._drop(tenant, old)

    async def _old(self, tenant: str, before: float) -> Collection[bytes]:
        found: Any = await self._redis.zrangebyscore(_key(tenant, "at"), 0, before, start=0, num=_AT_ONCE)
        return found  # type: ignore[no-any-return]

    # -- the page's side: raises RedisError ----------------------------------------------------------------------------

    async def rows(self, tenant: str) -> list[Row]:
        """The newest SHOWN, the newest first."""
        names: Any = await self._redis.zrevrange(_key(tenant, "at"), 0, SHOWN - 1)
        if not names:
            return []
        pipe: Any = self._redis.pipeline(transaction=False)
        pipe.hmget(_key(tenant), names).hmget(_key(tenant, "read"), names)
        raw, read = await pipe.execute()
        found = [
            Row(name.decode(), entry, entry.heard > int(seen or 0))
            for name, one, seen in zip(names, raw, read, strict=True)
            if one is not None and (entry := _decode(one))
        ]
        return sorted(found, key=lambda row: row.place, reverse=True)

    async def people(self, tenant: str) -> dict[str, Entry]:
        """Of each person the conversation in which they wrote last."""
        found: dict[str, Entry] = {}
        async for _, raw in self._redis.hscan_iter(_key(tenant), count=1000):
            entry = _decode(raw)
            known = found.get(entry.customer.user_id)
            if known is None or known.heard < entry.heard:
                found[entry.customer.user_id] = entry
        return found

    async def entry(self, ref: ConversationRef) -> Entry | None:
        raw: Any = await self._redis.hget(_key(ref.tenant), keys.session(ref))
        return _decode(raw) if raw is not None else None

    async def read(self, ref: ConversationRef, entry: Entry) -> None:
        """Somebody of the shop saw what the customer said so far."""
        pipe: Any = self._redis.pipeline(transaction=False)
        pipe.hset(_key(ref.tenant, "read"), keys.session(ref), entry.heard).expire(_key(ref.tenant, "read"), KEPT_FOR)
        await pipe.execute()

    async def take_token(self, ref: ConversationRef) -> tuple[str, float] | None:
        """The reply token that the customer's last message left over, and when it was received (s): once."""
        raw = await self._redis.getdel(_key(ref.tenant, "token", keys.session(ref)))
        if raw is None:
            return None
        token, at = msgspec.json.decode(raw)
        return str(token), float(at)

    async def has_token(self, ref: ConversationRef) -> bool:
        return bool(await self._redis.exists(_key(ref.tenant, "token", keys.session(ref))))

    async def forget(self, tenant: str, ids: Collection[str]) -> int:
        """Removes these people's conversations; how many. Looks at every one: people are seldom forgotten."""
        found = []
        async for name, raw in self._redis.hscan_iter(_key(tenant), count=1000):
            if _decode(raw).customer.user_id in ids:
                found.append(name)
        await self._drop(tenant, found)
        return len(found)

    async def _drop(self, tenant: str, names: Collection[bytes]) -> None:
        if names:
            pipe: Any = self._redis.pipeline(transaction=False)
            pipe.zrem(_key(tenant, "at"), *names).hdel(_key(tenant), *names).hdel(_key(tenant, "read"), *names)
            for name in names:
                pipe.delete(_key(tenant, "token", name.decode()))
            await pipe.execute()


def _key(tenant: str, *rest: str) -> str:
    return keys.shared("board", keys.check_tenant(tenant), *rest)


def _entry(exchange: Exchange, last: InboundMessage) -> Entry:
    return Entry(
        customer=customer_of(last),
        heard=_last(exchange, "user"),
        told=_last(exchange, "bot"),
        held=exchange.state == "human" and str(exchange.variables.get(UNTIL)) > iso(exchange.now),
        wanted=exchange.variables.get(WANTED) is True,
    )


def _last(exchange: Exchange, role: str) -> int:
    """When that one spoke last, as things stand now. A history is in the order of its times."""
    last = 0
    for line in reversed(exchange.session.history):
        if line["role"] == role:
            last = _ms(line)
            break
    for line in exchange.said:
        if line["role"] == role:
            last = max(last, _ms(line))
    return last


def _ms(line: Message) -> int:
    return int(at.timestamp() * 1000) if (at := time_of(line)) else 0
