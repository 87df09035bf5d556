"""What staff do with what is known: look at one, mend it, delete it in every place where it is kept."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import orjson

from memory import removal
from memory.amend import retold
from memory.archive import Archive
from memory.canonical import all_ids, canonical
from memory.config import MemoryRules
from memory.episodes import Episode
from memory.errors import Ambiguous, Changed, SessionConflict
from memory.facts import MANY, Fact, Priority, upserted
from memory.keys import ConversationRef
from memory.long_term.document import dump, plain
from memory.models import Changes, LongTermMemory, ShortTermMemory
from memory.procedures import Procedure
from memory.protocols import Catalog, LongTerm, Sessions
from memory.session import kept_for
from memory.wording import key_form

_TENANT = ""  # in the place of a user's id: what belongs to the tenant itself
_TRIES = 50  # saves of one session against other writers


class Held(NamedTuple):
    """`user` "": the tenant's own; `session`: the conversation whose session holds it, where none else does."""

    user: str
    fact: Fact
    session: ConversationRef | None = None


class Curation:
    """`user` narrows to one person, by any of their ids. Raises InvalidId for what can't be a user's id, Ambiguous,
    and MemoryFault where a store can't be reached: what was asked is then to be asked again."""

    def __init__(
        self,
        longterm: LongTerm,
        sessions: Sessions,
        archive: Archive,
        catalog: Catalog,
        rules: Callable[[str], MemoryRules],
        clock: Callable[[], datetime],
    ) -> None:
        self._longterm = longterm
        self._sessions = sessions
        self._archive = archive
        self._catalog = catalog
        self._rules = rules
        self._clock = clock

    # -- looking -----------------------------------------------------------------------------------------------------

    async def fact(self, tenant: str, fact_id: str, user: str | None = None) -> Held | None:
        whose = await self._one(tenant, "facts", fact_id, user)
        if whose is not None and (memory := await self._memory(tenant, whose)) is not None:
            for one in memory.facts:
                if one.id == fact_id and not one.deleted:
                    return Held(whose, one)
        return next((one for one in await self.of_sessions(tenant, user) if one.fact.id == fact_id), None)

    async def of_sessions(self, tenant: str, user: str | None = None) -> list[Held]:
        """What holds in live sessions alone."""
        ids = [None] if user is None else await all_ids(self._longterm, tenant, user)
        found = []
        for one in ids:
            async for ref in self._sessions.of(tenant, one):
                session = await self._sessions.load(ref)
                if session is not None and not session.expired(self._clock()):
                    found += [Held(ref.user, fact, ref) for fact in session.facts if fact.current]
        return found

    async def episode(self, tenant: str, episode_id: str, user: str | None = None) -> tuple[str, Episode] | None:
        """Whole, with what was said."""
        whose = await self._one(tenant, "episodes", episode_id, user)
        memory = await self._memory(tenant, whose) if whose is not None else None
        found = next((one for one in memory.episodes if one.id == episode_id), None) if memory else None
        return (whose, found) if whose is not None and found is not None else None

    async def procedure(self, tenant: str, procedure_id: str) -> Procedure | None:
        memory = await self._longterm.load_shared(tenant)
        return next((one for one in memory.procedures if one.id == procedure_id), None) if memory else None

    async def all_of(self, tenant: str, user: str | None = None) -> AsyncIterator[tuple[str, LongTermMemory]]:
        """What is known of each person, or of this one, and with the id "" of the tenant itself: as it stands now."""
        for one in await self._users(tenant, user):
            if (memory := await self._memory(tenant, one)) is not None:
                yield one, memory

    # -- mending -----------------------------------------------------------------------------------------------------

    async def mend(
        self,
        tenant: str,
        fact_id: str,
        user: str | None = None,
        *,
        text: str | None = None,
        priority: Priority | None = None,
        pinned: bool | None = None,
        instead: Fact | None = None,
        expected: Callable[[str], bool] | None = None,
    ) -> Held | None:
        """Another text, another priority, pinned or not, or as a whole what it was before (`instead`); None: there is
        no such fact. Raises Changed where `expected`, which is asked with the tag of the fact as it is, says no."""
        held = await self.fact(tenant, fact_id, user)
        if held is None:
            return None
        now = self._clock()
        met: list[Fact] = []
        refused: list[str] = []

        def decide(facts: Sequence[Fact]) -> list[Fact]:
            met.clear()
            refused.clear()
            for one in facts:
                if one.id == fact_id and not one.deleted:
                    if expected is not None and not expected(tag(one)):
                        refused.append(one.id)
                        return []
                    met.append(instead or mended(one, now, text=text, priority=priority, pinned=pinned))
            return met

        if held.session is not None:
            await self._in_session(
                held.session, lambda session: session.model_copy(update={"facts": _with(session.facts, decide)})
            )
        elif held.user == _TENANT:
            await self._longterm.change_shared(tenant, lambda memory: Changes(facts=decide(memory.facts)))
        else:
            await self._longterm.change(tenant, held.user, lambda memory: Changes(facts=decide(memory.facts)))
            if met:
                await self.retell(tenant, held.user)
        if refused:
            raise Changed("the fact was changed meanwhile: look at it again")
        return held._replace(fact=met[0]) if met else None

    async def mend_procedure(
        self, tenant: str, procedure_id: str, *, content: str | None = None, enabled: bool | None = None
    ) -> Procedure | None:
        """Another content, or switched on or off; None: there is no such procedure."""
        met: list[Procedure] = []

        def decide(memory: LongTermMemory) -> Changes:
            changed: dict[str, Any] = {"content": content, "enabled": enabled}
            changed = {name: value for name, value in changed.items() if value is not None}
            met[:] = [one.with_(**changed) for one in memory.procedures if one.id == procedure_id]
            return Changes(procedures=tuple(met))

        await self._longterm.change_shared(tenant, decide)
        return met[0] if met else None

    # -- deleting ----------------------------------------------------------------------------------------------------

    async def delete_facts(self, tenant: str, ids: Collection[str], user: str | None = None) -> int:
        """With what they had taken the place of, in the file, the archive, live sessions and the lists; how many of
        these ids there were."""
        wanted = set(ids)
        by_user = await self._by_user(tenant, "facts", wanted, user)
        found = {one for there in by_user.values() for one in there}
        loose = [one for one in await self.of_sessions(tenant, user) if one.fact.id in wanted - found]
        for whose, there in by_user.items():
            await self._remove(tenant, whose, partial(removal.without_facts, ids=there))
        for held in loose:
            assert held.session is not None
            await self._in_session(held.session, lambda session: _session_without(session, wanted))
        await self._catalog.purge(tenant, list(by_user))
        return len(found | {one.fact.id for one in loose})

    async def clear(self, tenant: str, user: str | None = None) -> int:
        """Every fact of a person, or of everybody and the tenant itself; how many held."""
        loose = await self.of_sessions(tenant, user)
        count = len(loose)
        people = await self._users(tenant, user)
        for one in people:
            memory = await self._memory(tenant, one)
            count += sum(fact.current for fact in memory.facts) if memory else 0
            await self._remove(tenant, one, removal.without_any_facts, everything=True)
        for held in loose:
            assert held.session is not None
            await self._in_session(held.session, lambda session: session.model_copy(update={"facts": []}))
        await self._catalog.purge(tenant, people)
        return count

    async def delete_episodes(self, tenant: str, ids: Collection[str], user: str | None = None) -> int:
        by_user = await self._by_user(tenant, "episodes", set(ids), user)
        for whose, there in by_user.items():
            await self._longterm.rewrite(tenant, whose, partial(removal.without_episodes, ids=there))
        await self._catalog.purge(tenant, list(by_user))
        return len({one for there in by_user.values() for one in there})

    async def delete_procedures(self, tenant: str, ids: Collection[str]) -> int:
        gone: set[str] = set()

        def without(memory: LongTermMemory) -> LongTermMemory:
            gone.update(one.id for one in memory.procedures if one.id in ids)
            return memory.model_copy(update={"procedures": [one for one in memory.procedures if one.id not in ids]})

        await self._longterm.rewrite_shared(tenant, without)
        await self._catalog.purge(tenant, [_TENANT])
        return len(gone)

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _remove(
        self,
        tenant: str,
        user: str,
        without: Callable[..., LongTermMemory],  # of the memory, and `now`
        *,
        everything: bool = False,
    ) -> None:
        now = self._clock()
        if user == _TENANT:
            await self._longterm.rewrite_shared(tenant, lambda memory: without(memory, now=now))
            return
        ids = await all_ids(self._longterm, tenant, user)
        sessions = [ref for one in ids async for ref in self._sessions.of(tenant, one)]  # or nothing is done at all
        gone: set[str] = set()

        def rewritten(memory: LongTermMemory) -> LongTermMemory:
            after = without(memory, now=now)
            gone.update(one.id for one in memory.facts)
            gone.difference_update(one.id for one in after.facts if not one.deleted)
            return after

        for one in ids:  # before the file: as long as it stands there, a repeat finds what is to be done
            memory = await self._longterm.load(tenant, one)
            if memory is not None:
                rewritten(memory)
            if everything:
                await self._archive.forget(tenant, one)
            elif gone:
                await self._archive.remove(tenant, one, gone)
        await self._longterm.rewrite(tenant, user, rewritten)
        memory = await self._longterm.load(tenant, user)
        for ref in sessions:
            await self._in_session(ref, lambda session: _after_removal(session, memory, gone, everything))

    async def retell(self, tenant: str, user: str) -> None:
        """What live sessions were told at their beginning is brought up to date."""
        memory = await self._longterm.load(tenant, user)
        for one in await all_ids(self._longterm, tenant, user):
            async for ref in self._sessions.of(tenant, one):
                await self._in_session(ref, lambda session: retold(session, memory))

    async def _in_session(self, ref: ConversationRef, change: Callable[[ShortTermMemory], ShortTermMemory]) -> None:
        """Where there is one, also one that is over: before anything is made of it."""
        for _ in range(_TRIES):
            session = await self._sessions.load(ref)
            if session is None or (after := change(session)) == session:
                return
            ttl = kept_for(session, self._clock(), self._rules(ref.tenant).sm_ttl)
            if await self._sessions.save(ref, after, ttl):
                return
        raise SessionConflict(f"the session changed at each of {_TRIES} tries to save it")

    async def _users(self, tenant: str, user: str | None) -> list[str]:
        if user is not None:
            return [await canonical(self._longterm, tenant, user)]
        return [*[one async for one in self._longterm.users(tenant)], _TENANT]

    async def _memory(self, tenant: str, user: str) -> LongTermMemory | None:
        return await (self._longterm.load(tenant, user) if user else self._longterm.load_shared(tenant))

    async def _one(self, tenant: str, kind: Any, record_id: str, user: str | None) -> str | None:
        """Whose it is; with `user`, theirs alone."""
        if user is not None:
            return await canonical(self._longterm, tenant, user)
        whose = await self._catalog.whose(tenant, kind, record_id)
        if len(whose) > 1:
            raise Ambiguous(f"{len(whose)} persons have a record of the id {record_id}: say whose is meant")
        return whose[0] if whose else None

    async def _by_user(self, tenant: str, kind: Any, ids: set[str], user: str | None) -> dict[str, set[str]]:
        """Those of the ids that are there, by whose they are."""
        out: dict[str, set[str]] = {}
        for one in sorted(ids):
            if (whose := await self._one(tenant, kind, one, user)) is not None:
                out.setdefault(whose, set()).add(one)
        for whose in list(out):
            memory = await self._memory(tenant, whose)
            facts = [one for one in memory.facts if not one.deleted] if memory else []
            records: Sequence[Any] = facts if kind == "facts" else memory.episodes if memory else []
            out[whose] &= {one.id for one in records}
            if not out[whose]:
                del out[whose]
        return out


