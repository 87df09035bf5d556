"""What happens when a session ends: what it was about goes into long-term memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from memory import history
from memory.models import Message, ShortTermMemory
from memory.protocols import LongTerm
from processors.models import EventType, Language
from processors.summary import summarise_session

# Tenant, messages, the gist before, language: the gist. Falls back on its own when no language model answers.
AskForGist = Callable[[str, Sequence[Message], str, Language | None], Awaitable[str]]


class Consolidation:
    """Events and attributes were saved as they came; here the session's gist joins the history summary, and the journal
    is folded in. Doing it twice for one session, also from two processes at once, changes nothing more.

    `ask` asks a language model; without it the gist is told from the messages themselves.
    """

    def __init__(self, longterm: LongTerm, *, ask: AskForGist | None = None) -> None:
        self._longterm = longterm
        self._ask = ask

    async def end(self, session: ShortTermMemory, now: datetime, *, in_a_hurry: bool = False) -> None:
        """`in_a_hurry`: a customer waits, so no language model is asked.

        Raises LongTermUnavailable; the session is then still to be consolidated.
        """
        tenant, user = session.tenant_id, session.user_id
        memory = await self._longterm.load(tenant, user)
        if _has_something(session):
            language = _language(session)
            before = history.gist_of(memory) if memory else ""
            if self._ask is None or in_a_hurry:
                gist = await summarise_session(None, None, session.history, before, language)
            else:
                gist = await self._ask(tenant, session.history, before, language)
            if gist and gist != before:
                await self._longterm.save_events(
                    tenant, user, (), history_summary=lambda current: history.with_gist(current, gist)
                )
        await self.fold(tenant, user, now)

    async def fold(self, tenant: str, user: str, now: datetime) -> None:
        """Of a session that nobody can read any more: what was saved of it goes into the file all the same."""
        await self._longterm.compact(tenant, user, now)


def _has_something(session: ShortTermMemory) -> bool:
    """More than a greeting: of somebody who only said hello there is nothing to remember."""
    said = sum(message["role"] == "user" for message in session.history)
    return said > 1 or (said == 1 and session.last_intent not in (None, EventType.GENERIC_EVENT.value))


def _language(session: ShortTermMemory) -> Language | None:
    language = session.variables.get("preferred_language")
    return language if language in ("th", "en", "mixed") else None
