"""What the lists over a tenant are counted and searched by, brought up to date by who asks: tallies and texts.

One at a time fills a tenant's, in short steps, each under the lock of the tenant's row in `catalogs`; any number of
processes may do it at once, and each goes on where another stopped. Nobody who saves waits for it longer than for the
step that takes their person.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from memory.index import schema
from memory.postgres import tallies, texts
from memory.postgres.database import Connection, Database

log = logging.getLogger(__name__)

_STEP = 200  # persons whose texts are taken in one transaction
_LOOKED_AT = 2000  # persons who are compared in one step
_UNSEARCHED = "SELECT user_id FROM chat_chat.taken WHERE tenant = %s AND NOT searched LIMIT %s"
_CHANGED = f"""
SELECT user_id FROM (
    ({tallies.BEHIND}) UNION SELECT user_id FROM chat_chat.taken WHERE tenant = %s AND NOT searched
) AS one CROSS JOIN LATERAL
    (SELECT FROM chat_chat.texts AS t WHERE t.tenant = %s AND t.user_id = one.user_id LIMIT 1) AS there
"""

_LOOK = """
SELECT t.user_id, p.there IS NOT NULL FROM (
    SELECT user_id FROM chat_chat.taken
    WHERE tenant = %s AND user_id > (SELECT looked FROM chat_chat.catalogs WHERE tenant = %s)
    ORDER BY user_id LIMIT %s
) AS t LEFT JOIN LATERAL (
    SELECT true AS there FROM chat_chat.people WHERE tenant = %s AND user_id = t.user_id LIMIT 1
) AS p ON true ORDER BY t.user_id
"""


class Filling:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._stopping = False
        self._work: dict[tuple[asyncio.AbstractEventLoop, str, bool], asyncio.Task[int]] = {}

    async def current(self, db: Connection, tenant: str) -> tuple[bool, bool]:
        """Whether all of it can be searched as it is now; whether it could at all once."""
        found = await db.execute(
            f"SELECT (SELECT user_id FROM ({tallies.BEHIND} LIMIT 1) AS one) IS NOT NULL"
            " OR EXISTS (SELECT FROM chat_chat.taken WHERE tenant = %s AND NOT searched),"
            " EXISTS (SELECT FROM chat_chat.catalogs WHERE tenant = %s AND whole AND form >= %s)",
            [tenant, tenant, tenant, schema.TERMS],
        )
        late, whole = await found.fetchone() or (True, False)
        return whole and not late, whole

    def begin(self, tenant: str, *, searched: bool) -> asyncio.Task[int]:
        """One at a time a tenant, however many ask. It goes on when the one who asked is gone."""
        lane = (asyncio.get_running_loop(), tenant, searched)
        if lane not in self._work:
            self._work[lane] = asyncio.create_task(self.catch_up(tenant, searched=searched))
            self._work[lane].add_done_callback(lambda done: self._over(lane, done))
        return self._work[lane]

    async def catch_up(self, tenant: str, *, searched: bool) -> int:
        """Takes in whoever changed; how many that were."""
        number = 0
        more = True
        while more and not self._stopping:
            async with self._database.tenant(tenant) as db:
                await _locked(db, tenant)
                taken = await tallies.take(db, tenant)
            number += taken
            more = taken == tallies.BATCH
        more = searched
        while more and not self._stopping:
            async with self._database.tenant(tenant) as db:
                if not await _in_form(db, tenant, await _locked(db, tenant)):
                    break
                users = [name for (name,) in await (await db.execute(_UNSEARCHED, [tenant, _STEP])).fetchall()]
                await texts.take(db, tenant, users)
                await db.execute(
                    "UPDATE chat_chat.taken SET searched = true WHERE tenant = %s AND user_id = ANY(%s)",
                    [tenant, users],
                )
                more = len(users) == _STEP
                if not more:
                    asked = "UPDATE chat_chat.catalogs SET whole = true WHERE tenant = %s AND NOT whole"
                    await db.execute(asked, [tenant])
        return number

    async def purge(self, tenant: str, users: Collection[str]) -> None:
        """Of these, by their keys, and of whoever changed since they were taken: what is gone goes here too."""
        async with self._database.tenant(tenant) as db:
            if not (known := await _known(db, tenant)):
                return
            await _locked(db, tenant)
            await tallies.drop(db, tenant, users)
            changed = (await (await db.execute(_CHANGED, [tenant] * 3)).fetchall()) if known[0] else ()
            await texts.take_out(db, tenant, [*users, *(name for (name,) in changed)])

    async def refresh(self, tenant: str, *, spare: bool = False) -> int:
        """As far as anything was ever asked: whoever changed, and who is gone without a word. With `spare` some
        thousand are looked at for the latter, and the next time those after them."""
        async with self._database.tenant(tenant) as db:
            if not (known := await _known(db, tenant)):
                return 0
        gone, more = 0, True
        while more and not self._stopping:
            async with self._database.tenant(tenant) as db:
                rows = await (await db.execute(_LOOK, [tenant, tenant, _LOOKED_AT, tenant])).fetchall()
                more = len(rows) == _LOOKED_AT
                asked = "UPDATE chat_chat.catalogs SET looked = %s WHERE tenant = %s AND looked <> %s"
                last = rows[-1][0] if more else ""
                await db.execute(asked, [last, tenant, last])
            if without := [name for name, there in rows if not there]:
                await self.purge(tenant, without)
            gone, more = gone + len(without), more and not spare
        return gone + await self.catch_up(tenant, searched=known[0] > 0)

    async def empty(self, tenant: str) -> None:
        async with self._database.tenant(tenant) as db:
            await _locked(db, tenant)
            await _without_texts(db, tenant)
            for table in ("taken", "tallies"):
                await db.execute(f"DELETE FROM chat_chat.{table} WHERE tenant = %s".encode(), [tenant])
            await db.execute("UPDATE chat_chat.people SET tallied = 0 WHERE tenant = %s", [tenant])

    async def close(self) -> None:
        """What is being filled stops after its step, and goes on from there when it is next asked for."""
        self._stopping = True
        mine = [work for (loop, *_), work in self._work.items() if loop is asyncio.get_running_loop()]
        await asyncio.gather(*mine, return_exceptions=True)

    def _over(self, lane: tuple[asyncio.AbstractEventLoop, str, bool], done: asyncio.Task[int]) -> None:
        del self._work[lane]
        if not done.cancelled() and (error := done.exception()) is not None:
            log.error("the lists of a tenant can't be brought up to date: %s", error)


async def _known(db: Connection, tenant: str) -> tuple[int] | None:
    """How many numbers were given to texts; None: nobody ever asked."""
    return await (await db.execute("SELECT next FROM chat_chat.catalogs WHERE tenant = %s", [tenant])).fetchone()


async def _locked(db: Connection, tenant: str) -> int:
    """The form of the terms by which its texts were taken."""
    await db.execute("INSERT INTO chat_chat.catalogs (tenant) VALUES (%s) ON CONFLICT DO NOTHING", [tenant])
    found = await db.execute("SELECT form FROM chat_chat.catalogs WHERE tenant = %s FOR UPDATE", [tenant])
    (form,) = await found.fetchone() or (0,)
    return int(form)


async def _in_form(db: Connection, tenant: str, form: int) -> bool:
    """Texts that were taken by older terms are taken anew; False: by newer ones, which only their version adds to."""
    if form < schema.TERMS:
        await _without_texts(db, tenant)
        await db.execute("UPDATE chat_chat.taken SET searched = false WHERE tenant = %s", [tenant])
        asked = "UPDATE chat_chat.catalogs SET form = %s WHERE tenant = %s"
        await db.execute(asked, [schema.TERMS, tenant])
    return form <= schema.TERMS


async def _without_texts(db: Connection, tenant: str) -> None:
    for table in ("texts", "postings"):
        await db.execute(f"DELETE FROM chat_chat.{table} WHERE tenant = %s".encode(), [tenant])
    await db.execute("UPDATE chat_chat.catalogs SET whole = false, form = 0 WHERE tenant = %s", [tenant])
