"""What happens when a session ends: what it was about, and what it told of the person, goes into long-term memory."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from memory import facts, history, person, procedures
from memory.canonical import change_theirs, resolved
from memory.episodes import Episode, Feedback, made_of, moment
from memory.errors import LongTermUnavailable
from memory.facts import Fact
from memory.keys import ConversationRef
from memory.models import Changes, LongTermMemory, Message, ShortTermMemory
from memory.protocols import LongTerm, Transcripts
from processors.extraction import Found, Reading, read
from processors.models import EventType, Language
from processors.personal import personal

log = logging.getLogger(__name__)

# Tenant, messages, the gist before, what is known by key, language: what it comes to. Never raises for a model.
Reader = Callable[[str, Sequence[Message], str, Mapping[str, Any], Language | None], Awaitable[Reading]]

FEEDBACK = "feedback"  # in a session's variables: what its person thought of it so far
MAX_TRIES = 5  # of reading a session that the model could not read
_LONGEST = 1000  # messages of a session that are read


class Consolidation:
    """Events and plain facts were saved as they came; here the session becomes an episode, its gist joins the history
    summary, what the model found joins the facts, and the journal is folded in. Doing it twice for one session, also
    from two processes at once, changes nothing more.

    `read_session` asks a language model; without it the gist is told from the messages themselves. A session that it
    could not read stays an episode that is to be read again with the next one that ends.
    """

    def __init__(
        self, longterm: LongTerm, transcripts: Transcripts | None = None, *, read_session: Reader | None = None
    ) -> None:
        self._longterm = longterm
        self._transcripts = transcripts
        self._read = read_session

    async def end(self, session: ShortTermMemory, now: datetime, *, in_a_hurry: bool = False) -> None:
        """`in_a_hurry`: a customer waits, so no language model is asked; it reads this session with the next.

        Raises LongTermUnavailable; the session is then still to be consolidated.
        """
        tenant = session.tenant_id
        user, memory = await resolved(self._longterm, tenant, session.user_id)
        if _has_something(session):
            messages = await self._said(session)
            episode = _episode(session, messages, understood=self._read is None)
            known = next((one for one in memory.episodes if one.id == episode.id), None) if memory else None
            if known is None:
                await self._end(episode, memory, in_a_hurry, _language(session), tenant, user, now)
        if self._read is not None and not in_a_hurry:
            await self._read_again(tenant, user)
        await self.fold(tenant, user, now)

    async def so_far(self, tenant: str, user: str, said: Sequence[Message], language: Language | None) -> bool:
        """What a part of a live session tells of the person, in one call to the model, goes into the facts; the
        session's end reads it again, as part of the whole. False: the model could not read it. Raises
        LongTermUnavailable."""
        if self._read is None:
            return True
        user, memory = await resolved(self._longterm, tenant, user)
        known = facts.attributes(memory.facts) if memory else {}
        reading = await self._read(tenant, said, history.gist_of(memory) if memory else "", known, language)
        if reading.understood and reading.facts:
            now = datetime.now(UTC)
            await change_theirs(
                self._longterm,
                tenant,
                user,
                lambda current: Changes(facts=_learned(current.facts, said, reading.facts, now)),
                since=(moment(said[0]) or now) if said else None,
            )
        return reading.understood

    async def fold(self, tenant: str, user: str, now: datetime) -> None:
        """Of a session that nobody can read any more: what was saved of it goes into the file all the same."""
        await self._longterm.compact(tenant, user, now)

    async def _end(
        self,
        episode: Episode,
        memory: LongTermMemory | None,
        in_a_hurry: bool,
        language: Language | None,
        tenant: str,
        user: str,
        now: datetime,
    ) -> None:
        before = history.gist_of(memory) if memory else ""
        # No lock and no snapshot is held while the language model thinks.
        reading = await self._ask(tenant, episode, memory, before, language, hurry=in_a_hurry)
        done = episode.model_copy(
            update={
                "summary": reading.summary,
                "understood": self._read is None or (reading.understood and not in_a_hurry),
                "tries": 0 if in_a_hurry else 1,
            }
        )
        spoken = sum(line["role"] == "user" for line in episode.conversation)

        def decide(current: LongTermMemory) -> Changes:
            if any(one.id == done.id for one in current.episodes):  # another process was faster
                return Changes()
            gist = reading.summary
            if reading.by_rules:
                gist = history.rolled(history.gist_of(current), gist)
            return Changes(
                facts=_learned(current.facts, episode.conversation, reading.facts, now),
                episodes=(done,),
                person=person.seen(current.person, user, episode.ended_at, messages=spoken, ended=True),
                history_summary=history.with_gist(current, gist) if gist else None,
            )

        await change_theirs(self._longterm, tenant, user, decide, since=done.started_at)
        if done.actions and done.outcome == "success":
            await self._learn(tenant, user, now)

    async def _learn(self, tenant: str, user: str, now: datetime) -> None:
        """Ways of doing something that went well several times become the tenant's procedures: names of tools alone,
        nothing that anybody said."""
        memory = await self._longterm.load(tenant, user)
        ways = procedures.learned(memory.episodes, now) if memory else []

        def decide(shared: LongTermMemory) -> Changes:
            known = {one.id for one in shared.procedures}
            return Changes(procedures=[way for way in ways if way.id not in known])

        if ways:
            await self._longterm.change_shared(tenant, decide)

    async def _read_again(self, tenant: str, user: str) -> None:
        """Episodes that no model has read yet, the oldest first, until one can't be read."""
        memory = await self._longterm.load(tenant, user)
        for episode in memory.episodes if memory else ():
            if episode.understood or not episode.conversation:
                continue
            if episode.tries >= MAX_TRIES:
                log.error("a session stays unread after %d tries", episode.tries)
                continue
            reading = await self._ask(tenant, episode, memory, "", None)
            done = episode.model_copy(
                update={
                    "understood": reading.understood,
                    "tries": episode.tries + 1,
                    "summary": reading.summary if reading.understood else episode.summary,
                }
            )

            def decide(current: LongTermMemory, done: Episode = done, reading: Reading = reading) -> Changes:
                if not any(one.id == done.id and not one.understood for one in current.episodes):
                    return Changes()
                at = done.ended_at
                return Changes(facts=_learned(current.facts, done.conversation, reading.facts, at), episodes=(done,))

            await change_theirs(self._longterm, tenant, user, decide)
            if not reading.understood:
                break

    async def _ask(
        self,
        tenant: str,
        episode: Episode,
        memory: LongTermMemory | None,
        before: str,
        language: Language | None,
        *,
        hurry: bool = False,
    ) -> Reading:
        known = facts.attributes(memory.facts) if memory else {}
        if self._read is None or hurry:
            return await read(None, None, episode.conversation, "", known, language)
        return await self._read(tenant, episode.conversation, before, known, language)

    async def _said(self, session: ShortTermMemory) -> list[Message]:
        """All of the session, also what has left its window."""
        if self._transcripts is None:
            return session.history
        ref = ConversationRef(session.tenant_id, session.user_id, session.agent, session.conversation_id)
        try:
            said = await self._transcripts.tail(ref, _LONGEST)
        except LongTermUnavailable:
            return session.history
        before = {line["message_id"] for line in session.carried if "message_id" in line}
        start = next((at + 1 for at in reversed(range(len(said))) if said[at].get("message_id") in before), 0)
        own = {line.get("message_id") for line in said[start:]}
        missing = [line for line in session.history if line.get("message_id") not in own or "message_id" not in line]
        lines = [line for line in said[start:] if line["message"].strip()] + missing
        return sorted(lines, key=lambda line: line.get("timestamp") or "") if missing else lines


