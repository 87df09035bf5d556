"""Long-term memory in PostgreSQL: LongTerm of memory.protocols, one row a record.

A save writes what it adds and the person's own row, whose lock it holds: its cost does not grow with what is known.
Who is read often is held in memory; the row's version tells whether that still holds, and what was added since is read
alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import orjson

from memory import keys
from memory.index.rows import milliseconds
from memory.long_term import document
from memory.long_term.additions import Addition, Lanes, adds, decided, deciding, of_events
from memory.long_term.cache import Cache
from memory.long_term.document import Document
from memory.long_term.forgotten import KEPT_FOR
from memory.models import Changes, LongTermMemory
from memory.postgres import records
from memory.postgres.database import Database
from memory.postgres.person import Head, PersonRows, expire
from memory.retention import Retention
from processors.models import MemoryEvent

_THE_TENANT = ""  # in the place of a user's id: what belongs to the tenant itself
_PAGE = 1000  # users of one look
_BATCH = 1000  # events of which the people are looked up for one transaction

# What `change` has read of the marks under its lock: the function that it calls asks for it without waiting.
_marks: ContextVar[tuple[str, str, datetime | None] | None] = ContextVar("_marks", default=None)


class Held(NamedTuple):
    """What the rows said at `version`. `memory` is never given away, only copies of it."""

    version: int
    memory: LongTermMemory
    bytes: int  # about


class PostgresLongTerm:
    """`retention` is one rule for all or a function of the tenant; `clock` gives aware times. `changed` is told tenant
    and user of each write once it is committed, "" for the tenant's own; forgetting is not told."""

    def __init__(
        self,
        database: Database,
        *,
        retention: Retention | Callable[[str], Retention] = Retention(),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        cache_entries: int = 500,
        cache_bytes: int = 4 * 1024 * 1024,
        changed: Callable[[str, str], None] | None = None,
    ) -> None:
        self.database = database
        self._clock = clock
        self._retention = (lambda _: retention) if isinstance(retention, Retention) else retention
        self._cache: Cache[Held] = Cache(cache_entries, cache_bytes)
        self._changed = changed or (lambda tenant, user: None)
        self._lanes = Lanes(self._append)

    async def load(self, tenant: str, user: str) -> LongTermMemory | None:
        _check(tenant, user)
        return await self._load(tenant, user)

    async def load_shared(self, tenant: str) -> LongTermMemory | None:
        return await self._load(tenant, _THE_TENANT)

    async def load_with_shared(self, tenant: str, user: str) -> tuple[LongTermMemory | None, LongTermMemory | None]:
        _check(tenant, user)
        return await asyncio.gather(self._load(tenant, user), self._load(tenant, _THE_TENANT))

    async def save_events(
        self,
        tenant: str,
        user: str,
        events: Sequence[MemoryEvent],
        *,
        attributes: dict[str, Any] | None = None,
        history_summary: str | Callable[[LongTermMemory], str] | None = None,
    ) -> None:
        _check(tenant, user)
        addition = of_events(user, self._clock(), events, attributes, history_summary)
        if addition is not None:
            await self._lanes.add(tenant, user, addition)

    async def change(
        self, tenant: str, user: str, decide: Callable[[LongTermMemory], Changes], *, ahead: bool = False
    ) -> None:
        _check(tenant, user)
        await self._lanes.add(tenant, user, deciding(user, self._clock(), decide))

    async def change_shared(self, tenant: str, decide: Callable[[LongTermMemory], Changes]) -> None:
        keys.check_tenant(tenant)
        await self._lanes.add(tenant, _THE_TENANT, deciding(_THE_TENANT, self._clock(), decide))

    async def rewrite(self, tenant: str, user: str, change: Callable[[LongTermMemory], LongTermMemory]) -> bool:
        _check(tenant, user)
        return await self._rewrite(tenant, user, change)

    async def rewrite_shared(self, tenant: str, change: Callable[[LongTermMemory], LongTermMemory]) -> bool:
        return await self._rewrite(tenant, _THE_TENANT, change)

    async def rewrite_both(
        self,
        tenant: str,
        user: str,
        other: str,
        change: Callable[[LongTermMemory, LongTermMemory], tuple[LongTermMemory, LongTermMemory]],
    ) -> None:
        """Both or neither is written."""
        _check(tenant, user)
        _check(tenant, other)
        written = []
        async with self.database.tenant(tenant) as db:
            people = {one: PersonRows(db, tenant, one) for one in (user, other)}
            # In one order, so that nobody waits in a circle.
            heads = {one: await people[one].locked() for one in sorted(people)}
            found = [await self._whole(people[one], heads[one], tenant, one) for one in (user, other)]
            after = change(*(document.copy(memory) for _, memory in found))
            for one, (whole, memory), new in zip((user, other), found, after, strict=True):
                if new != memory:
                    await people[one].replace(heads[one], whole, *self._rewritten(whole.document, memory, new))
                    written.append(one)
                elif heads[one].fresh:
                    await people[one].remove()
        for one in written:
            self._changed(tenant, one)

    async def compact(self, tenant: str, user: str, now: datetime) -> int:
        _check(tenant, user)
        async with self.database.tenant(tenant) as db:
            person = PersonRows(db, tenant, user)
            head = await person.head(lock=True)
            removed = await person.trim(head, now, self._retention(tenant)) if head else 0
        if removed:
            self._changed(tenant, user)
        return removed

    async def expire(self, tenant: str, now: datetime) -> int:
        """Found by when they happened: who has nothing that is too old is not looked at."""
        days, removed = self._retention(tenant).days, 0
        oldest = milliseconds(now - timedelta(days=days))
        while days:
            async with self.database.tenant(tenant) as db:
                whose, events = await expire(db, tenant, oldest, _BATCH)
            if not whose:
                break
            removed += events
            for user in await self.named(tenant, whose):
                self._changed(tenant, user)
        return removed

    async def fading(self, tenant: str, now: datetime) -> AsyncIterator[str]:
        async with self.database.tenant(tenant) as db:
            found = await db.execute(
                "SELECT DISTINCT user_id FROM chat_chat.facts WHERE tenant = %s AND fades < %s",
                [tenant, milliseconds(now) + 1],
            )
            whose = [name for (name,) in await found.fetchall()]
        for user in await self.named(tenant, whose):
            if user:
                yield user

    async def users(self, tenant: str) -> AsyncIterator[str]:
        for user in await self.everybody(tenant):
            yield user

    async def everybody(self, tenant: str) -> dict[str, str]:
        """A stamp of each user of whom something is kept: the same as long as nothing changed."""
        people: dict[str, str] = {}
        last = ""
        while True:
            async with self.database.tenant(tenant) as db:
                found = await db.execute(
                    "SELECT user_id, named, version FROM chat_chat.people WHERE tenant = %s AND user_id > %s"
                    " ORDER BY user_id LIMIT %s",
                    [tenant, last, _PAGE],
                )
                rows = await found.fetchall()
            people |= {records.user(name, named): str(version) for name, named, version in rows}
            if len(rows) < _PAGE:
                return people
            last = rows[-1][0]

    async def relist(self, tenant: str, user: str) -> bool:
        """Makes the columns of the lists anew from the records; False: nothing is known."""
        async with self.database.tenant(tenant) as db:
            person = PersonRows(db, tenant, user)
            head = await person.head(lock=True)
            if head is None:
                return False
            whole, memory = await self._whole(person, head, tenant, user)
            await person.relist(head, whole, memory)
        return True

    async def stamp(self, tenant: str, user: str) -> str:
        """As in `everybody`, also with the user id ""; "": nothing is kept."""
        async with self.database.tenant(tenant) as db:
            head = await PersonRows(db, tenant, user).head()
        return str(head.version) if head else ""

    async def stamps(self, tenant: str) -> dict[str, str]:
        own = await self.stamp(tenant, _THE_TENANT)
        return {**({_THE_TENANT: own} if own else {}), **await self.everybody(tenant)}

    async def document(self, tenant: str, user: str) -> Document | None:
        """All that is kept, of whatever version, with nothing left out by retention; None: nothing is."""
        async with self.database.tenant(tenant, reading=True) as db:
            person = PersonRows(db, tenant, user)
            head = await person.head()
            return (await person.whole(head, self._clock())).document if head else None

    async def put(self, tenant: str, user: str, whole: Document) -> None:
        """`whole` in the place of all that is kept."""
        async with self.database.tenant(tenant) as db:
            person = PersonRows(db, tenant, user)
            head = await person.locked()
            before = await person.whole(head, self._clock())
            await person.replace(head, before, whole, document.view(whole, tenant, user))
        self._changed(tenant, user)

    async def tenants(self) -> list[str]:
        async with self.database.all_tenants() as db:
            found = await db.execute("SELECT tenant FROM chat_chat.tenants ORDER BY tenant")
            return [tenant for (tenant,) in await found.fetchall()]

    async def forget(self, tenant: str, user: str) -> dict[str, int]:
        _check(tenant, user)
        async with self.database.tenant(tenant) as db:
            person = PersonRows(db, tenant, user)
            head = await person.head(lock=True)
            memory = (await self._whole(person, head, tenant, user))[1] if head else None
            removed = await person.remove()
        self._cache.drop((tenant, user))
        return {"longterm_files": removed["people"]} | {
            name: len(getattr(memory, name)) if memory else 0 for name in ("events", "attributes", "facts", "episodes")
        }

    async def mark_forgotten(self, tenant: str, user: str) -> None:
        _check(tenant, user)
        async with self.database.tenant(tenant) as db:
            await PersonRows(db, tenant, user).mark(self._clock())
        await self.tidy_marks(tenant)

    async def tidy_marks(self, tenant: str) -> None:
        oldest = (self._clock() - KEPT_FOR).timestamp()
        async with self.database.tenant(tenant) as db:
            await db.execute("DELETE FROM chat_chat.forgotten WHERE tenant = %s AND at < %s", [tenant, oldest])

    def forgotten_at(self, tenant: str, user: str) -> datetime | None:
        _check(tenant, user)
        known = _marks.get()
        if known is not None and known[:2] == (tenant, user):
            return known[2]
        loop = self.database.loop
        if loop is not None and loop.is_running() and not _in(loop):
            return asyncio.run_coroutine_threadsafe(self._forgotten_at(tenant, user), loop).result()
        raise RuntimeError("ask from a thread while the store's own loop runs, or from what `change` calls")

    def never_forgotten(self, tenant: str, user: str) -> bool:
        return False

    async def close(self) -> None:
        """Waits for the writes that are under way."""
        await self._lanes.close()
        await self.database.close()

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _load(self, tenant: str, user: str) -> LongTermMemory | None:
        async with self.database.tenant(tenant, reading=True) as db:
            person = PersonRows(db, tenant, user)
            head = await person.head()
            return document.copy(await self._memory(person, head, tenant, user)) if head else None

    async def _append(self, tenant: str, user: str, additions: Sequence[Addition]) -> None:
        raw = [document.dump(addition.line) for addition in additions if adds(addition.line)]
        after: LongTermMemory | None = None
        async with self.database.tenant(tenant) as db:
            person = PersonRows(db, tenant, user)
            head = await person.locked()
            if head.fresh or any(addition.asks for addition in additions):
                known = await self._memory(person, head, tenant, user)
                mark = _marks.set((tenant, user, await person.forgotten_at()))
                try:
                    raw, after = decided(known, additions, self._clock(), self._retention(tenant))
                finally:
                    _marks.reset(mark)
            lines = [orjson.loads(line) for line in raw]
            if not lines:
                if head.fresh:
                    await person.remove()
                return
            version = await person.add(head, lines, after)
        if after is not None:  # known already: the next reader need not read what was just written
            self._hold(tenant, user, version, after)
        self._changed(tenant, user)

    async def _rewrite(self, tenant: str, user: str, change: Callable[[LongTermMemory], LongTermMemory]) -> bool:
        async with self.database.tenant(tenant) as db:
            person = PersonRows(db, tenant, user)
            head = await person.head(lock=True)
            if head is None:
                return False
            whole, before = await self._whole(person, head, tenant, user)
            after = change(document.copy(before))
            if after == before:
                return False
            await person.replace(head, whole, *self._rewritten(whole.document, before, after))
        self._changed(tenant, user)
        return True

    def _rewritten(
        self, whole: Document, before: LongTermMemory, after: LongTermMemory
    ) -> tuple[Document, LongTermMemory]:
        new = document.rewritten(whole, before, after, self._clock())
        return new, document.view(new, before.tenant_id, before.user_id)

    async def _whole(self, person: PersonRows, head: Head, tenant: str, user: str) -> tuple[Any, LongTermMemory]:
        """The rows as they are, and what they say once retention is applied."""
        whole = await person.whole(head, self._clock())
        trimmed = dict(whole.document)
        document.trim(trimmed, self._clock(), self._retention(tenant))
        return whole, document.view(trimmed, tenant, user)

    async def _memory(self, person: PersonRows, head: Head, tenant: str, user: str) -> LongTermMemory:
        """From the cache where that holds, else what was added since, else everything."""
        held = self._cache.get((tenant, user))
        if held is not None and held.version == head.version:
            return held.memory
        if held is not None and head.cleared <= held.version < head.version:
            line = await person.since(head, held.version)
            memory = document.extend(held.memory, [line], self._clock(), self._retention(tenant))
        else:
            memory = (await self._whole(person, head, tenant, user))[1]
        self._hold(tenant, user, head.version, memory)
        return memory

    def _hold(self, tenant: str, user: str, version: int, memory: LongTermMemory) -> None:
        about = 1000 + 600 * len(memory.events) + 500 * len(memory.facts) + 3000 * len(memory.episodes)
        self._cache.put((tenant, user), Held(version, memory, about))

    async def named(self, tenant: str, names: Sequence[str]) -> list[str]:
        """The ids behind the keys of rows."""
        rows: Sequence[tuple[str, str | None]] = ()
        if long := [name for name in names if "~" in name]:
            async with self.database.tenant(tenant) as db:
                asked = "SELECT user_id, named FROM chat_chat.people WHERE tenant = %s AND user_id = ANY(%s)"
                rows = await (await db.execute(asked, [tenant, long])).fetchall()
        named = dict(rows)
        return [records.user(name, named.get(name)) for name in names]

    async def _forgotten_at(self, tenant: str, user: str) -> datetime | None:
        async with self.database.tenant(tenant) as db:
            return await PersonRows(db, tenant, user).forgotten_at()


def _check(tenant: str, user: str) -> None:
    """A wrong id fails here, in the caller's own stack; raises InvalidId."""
    keys.check_tenant(tenant)
    keys.escape(user)


def _in(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
