"""The short lists of every tenant in PostgreSQL: KeptLists of memory.lists, held in mind whole.

Whoever asks for a list asks what this process knows: a thread of its own looks each second for what changed anywhere,
in one small query over all tenants.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

import orjson

from memory.errors import LongTermUnavailable
from memory.lists import Change, Listed
from memory.postgres.database import Connection, Database

EVERY = 1.0  # seconds from one look for changes to the next
TRUSTED = 5.0  # seconds after the last look in which what is known is taken for true
PATIENCE = 3.0  # seconds for a connection, and twice that for the first look and for the end of what is under way

# Changes are numbered in the order in which they are committed: the lock is held until then.
_LOCK = 0x636861742D6C7374
_NUMBER = "SELECT coalesce(max(lists_at), 0) + 1 FROM chat_chat.tenants"
_PUT = """
INSERT INTO chat_chat.lists (tenant, name, record) VALUES (%s, %s, %s)
ON CONFLICT (tenant, name) DO UPDATE SET record = excluded.record"""
_CHANGED = """
INSERT INTO chat_chat.tenants (tenant, lists_at) VALUES (%s, %s)
ON CONFLICT (tenant) DO UPDATE SET lists_at = excluded.lists_at"""

log = logging.getLogger(__name__)

T = TypeVar("T")


class PostgresLists:
    """`url` as Database has it. One connection, in a thread that begins with the first question or with `begin`."""

    def __init__(self, url: str, *, every: float = EVERY, trusted: float = TRUSTED, patience: float = PATIENCE) -> None:
        self._database = Database(url, size=1, patience=patience)
        self._patience = patience
        self._turn = asyncio.Lock()  # one work at a time: what was just written is not read as it was before
        self._every = every
        self._trusted = trusted
        self._known: dict[str, dict[str, Listed]] = {}  # by tenant and name
        self._upto = 0  # the number of the last change that is known
        self._looked: float | None = None  # when that was last asked for
        self._first = threading.Event()  # the first look is over
        self._beginning = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._over = asyncio.Event()

    def __call__(self, name: str) -> PostgresNamed:
        return PostgresNamed(self, name)

    def begin(self) -> None:
        with self._beginning:
            if self._thread is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, args=[self._loop], name="lists", daemon=True)
                self._thread.start()
        self._first.wait(2 * self._patience)

    def close(self) -> None:
        """What was noted is written first."""
        with self._beginning:
            thread, loop, self._thread = self._thread, self._loop, None
            if thread is None or loop is None:
                return
            loop.call_soon_threadsafe(self._end)
            thread.join(2 * self._patience)  # a server that hangs holds up nobody's end
            self._first.clear()
            self._looked = None

    def known(self, tenant: str, name: str, *, however_old: bool) -> Listed:
        self._begun()
        looked = self._looked
        if looked is None or not (however_old or time.monotonic() - looked <= self._trusted):
            raise LongTermUnavailable("what PostgreSQL at LONGTERM_URL has of keys and blocked people is not known now")
        return self._known.get(tenant, {}).get(name, [])

    def tenants(self, name: str) -> list[str]:
        self._begun()
        return sorted(tenant for tenant, lists in self._known.items() if lists.get(name))

    def change(self, tenant: str, name: str, change: Change) -> None:
        self._begun()
        self._do(self._change(tenant, name, change)).result()

    def note(self, tenant: str, name: str, change: Change) -> None:
        there = self.known(tenant, name, however_old=True)
        # Known here at once: the same is not noted again while it is on its way.
        self._hold(tenant, name, change(list(there)))
        self._do(self._noted(tenant, name, change))

    # -- steps -------------------------------------------------------------------------------------------------------

    def _begun(self) -> None:
        if self._thread is None:
            self.begin()

    def _do(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        self._turn, self._over = asyncio.Lock(), asyncio.Event()
        loop.run_until_complete(self._follow())
        loop.close()

    def _end(self) -> None:
        self._over.set()

    async def _follow(self) -> None:
        away = False
        try:
            while not self._over.is_set():
                began = time.monotonic()
                try:
                    async with self._turn:
                        await self._look()
                except LongTermUnavailable as error:
                    if not away:
                        log.warning("keys and blocked people are not followed now: %s", error)
                    away = True
                else:
                    self._looked, away = began, False
                self._first.set()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._over.wait(), self._every)
        finally:
            self._first.set()
            with suppress(TimeoutError):  # for what is being written, and waits for its turn
                async with asyncio.timeout(self._patience), self._turn:
                    pass
            await self._database.close()

    async def _look(self) -> None:
        async with self._database.all_tenants() as db:
            asked = "SELECT tenant, lists_at FROM chat_chat.tenants WHERE lists_at >= %s AND lists_at > 0"
            rows = await (await db.execute(asked, [self._upto])).fetchall()
            known, upto = self._known, self._upto
            if not rows and upto:  # the last change is none any more: another database, or one that was restored
                known, upto = {}, 0
                rows = await (await db.execute(asked, [upto])).fetchall()
        for tenant, at in sorted(rows, key=lambda row: row[1]):
            if at > upto:
                async with self._database.tenant(tenant, reading=True) as db:
                    found = await db.execute("SELECT name, record FROM chat_chat.lists WHERE tenant = %s", [tenant])
                    known[tenant] = {name: _parsed(record) for name, record in await found.fetchall()}
        self._known, self._upto = known, max([upto, *(at for _, at in rows)])

    async def _change(self, tenant: str, name: str, change: Change) -> None:
        async with self._turn:
            async with self._database.tenant(tenant) as db:
                await db.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
                there = await _read(db, tenant, name)
                after = change(list(there))
                if after != there:
                    (number,) = await (await db.execute(_NUMBER)).fetchone() or (1,)
                    await db.execute(_CHANGED, [tenant, number])
                    await db.execute(_PUT, [tenant, name, orjson.dumps(after).decode()])
            self._hold(tenant, name, after)

    async def _noted(self, tenant: str, name: str, change: Change) -> None:
        with suppress(LongTermUnavailable):
            await self._change(tenant, name, change)

    def _hold(self, tenant: str, name: str, listed: Listed) -> None:
        self._known[tenant] = {**self._known.get(tenant, {}), name: listed}


class PostgresNamed:
    """Lists of memory.lists."""

    def __init__(self, lists: PostgresLists, name: str) -> None:
        self._lists = lists
        self._name = name

    def of(self, tenant: str, *, however_old: bool = False) -> Listed:
        return self._lists.known(tenant, self._name, however_old=however_old)

    def change(self, tenant: str, change: Change) -> None:
        self._lists.change(tenant, self._name, change)

    def note(self, tenant: str, change: Change) -> None:
        self._lists.note(tenant, self._name, change)

    def tenants(self) -> list[str]:
        return self._lists.tenants(self._name)


async def _read(db: Connection, tenant: str, name: str) -> Listed:
    asked = "SELECT record FROM chat_chat.lists WHERE tenant = %s AND name = %s"
    row = await (await db.execute(asked, [tenant, name])).fetchone()
    return _parsed(row[0]) if row else []


def _parsed(record: str) -> Listed:
    """What can't be read holds nothing."""
    try:
        listed = orjson.loads(record)
    except ValueError:
        return []
    return listed if isinstance(listed, list) else []
