"""What of the memory is told to the model in one turn, and what is noted of its use afterwards."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from gateway.fitting import newest
from gateway.homes import Known
from gateway.moment import Moment
from gateway.prompt import HISTORY_CHARACTERS, asks_who, fitting
from gateway.responder import access_of
from gateway.standalone import size_of
from gateway.tools import MemoryTools
from memory import context, decay, procedures, reading
from memory.budget import budget
from memory.errors import MemoryFault
from memory.facts import Fact, Scope
from memory.knowledge import Seen, in_words, line
from memory.memory_manager import MemoryManager
from memory.models import LongTermMemory, Message
from memory.procedures import Procedure
from processors.models import EventType

log = logging.getLogger(__name__)

MOST_FACTS = 40  # in one prompt: what fits the message first, then what is freshest
MOST_PROCEDURES = 3
MOST_MEMORIES = 5  # of what was said and done before, beside the facts
_LOOKED_AT = 60  # hits of one search
_MEMORY_KINDS = ("event", "episode")
_learned_at, _ended_at = attrgetter("created_at"), attrgetter("ended_at")
_OWN = (Scope.SESSION, Scope.USER)
# The score from which such a memory is worth its place: a higher one keeps back many that are needed (at 0.25 one in
# six of those that would be among the five), a lower one lets in what has next to nothing to do with the message.
_FITS = 0.1
_EPISODES = 3


class Minded(msgspec.Struct, frozen=True):
    """`attributes` are the customer's facts by key, `relevant` their keys, what fits the message best first; `notes`
    the shop's own facts, in words; `memories` what of earlier sessions fits the message, best first, each with its day;
    `user_context` is for instructions that ask for it."""

    memory: LongTermMemory | None = None
    attributes: dict[str, Any] = {}
    relevant: list[str] = []
    notes: list[str] = []
    memories: list[str] = []
    procedures: list[Procedure] = []
    user_context: str = ""
    used: list[Fact] = []
    tools: MemoryTools | None = None
    begun: float = msgspec.field(default_factory=time.monotonic)

    def context(self) -> dict[str, Any]:
        """What it adds to the context for the model."""
        return {
            "user_attributes": self.attributes,
            "relevant_attributes": self.relevant,
            "memories": self.memories,
            "shop_facts": self.notes,
            "procedures": [one.content for one in self.procedures],
            "user_context": self.user_context,
        }


class Minding:
    """`all_told`: somebody may look at what is told to the model who needs all of it, whatever the prompt asks for."""

    def __init__(self, manager: MemoryManager, *, all_told: bool = True) -> None:
        self._manager = manager
        self._all_told = all_told
        self._later: set[asyncio.Task[None]] = set()

    async def of(
        self, moment: Moment, words: str, meant: str, source: str, history: int, read: Known | None = None
    ) -> Minded:
        """Facts that hold and have not faded, what was said before and fits the message, and the procedures whose
        trigger does. `meant`: the message without the need of those before it; `history`: how many messages the prompt
        may hold, of which nothing is told twice; `read`: what was read a moment ago. Without long-term memory nothing
        of it: the turn goes on."""
        ref = moment.ref
        try:
            seen = await self._manager.knowledge.seen_by(
                ref.tenant, ref.user, agent=ref.agent, session=moment.session.facts, known=read
            )
        except MemoryFault as error:
            log.error("answering without long-term memory: %s", error, extra={"tenant": moment.tenant.id})
            return Minded()
        hits = await self._manager.knowledge.found(
            ref.tenant, ref.user, seen, meant, moment.now, limit=_LOOKED_AT, agent=ref.agent, around=True,
            most=MOST_MEMORIES, shown=_shown(moment, history),
        )  # fmt: skip
        fitting_facts: dict[str, int] = {}
        memories: list[str] = []
        for at, hit in enumerate(hits):
            kind = hit.kind
            if kind == "fact":
                fitting_facts[hit.id] = at
            elif len(memories) < MOST_MEMORIES and hit.score >= _FITS and kind in _MEMORY_KINDS:
                memories.append(hit.text)
        known = _chosen(seen, fitting_facts, moment)
        own = [one for one in known if one.scope in _OWN]
        used = [one for one in known if one.id in fitting_facts] if fitting_facts else []
        memory = seen.memory
        fitting: list[Procedure] = []
        if seen.procedures:
            fitting = procedures.matching(
                seen.procedures,
                words,
                agent=ref.agent,
                language=moment.language,
                platform=moment.last.platform,
                intent=moment.session.last_intent or EventType.GENERIC_EVENT.value,
            )
        who = ""
        if memory and (self._all_told or asks_who(moment.agent.instructions or "")):
            who = in_words(memory, own, sorted(memory.episodes, key=_ended_at)[-_EPISODES:])
        return Minded(
            memory=memory,
            attributes={one.key: one.value for one in own},
            relevant=[one.key for one in sorted(used, key=_place(fitting_facts)) if one.scope in _OWN] if used else [],
            memories=memories,
            notes=[line(one) for one in known if one.scope not in _OWN] if len(own) < len(known) else [],
            procedures=fitting[:MOST_PROCEDURES],
            user_context=who,
            used=used,
            tools=MemoryTools(self._manager, ref, source, mask=moment.tenant.privacy.mask),
        )

    def after(self, moment: Moment, minded: Minded, *, answered: bool) -> None:
        """Counts what was used, off the customer's way. `answered`: the model did, so the procedures went well."""
        tenant, user, now = moment.ref.tenant, moment.ref.user, moment.now
        knowledge = self._manager.knowledge
        if minded.used:
            self._soon(knowledge.used(tenant, user, minded.used, now))
        if minded.procedures:
            ids = [one.id for one in minded.procedures]
            self._soon(knowledge.count(tenant, ids, answered, time.monotonic() - minded.begun, now))

    def reads_every(self, moment: Moment) -> int:
        """After how many messages the language model reads what the customer said of themselves; 0: it does not."""
        tenant = moment.tenant
        agent, every = tenant.agent(), tenant.memory.extract_every
        if not every or moment.hurried or moment.last.group or agent is None or not access_of(tenant, agent).api_key:
            return 0
        return every

    def read_on(self, moment: Moment, part: reading.Part) -> None:
        """Once the turn is over."""
        self._soon(reading.read_on(self._manager, moment.ref, part))

    async def close(self) -> None:
        await asyncio.gather(*self._later)

    def _soon(self, work: Coroutine[Any, Any, object]) -> None:
        async def run() -> None:
            try:
                await work
            except MemoryFault as error:
                log.warning("a use is not counted: %s", error)

        task = asyncio.create_task(run())
        self._later.add(task)
        task.add_done_callback(self._later.discard)


