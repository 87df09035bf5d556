"""What is known of a person, and what of it may be told: remembered, looked up, found, recalled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Any

import msgspec

from memory import decay, facts, person, procedures, search
from memory.canonical import canonical, change_theirs, resolved, resolved_with_shared
from memory.episodes import Episode, Feedback
from memory.errors import LongTermUnavailable
from memory.facts import Fact, Merged, Scope
from memory.library.library import OWNER, Library
from memory.long_term.events import told
from memory.models import Changes, LongTermMemory
from memory.procedures import Procedure
from memory.protocols import LongTerm
from memory.recall.entry import Entry, Hit, Keep, Made, anything
from memory.recall.finder import Finder
from memory.wording import key_form

KINDS = {"facts": "fact", "episodes": "episode", "procedures": "procedure", "events": "event"} | {
    one: one for one in ("knowledge", "faq")
}
_SHELVED = frozenset(("knowledge", "faq"))  # what the shop wrote down: the same for everybody
_USED_AGAIN = timedelta(days=1)  # a use is written down once a day: a look must not cost a write each time


class Seen(msgspec.Struct):
    """What may be told to somebody: their own, their session's, their agent's, the tenant's. Nobody else's."""

    facts: list[Fact]  # all scopes, history and all
    memory: LongTermMemory | None
    procedures: list[Procedure]
    _visible: list[Fact] | None = None

    @property
    def visible(self) -> list[Fact]:
        """See `facts.visible`."""
        if self._visible is None:
            self._visible = facts.visible(self.facts)
        return self._visible

    @property
    def sources(self) -> list[Fact | Procedure | Episode]:
        """What `few` is made of."""
        return [*self.visible, *self.procedures, *(self.memory.episodes if self.memory else ())]

    def entries(self, user: str) -> list[Entry]:
        """What can be found; `user` is whose it is."""
        out = self.few(user)
        if self.memory:
            out += [entry for event in self.memory.events if (entry := search.of_event(event, user))]
        return out

    def few(self, user: str) -> list[Entry]:
        """All but the events."""
        out = [search.of_fact(one, user) for one in self.visible]
        out += map(search.of_procedure, self.procedures)
        if self.memory:
            out += [entry for one in self.memory.episodes for entry in search.of_episode(one, user)]
        return out


class Knowledge:
    """Every call names the tenant and the user, and sees nothing else. Raises InvalidId for ids that can't be a key and
    LongTermUnavailable where it can't be read or written: an error is no empty answer."""

    def __init__(self, longterm: LongTerm, finder: Finder | None = None, library: Library | None = None) -> None:
        self._longterm = longterm
        self.finder = finder or Finder()
        self._library = library

    async def canonical(self, tenant: str, user: str) -> str:
        """Who stands for this id now: itself, or whom it was merged into."""
        return await canonical(self._longterm, tenant, user)

    async def seen_by(
        self,
        tenant: str,
        user: str,
        *,
        agent: str = "default",
        session: Sequence[Fact] = (),
        known: tuple[LongTermMemory | None, LongTermMemory | None] | None = None,
    ) -> Seen:
        """`known`: what LongTerm.load_with_shared gave a moment ago of who stands for the user."""
        memory, shared = known or (await resolved_with_shared(self._longterm, tenant, user))[1:]
        theirs = [one for one in shared.facts if one.scope is not Scope.AGENT or one.agent == agent] if shared else []
        found = [*session, *(memory.facts if memory else ()), *theirs]
        return Seen(found, memory, shared.procedures if shared else [])

    async def remember(
        self, tenant: str, user: str, fact: Fact, *, overwrite: bool = True, reassert: bool = True
    ) -> Merged:
        """Check and insert in one step; not for facts of a session."""
        done: list[Merged] = []

        def decide(memory: LongTermMemory) -> Changes:
            done.append(facts.merge(memory.facts, fact, overwrite=overwrite, reassert=True))
            return Changes(facts=done[-1].changed)

        if fact.scope in (Scope.AGENT, Scope.GLOBAL):
            await self._longterm.change_shared(tenant, decide)
        else:
            await change_theirs(self._longterm, tenant, user, decide)
        return done[-1]

    async def search(
        self, tenant: str, user: str, query: str, now: datetime, *, limit: int = 10, kinds: Sequence[str] | None = None,
        agent: str = "default", session: Sequence[Fact] = (),
    ) -> list[Hit]:  # fmt: skip
        """Raises ValueError for a kind that there is not."""
        wanted = kinds_of(kinds)
        seen = await self.seen_by(tenant, user, agent=agent, session=session)
        hits = await self.found(
            tenant, user, seen, query, now, limit=limit, agent=agent, keep=lambda one: one.kind in wanted
        )
        return await self._beside(tenant, query, hits, wanted, limit)

    async def _beside(self, tenant: str, query: str, hits: list[Hit], kinds: Collection[str], limit: int) -> list[Hit]:
        """With what the shop wrote down, which is ranked once for everybody."""
        if self._library is None or not _SHELVED & set(kinds):
            return hits
        shelved = await self._library.entries(tenant)
        found = await self.finder.find(
            tenant, OWNER, shelved, query, limit, view="all", keep=lambda one: one.kind in kinds
        )
        return sorted([*hits, *found], key=lambda hit: -hit.score)[: max(0, limit)]

    def found(
        self, tenant: str, user: str, seen: Seen, query: str, now: datetime, *, limit: int = 10,
        agent: str = "default", keep: Keep = anything, around: bool = False, most: int | None = None,
        shown: Set[str] = frozenset(),
    ) -> Coroutine[Any, Any, list[Hit]]:  # fmt: skip
        """Of what they see, best first. `around`: also what stands beside it and what is about the same; `most`: so
        many events at most; `shown`: the ids of events that whoever asks is shown anyway."""
        owner = seen.memory.user_id if seen.memory else user
        unread = told(seen.memory) if seen.memory else ()
        entries = seen.entries(owner) if unread is None else Made(seen.sources, lambda: seen.few(owner))
        return self.finder.find(
            tenant, owner, entries, query, limit, many=unread or (), view=agent, keep=keep, around=around, now=now,
            most=most, shown=shown,
        )  # fmt: skip

    async def tidy(self, tenant: str, users: Iterable[str]) -> None:
        """What is known no more of these ("": the tenant itself) is gone from the search too."""
        for user in users:
            memory = await (self._longterm.load(tenant, user) if user else self._longterm.load_shared(tenant))
            if memory is None:
                await self.finder.drop(tenant, [user])
            else:
                kept = Seen(memory.facts, memory, memory.procedures if not user else [])
                await self.finder.tidy(tenant, user, _all_of(kept, user))

    async def reindex(
        self, tenant: str, *, anew: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> int:
        """Makes the vectors that are missing, all of them with `anew`, and drops what nobody has any more; how many
        were made. Raises LLMUnavailable where they are asked for elsewhere and can't be had."""
        if anew:
            await self.finder.remove(tenant)
        users = ["", *[user async for user in self._longterm.users(tenant)]]
        await self.finder.drop(tenant, set(await self.finder.owners(tenant)) - {*users, OWNER})
        made = 0
        for done, user in enumerate(users, 1):
            memory = await (self._longterm.load(tenant, user) if user else self._longterm.load_shared(tenant))
            if memory is not None:
                kept = Seen(memory.facts, memory, memory.procedures if not user else [])
                made += await self.finder.fill(tenant, user, _all_of(kept, user))
            if progress is not None:
                progress(done, len(users))
        return made

    async def recall(
        self,
        tenant: str,
        user: str,
        now: datetime,
        *,
        key: str | None = None,
        query: str | None = None,
        memory_type: str = "facts",
        limit: int = 10,
        min_confidence: float = 0.5,
        agent: str = "default",
        session: Sequence[Fact] = (),
    ) -> str:
        """In words, a line each. By `key`: the one with that key, the narrowest scope first, else those whose key is
        like it; by `query`: what has those words; with neither: every fact. The surest facts first."""
        seen = await self.seen_by(tenant, user, agent=agent, session=session)
        sure = [one for one in seen.visible if one.confidence >= min_confidence]
        found: list[Fact] = []
        lines: list[str] = []
        if key:
            exact = facts.narrowest(sure, key)
            found = [exact] if exact else by_key(sure, key)[: max(0, limit)]
        elif query:
            kinds = KINDS.values() if memory_type == "all" else kinds_of([memory_type])
            by_id = {one.id: one for one in sure}
            hits = await self.found(
                tenant, user, seen, query, now, limit=limit, agent=agent,
                keep=lambda one: one.kind in kinds and (one.kind != "fact" or one.id in by_id),
            )  # fmt: skip
            found = sorted((by_id[hit.id] for hit in hits if hit.kind == "fact"), key=lambda one: -one.confidence)
            hits = await self._beside(tenant, query, hits, kinds, limit)
            lines = [hit.text for hit in hits if hit.kind != "fact"]
        else:
            found = sure[: max(0, limit)]
        await self.used(tenant, user, found, now)
        lines = [*map(line, found), *lines]
        return "\n".join(lines) if lines else f"Nothing is known about {key or query or 'this user'}."

    async def used(self, tenant: str, user: str, needed: Iterable[Fact], now: datetime) -> None:
        """Keeps what is needed from fading."""
        ids = {one.id for one in needed if one.scope is Scope.USER and now - one.last_used_at >= _USED_AGAIN}
        if not ids:
            return

        def decide(memory: LongTermMemory) -> Changes:
            return Changes(facts=[one.with_(last_used_at=now) for one in memory.facts if one.id in ids])

        await change_theirs(self._longterm, tenant, user, decide)

    async def identify(
        self, tenant: str, user: str, now: datetime, *, display_name: str | None = None, agent: str = "default",
        min_confidence: float = 0.5, episodes: int = 3,
    ) -> dict[str, Any]:  # fmt: skip
        """Looks the person up or makes the record; `user_context` is what to tell a model of them."""
        user, memory = await resolved(self._longterm, tenant, user)
        if memory is None or memory.person is None or (display_name and memory.person.display_name != display_name):
            await change_theirs(
                self._longterm,
                tenant,
                user,
                lambda known: Changes(person=person.seen(known.person, user, now, name=display_name)),
            )
            memory = await self._longterm.load(tenant, user)
        if memory is None or memory.person is None:
            raise LongTermUnavailable("what was just written can't be read")
        known = [one for one in facts.visible(memory.facts) if one.confidence >= min_confidence]
        known = decay.fresh(known, now)
        last = sorted(memory.episodes, key=lambda one: one.ended_at)[-episodes:] if episodes > 0 else []
        return {
            "user": memory.person.model_dump(mode="json", exclude={"parts"}),
            "preferences": {one.key: one.value for one in known},
            "facts": [one.model_dump(mode="json", exclude_none=True) for one in known],
            "episodes": [one.model_dump(mode="json", exclude_none=True) for one in last],
            "user_context": in_words(memory, known, last),
        }

    async def named(self, tenant: str, user: str, name: str, now: datetime, *, own: bool = True) -> None:
        """What the person is called on their platform. `own`: it comes from the channel whose id stands for them;
        another channel's name is taken only where there is none."""

        def decide(memory: LongTermMemory) -> Changes:
            known = memory.person.display_name if memory.person else None
            if known == name or (known is not None and not own):
                return Changes()
            return Changes(person=person.seen(memory.person, user, now, name=name))

        await change_theirs(self._longterm, tenant, user, decide)

    async def rate(self, tenant: str, user: str, rating: int, comment: str, now: datetime, episode: str | None) -> bool:
        """A person's opinion of an episode, the last one unless it is named; False: there is none."""
        feedback = Feedback(rating=rating, comment=comment, at=now)
        rated: list[Episode] = []

        def decide(memory: LongTermMemory) -> Changes:
            found = [one for one in memory.episodes if episode in (None, one.id)]
            rated[:] = [one.model_copy(update={"feedback": feedback}) for one in found[-1:]]
            return Changes(episodes=tuple(rated))

        await change_theirs(self._longterm, tenant, user, decide)
        return bool(rated)

    async def teach(self, tenant: str, procedure: Procedure) -> None:
        def decide(memory: LongTermMemory) -> Changes:
            known = next((one for one in memory.procedures if one.id == procedure.id), None)
            return Changes(procedures=() if known is not None and known.enabled else (procedure,))

        await self._longterm.change_shared(tenant, decide)

    async def count(self, tenant: str, ids: Iterable[str], succeeded: bool, seconds: float, now: datetime) -> None:
        """The result of a turn in which these procedures were followed."""
        wanted = set(ids)

        def decide(memory: LongTermMemory) -> Changes:
            used = [one for one in memory.procedures if one.id in wanted]
            return Changes(procedures=[procedures.counted(one, succeeded, seconds, now) for one in used])

        if wanted:
            await self._longterm.change_shared(tenant, decide)


def _all_of(seen: Seen, user: str) -> list[Entry]:
    """Every current fact, also of agents that see only their own."""
    current = [search.of_fact(one, user) for one in seen.facts if one.current]
    return [*current, *(one for one in seen.entries(user) if one.kind != "fact")]


def kinds_of(kinds: Sequence[str] | None) -> list[str]:
    """By singular or plural. Raises ValueError for others."""
    out = [KINDS.get(kind, kind) for kind in kinds or search.KINDS]
    if strange := [kind for kind in out if kind not in search.KINDS]:
        raise ValueError(f"{strange[0]!r} is no kind of memory: use {', '.join(KINDS)}")
    return out


def by_key(known: Sequence[Fact], key: str) -> list[Fact]:
    """Those whose key has the words of this one in it, in their order; the surest first, as they come."""
    words = [word for word in key_form(key).split("_") if word]

    def like(one: Fact) -> bool:
        at, form = 0, key_form(one.key)
        for word in words:
            found = form.find(word, at)
            if found < 0:
                return False
            at = found + len(word)
        return bool(words)

    return [one for one in known if like(one)]


def line(fact: Fact) -> str:
    return fact.text if fact.value == fact.text else f"{fact.key} = {facts.shown(fact.value)}"


def answer(merged: Merged) -> str:
    """What `remember` says: `Remembered: color = blue (created)`."""
    verb = "Already known" if merged.outcome == "kept" else "Remembered"
    return f"{verb}: {line(merged.fact)} ({merged.outcome})"


def in_words(memory: LongTermMemory, known: Sequence[Fact], last: Sequence[Episode]) -> str:
    who = memory.person
    name = (who.display_name if who else None) or memory.attributes.get("name")
    lines = [f"User: {name} ({memory.user_id})" if name else f"User: {memory.user_id}"]
    lines += [f"- {line(one)}" for one in known]
    lines += [f"Earlier: {one.started_at:%Y-%m-%d} {one.text}" for one in last]
    return "\n".join(lines)


def trigger_user(trigger: Mapping[str, Any] | str) -> str:
    """The canonical id in a trigger's payload, or the id itself. Raises ValueError where there is none."""
    user = trigger if isinstance(trigger, str) else person.user_of(trigger)
    if not user:
        raise ValueError("the trigger names no user: give user_id, or a channel and an id there")
    return user
