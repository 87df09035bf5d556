"""Clean-up: sessions that are over end properly, what waited is saved, retention is applied."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from memory.consolidate import Consolidation
from memory.errors import LongTermUnavailable, SessionsUnavailable
from memory.keys import ConversationRef
from memory.protocols import Sessions, Transcripts
from memory.remember import Remember

log = logging.getLogger(__name__)

_PAGE = 100


class Cleanup:
    """Any number may run at once, in any number of processes: each session is counted by the one who ended it."""

    def __init__(
        self, sessions: Sessions, consolidation: Consolidation, remember: Remember, transcripts: Transcripts
    ) -> None:
        self._sessions = sessions
        self._consolidation = consolidation
        self._remember = remember
        self._transcripts = transcripts

    async def sessions(self, now: datetime, tenant: str | None = None) -> int:
        """Ends the sessions that are over, of one tenant or of all; how many this call ended. One that can't be saved
        now stays for the next."""
        await self._remember.flush()
        ended = 0
        tried: set[ConversationRef] = set()
        progress = True
        try:
            while progress:
                progress = False
                # Those that could not be ended, and other tenants', stand in front: ask for as many more.
                async for ref in self._sessions.expired(now, limit=len(tried) + _PAGE):
                    if ref not in tried:
                        tried.add(ref)
                        progress = True
                        if tenant in (None, ref.tenant):
                            ended += await self._end(ref, now)
        except SessionsUnavailable as error:
            log.error("clean-up of sessions stops: %s", error)
        return ended

    async def transcripts(self, now: datetime, days: int, tenant: str | None = None) -> int:
        """Removes what was said more than `days` ago in one tenant or all; the number of messages removed."""
        removed = 0
        try:
            for one in [tenant] if tenant else await self._transcripts.tenants():
                removed += await self._transcripts.prune(one, now - timedelta(days=days))
        except LongTermUnavailable as error:
            log.error("retention of transcripts waits: %s", error)
        return removed

    async def _end(self, ref: ConversationRef, now: datetime) -> bool:
        session = await self._sessions.load(ref)
        if session is not None and not session.expired(now):
            return False
        try:
            if session is None:  # the store dropped it before: only its mark is left
                await self._consolidation.fold(ref.tenant, ref.user, now)
            else:
                await self._consolidation.end(session, now)
        except LongTermUnavailable as error:
            log.error("a session waits for long-term memory: %s", error)
            return False
        return await self._sessions.consolidated(ref, session.rev if session else 0)