def tag(fact: Fact) -> str:
    """Another one whenever anything of it changed."""
    return hashlib.sha256(dump(plain(fact))).hexdigest()[:32]


def mended(
    fact: Fact, now: datetime, *, text: str | None = None, priority: Priority | None = None, pinned: bool | None = None
) -> Fact:
    """As staff want it. Its value says the same as its text: what stands after its key (`size: L`), else all of it;
    where there can be several, the items between commas."""
    changed: dict[str, Any] = {"last_used_at": now}
    if priority is not None:
        changed["priority"] = priority
    if pinned is not None:
        changed["pinned"] = pinned
    if text is not None and text != fact.text:
        before, _, after = text.partition(":")
        value: Any = after.strip() if after.strip() and key_form(before) == key_form(fact.key) else text
        if key_form(fact.key) in MANY:
            value = [item for part in value.split(",") if (item := part.strip())] or [value]
        elif not isinstance(fact.value, str):
            value = _as_it_was(value)
        changed |= {"text": text, "value": value}
    return fact.with_(**changed)


def _as_it_was(value: str) -> Any:
    """A number or list that was written as one stays one."""
    try:
        return orjson.loads(value)
    except ValueError:
        return value


def _with(facts: Sequence[Fact], decide: Callable[[Sequence[Fact]], list[Fact]]) -> list[Fact]:
    return upserted(facts, decide(facts))


def _session_without(session: ShortTermMemory, ids: Collection[str]) -> ShortTermMemory:
    gone = removal.with_history(session.facts, ids)
    return session.model_copy(update={"facts": [one for one in session.facts if one.id not in gone]})


def _after_removal(
    session: ShortTermMemory, memory: LongTermMemory | None, gone: Collection[str], everything: bool
) -> ShortTermMemory:
    left = [] if everything else [one for one in session.facts if one.id not in gone]
    return retold(session.model_copy(update={"facts": left}), memory)
