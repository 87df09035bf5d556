"""The lists over every tenant, from its index. See `Catalog` in memory.protocols."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path
from typing import Any, TypeVar

import orjson

from config.vault import PLAIN, Vault
from memory.errors import CatalogUnavailable
from memory.index import finding, queries, schema, tallies
from memory.index.file import IndexFile, NotMade
from memory.index.notes import Notes
from memory.index.taking import Source
from memory.listing import Counts, Kind, Listed, Place, Wanted
from memory.recall.sought import BEST, Meant

T = TypeVar("T")

log = logging.getLogger(__name__)

_FILLERS = 2  # threads that fill indexes: however many tenants want theirs, saving goes on beside them


class SqliteCatalog:
    """`base` is `DATA_DIR/index`. A question waits up to `patience` seconds until the index has caught up; after that
    it is answered from what is there. `tidy` hears whose records were purged: what else comes from them goes too;
    `meant` finds by meaning, see `Finder.meant`."""

    def __init__(
        self,
        base: Path,
        source: Source,
        *,
        patience: float = 5.0,
        tidy: Callable[[str, Collection[str]], Awaitable[None]] | None = None,
        meant: Callable[[str, str], Awaitable[Meant]] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        vault: Vault = PLAIN,
    ) -> None:
        self._vault = vault
        self._base = base
        self._source = source
        self._patience = patience
        self._tidy = tidy
        self._meant = meant
        self._clock = clock
        self._notes = Notes(base)
        self._files: dict[str, IndexFile] = {}
        self._filling: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Future[int]] = {}
        self._threads: ThreadPoolExecutor | None = None

    async def page(
        self, tenant: str, kind: Kind, wanted: Wanted, *, sort: str | None = None, limit: int = 50,
        after: Place | None = None,
    ) -> Listed:  # fmt: skip
        if sort is not None and not sort.startswith(BEST):
            queries.page(kind, wanted, sort, 0, None)  # one that there is not is a mistake, also where nothing is found
        elif wanted.q:
            return await self._best(tenant, kind, wanted, sort or "", limit, after)
        else:
            sort = next(iter(schema.OF[kind].sorts))

        def look(db: sqlite3.Connection, found: str) -> Listed:
            asked, values = queries.page(kind, wanted, sort, limit + 1, after, found)
            listed = db.execute(asked, values).fetchall()
            shown, total = listed[:limit], len(listed)
            if (after is not None or total > limit) and tallies.tell(kind, wanted):
                total = tallies.of(finding.counted(db), kind, wanted).total
            elif after is not None or total > limit:  # else these are all
                (total,) = db.execute(*queries.total(kind, wanted, found)).fetchone()
            records = [{"user_id": user, **orjson.loads(record)} for _, user, _, record in shown]
            return Listed(records, total, tuple(shown[-1][:3]) if len(listed) > limit else None, sort)

        return await self._look(tenant, kind, wanted, look)

    async def counts(self, tenant: str, kind: Kind, wanted: Wanted) -> Counts:
        def look(db: sqlite3.Connection, found: str) -> Counts:
            if tallies.tell(kind, wanted):
                return tallies.of(finding.counted(db), kind, wanted)
            total, by = 0, {name: dict[str, int]() for name in schema.OF[kind].counted}
            for *names, number in db.execute(*queries.counts(kind, wanted, found)):
                total += number
                for column, name in zip(by, names, strict=True):
                    by[column][name] = by[column].get(name, 0) + number
            return Counts(total, by)

        return await self._look(tenant, kind, wanted, look)

    async def per_day(self, tenant: str, wanted: Wanted, zone: tzinfo) -> dict[date, int]:
        def look(db: sqlite3.Connection, found: str) -> dict[date, int]:
            days: dict[date, int] = {}
            for slot, number in db.execute(*queries.per_slot(wanted, found)):
                day = datetime.fromtimestamp(slot * schema.SLOT / 1000, UTC).astimezone(zone).date()
                days[day] = days.get(day, 0) + number
            return dict(sorted(days.items()))

        return await self._look(tenant, "events", wanted, look)

    async def whose(self, tenant: str, kind: Kind, record_id: str) -> list[str]:
        def look(db: sqlite3.Connection) -> list[str]:
            found = db.execute(f"SELECT user FROM {kind} WHERE id = ? ORDER BY user", [record_id])
            return [user for (user,) in found]

        return await self._ask(tenant, look)

    async def last_events(self, tenant: str, wanted: Wanted) -> dict[str, dict[str, Any]]:
        asked, values = queries.last_events(wanted)

        def look(db: sqlite3.Connection) -> dict[str, dict[str, Any]]:
            return {user: orjson.loads(record) for user, record, _ in db.execute(asked, values)}

        return await self._ask(tenant, look)

    async def purge(self, tenant: str, users: Collection[str] = ()) -> None:
        await asyncio.to_thread(self._file(tenant).purge, users)
        if self._tidy is not None:
            await self._tidy(tenant, users)

    async def refresh(
        self, tenant: str, *, anew: bool = False, spare: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:  # fmt: skip
        file = self._file(tenant)
        return await self._in_thread(lambda: file.refresh(anew=anew, spare=spare, progress=progress))

    async def close(self) -> None:
        """What is being filled stops after its step, and goes on from there when it is next asked for."""
        for file in self._files.values():
            file.stopping.set()
        if self._threads is not None:
            await asyncio.to_thread(self._threads.shutdown)

    # -- looking for something ----------------------------------------------------------------------------------------

    async def _best(
        self, tenant: str, kind: Kind, wanted: Wanted, order: str, limit: int, after: Place | None
    ) -> Listed:
        meant, today = await self._meaning(tenant, kind, wanted.q), self._today()

        def look(db: sqlite3.Connection) -> Listed:
            db.execute("BEGIN")  # one moment for all of it
            found = finding.find(db, kind, wanted.q, meant, today, order)
            ranked = finding.ranked(db, kind, wanted, found)
            rest = [one for one in ranked if after is None or (-one.score, one.user, one.id) > (-after[0], *after[1:])]
            shown = rest[:limit]
            asked = f"SELECT record FROM {kind} WHERE rowid = ?"
            told = [{"user_id": one.user, **orjson.loads(db.execute(asked, [one.row]).fetchone()[0])} for one in shown]
            last = (shown[-1].score, shown[-1].user, shown[-1].id) if len(rest) > limit else None
            return Listed(told, len(ranked), last, str(found.order))

        return await self._ask(tenant, look)

    async def _look(self, tenant: str, kind: Kind, wanted: Wanted, look: Callable[[sqlite3.Connection, str], T]) -> T:
        """`look` is given the rows in which that stands which is looked for, if something is."""
        meant, today = await self._meaning(tenant, kind, wanted.q), self._today()

        def within(db: sqlite3.Connection) -> T:
            db.execute("BEGIN")  # one moment for all of it
            return look(db, finding.find(db, kind, wanted.q, meant, today).rows if wanted.q else "")

        return await self._ask(tenant, within)

    async def _meaning(self, tenant: str, kind: Kind, q: str) -> Meant:
        return await self._meant(tenant, q) if self._meant is not None and q and kind != "users" else {}

    def _today(self) -> int:
        return int(self._clock().timestamp() // 86400)

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _ask(self, tenant: str, look: Callable[[sqlite3.Connection], T]) -> T:
        file = self._file(tenant)
        for _ in range(2):
            try:
                if await asyncio.to_thread(file.behind):
                    await self._caught_up(tenant, file)
                return await asyncio.to_thread(_looked, file, look)
            except NotMade:
                await self._caught_up(tenant, file)
        try:
            return await asyncio.to_thread(_looked, file, look)
        except NotMade:
            raise CatalogUnavailable("the lists of this tenant are being made: ask again in a moment") from None

    async def _caught_up(self, tenant: str, file: IndexFile) -> None:
        """One at a time a tenant, however many ask. It goes on when the one who asked is gone."""
        lane = (asyncio.get_running_loop(), tenant)
        work = self._filling.get(lane)
        if work is None:
            work = self._filling[lane] = asyncio.ensure_future(self._in_thread(file.catch_up))
            work.add_done_callback(lambda done: self._over(lane, done))
        done, _ = await asyncio.wait({work}, timeout=self._patience)
        for one in done:
            with suppress(NotMade):  # broken again meanwhile
                one.result()

    def _over(self, lane: tuple[asyncio.AbstractEventLoop, str], done: asyncio.Future[int]) -> None:
        del self._filling[lane]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.error("an index can't be brought up to date: %s", error)

    async def _in_thread(self, work: Callable[[], int]) -> int:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_FILLERS, thread_name_prefix="index")
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _file(self, tenant: str) -> IndexFile:
        if tenant not in self._files:
            self._files[tenant] = IndexFile(self._base, tenant, self._source, self._notes, self._vault)
        return self._files[tenant]


def _looked(file: IndexFile, look: Callable[[sqlite3.Connection], T]) -> T:
    with file.open() as db:
        return look(db)
