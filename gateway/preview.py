"""What the model would be told if a customer said something now: exactly that, and nothing is sent or noted."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from config.settings import Settings
from config.tenants import Agent, Tenant
from gateway.fitting import Room
from gateway.messages import InboundMessage
from gateway.minding import Minding
from gateway.moment import begun
from gateway.per_tenant import PerTenant
from gateway.responder import Question, Responder, room_of
from gateway.texts import Tongue
from memory import context
from memory.errors import SessionsUnavailable
from memory.keys import DEFAULT_AGENT, ConversationRef, understanding_dir
from memory.memory_manager import MemoryManager
from memory.models import ShortTermMemory
from processors.event_processor import EventProcessor
from processors.language import answer_language
from processors.models import EventType
from processors.openrouter import OpenRouter
from processors.tokens import MESSAGE

# Data in a prompt never holds a tag of ours: whatever stands between two of them is one part.
_PART = re.compile(r"<(?P<name>[a-z_]+)>\n(?P<text>.*?)\n</(?P=name)>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Part:
    """In tokens: what is sent of it, and what of it was cut."""

    name: str
    sent: int
    cut: int


@dataclass(frozen=True, slots=True)
class Preview:
    """`messages` word by word as (role, text); `tokens` of all of them, `most` what may be sent; `texts` of those parts
    that are data, by name."""

    parts: Sequence[Part]
    messages: Sequence[tuple[str, str]]
    tokens: int
    most: int
    model: str
    texts: Mapping[str, str]


class Previews:
    def __init__(self, settings: Settings, manager: MemoryManager, clock: Callable[[], datetime]) -> None:
        self._manager = manager
        self._clock = clock
        processors = PerTenant(
            lambda tenant: EventProcessor(
                keywords={EventType(kind): words for kind, words in tenant.keywords.items()},
                timezone=tenant.timezone,
                products=tenant.products,
                own=understanding_dir(settings.data_dir / "understanding", tenant.id),
                safe=manager.vault.of(tenant.id),
            )
        )
        self._responder = Responder(OpenRouter(), processors, manager.library)
        self._minding = Minding(manager)

    async def of(self, tenant: Tenant, user: str, words: str) -> Preview:
        """For the person's main conversation. Raises MemoryFault."""
        agent = tenant.agent()
        assert agent is not None  # every tenant has the default one
        question = await self._question(tenant, agent, user, words)
        room = room_of(agent)
        sent, whole = self._responder.told(question, room), self._responder.told(question, None)
        after, before = _sizes(sent, room), _sizes(whole, room)
        return Preview(
            parts=[Part(name, after.get(name, 0), max(0, size - after.get(name, 0))) for name, size in before.items()],
            messages=[(str(one["role"]), str(one["content"])) for one in sent],
            tokens=room.of([str(one["content"]) for one in sent]),
            most=room.budget.prompt,
            model=agent.model,
            texts={found["name"]: found["text"] for found in _PART.finditer(str(sent[-2]["content"]))},
        )

    async def _question(self, tenant: Tenant, agent: Agent, user: str, words: str) -> Question:
        """As a turn asks it. No language model is called on the way: of a follow-up rules tell the meaning."""
        manager, now = self._manager, self._clock()
        ref = await manager.shared(ConversationRef(tenant.id, user, DEFAULT_AGENT))
        session = await self._session(ref, now)
        previous = session.variables.get("language") or session.variables.get("preferred_language")
        language: Tongue = "en" if tenant.speaks(answer_language(words, previous)) == "en" else "th"
        platform = user.partition(":")[0]
        message = InboundMessage(
            tenant=tenant.id, channel=platform, platform=platform, event_id="preview", user_id=ref.user,
            chat_id="preview", text=words,
        )  # fmt: skip
        moment = begun(tenant, agent, ref, [message], session, language, now, hurried=True)
        asked = await self._responder.standalone(moment, words)
        history = 2 * room_of(agent).budget.turns(tenant.memory.max_turns)
        minded = await self._minding.of(moment, words, asked, "preview", history)
        known = context.build(session, minded.memory, max_recent_messages=context.steady(session, history))
        return Question(
            tenant=tenant,
            agent=agent,
            messages=[message],
            language=language,
            context=known | minded.context(),
            now=now,
            standalone=asked if asked != words else None,
            files=await self._responder.files(tenant, asked),
        )

    async def _session(self, ref: ConversationRef, now: datetime) -> ShortTermMemory:
        """The live one, else the one that would begin; one that is over is not ended by looking at it."""
        try:
            stored = await self._manager.sessions.load(ref)
        except SessionsUnavailable:
            stored = None
        live = stored if stored is not None and not stored.expired(now) else None
        return await self._manager.openings.open_session(ref, live, now)


def _sizes(messages: Sequence[Mapping[str, Any]], room: Room) -> dict[str, int]:
    """Tokens by part, in the order in which the model reads them. The last two messages are the moment and the
    customer's own, the first one the instructions."""
    first, *history, moment, own = [str(one["content"]) for one in messages]
    sizes = {"instructions": room.count(first) + MESSAGE, "history": room.of(history)}
    rest = moment
    for found in _PART.finditer(moment):
        sizes[found["name"]] = room.count(found[0])
        rest = rest.replace(found[0], "", 1)
    return sizes | {"moment": room.count(rest) + MESSAGE, "message": room.count(own) + MESSAGE}
