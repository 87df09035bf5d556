"""The manager's calls about what is known: remember, search, recall, identify_user, and what keeps it in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from memory import decay, facts, identities, procedures
from memory.archive import Archive
from memory.errors import LongTermUnavailable, SessionsUnavailable, WasForgotten
from memory.export import exported, first_time_in, imported, people_in
from memory.facts import Fact, Merged, Scope
from memory.forgotten_people import ForgottenPeople
from memory.keys import DEFAULT_AGENT, MAIN, ConversationRef
from memory.knowledge import Knowledge, answer, trigger_user
from memory.models import LongTermMemory, ShortTermMemory
from memory.procedures import Procedure
from memory.protocols import LongTerm, Sessions, Transcripts
from memory.search import Hit

log = logging.getLogger(__name__)

_WORDS_KEPT_FOR = timedelta(days=1)


class Knowing:
    """Raises InvalidId for ids that can't be a key, LongTermUnavailable where what is known can't be read or written,
    ValueError for a type, scope or kind that there is not."""

    knowledge: Knowledge
    archive: Archive
    longterm: LongTerm
    sessions: Sessions
    transcripts: Transcripts
    forgotten_people: ForgottenPeople
    _clock: Callable[[], datetime]

    async def _change(
        self,
        ref: ConversationRef,
        change: Callable[[ShortTermMemory], ShortTermMemory],
        *,
        session_id: str | None = None,
    ) -> ShortTermMemory:
        raise NotImplementedError

    async def remember(
        self,
        tenant_id: str,
        user_id: str,
        text: str | None = None,
        key: str | None = None,
        value: Any = None,
        type: str = "fact",
        scope: str = "user",
        *,
        overwrite: bool = True,
        confidence: float = 1.0,
        priority: str | None = None,
        pinned: bool = False,
        source: str | None = None,
        agent: str = DEFAULT_AGENT,
        conversation_id: str = MAIN,
    ) -> Fact:
        """What holds after it. Said before, it is confirmed; another value takes the old one's place, which stays as
        history; with `overwrite=False` whatever is known stands."""
        fact = facts.new(
            now=self._clock(),
            text=text,
            key=key,
            value=value,
            type=type,
            scope=scope,
            agent=agent,
            priority=priority,
            confidence=confidence,
            source=source,
            pinned=pinned,
            owner=user_id,
        )
        ref = ConversationRef(tenant_id, user_id, agent, conversation_id)
        return (await self._remembered(ref, fact, overwrite=overwrite)).fact

    async def remember_in_words(
        self,
        tenant_id: str,
        user_id: str,
        key: str,
        value: Any,
        *,
        fact_type: str = "world_knowledge",
        overwrite: bool = True,
        scope: str = "user",
        source: str | None = None,
        agent: str = DEFAULT_AGENT,
        conversation_id: str = MAIN,
    ) -> str:
        """The tool's form: `Remembered: color = blue (created)`; also (updated), (confirmed)."""
        now = self._clock()
        given = {"key": key, "value": value, "type": fact_type, "scope": scope, "agent": agent, "source": source}
        fact = facts.new(now=now, owner=user_id, **given)
        ref = ConversationRef(tenant_id, user_id, agent, conversation_id)
        return answer(await self._remembered(ref, fact, overwrite=overwrite))

    async def _remembered(self, ref: ConversationRef, fact: Fact, *, overwrite: bool) -> Merged:
        if fact.scope is not Scope.SESSION:
            return await self.knowledge.remember(ref.tenant, ref.user, fact, overwrite=overwrite)
        done: list[Merged] = []

        def change(session: ShortTermMemory) -> ShortTermMemory:
            done.append(facts.merge(session.facts, fact, overwrite=overwrite, reassert=True))
            after = facts.upserted(session.facts, done[-1].changed)
            return session if after == session.facts else session.model_copy(update={"facts": after})

        await self._change(ref._replace(user=await self.knowledge.canonical(ref.tenant, ref.user)), change)
        return done[-1]

    async def search(
        self,
        tenant_id: str,
        user_id: str,
        query: str,
        limit: int = 10,
        kinds: Sequence[str] | None = None,
        *,
        agent: str = DEFAULT_AGENT,
        conversation_id: str = MAIN,
    ) -> list[Hit]:
        """Best first: `id`, `kind` (fact, episode, procedure, event), `text`, `score` 0.0-1.0."""
        if not isinstance(query, str):
            raise ValueError(f"query must be a text, not {query!r:.40}")
        session = await self._session_facts(ConversationRef(tenant_id, user_id, agent, conversation_id))
        return await self.knowledge.search(
            tenant_id, user_id, query, self._clock(), limit=limit, kinds=kinds, agent=agent, session=session
        )

    async def recall(
        self,
        tenant_id: str,
        user_id: str,
        key: str | None = None,
        query: str | None = None,
        *,
        memory_type: str = "facts",
        limit: int = 10,
        min_confidence: float = 0.5,
        agent: str = DEFAULT_AGENT,
        conversation_id: str = MAIN,
    ) -> str:
        """The tool's form, a line each, the surest first: `timezone = Australia/Adelaide`. By `key`, else by `query`
        over `memory_type` (facts, procedures, episodes, events or all), else every fact."""
        session = await self._session_facts(ConversationRef(tenant_id, user_id, agent, conversation_id))
        return await self.knowledge.recall(
            tenant_id, user_id, self._clock(), key=key, query=query, memory_type=memory_type, limit=limit,
            min_confidence=min_confidence, agent=agent, session=session,
        )  # fmt: skip

    async def identify_user(
        self,
        tenant_id: str,
        trigger: str | Mapping[str, Any],
        *,
        display_name: str | None = None,
        min_confidence: float = 0.5,
        episodes: int = 3,
    ) -> dict[str, Any]:
        """Who it is: `user`, `preferences`, `facts`, `episodes` (the newest), and all of it in words as `user_context`.
        `trigger` is a canonical id or a payload that names a channel and an id there; an unknown one is taken in."""
        user = trigger_user(trigger)
        if display_name is None and isinstance(trigger, Mapping) and isinstance(trigger.get("display_name"), str):
            display_name = trigger["display_name"]
        return await self.knowledge.identify(
            tenant_id, user, self._clock(), display_name=display_name, min_confidence=min_confidence, episodes=episodes
        )

    async def rate(
        self, tenant_id: str, user_id: str, rating: int, comment: str = "", *, episode_id: str | None = None
    ) -> bool:
        """A person's opinion, 1 to 5, of an episode: the last one unless it is named. False: there is none."""
        return await self.knowledge.rate(tenant_id, user_id, rating, comment, self._clock(), episode_id)

    async def teach(
        self, tenant_id: str, rule: str | None = None, *, content: Any = None, trigger: Mapping[str, Any] | None = None,
        type: str = "prompt_template", name: str = "",
    ) -> Procedure:  # fmt: skip
        """A rule in words ("when a customer asks for delivery, ask for the postcode first"), or a content with its
        trigger. Raises ValueError for words that are no rule."""
        procedure = (
            procedures.taught(rule, self._clock())
            if rule is not None
            else procedures.new(content, trigger or {}, self._clock(), type=type, name=name)
        )
        if procedure is None:
            raise ValueError("no rule: write “when a customer asks for …, …”, or give a content and a trigger")
        await self.knowledge.teach(tenant_id, procedure)
        return procedure

    async def prune(
        self, tenant_id: str, user_id: str, *, dry_run: bool = False, threshold: float = decay.GONE
    ) -> list[Fact]:
        """Removes what has faded, after writing it to the archive, where it stays for 30 days. What it removed, or with
        `dry_run` would remove."""
        now = self._clock()
        memory = await self.longterm.load(tenant_id, user_id)
        gone = decay.faded(memory.facts, now, threshold) if memory else []
        if dry_run:
            return gone
        if gone:
            await self.archive.add(tenant_id, user_id, gone, now)
            ids = {one.id for one in gone}

            def without(known: LongTermMemory) -> LongTermMemory:
                # What was used meanwhile stays, though the archive has it too.
                again = {one.id for one in decay.faded(known.facts, now, threshold)} & ids
                left = [one for one in known.facts if one.id not in again]
                return known.model_copy(update={"facts": left, "attributes": facts.attributes(left)})

            await self.longterm.rewrite(tenant_id, user_id, without)
        return gone

    async def prune_all(self, tenant_id: str, *, dry_run: bool = False) -> int:
        """`prune` for everybody of a tenant; how many facts. Whose memory can't be read now waits for the next time.
        What has lain in the archive for 30 days goes."""
        pruned = 0
        if not dry_run:
            await self.longterm.tidy_marks(tenant_id)
            try:
                await self.knowledge.finder.expire(tenant_id, self._clock() - _WORDS_KEPT_FOR)
            except LongTermUnavailable as error:
                log.error("retention of words waits: %s", error)
            await self.archive.expire(tenant_id, self._clock())
        async for user in self.longterm.fading(tenant_id, self._clock()):
            try:
                pruned += len(await self.prune(tenant_id, user, dry_run=dry_run))
            except LongTermUnavailable as error:
                log.error("pruning waits: %s", error)
        return pruned

    async def merge_users(self, tenant_id: str, user_id: str, into: str) -> None:
        """Everything of `user_id` moves to `into`, and the old id leads there. Done again, it changes nothing. Whoever
        calls it knows that both are one person: a name alone is no proof.

        Raises ValueError where they can't be merged.
        """
        now = self._clock()

        def both(here: LongTermMemory, there: LongTermMemory) -> tuple[LongTermMemory, LongTermMemory]:
            if there.person is not None and there.person.merged_into == into:
                return here, there
            return identities.merged(here, there, now), identities.moved(there, into, now)

        await self.longterm.rewrite_both(tenant_id, into, user_id, both)

    async def unmerge_users(self, tenant_id: str, user_id: str, into: str) -> None:
        """Gives back to `user_id` what came from there. Raises ValueError where it was not merged into that one."""

        def both(there: LongTermMemory, here: LongTermMemory) -> tuple[LongTermMemory, LongTermMemory]:
            part = identities.part_of(here, user_id)
            return identities.returned(there, part), identities.unmerged(here, user_id)

        await self.longterm.rewrite_both(tenant_id, user_id, into, both)

    async def export(self, tenant_id: str, user_id: str) -> dict[str, Any] | None:
        """Everything that is kept of a person as a JSON value; None: nothing is."""
        return await exported(self.longterm, self.transcripts, self.archive, tenant_id, user_id)

    async def import_(self, tenant_id: str, value: Mapping[str, Any]) -> str:
        """Takes an export in; the user's id. Raises ValueError for what is none, WasForgotten for what was said by
        somebody before they were forgotten."""
        await asyncio.to_thread(self._none_forgotten, tenant_id, value)
        return await imported(self.longterm, self.transcripts, self.archive, tenant_id, value, self._clock())

    def _none_forgotten(self, tenant: str, value: Mapping[str, Any]) -> None:
        for user in people_in(value):
            at = self.forgotten_people.at(tenant, user)
            if at is not None and first_time_in(value) < at:
                raise WasForgotten(f"was forgotten on {at:%Y-%m-%d}, and this is from before then: not taken in")

    async def _session_facts(self, ref: ConversationRef) -> list[Fact]:
        user = await self.knowledge.canonical(ref.tenant, ref.user)
        try:
            session = await self.sessions.load(ref._replace(user=user))
        except SessionsUnavailable:
            return []
        return session.facts if session is not None and not session.expired(self._clock()) else []
