"""The memory as a library: sessions, long-term memory and transcripts behind a few calls."""

from __future__ import annotations

import asyncio
import logging
import random
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

from memory import context, parts
from memory.amendments import Amendments
from memory.archive import Archive
from memory.canonical import all_ids, resolved
from memory.cleanup import Cleanup
from memory.config import MemoryConfig, MemoryRules
from memory.consolidate import Consolidation, Reader
from memory.curation import Curation
from memory.errors import LongTermUnavailable, MemoryFault, SessionConflict, SessionsUnavailable
from memory.forgotten_people import ForgottenPeople
from memory.keys import DEFAULT_AGENT, MAIN, ConversationRef
from memory.knowing import Knowing
from memory.knowledge import Knowledge
from memory.library.library import Library
from memory.linking import Linking
from memory.long_term.json_files import JsonFiles
from memory.media import MediaFiles
from memory.members import Members
from memory.models import LongTermMemory, Message, ShortTermMemory
from memory.openings import Openings
from memory.protocols import Analyst, Catalog, EmbeddingsOf, LongTerm, Sessions, Transcripts
from memory.recall.entry import Entry
from memory.recall.finder import Finder
from memory.remember import Remember
from memory.session import append, kept_for, known_ids, note_event, worth_saving
from memory.surrogates import without_surrogates
from memory.talks import Talks
from memory.threads import in_thread
from memory.unanswered import UnansweredQuestions
from processors.models import MemoryEvent, iso

if TYPE_CHECKING:
    from processors.openrouter import OpenRouter

log = logging.getLogger(__name__)

_TRIES = 50  # saves of one session against writers in other processes; those of this process wait for each other


