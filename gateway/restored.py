"""After a backup was put back: who was forgotten since is forgotten again.

`memory.forgotten_people` says who that is. Whoever came back after being forgotten has nothing from before then, and is
left alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, timedelta

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from gateway.dead_letters import DeadLetters, persons
from gateway.inbox.base import Inbox
from gateway.inbox.spool import Spool
from gateway.messages import InboundMessage
from memory.errors import LongTermUnavailable
from memory.memory_manager import MemoryManager
from memory.models import LongTermMemory

log = logging.getLogger(__name__)

Forget = Callable[[str, str], Awaitable[object]]

_REWRITE_EVERY = timedelta(hours=1)
_SEEN_TO = timedelta(days=30)  # who was forgotten before that, an earlier process has seen to


class Restored:
    """Raises MemoryFault, RedisError and InboxUnavailable: to be asked for again then."""

    def __init__(self, manager: MemoryManager, forget: Forget, client: Redis, inbox: Inbox, spool: Spool) -> None:
        self._manager = manager
        self._forget = forget
        self._letters = DeadLetters(client, inbox)
        self._inbox = inbox
        self._spool = spool
        self._list = manager.forgotten_people

    async def forget_again(self) -> int:
        """How many people that were."""
        done = 0
        for tenant in await asyncio.to_thread(self._list.tenants):
            people = await self._older(tenant)
            for user in sorted(people):
                await self._forget(tenant, user)
            if people:
                log.warning("%d people who had been forgotten were back, and are forgotten again", len(people))
            done += len(people)
        return done

    async def _older(self, tenant: str) -> set[str]:
        """Of whom anything is kept from before they were forgotten."""
        waiting: set[str] = set()

        def looked_at(message: InboundMessage) -> bool:
            waiting.update(
                one for one in persons(message) if one and self._is_before(tenant, one, _utc(message.received_at))
            )
            return False

        await self._inbox.forget(tenant, looked_at)
        try:
            await asyncio.to_thread(self._spool.forget, looked_at, ())
        except OSError as error:
            raise LongTermUnavailable(f"the spool can't be read: {error.strerror or error}") from error
        letters = await self._letters.people(tenant)
        waiting |= {one for one, at in letters.items() if self._is_before(tenant, one, _utc(at))}
        known = {one async for one in self._manager.longterm.users(tenant)}
        known.update(await self._manager.transcripts.users(tenant))
        known.update([ref.user async for ref in self._manager.sessions.of(tenant)])
        listed = {one for one in known if self._list.at(tenant, one) is not None}
        return waiting | {one for one in listed if await self._kept_from_before(tenant, one)}

    async def _kept_from_before(self, tenant: str, user: str) -> bool:
        at = self._list.at(tenant, user)
        assert at is not None  # it is listed
        memory = await self._manager.longterm.load(tenant, user)
        parts = memory.person.parts if memory is not None and memory.person is not None else {}
        if memory is not None:
            # What came with an id that was linked since may be older, and is that id's.
            theirs = set().union(*(_times(LongTermMemory.model_validate(one["memory"])) for one in parts.values()))
            if any(one < at for one in _times(memory) - theirs):
                return True
        said = await self._manager.transcripts.everything(tenant, user)
        refs = [] if parts else [ref async for ref in self._manager.sessions.of(tenant, user)]
        for ref in refs:
            if (session := await self._manager.sessions.load(ref)) is not None:
                said += [dict(line) for line in (*session.carried, *session.history)]
        return any(_before(line.get("timestamp"), at) for line in said)

    def _is_before(self, tenant: str, user: str, when: datetime) -> bool:
        at = self._list.at(tenant, user)
        return at is not None and when < at


class Forgotten:
    """What is left to do about forgotten people now and then. `ours`: the server is the embedded one."""

    def __init__(self, manager: MemoryManager, restored: Restored, client: Redis, *, ours: bool) -> None:
        self._list = manager.forgotten_people
        self._restored = restored
        self._redis = client
        self._ours = ours
        self._looked: date | None = None
        self._rewritten = datetime(1970, 1, 1, tzinfo=UTC)

    async def tidy(self, now: datetime) -> None:
        """Once a day: forgets again whom a backup brought back, and drops what no backup can be older than. Within an
        hour of anybody's being forgotten: lets the embedded server write its append-only file anew, where their words
        stand until then."""
        if self._looked != now.date():
            await self._restored.forget_again()
            for tenant in await asyncio.to_thread(self._list.tenants):
                await asyncio.to_thread(self._list.tidy, tenant, now)
            self._looked = now.date()
        if not self._ours or now - self._rewritten < _REWRITE_EVERY:
            return
        last = await asyncio.to_thread(self._list.last)
        if last is not None and last > max(self._rewritten, now - _SEEN_TO):
            try:
                await self._redis.bgrewriteaof()
            except ResponseError as error:  # one is under way, and may have begun before: again next time
                log.info("the append-only file isn't written anew now: %s", error)
                return
            self._rewritten = now


def _times(memory: LongTermMemory) -> set[datetime]:
    times = {one.timestamp for one in memory.events} | {one.created_at for one in memory.facts}
    times |= {one.started_at for one in memory.episodes}
    return times | ({memory.person.first_seen_at} if memory.person else set())


def _before(timestamp: object, at: datetime) -> bool:
    try:
        return datetime.fromisoformat(str(timestamp)) < at
    except (ValueError, TypeError):
        return False


def _utc(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
