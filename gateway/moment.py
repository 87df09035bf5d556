"""What a turn knows when it begins to think, and what may settle it before an answer has to be found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import msgspec

from config.tenants import Agent, Tenant
from gateway.inbox.base import event_of
from gateway.messages import Answer, InboundMessage
from gateway.texts import Tongue
from memory.keys import ConversationRef
from memory.models import ShortTermMemory

Change = Callable[[ShortTermMemory], ShortTermMemory]


def unchanged(session: ShortTermMemory) -> ShortTermMemory:
    return session


class Moment(msgspec.Struct, frozen=True):
    """Who says what to whom, in which light."""

    tenant: Tenant
    agent: Agent
    ref: ConversationRef
    messages: Sequence[InboundMessage]  # never empty
    last: InboundMessage
    source: str  # the event of the first
    session: ShortTermMemory
    language: Tongue
    now: datetime  # aware
    hurried: bool = False  # too many wait, or the shop is closed and wants it so: no language model is asked


def begun(
    tenant: Tenant,
    agent: Agent,
    ref: ConversationRef,
    messages: Sequence[InboundMessage],
    session: ShortTermMemory,
    language: Tongue,
    now: datetime,
    hurried: bool = False,
) -> Moment:
    last, source = messages[-1], event_of(messages[0])
    return Moment(tenant, agent, ref, messages, last, source, session, language, now, hurried)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of an answer: whether anything of it arrived, and as which messages, where the platform says."""

    arrived: bool
    message_ids: Sequence[str]
    promised: bool = False  # it goes with the answer to what the customer has written meanwhile


@dataclass(frozen=True, slots=True)
class Done:
    """A turn that needs no thinking: its answer (None: the bot says nothing) and what it does to the session.

    `silent`: neither the message nor the answer goes into the history, nothing is remembered of it. `forgets_talk`:
    what was said before is not given back to later sessions. `staff_said`: stands in the history as staff's words, in
    place of the answer that passes them on. `sent` hears what became of the answer, before the turn ends: again, when
    the turn is tried again. `spare`: nobody waits for it, so what can't be delivered is no dead letter.
    """

    answer: Answer | None
    change: Change = unchanged
    silent: bool = True
    forgets_talk: bool = False
    staff_said: str | None = None
    sent: Callable[[Delivery], Awaitable[None]] | None = None
    spare: bool = False


class Settler(Protocol):
    """Settles some turns. Doing so again has the same effect: a turn may be tried twice."""

    async def settle(self, moment: Moment) -> Done | None:
        """None: not mine."""
        ...