def _shown(moment: Moment, history: int) -> set[str]:
    """The ids of the events whose words surely stand in the history that the model is told: of a small window what the
    shop says on the matter takes a part, and a letter is four tokens at most."""
    told: Sequence[Message] = context.shown(moment.session, context.steady(moment.session, history))
    room = budget(size_of(moment.agent)).history // 2
    if 4 * sum([len(line["message"]) for line in told]) > min(room, 4 * HISTORY_CHARACTERS):  # hardly ever
        lines = fitting(told)
        surely, _ = newest([4 * len(line["message"]) for line in lines], room)
        told = lines[len(lines) - surely :]
    return {line["message_id"] for line in told if line["role"] == "user" and "message_id" in line}


def _chosen(seen: Seen, fitting: Mapping[str, int], moment: Moment) -> list[Fact]:
    """In the order in which they were learned, so that the prompt stays the same as long as nothing is new."""
    fresh = decay.fresh(seen.visible, moment.now)
    if len(fresh) > MOST_FACTS:
        fresh.sort(key=lambda one: (_place(fitting)(one), -decay.strength(one, moment.now)))
        fresh = fresh[:MOST_FACTS]
    return sorted(fresh, key=_learned_at)


def _place(fitting: Mapping[str, int]) -> Callable[[Fact], int]:
    return lambda one: fitting.get(one.id, len(fitting))
