"""Events into long-term memory, with what follows from them: attributes and the history summary."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from datetime import datetime

from memory import amend, facts, history
from memory.canonical import canonical, change_theirs
from memory.errors import LongTermUnavailable, MemoryFault
from memory.facts import Fact
from memory.long_term import events as told_events
from memory.models import Changes, LongTermMemory
from memory.person import Person, clean_name, seen
from memory.protocols import LongTerm
from memory.removal import in_parts
from processors.models import Language, MemoryEvent
from processors.personal import lasting

log = logging.getLogger(__name__)

MAX_PENDING = 10_000  # events of all users held while the disk is away
MAX_PENDING_OF_USER = 100


class Remember:
    """While long-term memory can't be written, events wait here, in this process, the oldest going first beyond the
    bounds above; they are saved with the user's next event or at the next `flush`. A process that ends before that
    loses them from long-term memory; what was said still stands in the transcript where that could be written.
    """

    def __init__(self, longterm: LongTerm) -> None:
        self._longterm = longterm
        self._pending: dict[tuple[str, str], list[MemoryEvent]] = {}

    async def save(
        self,
        tenant: str,
        user: str,
        events: Sequence[MemoryEvent],
        *,
        heard: Sequence[MemoryEvent] = (),
        name: str | None = None,
    ) -> bool:
        """Saves the events and what they tell of the person; of those only `heard`, what they tell. False: the events
        wait for the disk. Events that are saved already change nothing. `name`: what somebody calls themselves of whom
        no name is known yet, kept with what is kept of them."""
        key = (tenant, user)
        waiting = self._pending.get(key, [])  # they stay there until they are saved: this call may be cancelled
        batch = [*waiting, *events]
        heard = [event for event in heard if _tells(event)] if heard else ()
        if not batch and not heard:
            return True

        def learned(memory: LongTermMemory) -> Changes:
            """Of what was said before the person was forgotten, nothing."""
            at = self._longterm.forgotten_at(tenant, memory.user_id)
            if at is None:
                return _learned(memory, batch, heard, name)
            new, told = ([one for one in events if at <= one.timestamp] for events in (batch, heard))
            return _learned(memory, new, told, name)

        try:
            await change_theirs(self._longterm, tenant, user, learned, ahead=not waiting)  # of many it takes long
        except LongTermUnavailable as error:
            log.error("%d events wait for long-term memory: %s", len(batch), error)
            self._keep(key, events)
            return False
        still = [event for event in self._pending.pop(key, ()) if event not in waiting]
        if still:
            self._pending[key] = still
        return True

    async def amend(
        self, tenant: str, user: str, message_ids: Collection[str], instead: MemoryEvent | None, *, keep_gist: bool
    ) -> None:
        """Removes what these messages told, or puts `instead` in its place. Raises LongTermUnavailable."""
        key = (tenant, user)
        waiting = [event for event in self._pending.pop(key, ()) if not amend.is_of(event, message_ids)]
        if waiting:
            self._pending[key] = waiting
        whose = await canonical(self._longterm, tenant, user)

        def amended(memory: LongTermMemory) -> LongTermMemory:
            """Also in what came with merged ids, which parting would give back."""
            after = amend.in_longterm(memory, message_ids, instead, keep_gist=keep_gist)
            return in_parts(after, lambda part: amend.in_longterm(part, message_ids, None, keep_gist=keep_gist))

        changed = await self._longterm.rewrite(tenant, whose, amended)
        if instead is not None and not changed:
            await self.save(tenant, user, [instead])

    async def flush(self) -> int:
        """Tries to save everything that waits; the number of events that could be saved."""
        saved = 0
        for tenant, user in list(self._pending):
            waiting = len(self._pending.get((tenant, user), ()))
            if await self.save(tenant, user, ()):
                saved += waiting
        return saved

    async def keep_trying(self, every: float = 10.0) -> None:
        """Until cancelled: saves what waits once the disk takes it, also when nobody writes any more."""
        while True:
            await asyncio.sleep(every)
            if self._pending:
                try:
                    await self.flush()
                except (MemoryFault, OSError) as error:
                    log.error("what waits for the disk goes on waiting: %s", type(error).__name__)

    def waiting(self) -> int:
        return sum(map(len, self._pending.values()))

    def drop(self, tenant: str, user: str) -> int:
        """Forgets what waits for this user; how much that was."""
        return len(self._pending.pop((tenant, user), ()))

    def _keep(self, key: tuple[str, str], events: Sequence[MemoryEvent]) -> None:
        self._pending[key] = [*self._pending.pop(key, ()), *events][-MAX_PENDING_OF_USER:]
        while self.waiting() > MAX_PENDING:
            oldest = next(iter(self._pending))
            log.error("%d events are given up: too many wait for the disk", len(self._pending.pop(oldest)))


def _tells(event: MemoryEvent) -> bool:
    """More than a language, which every message shows."""
    told = lasting(event)
    return bool(told.over or told.holds.keys() - {"preferred_language"})


def _learned(
    memory: LongTermMemory, batch: Sequence[MemoryEvent], heard: Sequence[MemoryEvent], name: str | None = None
) -> Changes:
    known_already = told_events.knows(memory)
    new: list[MemoryEvent] = []
    for event in batch:
        if not known_already(event.event_id):
            new.append(event)
    known: Sequence[Fact] = memory.facts
    changed: list[Fact] = []
    for event in (*new, *heard):
        if told := facts.heard(known, lasting(event), event.timestamp, event.event_id):
            known, changed = facts.upserted(known, told), facts.upserted(changed, told)
    if not new:
        return Changes(facts=changed)
    known_as = memory.person.display_name if memory.person is not None else None
    return Changes(
        events=new,
        facts=changed,
        history_summary=history.with_events(memory, new, _language(new)),
        person=_named(memory, name, new[-1].timestamp) if name and known_as is None else None,
    )


def _named(memory: LongTermMemory, name: str, now: datetime) -> Person | None:
    clean = clean_name(name)
    return seen(memory.person, memory.user_id, now, name=clean) if clean else None


def _language(events: Sequence[MemoryEvent]) -> Language | None:
    for event in reversed(events):
        language: Language | None = event.payload.get("language")
        if language in ("th", "en", "mixed"):
            return language
    return None
