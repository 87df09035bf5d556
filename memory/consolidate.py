"""What happens when a session ends: what it was about goes into long-term memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from memory.models import Message, ShortTermMemory
from memory.protocols import LongTerm

SummariseSession = Callable[[str, Sequence[Message], str], str]  # previous summary, messages, language


class Consolidation:
    """Events and attributes were saved as they came; here the session's own gist joins the history summary, and the
    journal is folded in. Doing it twice for one session, also from two processes at once, changes nothing more.
    """

    def __init__(self, longterm: LongTerm, *, summarise: SummariseSession) -> None:
        self._longterm = longterm
        self._summarise = summarise

    async def end(self, session: ShortTermMemory, now: datetime) -> None:
        """Raises LongTermUnavailable; the session is then still to be consolidated."""
        messages = session.history
        language = str(session.variables.get("preferred_language") or "mixed")
        gist = self._summarise("", messages, language) if messages else ""
        if gist:

            def joined(previous: str) -> str:
                return previous if gist in previous else self._summarise(previous, messages, language)

            await self._longterm.save_events(session.tenant_id, session.user_id, (), history_summary=joined)
        await self._longterm.compact(session.tenant_id, session.user_id, now)
