"""Long-term memory as one JSON file a person, with a journal beside it.

A save appends one line to the journal, so it costs the same however much is known already. The journal is folded into
the file when it grows long and when a session ends. Saves of one person that come together share one write and one
fsync. Everything that blocks runs in one thread call an operation, but for a look at files' names and times.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from config.vault import PLAIN, Vault
from memory import keys
from memory.errors import CatalogUnavailable, LongTermUnavailable
from memory.long_term import events
from memory.long_term.additions import Addition, Lanes, deciding, of_events
from memory.long_term.cache import Cache
from memory.long_term.document import Document
from memory.long_term.due import Due, Known
from memory.long_term.event import Event
from memory.long_term.files import Files
from memory.long_term.place import Compression, Seen, seen, unpacked
from memory.models import Changes, LongTermMemory
from memory.retention import Retention
from memory.threads import in_thread
from processors.models import MemoryEvent

log = logging.getLogger(__name__)

_THE_TENANT = ""  # in the place of a user's id: what belongs to the tenant itself
_BATCH = 100  # people of whom retention is applied before they are listed anew


class JsonFiles:
    """`<base>/<tenant>/<user>.json` and `.journal`.

    `retention` is one rule for all or a function of the tenant; `clock` gives aware times. The cache holds at most
    `cache_entries` persons who together take about `cache_bytes` at most; a look at the files (a stat) tells whether
    it still holds, also when another process wrote. `noted` is told the tenant and user of each write, "" for the
    tenant's own, in the thread that wrote and once it is on disk; forgetting is not told. `due` tells whom retention
    and fading concern; without it, or where it can't tell, everybody is looked at.
    """

    def __init__(
        self,
        base: Path | str,
        *,
        compression: Compression = "none",
        retention: Retention | Callable[[str], Retention] = Retention(),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        cache_entries: int = 600,
        cache_bytes: int = 24 * 1024 * 1024,
        noted: Callable[[str, str], None] | None = None,
        vault: Vault = PLAIN,
        due: Due | None = None,
    ) -> None:
        self._base = Path(base)
        self._vault = vault
        self._clock = clock
        self._due = due
        self._rules = rules = (lambda _: retention) if isinstance(retention, Retention) else retention
        self._files = Files(self._base, compression, rules, Cache(cache_entries, cache_bytes), clock, noted, vault)
        self._lanes = Lanes(self._append)
        self.never_forgotten = self._files.never_forgotten  # asked several times a turn
        # Called in the thread that reads somebody's events for a turn, which may search them.
        self.searched: Callable[[str, str, Sequence[Event]], object] | None = None

    async def load(self, tenant: str, user: str) -> LongTermMemory | None:
        self._check(tenant, user)
        return await self._load(tenant, user)

    async def load_shared(self, tenant: str) -> LongTermMemory | None:
        return await self._load(tenant, _THE_TENANT)

    async def load_with_shared(self, tenant: str, user: str) -> tuple[LongTermMemory | None, LongTermMemory | None]:
        self._check(tenant, user)
        if (own := self._files.at_hand(tenant, user)) and (shared := self._files.shared_at_hand(tenant)):
            return own[0], shared[0]
        return await in_thread(self._read_with_shared, tenant, user)

    async def _load(self, tenant: str, user: str) -> LongTermMemory | None:
        """Of whom a turn read before, which is nearly everybody in the middle of a talk, without a thread: a look at
        files that were looked at a while ago is answered from the file system's memory, and takes less than a hop."""
        found = self._files.at_hand(tenant, user)
        return found[0] if found is not None else await in_thread(self._files.load, tenant, user)

    def change(
        self, tenant: str, user: str, decide: Callable[[LongTermMemory], Changes], *, ahead: bool = False
    ) -> asyncio.Future[None]:
        self._check(tenant, user)
        return self._lanes.add(tenant, user, deciding(user, self._clock(), decide, ahead=ahead))

    async def change_shared(self, tenant: str, decide: Callable[[LongTermMemory], Changes]) -> None:
        await self._lanes.add(tenant, _THE_TENANT, deciding(_THE_TENANT, self._clock(), decide))

    async def rewrite_shared(self, tenant: str, change: Callable[[LongTermMemory], LongTermMemory]) -> bool:
        return await asyncio.to_thread(self._files.rewrite, tenant, _THE_TENANT, change)

    async def save_events(
        self,
        tenant: str,
        user: str,
        events: Sequence[MemoryEvent],
        *,
        attributes: dict[str, Any] | None = None,
        history_summary: str | Callable[[LongTermMemory], str] | None = None,
    ) -> None:
        self._check(tenant, user)
        addition = of_events(user, self._clock(), events, attributes, history_summary)
        if addition is not None:
            await self._lanes.add(tenant, user, addition)

    def _check(self, tenant: str, user: str) -> None:
        """A wrong id fails here, in the caller's own stack; raises InvalidId."""
        keys.check_tenant(tenant)
        keys.escape(user)

    def _append(self, tenant: str, user: str, additions: Sequence[Addition]) -> Awaitable[None]:
        return in_thread(self._files.append, tenant, user, additions, self._files.ahead(tenant, user, additions))

    async def rewrite(self, tenant: str, user: str, change: Callable[[LongTermMemory], LongTermMemory]) -> bool:
        self._check(tenant, user)
        return await asyncio.to_thread(self._files.rewrite, tenant, user, change)

    async def rewrite_both(
        self,
        tenant: str,
        user: str,
        other: str,
        change: Callable[[LongTermMemory, LongTermMemory], tuple[LongTermMemory, LongTermMemory]],
    ) -> None:
        self._check(tenant, user)
        self._check(tenant, other)
        await asyncio.to_thread(self._files.rewrite_both, tenant, user, other, change)

    async def compact(self, tenant: str, user: str, now: datetime) -> int:
        self._check(tenant, user)
        return await asyncio.to_thread(self._files.compact, tenant, user, now)

    async def expire(self, tenant: str, now: datetime) -> int:
        rules, removed = self._rules(tenant), 0
        before = now - timedelta(days=rules.days) if rules.days else None
        whose = await asyncio.to_thread(self._whom, tenant, lambda due: due.old(tenant, before, rules.max_events))
        for start in range(0, len(whose), _BATCH):
            some = whose[start : start + _BATCH]
            for user in some:
                try:
                    removed += await self.compact(tenant, user, now)
                except LongTermUnavailable as error:
                    log.error("retention of events waits: %s", error)
            if self._due is not None:
                try:
                    await asyncio.to_thread(self._due.seen_to, tenant, some)
                except CatalogUnavailable as error:  # they are looked at again
                    log.warning("whose retention is due is not listed anew: %s", error)
        return removed

    async def fading(self, tenant: str, now: datetime) -> AsyncIterator[str]:
        for user in await asyncio.to_thread(self._whom, tenant, lambda due: due.fading(tenant, now)):
            yield user

    def _whom(self, tenant: str, ask: Callable[[Due], list[str]]) -> list[str]:
        try:
            if self._due is not None:
                return ask(self._due)
        except CatalogUnavailable as error:
            log.error("everybody is looked at, as it can't be told for whom something is due: %s", error)
        return list(self.everybody(tenant))

    async def tenants(self) -> list[str]:
        return await asyncio.to_thread(self._tenants)

    async def users(self, tenant: str) -> AsyncIterator[str]:
        for user in await asyncio.to_thread(self.everybody, tenant):
            yield user

    async def mark_forgotten(self, tenant: str, user: str) -> None:
        self._check(tenant, user)
        await asyncio.to_thread(self._files.mark_forgotten, tenant, user)

    async def tidy_marks(self, tenant: str) -> None:
        await asyncio.to_thread(self._files.tidy_marks, tenant)

    # -- as a whole, to be copied ------------------------------------------------------------------------------------

    async def stamps(self, tenant: str) -> dict[str, str]:
        """Of everybody and of the tenant itself, "": the same as long as nothing changed."""
        everybody = await asyncio.to_thread(self.everybody, tenant)
        own = await asyncio.to_thread(self.stamp, tenant, _THE_TENANT)
        return {**({_THE_TENANT: own} if own else {}), **everybody}

    async def document(self, tenant: str, user: str) -> Document | None:
        return await asyncio.to_thread(self._files.document, tenant, user)

    async def put(self, tenant: str, user: str, whole: Document) -> None:
        await asyncio.to_thread(self._files.put, tenant, user, whole)

    # -- blocking, for threads ---------------------------------------------------------------------------------------

    def forgotten_at(self, tenant: str, user: str) -> datetime | None:
        return self._files.forgotten_at(tenant, user)

    def read(self, tenant: str, user: str) -> LongTermMemory | None:
        """`load`, or with the user id "" `load_shared`."""
        return self._files.load(tenant, user)

    def _read_with_shared(self, tenant: str, user: str) -> tuple[LongTermMemory | None, LongTermMemory | None]:
        memory = self.read(tenant, user)
        if memory is not None and self.searched is not None and (known := events.told(memory)) is not None:
            self.searched(tenant, user, known)
        return memory, self.read(tenant, _THE_TENANT)

    def known(self, tenant: str, user: str) -> Known | None:
        """None: nothing is kept. Raises LongTermUnavailable."""
        return self._files.known(tenant, user)

    def stamp(self, tenant: str, user: str) -> str:
        """The same as long as nothing changed on disk, by us or by hand; "": nothing is kept. Raises
        LongTermUnavailable."""
        return self._files.stamp(tenant, user)

    def everybody(self, tenant: str) -> dict[str, str]:
        """The stamp of each user of whom something is kept, in the order of their ids."""
        found = ((keys.unescape(name) or self._id_inside(seen.path), seen.stamp) for name, seen in self._seen(tenant))
        return {user: stamp for user, stamp in sorted(found, key=lambda one: one[0] or "") if user}

    def _seen(self, tenant: str) -> Iterable[tuple[str, Seen]]:
        return seen(keys.tenant_file(self._base, tenant).parent).items()

    def _tenants(self) -> list[str]:
        if not self._base.is_dir():
            return []
        return sorted(one.name for one in self._base.iterdir() if keys.TENANT_ID.match(one.name) and one.is_dir())

    def _id_inside(self, path: Path) -> str | None:
        """A shortened name does not hold the id; the file does."""
        try:
            safe = self._vault.of(path.parent.name)
            if path.suffix == ".journal":
                raw = safe.open_line(path.read_bytes().splitlines()[0])
            else:
                raw, _ = unpacked(str(path), safe)
            user = orjson.loads(raw).get("user_id")
        except (OSError, ValueError, IndexError, KeyError, AttributeError):
            return None
        return user if isinstance(user, str) else None

    async def forget(self, tenant: str, user: str) -> dict[str, int]:
        self._check(tenant, user)
        return await asyncio.to_thread(self._files.forget, tenant, user)

    async def close(self) -> None:
        """Waits for the writes that are under way."""
        if self._due is not None:
            self._due.stop()
        await self._lanes.close()
        await asyncio.to_thread(self._files.close)
