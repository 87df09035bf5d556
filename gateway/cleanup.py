"""What has to be done now and then: sessions that are over, retention. Never twice at once."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial

from redis.asyncio import Redis
from redis.asyncio.lock import Lock
from redis.exceptions import LockError, RedisError

from config.tenants import Memory, Tenants
from gateway.audit import AuditLog
from gateway.dead_letters import DeadLetters
from gateway.departed import Departed
from gateway.inbox.spool import Spool
from gateway.restored import Forgotten
from memory import keys
from memory.errors import MemoryFault
from memory.memory_manager import MemoryManager

log = logging.getLogger(__name__)

LOCK = keys.shared("lock", "cleanup")
LISTED_EVERY = timedelta(minutes=10)  # what was changed by hand is looked for: one look at each file
LOCK_FOR = 300.0  # seconds until another one may begin after a crash
SHARE = 100  # what looks at everybody's files takes at most one part in so many of the time, however many they are
CHEAP = 1.0  # seconds; what takes less is done each time


@dataclass(frozen=True, slots=True)
class Report:
    sessions: int  # ended, or to be ended
    transcript_messages: int  # removed, in all tenants
    dead_letters: int  # removed
    media_files: int = 0  # removed
    facts: int = 0  # faded and removed, or to be removed
    events: int = 0  # removed
    spool_files: int = 0  # unreadable and removed
    elsewhere: bool = False  # another clean-up is at work: nothing was done

    def lines(self, *, dry_run: bool = False) -> list[str]:
        if self.elsewhere:
            return ["another clean-up is at work; nothing to do here"]
        if dry_run:
            return [
                f"{self.sessions} sessions are over and would be ended (dry run: nothing was changed)",
                f"{self.facts} facts have faded and would go to the archive",
            ]
        return [
            f"{self.sessions} sessions ended",
            f"{self.transcript_messages} messages of transcripts removed",
            f"{self.media_files} media files removed",
            f"{self.events} events removed",
            f"{self.facts} faded facts put into the archive",
            f"{self.dead_letters} dead letters removed",
            f"{self.spool_files} unreadable files of the spool removed",
        ]


async def _kept(lock: Lock) -> None:
    """The lease renewed for as long as this runs; until Redis says that somebody else has it."""
    while True:
        await asyncio.sleep(LOCK_FOR / 3)
        try:
            await lock.reacquire()
        except LockError as error:
            log.error("the clean-up's lease is lost: %s", error)
            return
        except RedisError as error:
            log.warning("the clean-up's lease can't be renewed now: %s", type(error).__name__)


class Cleanup:
    def __init__(
        self,
        client: Redis,
        tenants: Tenants,
        manager: MemoryManager,
        letters: DeadLetters,
        spool: Spool,
        departed: Departed,
        forgotten: Forgotten,
        audit: AuditLog,
        clock: Callable[[], datetime],
    ) -> None:
        self._redis = client
        self._tenants = tenants
        self._manager = manager
        self._letters = letters
        self._spool = spool
        self._departed = departed
        self._forgotten = forgotten
        self._audit = audit
        self._clock = clock
        self._pruned: dict[str, date] = {}  # days are what it counts in: once each is enough
        self._listed: dict[str, datetime] = {}
        self._again: dict[tuple[str, str], float] = {}  # when what took long may be done again

    async def _list_anew(self, shop: str, now: datetime) -> None:
        """The lists over a tenant show what was changed by hand, and lose what is gone."""
        since = now - self._listed.get(shop, now - LISTED_EVERY)
        if timedelta(0) <= since < LISTED_EVERY:  # a clock that was ahead told nothing
            return
        self._listed[shop] = now
        await self._tried("the lists over a tenant", shop, partial(self._manager.refresh_lists, shop))

    async def _in_its_time(self, name: str, shop: str, work: Callable[[], Awaitable[int]]) -> int:
        """Where long-term memory is in files, retention looks through all folders of a tenant."""
        began = time.monotonic()
        if began < self._again.get((name, shop), began):
            return 0
        removed = await self._tried(f"retention of {name}", shop, work)
        took = time.monotonic() - began
        self._again[name, shop] = began + (SHARE * took if took > CHEAP else 0.0)
        return removed or 0

    async def _tried(self, what: str, shop: str, work: Callable[[], Awaitable[int]]) -> int | None:
        """What it gives; None: it waits for the next time, and nobody else's waits for it."""
        try:
            return await work()
        except MemoryFault as error:
            log.error("%s waits: %s", what, error, extra={"tenant": shop})
        except Exception as error:  # noqa: BLE001 - what is odd in one tenant's data is not the others' fault
            place = "".join(traceback.format_tb(error.__traceback__))  # its own words may quote somebody's
            log.error("%s waits: %s\n%s", what, type(error).__name__, place, extra={"tenant": shop})
        return None

    async def run(self, tenant: str | None = None, *, dry_run: bool = False) -> Report:
        if dry_run:
            shops = [one.id for one in self._tenants.all() if tenant in (None, one.id)]
            fading = [await self._manager.prune_all(shop, dry_run=True) for shop in shops]
            return Report(await self._manager.count_expired_sessions(tenant), 0, 0, facts=sum(fading))
        lock = self._redis.lock(LOCK, timeout=LOCK_FOR, blocking=False, thread_local=False)
        if not await lock.acquire():
            return Report(0, 0, 0, elsewhere=True)
        keeping = asyncio.create_task(_kept(lock))
        try:
            sessions = await self._manager.cleanup_expired_sessions(tenant)
            said = media = dead = faded = aged = 0
            now = self._clock()
            for shop, days in (await self._kept_for(now)).items():
                if tenant not in (None, shop):
                    continue
                said += await self._in_its_time(
                    "transcripts", shop, partial(self._manager.prune_transcripts, shop, days)
                )
                media += await self._in_its_time("media", shop, partial(self._manager.prune_media, shop, days))
                await self._list_anew(shop, now)  # first: it finds whoever nobody told of
                if self._pruned.get(shop) != now.date():
                    works: dict[str, Callable[[], Awaitable[int]]] = {
                        "events": partial(self._manager.longterm.expire, shop, now),
                        "facts": partial(self._manager.prune_all, shop),
                        "what was done": partial(asyncio.to_thread, self._audit.prune, shop, now),
                    }
                    done = [await self._tried(f"retention of {name}", shop, work) for name, work in works.items()]
                    aged, faded = aged + (done[0] or 0), faded + (done[1] or 0)
                    if None not in done:
                        self._pruned[shop] = now.date()
            for name in sorted(await self._letters.tenants()):  # also of tenants that are gone
                if tenant in (None, name):
                    dead += await self._letters.trim(name, now)
            await self._forgotten.tidy(now)
            broken = 0 if tenant else await asyncio.to_thread(self._spool.expire_broken, now.timestamp())
            return Report(sessions, said, dead, media, faded, aged, broken)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            with suppress(
                LockError
            ):  # it took longer than the lock lasts: whoever has it now does the same, harmlessly
                await lock.release()

    async def _kept_for(self, now: datetime) -> dict[str, int]:
        """How many days a tenant's transcripts and media are kept. For those whose file is gone for good the defaults
        count, and for their events the environment's days; for one whose file can't be read nothing does: it may say
        more."""
        kept = {one.id: one.memory.transcript_retention_days for one in self._tenants.all()}
        present = {status.id for status in self._tenants.status()}
        try:
            kept_of = await self._manager.longterm.tenants()
        except MemoryFault as error:  # who is gone is found out next time
            log.error("whose memory is kept can't be read: %s", error)
            return kept
        gone = await asyncio.to_thread(self._departed.for_good, present, now, kept_of)
        return kept | dict.fromkeys(gone, Memory().transcript_retention_days)
