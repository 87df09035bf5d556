"""Events into long-term memory, with what follows from them: attributes and the history summary."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from memory.errors import LongTermUnavailable
from memory.protocols import LongTerm
from processors.models import MemoryEvent

log = logging.getLogger(__name__)

AttributesFrom = Callable[[MemoryEvent], dict[str, Any]]
SummariseEvents = Callable[[str, Sequence[MemoryEvent], str], str]  # previous summary, events, language

MAX_PENDING = 10_000  # events of all users held while the disk is away
MAX_PENDING_OF_USER = 100


class Remember:
    """While long-term memory can't be written, events wait here, in this process, the oldest going first beyond the
    bounds above; they are saved with the user's next event or at the next `flush`. A process that ends before that
    loses them from long-term memory; what was said still stands in the transcript where that could be written.
    """

    def __init__(self, longterm: LongTerm, *, attributes_from: AttributesFrom, summarise: SummariseEvents) -> None:
        self._longterm = longterm
        self._attributes_from = attributes_from
        self._summarise = summarise
        self._pending: dict[tuple[str, str], list[MemoryEvent]] = {}

    async def save(self, tenant: str, user: str, events: Sequence[MemoryEvent]) -> bool:
        """Saves the events and what they tell of the person; False: they wait for the disk. Never raises for a disk."""
        events = [*self._pending.pop((tenant, user), ()), *events]
        if not events:
            return True
        attributes: dict[str, Any] = {}
        for event in events:
            attributes |= self._attributes_from(event)
        language = next((str(e.payload["language"]) for e in reversed(events) if e.payload.get("language")), "mixed")
        try:
            await self._longterm.save_events(
                tenant,
                user,
                events,
                attributes=attributes,
                # Called under the user's lock with the summary of that moment: nobody's update is lost.
                history_summary=lambda previous: self._summarise(previous, events, language),
            )
        except LongTermUnavailable as error:
            log.error("%d events wait for long-term memory: %s", len(events), error)
            self._keep(tenant, user, events)
            return False
        return True

    async def flush(self) -> int:
        """Tries to save everything that waits; the number of events that could be saved."""
        saved = 0
        for tenant, user in list(self._pending):
            waiting = len(self._pending.get((tenant, user), ()))
            if await self.save(tenant, user, ()):
                saved += waiting
        return saved

    def waiting(self) -> int:
        return sum(map(len, self._pending.values()))

    def drop(self, tenant: str, user: str) -> int:
        """Forgets what waits for this user; how much that was."""
        return len(self._pending.pop((tenant, user), ()))

    def _keep(self, tenant: str, user: str, events: list[MemoryEvent]) -> None:
        kept = [*events, *self._pending.pop((tenant, user), ())][-MAX_PENDING_OF_USER:]
        self._pending[tenant, user] = kept
        while self.waiting() > MAX_PENDING:
            oldest = next(iter(self._pending))
            log.error("%d events are given up: too many wait for the disk", len(self._pending.pop(oldest)))
