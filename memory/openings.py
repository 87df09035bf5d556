"""The session that a message finds: the live one, or a new one built from what was remembered."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime

from memory.canonical import merged_ids, resolved
from memory.config import MemoryRules
from memory.consolidate import Consolidation
from memory.errors import LongTermUnavailable
from memory.keys import MAIN, ConversationRef
from memory.models import LongTermMemory, Message, ShortTermMemory
from memory.protocols import LongTerm, Transcripts
from memory.session import new_session, time_of
from processors.models import Language

log = logging.getLogger(__name__)


def in_order(lines: Sequence[Message]) -> list[Message]:
    return sorted(lines, key=lambda line: line.get("timestamp") or "")


class Openings:
    """`rules` gives a tenant's session rules; `capped`: how many conversations a tenant has at once is limited."""

    def __init__(
        self,
        longterm: LongTerm,
        transcripts: Transcripts,
        consolidation: Consolidation,
        rules: Callable[[str], MemoryRules],
        *,
        capped: bool = False,
    ) -> None:
        self._longterm = longterm
        self._transcripts = transcripts
        self._consolidation = consolidation
        self._rules = rules
        self._capped = capped

    async def open_session(
        self, ref: ConversationRef, stored: ShortTermMemory | None, now: datetime, *, session_id: str | None = None
    ) -> ShortTermMemory:
        """`stored` itself while it lives, whatever `session_id` says; else a new session with the stored one's `rev`,
        not yet saved. An expired one is consolidated first. Broken or absent files never stop it: a session then
        begins with what could be read.
        """
        if stored is not None and not stored.expired(now):
            return stored
        rules = self._rules(ref.tenant)
        if stored is not None:
            try:
                await self._consolidation.end(stored, now, in_a_hurry=True)
            except LongTermUnavailable as error:
                log.error("a session ends without its summary: %s", error)
        memory, carried = await asyncio.gather(self._remembered(ref), self._said(ref, rules.max_messages))
        if linked := [one for one in merged_ids(memory) if one != ref.user]:
            # What was said under the ids of other channels before they were linked.
            more = await asyncio.gather(*(self._said(ref._replace(user=one), rules.max_messages) for one in linked))
            carried = in_order([*carried, *(line for lines in more for line in lines)])[-rules.max_messages :]
        if not carried and stored is not None:
            carried = [*stored.carried, *stored.history][-rules.max_messages :]
        if ref.conversation != MAIN:
            carried = self._still_going(carried, now, rules.sm_ttl)
        name = session_id or f"sess_{now:%Y%m%d}_{secrets.token_hex(4)}"
        session = new_session(ref, name, memory, carried, now, rules.sm_ttl)
        return session.model_copy(update={"rev": stored.rev}) if stored is not None else session

    async def read_so_far(self, ref: ConversationRef, said: Sequence[Message], language: Language | None) -> bool:
        """See Consolidation.so_far."""
        return await self._consolidation.so_far(ref.tenant, ref.user, said, language)

    def _still_going(self, carried: list[Message], now: datetime, ttl: float) -> list[Message]:
        """A person's main conversation goes on for ever; one that a program opened is over when it was idle for too
        long, or had to give way to others. Only what was lost before its time is given back."""
        if self._capped or not carried:
            return []
        last = time_of(carried[-1])
        return carried if ttl <= 0 or (last is not None and (now - last).total_seconds() < ttl) else []

    async def _remembered(self, ref: ConversationRef) -> LongTermMemory | None:
        try:
            return (await resolved(self._longterm, ref.tenant, ref.user))[1]
        except LongTermUnavailable as error:
            log.error("a session begins without long-term memory: %s", error)
            return None

    async def _said(self, ref: ConversationRef, limit: int) -> list[Message]:
        try:
            return await self._transcripts.tail(ref, limit)
        except LongTermUnavailable as error:
            log.error("a session begins without earlier messages: %s", error)
            return []
