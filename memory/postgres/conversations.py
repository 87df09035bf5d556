"""Conversations that programs opened by name, in PostgreSQL: Conversations of memory.conversations."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from memory import keys
from memory.conversations import Conversation, conversation_of, record_of, used_ms
from memory.index.rows import milliseconds
from memory.postgres.database import Connection, Database, counted

TRUSTED = 10.0  # seconds that what was read is taken for true, so that not each message asks
NOTED_EVERY = timedelta(minutes=1)  # how exactly its last use is known

_KNOWN = 10_000  # that are kept in mind
_ONE = "WHERE tenant = %s AND id = %s"
_HELD = "id, used, record"


class PostgresConversations:
    """The store of long-term memory closes the connections. `clock` in seconds."""

    def __init__(
        self, database: Database, *, trusted: float = TRUSTED, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._trusted = trusted
        self._clock = clock
        self._known: OrderedDict[tuple[str, str], tuple[float, Conversation]] = OrderedDict()

    async def open(self, new: Conversation) -> Conversation:
        if (known := self._held(new.tenant, new.id)) is not None:
            return known
        async with self._database.tenant(new.tenant) as db:
            await _insert(db, new, "DO NOTHING")
            there = await _read(db, new.tenant, new.id)
        return self._hold(there or new)

    async def put(self, one: Conversation) -> None:
        async with self._database.tenant(one.tenant) as db:
            new = "user_id = excluded.user_id, used = excluded.used, record = excluded.record"
            await _insert(db, one, f"(tenant, id) DO UPDATE SET {new}")
        self._hold(one)

    async def get(self, tenant: str, id_: str) -> Conversation | None:
        if (known := self._held(tenant, id_)) is not None:
            return known
        async with self._database.tenant(tenant, reading=True) as db:
            there = await _read(db, tenant, id_)
        return self._hold(there) if there else None

    async def used(self, tenant: str, id_: str, now: datetime) -> None:
        known = self._held(tenant, id_)
        if known is not None and timedelta() <= now - known.used_at < NOTED_EVERY:
            return
        async with self._database.tenant(tenant) as db:
            asked = f"UPDATE chat_chat.conversations SET used = %s {_ONE}"
            there = await counted(db, asked, [milliseconds(now), tenant, keys.escape(id_)])
        if not there:
            self._known.pop((tenant, id_), None)
        elif known is not None:
            self._hold(replace(known, used_at=now), since=self._known[tenant, id_][0])

    async def rename(self, tenant: str, id_: str, name: str) -> Conversation | None:
        async with self._database.tenant(tenant) as db:
            there = await _read(db, tenant, id_, lock=True)
            if there is None:
                return None
            there = replace(there, name=name)
            await db.execute(
                f"UPDATE chat_chat.conversations SET record = %s {_ONE}", [_record(there), tenant, keys.escape(id_)]
            )
        return self._hold(there)

    async def all(self, tenant: str) -> list[Conversation]:
        async with self._database.tenant(tenant, reading=True) as db:
            found = await db.execute(f"SELECT {_HELD} FROM chat_chat.conversations WHERE tenant = %s", [tenant])
            read = [_conversation(tenant, row) for row in await found.fetchall()]
        return sorted(read, key=lambda one: (one.used_at, one.id), reverse=True)

    async def remove(self, tenant: str, id_: str) -> bool:
        self._known.pop((tenant, id_), None)
        async with self._database.tenant(tenant) as db:
            return await counted(db, f"DELETE FROM chat_chat.conversations {_ONE}", [tenant, keys.escape(id_)]) > 0

    async def forget(self, tenant: str, user: str) -> int:
        self._drop(lambda one: (one.tenant, one.user) == (tenant, user))
        async with self._database.tenant(tenant) as db:
            asked = "DELETE FROM chat_chat.conversations WHERE tenant = %s AND user_id = %s"
            return await counted(db, asked, [tenant, keys.escape(user)])

    async def prune(self, tenant: str, before: datetime) -> int:
        self._drop(lambda one: one.tenant == tenant and one.used_at < before)
        async with self._database.tenant(tenant) as db:
            asked = "DELETE FROM chat_chat.conversations WHERE tenant = %s AND used < %s"
            return await counted(db, asked, [tenant, milliseconds(before)])

    async def tenants(self) -> list[str]:
        """All that anything is kept of: which of them have conversations nobody sees without naming them."""
        async with self._database.all_tenants() as db:
            found = await db.execute("SELECT tenant FROM chat_chat.tenants ORDER BY tenant")
            return [tenant for (tenant,) in await found.fetchall()]

    # -- steps -------------------------------------------------------------------------------------------------------

    def _held(self, tenant: str, id_: str) -> Conversation | None:
        since, known = self._known.get((tenant, id_), (0.0, None))
        return known if known is not None and self._clock() - since < self._trusted else None

    def _hold(self, one: Conversation, since: float | None = None) -> Conversation:
        self._known[one.tenant, one.id] = (self._clock() if since is None else since, one)
        self._known.move_to_end((one.tenant, one.id))
        while len(self._known) > _KNOWN:
            self._known.popitem(last=False)
        return one

    def _drop(self, goes: Callable[[Conversation], bool]) -> None:
        for name in [name for name, (_, one) in self._known.items() if goes(one)]:
            del self._known[name]


async def _insert(db: Connection, one: Conversation, there: str) -> None:
    await db.execute("INSERT INTO chat_chat.tenants VALUES (%s) ON CONFLICT DO NOTHING", [one.tenant])
    values = [one.tenant, keys.escape(one.id), keys.escape(one.user), used_ms(one), _record(one)]
    asked = "INSERT INTO chat_chat.conversations (tenant, id, user_id, used, record) VALUES (%s, %s, %s, %s, %s)"
    await db.execute(f"{asked} ON CONFLICT {there}".encode(), values)


async def _read(db: Connection, tenant: str, id_: str, *, lock: bool = False) -> Conversation | None:
    asked = f"SELECT {_HELD} FROM chat_chat.conversations {_ONE}{' FOR UPDATE' if lock else ''}"
    row = await (await db.execute(asked.encode(), [tenant, keys.escape(id_)])).fetchone()
    return _conversation(tenant, row) if row else None


def _record(one: Conversation) -> str:
    return orjson.dumps(record_of(one)).decode()


def _conversation(tenant: str, row: tuple[Any, ...]) -> Conversation:
    name, used, record = row
    return conversation_of(orjson.loads(record), tenant, name, datetime.fromtimestamp(used / 1000, UTC))
