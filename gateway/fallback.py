"""Answers from the HTTP side while the inbox is away: the same turn, over a queue and sessions in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from gateway.inbox.base import Claim, Claims, Inbox, Outcome, SessionWrite, event_of, name_of
from gateway.inbox.in_process import InProcessInbox
from gateway.inbox.spool import Entry
from gateway.pacing import Limit
from gateway.room import Room
from gateway.worker import LEASE, Worker

log = logging.getLogger(__name__)

AT_ONCE = 16  # conversations


class SpoolingInbox(InProcessInbox):
    """Tells the spool what has been answered. What could not be answered stays there for the workers."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[tuple[str, str], Entry] = {}

    async def take(self, entry: Entry) -> None:
        message = entry.spooled.message
        [new] = await self.put([(message, entry.spooled.policy)])
        if new:
            self._entries[name_of(message), event_of(message)] = entry
        else:  # it could not be answered from here before, and is left to the workers
            entry.release()

    async def claim(self, limit: int, within: float = 0.0, stop: asyncio.Future[Any] | None = None) -> Claims:
        """What the queue itself has buried is let go of as well: it would be in hand for as long as this process is."""
        found = await super().claim(limit, within, stop)
        buried = [self._entries.pop((name, event_of(message)), None) for name, *_, message in self.state.dead]
        self.state.dead.clear()
        _let_go([entry for entry in buried if entry is not None], answered=False)
        return found

    async def intent(self, claim: Claim, outbox: bytes, limits: Sequence[Limit] = ()) -> float | None:
        """What may have reached the customer is on disk first: whoever takes it over must not answer it anew."""
        wait = await super().intent(claim, outbox, limits)
        if wait == 0:
            await self._begun(claim, outbox)
        return wait

    async def park(self, claim: Claim, outbox: bytes, pause: float) -> bool:
        """What waits for the customer is left to the workers: what the customer says next would wait for it in turn, as
        nothing of a conversation is taken from the spool as long as somebody has an earlier message in hand."""
        if not self._holds(claim):
            return False
        await self._begun(claim, outbox)
        outcome, _ = await self._over(claim, None, answered=False)
        return outcome is Outcome.DONE

    async def _begun(self, claim: Claim, outbox: bytes) -> None:
        for message in claim.messages:
            if (entry := self._entries.get((name_of(message), event_of(message)))) is not None:
                await asyncio.to_thread(entry.mark_begun, outbox)

    async def finish(
        self, claim: Claim, session: SessionWrite | None, dead: str | None = None, carry: bytes | None = None
    ) -> tuple[Outcome, bytes | None]:
        return await self._over(claim, session, dead, carry, answered=dead is None)

    async def _over(self, claim: Claim, *how: Any, answered: bool) -> tuple[Outcome, bytes | None]:
        outcome = await super().finish(claim, *how)
        if outcome[0] is Outcome.DONE:
            over = [self._entries.pop((name_of(message), event_of(message)), None) for message in claim.messages]
            # In one go, as the turn may be stopped while it waits: an entry that stayed locked would never come home.
            await asyncio.to_thread(_let_go, [entry for entry in over if entry is not None], answered=answered)
        return outcome


def _let_go(entries: Sequence[Entry], *, answered: bool) -> None:
    for entry in entries:
        try:
            if answered:
                entry.mark_answered()
        finally:
            entry.release()


class Fallback:
    """Starts working with the first message. `turn_over(inbox)` makes the turn, and what must be closed after it."""

    def __init__(self, turn_over: Callable[[Inbox, AsyncExitStack], Callable[..., object]], grace: float) -> None:
        self._turn_over = turn_over
        self._grace = grace
        self._inbox: SpoolingInbox | None = None
        self._stop = asyncio.Event()
        self._stack = AsyncExitStack()
        self._working: asyncio.Task[None] | None = None

    async def take(self, entry: Entry) -> None:
        if self._inbox is None:
            log.warning("answering from here with minimal sessions until the inbox is back")
            self._inbox = SpoolingInbox()
            turn = self._turn_over(self._inbox, self._stack)
            worker = Worker(self._inbox, turn, room=Room(AT_ONCE, LEASE), grace=self._grace)  # type: ignore[arg-type]
            self._working = asyncio.create_task(worker.run(self._stop))
        await self._inbox.take(entry)

    async def close(self) -> None:
        self._stop.set()
        if self._working is not None:
            await self._working
        await self._stack.aclose()