def _learned(known: Sequence[Fact], messages: Sequence[Message], found: Sequence[Found], now: datetime) -> list[Fact]:
    """What is to be stored: plain sentences first, then what the model read. Each says which message it is from."""
    changed: list[Fact] = []
    for line in messages:
        if line["role"] == "user" and not _of_a_member(line):
            told = personal(line["message"])
            at, source = moment(line) or now, line.get("message_id")
            changed = facts.upserted(changed, facts.heard(facts.upserted(known, changed), told, at, source))
    for one in found:
        line = messages[one.message]
        if _of_a_member(line):
            continue
        at, source = moment(line) or now, line.get("message_id")
        current = facts.upserted(known, changed)
        if one.ended:
            changed = facts.upserted(changed, facts.taken_back(current, one.key, one.value, at))
            continue
        if any(source in told.sources and facts.same(told.value, one.value) for told in current if source):
            continue  # read before, from this very message, under another key
        fact = facts.new(
            now=at, key=one.key, value=one.value, text=one.text, type=one.type, confidence=one.confidence, source=source
        )
        changed = facts.upserted(changed, facts.merge(current, fact).changed)
    return changed


def _of_a_member(line: Message) -> bool:
    """Said in a group: it tells of that member, and what is known of a group is nobody's."""
    return "sender" in (line.get("metadata") or {})


def _episode(session: ShortTermMemory, messages: Sequence[Message], *, understood: bool) -> Episode:
    episode = made_of(
        session.session_id,
        session.created_at,
        messages,
        agent=session.agent,
        conversation_id=session.conversation_id,
        last_intent=session.last_intent,
        understood=understood,
    )
    try:
        feedback = Feedback.model_validate(session.variables.get(FEEDBACK))
    except ValueError:
        return episode
    return episode.model_copy(update={"feedback": feedback})


def _has_something(session: ShortTermMemory) -> bool:
    """More than a greeting: of somebody who only said hello there is nothing to remember."""
    said = sum(message["role"] == "user" for message in session.history)
    return said > 1 or (said == 1 and session.last_intent not in (None, EventType.GENERIC_EVENT.value))


def _language(session: ShortTermMemory) -> Language | None:
    language = session.variables.get("preferred_language")
    return language if language in ("th", "en", "mixed") else None