class MemoryManager(Knowing, Linking):
    """With a configuration alone it makes its own stores and processor (`memory.parts`); each can be given.

    `rules` gives a tenant's own rules, `read_session` asks a tenant's language model what a session told; `model` is
    closed with the manager; `listed` gives a tenant's canned answers for the search; `changed` hears tenant and
    user of each write to the files of long-term memory, in the thread that wrote; `clock` gives aware times. No
    call about a session raises because Redis or the disk is away: it goes on with a minimal session, and with what
    could be read.
    """

    def __init__(
        self,
        config: MemoryConfig,
        *,
        sessions: Sessions | None = None,
        longterm: LongTerm | None = None,
        transcripts: Transcripts | None = None,
        catalog: Catalog | None = None,
        processor: Analyst | None = None,
        rules: Callable[[str], MemoryRules] | None = None,
        read_session: Reader | None = None,
        model: OpenRouter | None = None,
        changed: Callable[[str, str], None] | None = None,
        embeddings: EmbeddingsOf | None = None,
        listed: Callable[[str], Sequence[Entry]] = lambda tenant: (),
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._config = config
        self._clock = clock
        self._rules = rules or (lambda _: config.rules)
        self._model = model or parts.make_model(config)
        self._processor = processor or parts.make_processor(config, self._model)
        # The gateway's turn uses these side by side.
        self.sessions = sessions or parts.make_sessions(config)
        self.longterm = longterm or parts.make_longterm(config, self._rules, clock, changed)
        self.transcripts = transcripts or parts.make_transcripts(config, self._rules, clock, self.longterm)
        self.vault = parts.make_vault(config, self._rules)
        self.media = MediaFiles(config.media, self.vault)
        self.conversations = parts.make_conversations(config, self.vault, self.longterm)
        self.lists = parts.make_lists(config)
        self.forgotten_people = ForgottenPeople(config.data_dir)
        self.saving = Remember(self.longterm)
        self._embeddings = embeddings or parts.MadeEmbeddings(config)
        # A file of vectors beside a database would keep on one machine what was forgotten on another.
        self.finder = Finder(
            None if config.longterm_url else config.index, self._embeddings.of, self.vault, self.longterm.forgotten_at
        )
        if isinstance(self.longterm, JsonFiles):
            self.longterm.searched = self.finder.read_ahead
        self.library = Library(config.knowledge_path, config.index, self.finder, listed, self.vault)
        self.unanswered = UnansweredQuestions(config.unanswered, self.vault, self.longterm.forgotten_at)
        self.knowledge = Knowledge(self.longterm, self.finder, self.library)
        self.archive = Archive(config.archive, self.vault, self.longterm.forgotten_at)
        consolidation = Consolidation(
            self.longterm, self.transcripts, read_session=read_session or parts.make_reader(config, self._model)
        )
        self.openings = Openings(
            self.longterm, self.transcripts, consolidation, self._rules, capped=config.max_conversations > 0
        )
        self.talks = Talks(self.sessions, self.transcripts, self.openings, self._rules, clock)
        self._cleanup = Cleanup(self.sessions, consolidation, self.saving, self.transcripts)
        self._amendments = Amendments(self.sessions, self.longterm, self.transcripts, self.saving, self._rules, clock)
        self._catalog = catalog
        self._locks: WeakValueDictionary[ConversationRef, asyncio.Lock] = WeakValueDictionary()

    @property
    def catalog(self) -> Catalog:
        """The lists over a tenant; made when first asked for."""
        if self._catalog is None:
            self._catalog = parts.make_catalog(
                self._config, self._rules, self._clock, self.knowledge.tidy, self.longterm, self.finder.meant
            )
        return self._catalog

    @property
    def curation(self) -> Curation:
        """What staff do with what is known."""
        return Curation(self.longterm, self.sessions, self.archive, self.catalog, self._rules, self._clock)

    @property
    def _members(self) -> Members:
        return Members(
            *(self.longterm, self.sessions, self.transcripts, self.saving, self.talks, self.curation, self._amendments)
        )

    async def get_or_create_session_context(
        self,
        tenant_id: str,
        user_id: str,
        session_id: str | None = None,
        *,
        agent: str = DEFAULT_AGENT,
        conversation_id: str = MAIN,
    ) -> ShortTermMemory:
        """The live session unchanged, whatever `session_id`; else a new one from long-term memory, saved.

        Raises InvalidId for ids that can't be a key.
        """
        ref = await self.shared(ConversationRef(tenant_id, user_id, agent, conversation_id))
        return await self._change(ref, lambda session: session, session_id=session_id)

    async def add_message_to_context(
        self,
        tenant_id: str,
        user_id: str,
        message: str,
        role: Literal["user", "bot"] = "user",
        metadata: Mapping[str, Any] | None = None,
        *,
        agent: str = DEFAULT_AGENT,
        conversation_id: str = MAIN,
    ) -> ShortTermMemory:
        """Appends a message and gives the session after it. What a user says is classified before this returns, and
        saved in long-term memory where it matters. With `metadata["message_id"]` it is done once however often asked.

        Raises ValueError for another role, InvalidId for ids that can't be a key, SessionConflict when other processes
        write the same session without end.
        """
        if role not in ("user", "bot"):
            raise ValueError(f"role must be 'user' or 'bot', not {role!r}")
        if not isinstance(message, str):
            raise ValueError(f"message must be a text, not {message!r:.40}")
        ref = await self.shared(ConversationRef(tenant_id, user_id, agent, conversation_id))
        now = self._clock()
        given = without_surrogates(dict(metadata or {}))
        named = given.get("message_id")
        message_id = uuid.uuid4().hex if named in (None, "") else str(named)  # 0 is a name too
        entry: Message = {
            "role": role,
            "message": without_surrogates(message),
            "timestamp": iso(now),
            "message_id": message_id,
        }
        if given:
            entry["metadata"] = given
        event: MemoryEvent | None = None
        if role == "user":
            session = await self._open(ref, now)
            if message_id in known_ids(session):
                return await self._change(ref, lambda live: live)
            # No lock and no snapshot is held while the language model thinks.
            event = await self._understood(ref, entry, session, now)
            if await self.forgotten(ref, now):
                return await self._open(ref, self._clock())
        appended = False

        def change(live: ShortTermMemory) -> ShortTermMemory:
            nonlocal appended
            after = self._after(live, entry, event)
            appended = after is not live
            return after

        session = await self._change(ref, change)
        if appended:  # after the session: a new one would find the message among the earlier ones
            await self._write_down(ref, entry)
        return session

    async def get_context_for_llm(
        self,
        tenant_id: str,
        user_id: str,
        include_summary: bool = True,
        max_recent_messages: int = 10,
        *,
        agent: str = DEFAULT_AGENT,
        conversation_id: str = MAIN,
    ) -> dict[str, Any]:
        """What the model should know now; see `memory.context.build`. With no live session it has `error`."""
        ref = await self.shared(ConversationRef(tenant_id, user_id, agent, conversation_id))
        now = self._clock()
        try:
            session = await self.sessions.load(ref)
            if session is None or session.expired(now):
                return context.build(None, None)
        except SessionsUnavailable as error:
            log.error("context from a minimal session: %s", error)
            session = await self.openings.open_session(ref, None, now)
        return context.build(
            session,
            await self._known(ref),
            include_summary=include_summary,
            max_recent_messages=max_recent_messages,
        )

    async def count_expired_sessions(self, tenant_id: str | None = None) -> int:
        """How many sessions a clean-up would look at now. Raises SessionsUnavailable."""
        refs = self.sessions.expired(self._clock(), limit=1_000_000)
        return len([ref async for ref in refs if tenant_id in (None, ref.tenant)])

    async def cleanup_expired_sessions(self, tenant_id: str | None = None) -> int:
        """Ends sessions that are over, one tenant's or all: their gist goes into long-term memory, their journal is
        folded in. Saves events that waited for the disk, applies the configured retention of transcripts. Safe to run
        twice at once.

        The number of sessions that this call ended.
        """
        now = self._clock()
        ended = await self._cleanup.sessions(now, tenant_id)
        if days := self._config.transcript_retention_days:
            await self._cleanup.transcripts(now, days, tenant_id)
        return ended

    async def prune_transcripts(self, tenant_id: str, days: int) -> int:
        """Removes what was said more than `days` ago, and conversations in which nothing was said since; the number of
        messages removed."""
        try:
            await self.conversations.prune(tenant_id, self._clock() - timedelta(days=days))
        except LongTermUnavailable as error:
            log.error("retention of conversations waits: %s", error)
        return await self._cleanup.transcripts(self._clock(), days, tenant_id)

    async def refresh_lists(self, tenant_id: str) -> int:
        """Brings the lists over a tenant up to date, in time also with what was changed by hand; how many people were
        taken in. Raises CatalogUnavailable."""
        return await self.catalog.refresh(tenant_id, spare=True)

    async def prune_media(self, tenant_id: str, days: int) -> int:
        """Removes what was sent besides words more than `days` ago; the number of files removed. Raises MemoryFault."""
        return await self.media.prune(tenant_id, self._clock() - timedelta(days=days))

    async def forget(self, tenant_id: str, user_id: str) -> dict[str, Any]:
        """Removes a person from everything that is kept here, under every id that was merged into this one. The receipt
        counts what was removed: `sessions`, `waiting_events`, `longterm_files`, `events`, `attributes`, `facts`,
        `episodes`, `archived`, `transcript_messages`, `media_files`, `conversations`,
        `vectors`, and `group_messages` with what they were answered in groups.

        Raises MemoryFault when a store could not be reached: every other one is done, and it must be asked for again.
        """
        receipt: dict[str, Any] = {"tenant_id": tenant_id, "user_id": user_id}
        failed: list[MemoryFault] = []
        ids = [user_id]
        try:
            ids = await all_ids(self.longterm, tenant_id, user_id)
        except LongTermUnavailable as error:
            failed.append(error)

        def count(name: str, removed: int) -> None:
            receipt[name] = receipt.get(name, 0) + removed

        try:  # first of all: what a restored backup brings back must go again
            await asyncio.to_thread(self.forgotten_people.add, tenant_id, ids, self._clock())
        except OSError as error:
            failed.append(LongTermUnavailable(f"the list of forgotten people: {error.strerror or error}"))
        for one in ids:  # before anything is removed: who is at work on them now must see it
            try:
                await self.longterm.mark_forgotten(tenant_id, one)
            except LongTermUnavailable as error:
                failed.append(error)
        # The canonical id goes last: as long as it stands there, a repeat finds the others.
        for one in reversed(ids):
            count("waiting_events", self.saving.drop(tenant_id, one))
            try:  # the live session first: nobody writes on from it what is removed next
                count("sessions", await self.sessions.forget(tenant_id, one))
            except SessionsUnavailable as error:
                failed.append(error)
            try:
                count("archived", await self.archive.forget(tenant_id, one))
                count("transcript_messages", await self.transcripts.forget(tenant_id, one))
                count("media_files", await self.media.forget(tenant_id, one))
                count("vectors", await self.finder.drop(tenant_id, [one]))
                for name, removed in (await self.longterm.forget(tenant_id, one)).items():
                    count(name, removed)
                count("conversations", await self.conversations.forget(tenant_id, one))
                count("unanswered", await asyncio.to_thread(self.unanswered.forget, tenant_id, one))
            except LongTermUnavailable as error:
                failed.append(error)
        groups: list[str] = []
        try:
            said = await self._members.forget(tenant_id, ids)
            count("group_messages", sum(said.values()))
            groups = list(said)
            await self.knowledge.tidy(tenant_id, groups)
        except MemoryFault as error:
            failed.append(error)
        try:
            await self.catalog.purge(tenant_id, [*ids, *groups])
        except MemoryFault as error:
            failed.append(error)
        if failed:
            raise failed[0]
        return receipt

    async def forgotten(self, ref: ConversationRef, since: datetime) -> bool:
        """Whether the conversation's person was forgotten after `since`, within a day: of what was said before that
        nothing may be kept. Where that can't be read it was not."""
        if self.longterm.never_forgotten(ref.tenant, ref.user):  # nearly always
            return False
        return await in_thread(self._forgotten, ref, since)

    async def which_forgotten(self, asked: Sequence[tuple[ConversationRef, datetime]]) -> list[bool]:
        """`forgotten` of several at once."""
        never = self.longterm.never_forgotten
        for ref, _ in asked:
            if not never(ref.tenant, ref.user):
                break
        else:
            return [False] * len(asked)  # without a thread
        return await in_thread(lambda: [self._forgotten(ref, since) for ref, since in asked])

    def _forgotten(self, ref: ConversationRef, since: datetime) -> bool:
        try:
            at = self.longterm.forgotten_at(ref.tenant, ref.user)
        except LongTermUnavailable as error:
            log.error("whether somebody was forgotten can't be read: %s", error)
            return False
        return at is not None and at > since

    async def said(self, ref: ConversationRef, platform_id: str) -> Message | None:
        """See `memory.amendments`, also for the next two. What was said before two ids became one is found too."""
        return await self._under_every_id(ref, lambda one: self._amendments.said(one, platform_id))

    async def correct(
        self, ref: ConversationRef, platform_id: str, text: str, event: MemoryEvent | None = None
    ) -> Message | None:
        line = await self._under_every_id(ref, lambda one: self._amendments.correct(one, platform_id, text, event))
        if line is not None:
            await self._purged(ref)
        return line

    async def retract(self, ref: ConversationRef, platform_id: str) -> Message | None:
        line = await self._under_every_id(ref, lambda one: self._amendments.retract(one, platform_id))
        if line is not None:
            await self._purged(ref)
        return line

    async def _purged(self, ref: ConversationRef) -> None:
        """What somebody took back leaves search and lists at once; where they can't be reached, as soon as they can."""
        try:
            await self.knowledge.tidy(ref.tenant, [await self.knowledge.canonical(ref.tenant, ref.user)])
            await self.catalog.purge(ref.tenant)
        except MemoryFault as error:
            log.error("the lists still show what was taken back: %s", error)

    async def _under_every_id(
        self, ref: ConversationRef, work: Callable[[ConversationRef], Awaitable[Message | None]]
    ) -> Message | None:
        found = [await work(one) for one in await self.every(ref)]
        return next(filter(None, found), None)

    async def rejoin(self, ref: ConversationRef) -> None:
        """Appends to the live session what the transcript has and it lacks: what was said while the session's store was
        away. Without a live session there is nothing to do: the next one begins with the transcript's tail.

        Raises MemoryFault.
        """
        ref = await self.shared(ref)
        stored = await self.sessions.load(ref)
        if stored is None or stored.expired(self._clock()):
            return
        rules = self._rules(ref.tenant)
        said = await self.transcripts.tail(ref, rules.max_messages)

        def rejoined(live: ShortTermMemory) -> ShortTermMemory:
            known = known_ids(live)  # what was carried over from earlier sessions stays there
            missing = [message for message in said if message.get("message_id") not in (None, *known)]
            return append(live, missing, max_messages=rules.max_messages, now=self._clock(), ttl=rules.sm_ttl)

        await self._change(ref, rejoined)

    async def close(self) -> None:
        await self.saving.flush()
        await self.unanswered.close()
        if self._catalog is not None:
            await self._catalog.close()
        await self.library.close()
        await self.finder.close()
        await self._embeddings.close()
        await asyncio.to_thread(self.lists.close)
        await self.longterm.close()
        await self.sessions.close()
        if self._model is not None:
            await self._model.close()

    def kept_for(self, session: ShortTermMemory) -> float:
        """Seconds that the store keeps the session as it stands."""
        return kept_for(session, self._clock(), self._rules(session.tenant_id).sm_ttl)

    def now(self) -> datetime:
        return self._clock()

    def _longest(self, tenant_id: str) -> int:
        return self._rules(tenant_id).max_messages

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _open(self, ref: ConversationRef, now: datetime) -> ShortTermMemory:
        """The session to be changed, read only: nothing is saved yet."""
        try:
            stored = await self.sessions.load(ref)
        except SessionsUnavailable as error:
            log.error("a minimal session: %s", error)
            stored = None
        return await self.openings.open_session(ref, stored, now)

    async def _change(
        self,
        ref: ConversationRef,
        change: Callable[[ShortTermMemory], ShortTermMemory],
        *,
        session_id: str | None = None,
    ) -> ShortTermMemory:
        """Load, open, change, save against the loaded `rev`; again from the start when somebody else was faster, so
        that `change` decides anew about what stands there now."""
        ttl = self._rules(ref.tenant).sm_ttl
        lock = self._locks.setdefault(ref, asyncio.Lock())
        async with lock:
            for attempt in range(_TRIES):
                now = self._clock()
                try:
                    stored = await self.sessions.load(ref)
                except SessionsUnavailable as error:
                    log.error("a minimal session: %s", error)
                    return change(await self.openings.open_session(ref, None, now, session_id=session_id))
                opened = await self.openings.open_session(ref, stored, now, session_id=session_id)
                changed = change(opened)
                if changed is stored:
                    return changed
                try:
                    saved = await self.sessions.save(ref, changed, kept_for(changed, now, ttl))
                except SessionsUnavailable as error:
                    log.error("a session is not saved: %s", error)
                    return changed
                if saved:
                    return changed.model_copy(update={"rev": changed.rev + 1})
                await asyncio.sleep(random.uniform(0, 0.002 * (attempt + 1)))
        raise SessionConflict(f"the session changed at each of {_TRIES} tries to save it")

    def _after(self, session: ShortTermMemory, entry: Message, event: MemoryEvent | None) -> ShortTermMemory:
        if entry["message_id"] in known_ids(session):
            return session
        rules = self._rules(session.tenant_id)
        changed = append(session, [entry], max_messages=rules.max_messages, now=self._clock(), ttl=rules.sm_ttl)
        if event is not None:
            changed = note_event(changed, event)
        if changed.state != "human":
            changed = changed.model_copy(update={"state": "answering" if entry["role"] == "user" else "awaiting_input"})
        return changed

    async def _understood(
        self, ref: ConversationRef, entry: Message, session: ShortTermMemory, now: datetime
    ) -> MemoryEvent:
        event = await self._processor.analyze_message(entry["message"], context.build(session, None))
        main = ref.agent == DEFAULT_AGENT and ref.conversation == MAIN
        name = entry["message_id"] if main else f"{ref.agent}/{ref.conversation}/{entry['message_id']}"
        event = event.model_copy(update={"event_id": name, "timestamp": now})
        worth = worth_saving(event, self._rules(ref.tenant).importance_threshold)
        await self.saving.save(ref.tenant, ref.user, [event] if worth else (), heard=() if worth else [event])
        return event

    async def _write_down(self, ref: ConversationRef, entry: Message) -> None:
        try:
            await self.transcripts.append(ref, [entry])
        except LongTermUnavailable as error:
            log.error("a message is missing from the transcript: %s", error)

    async def _known(self, ref: ConversationRef) -> LongTermMemory | None:
        try:
            return (await resolved(self.longterm, ref.tenant, ref.user))[1]
        except LongTermUnavailable as error:
            log.error("context without long-term memory: %s", error)
            return None
