"""The lists over a tenant, asked of the very rows that hold what is known: Catalog of memory.protocols."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, tzinfo
from typing import Any, TypeVar

import orjson

from memory.errors import CatalogUnavailable, LongTermUnavailable
from memory.facts import Fact, attributes
from memory.index import rows, schema
from memory.index.tallies import Tallies, everything, tell
from memory.listing import Counts, Kind, Listed, Place, Wanted
from memory.long_term import document
from memory.postgres import finding, queries, records, tallies
from memory.postgres.database import Connection
from memory.postgres.filling import Filling
from memory.postgres.finding import Found
from memory.postgres.store import PostgresLongTerm
from memory.recall.sought import BEST

T = TypeVar("T")

_LISTS = 500  # whose totals are kept in mind for their later pages


class PostgresCatalog:
    """A search waits up to `patience` seconds until what is searched has caught up; after that it is answered from what
    is there. `tidy` hears whose records were purged: what else comes from them goes too."""

    def __init__(
        self, longterm: PostgresLongTerm, *, tidy: Callable[[str, Collection[str]], Awaitable[None]] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC), patience: float = 5.0,
    ) -> None:  # fmt: skip
        self._longterm = longterm
        self._database = longterm.database
        self._filling = Filling(self._database)
        self._tidy = tidy
        self._clock = clock
        self._patience = patience
        self._totals: dict[tuple[str, Kind, Wanted], int] = {}  # as first pages told it

    async def page(
        self, tenant: str, kind: Kind, wanted: Wanted, *, sort: str | None = None, limit: int = 50,
        after: Place | None = None,
    ) -> Listed:  # fmt: skip
        if wanted.q and (sort is None or sort.startswith(BEST)):
            return await self._best(tenant, kind, wanted, sort or "", limit, after)
        if sort is None or sort.startswith(BEST):
            sort = next(iter(schema.OF[kind].sorts))
        queries.page(
            tenant, kind, wanted, sort, 0, None
        )  # one that there is not is a mistake, also where nothing is found

        async def look(db: Connection, places: queries.Places | None) -> Listed:
            asked = queries.page(tenant, kind, wanted, sort, limit + 1, after, places)
            found = await (await db.execute(*asked)).fetchall()
            shown, total = found[:limit], len(found)
            known = self._totals.get((tenant, kind, wanted))
            if after is not None and known is not None:  # as the first page told it: once a list
                total = known
            elif after is not None or total > limit:  # else these are all
                total = await self._total(db, tenant, kind, wanted, places)
            last = (float(shown[-1][0]), shown[-1][1], shown[-1][2]) if len(found) > limit else None
            return Listed(await self._told(db, tenant, kind, shown), total, last, sort)

        listed = await self._look(tenant, kind, wanted, look)
        if after is None and listed.last is not None:
            if len(self._totals) >= _LISTS:
                self._totals.clear()
            self._totals[tenant, kind, wanted] = listed.total
        return listed

    async def _best(
        self, tenant: str, kind: Kind, wanted: Wanted, order: str, limit: int, after: Place | None
    ) -> Listed:
        async def look(db: Connection) -> Listed:
            found = await self._found(db, tenant, kind, wanted, order)
            rest = [
                one for one in found.ranked if after is None or (-one.score, one.user, one.id) > (-after[0], *after[1:])
            ]
            shown = rest[:limit]
            places = [one.user for one in shown], [one.id for one in shown]
            asked = queries.page(tenant, kind, wanted, None, limit, None, places)
            rows = {row[1:3]: row for row in await (await db.execute(*asked)).fetchall()}
            told = await self._told(db, tenant, kind, [rows[one.user, one.id] for one in shown])
            last = (shown[-1].score, shown[-1].user, shown[-1].id) if len(rest) > limit else None
            return Listed(told, len(found.ranked), last, str(found.order))

        return await self._searched(tenant, look)

    async def _found(self, db: Connection, tenant: str, kind: Kind, wanted: Wanted, order: str = "") -> Found:
        total = everything(await tallies.taken(db, tenant), kind)
        today = int(self._clock().timestamp() // 86400)
        return await finding.find(db, tenant, kind, wanted, total, today, order)

    async def _look(
        self, tenant: str, kind: Kind, wanted: Wanted, look: Callable[[Connection, queries.Places | None], Awaitable[T]]
    ) -> T:
        """`look` is given the places of what is looked for, if something is."""

        async def within(db: Connection) -> T:
            return await look(db, (await self._found(db, tenant, kind, wanted)).places if wanted.q else None)

        if wanted.q:
            return await self._searched(tenant, within)
        with _faults():
            async with self._database.tenant(tenant, reading=True) as db:
                return await within(db)

    async def _searched(self, tenant: str, look: Callable[[Connection], Awaitable[T]]) -> T:
        """What was saved before is taken in by the second time at the latest: the first may have been under way. What
        is saved meanwhile need not be waited for."""
        deadline = time.monotonic() + self._patience
        for again in (True, True, False):
            late = not again or time.monotonic() >= deadline
            with _faults():
                async with self._database.tenant(tenant, reading=True) as db:
                    current, whole = await self._filling.current(db, tenant)
                    if current or (late and whole):
                        return await look(db)
                if late:
                    break
                work = self._filling.begin(tenant, searched=True)
                for done in (await asyncio.wait({work}, timeout=max(0.0, deadline - time.monotonic())))[0]:
                    done.result()
        raise CatalogUnavailable("the lists of this tenant are being made: ask again in a moment")

    async def _total(
        self, db: Connection, tenant: str, kind: Kind, wanted: Wanted, places: queries.Places | None
    ) -> int:
        known = await self._tallies(db, tenant, kind, wanted)
        if known is not None:
            return tallies.of(known, kind, wanted).total
        counted = await db.execute(*queries.total(tenant, kind, wanted, places))
        (number,) = await counted.fetchone() or (0,)
        return int(number)

    async def _tallies(self, db: Connection, tenant: str, kind: Kind, wanted: Wanted) -> Tallies | None:
        """None where the rows have to be counted."""
        if not tell(kind, wanted):
            return None
        known = await tallies.read(db, tenant)
        if known is None:
            self._filling.begin(tenant, searched=False)
        return known

    async def _told(self, db: Connection, tenant: str, kind: Kind, shown: Sequence[Any]) -> list[dict[str, Any]]:
        """Rows of `queries.page` as they are listed."""
        more: Sequence[Any] = ()
        if kind == "users":
            more = await (await db.execute(*queries.of_users(tenant, [row[1] for row in shown]))).fetchall()
        named = await self._longterm.named(tenant, [row[1] for row in shown])
        if kind == "users":
            of = {row[0]: row[1:] for row in more}
            return [_user(tenant, user, row[3], *of[row[1]]) for user, row in zip(named, shown, strict=True)]
        return [
            {"user_id": user, **orjson.loads(records.shown(kind, orjson.loads(row[3]), row[2]))}
            for user, row in zip(named, shown, strict=True)
        ]

    async def counts(self, tenant: str, kind: Kind, wanted: Wanted) -> Counts:
        async def look(db: Connection, places: queries.Places | None) -> Counts:
            known = await self._tallies(db, tenant, kind, wanted)
            if known is not None:
                return tallies.of(known, kind, wanted)
            total, by = 0, {name: dict[str, int]() for name in schema.OF[kind].counted}
            counted = await db.execute(*queries.counts(tenant, kind, wanted, places))
            for *names, number in await counted.fetchall():
                total += number
                for column, name in zip(by, names, strict=True):
                    by[column][name] = by[column].get(name, 0) + number
            return Counts(total, by)

        return await self._look(tenant, kind, wanted, look)

    async def per_day(self, tenant: str, wanted: Wanted, zone: tzinfo) -> dict[date, int]:
        async def look(db: Connection, places: queries.Places | None) -> dict[date, int]:
            days: dict[date, int] = {}
            for slot, number in await (await db.execute(*queries.per_slot(tenant, wanted, places))).fetchall():
                day = datetime.fromtimestamp(slot * schema.SLOT / 1000, UTC).astimezone(zone).date()
                days[day] = days.get(day, 0) + number
            return dict(sorted(days.items()))

        return await self._look(tenant, "events", wanted, look)

    async def whose(self, tenant: str, kind: Kind, record_id: str) -> list[str]:
        found = await self._ask(tenant, queries.whose(tenant, kind, record_id))
        with _faults():
            return await self._longterm.named(tenant, [name for (name,) in found])

    async def last_events(self, tenant: str, wanted: Wanted) -> dict[str, dict[str, Any]]:
        found = await self._ask(tenant, queries.last_events(tenant, wanted))
        with _faults():
            named = await self._longterm.named(tenant, [key for key, _, _ in found])
        return {
            user: orjson.loads(records.shown("events", orjson.loads(record), name))
            for user, (_, name, record) in zip(named, found, strict=True)
        }

    async def purge(self, tenant: str, users: Collection[str] = ()) -> None:
        with _faults():
            await self._filling.purge(tenant, [queries.key(user) for user in users])
        if self._tidy is not None:
            await self._tidy(tenant, users)

    async def refresh(
        self, tenant: str, *, anew: bool = False, spare: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:  # fmt: skip
        """With `anew` what the lists are found and sorted by is made anew from the records as well. `progress` is told
        from this thread."""
        with _faults():
            if not anew:
                return await self._filling.refresh(tenant, spare=spare)
            await self._filling.empty(tenant)
            users = list(await self._longterm.everybody(tenant))
            await self._longterm.relist(tenant, "")
            done = 0
            for at, user in enumerate(users):
                if progress:
                    progress(at, len(users))
                done += await self._longterm.relist(tenant, user)
            await self._filling.refresh(tenant)
            if progress:
                progress(len(users), len(users))
        return done

    async def close(self) -> None:
        """The store closes the connections."""
        await self._filling.close()

    async def _ask(self, tenant: str, query: queries.Query) -> Sequence[Any]:
        with _faults():
            async with self._database.tenant(tenant, reading=True) as db:
                return await (await db.execute(*query)).fetchall()


def _user(
    tenant: str, user: str, rest: str, events: int, first: int | None, last: int | None, episodes: int,
    facts: Sequence[str] | None,
) -> dict[str, Any]:  # fmt: skip
    known = [Fact.model_validate(orjson.loads(one)) for one in facts or ()]
    whole = {**document.empty(tenant, user), **orjson.loads(rest), "facts": known, "attributes": attributes(known)}
    memory = document.view(whole, tenant, user)
    times = [datetime.fromtimestamp(at / 1000, UTC) for at in (first, last) if at is not None]
    times += [fact.created_at for fact in known]
    return {"user_id": user, **rows.user_record(memory, known, times, events=events, episodes=episodes)}


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except LongTermUnavailable as error:
        raise CatalogUnavailable(str(error)) from error
