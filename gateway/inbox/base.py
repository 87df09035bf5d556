"""The inbox: a durable queue in which each conversation's messages keep their order.

A worker *claims* a conversation: it holds a lease on it and gets its oldest messages as one frozen batch, with the
session. It *beats* while it works, asks for the right to send with *intent*, and ends with *finish* or *fail*. A worker
that dies loses its leases; one that was paused finds its token refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import msgspec
from msgspec import structs

from gateway.messages import InboundMessage
from gateway.pacing import Limit
from memory import keys
from memory.keys import DEFAULT_AGENT, MAIN, ConversationRef

SEEN_FOR = 72 * 3600  # seconds in which a repeated delivery is recognised
ALIAS_FOR = 90 * 86_400  # seconds since its last use that it is known where a merged id's messages go
LONGEST_BATCH = 20  # messages answered together at the most
NOBODYS = ConversationRef("", "")


@dataclass(frozen=True, slots=True)
class Policy:
    """How long to wait for more of the same person, and how often to try. Milliseconds."""

    debounce: int = 0
    debounce_max: int = 0
    max_attempts: int = 5


class Claim(msgspec.Struct, frozen=True):
    """The right to handle one batch of one conversation, until the lease ends."""

    conversation: str  # the session's key
    token: str
    attempts: int  # this one included
    max_attempts: int
    messages: tuple[InboundMessage, ...]  # never empty, in the order of acceptance
    session: bytes | None  # as stored
    outbox: bytes | None  # what an earlier try recorded before it sent
    failure: str | None = None  # why the last try failed
    carried: bytes | None = None  # what an earlier batch left for this one to deliver
    waited: float = 0.0  # seconds it was ready
    hurried: bool = False  # the queue grows faster than it drains: a cheap answer in time beats a good one late
    owner: str | None = None  # whose conversation it is, where that is another id than the one its messages have
    ref: ConversationRef = NOBODYS  # told by the messages and the owner

    def __post_init__(self) -> None:
        ref = conversation_of(self.messages[0])
        structs.force_setattr(self, "ref", ref if self.owner is None else ref._replace(user=self.owner))


class Claims(msgspec.Struct, frozen=True):
    claims: tuple[Claim, ...]
    next_due: float | None  # seconds until a waiting conversation is due, None: none waits


class SessionWrite(msgspec.Struct, frozen=True):
    """A session to store together with the end of a turn."""

    value: bytes
    rev: int  # the stored session's rev it was made from, 0: none
    ttl_ms: int  # 0: no expiry
    member: str  # in the index of sessions
    score: str  # there: when it is over


Noted = asyncio.Future[list[Any]]  # [0]: it is on record; whatever else it is, or raises, it may not be


class Outcome(Enum):
    DONE = 1
    LOST = 0  # somebody else holds the conversation by now, or it was finished by an earlier call of ours
    CONFLICT = 2  # the session changed: load, merge, try again


@dataclass(frozen=True, slots=True)
class Depth:
    """What waits. Conversations, but for `dead` (messages)."""

    ready: int
    due: int
    leased: int
    dead: int
    oldest: float  # seconds the oldest ready conversation has been waiting
    parts: tuple[Depth, ...] = ()  # of each shard, where there are several; they know of no dead


class Inbox(Protocol):
    """Raises InboxUnavailable when the queue can't be reached."""

    async def put(self, messages: Sequence[tuple[InboundMessage, Policy]]) -> list[bool]:
        """Keeps all or none. False for each that was seen before."""
        ...

    async def claim(self, limit: int, within: float = 0.0, stop: asyncio.Future[Any] | None = None) -> Claims:
        """At most `limit`. Where nothing is ready it waits until something may be or `stop` is done, at most `within`
        seconds; there may be nothing then, too."""
        ...

    async def beat(self, claims: Sequence[Claim]) -> set[str]:
        """Extends the leases; the conversations that are no longer ours."""
        ...

    async def intent(self, claim: Claim, outbox: bytes, limits: Sequence[Limit] = ()) -> float | None:
        """The right to send, asked for right before the first byte. 0.0: go, and `outbox` is on record; more: the
        seconds to wait before asking again; None: the claim was lost."""
        ...

    def note(self, claim: Claim, outbox: bytes) -> Noted | None:
        """What `intent` does without limits, for who does not wait for it: asked for when this returns, ahead of
        whatever else is asked of this conversation. None: it can't be done so here and now."""
        ...

    async def may_pass(self, limits: Sequence[Limit]) -> bool:
        """Whether something that can be left out (a typing sign) may go out now; then it counts."""
        ...

    async def hold(self, limits: Sequence[Limit], seconds: float) -> None:
        """A platform said "not before": all workers keep to it."""
        ...

    async def behind(self, claim: Claim, most: int = LONGEST_BATCH) -> tuple[InboundMessage, ...]:
        """What waits behind the claim's batch, oldest first. As long as the claim is held it can only grow."""
        ...

    async def finish(
        self, claim: Claim, session: SessionWrite | None, dead: str | None = None, carry: bytes | None = None
    ) -> tuple[Outcome, bytes | None]:
        """With `dead` the batch goes to the dead letters for that reason. A conflict's bytes are the stored session.
        `carry` comes with the claim of the next batch; something has to wait behind this one. With `dead` it is what
        was to be delivered with the batch, and stands in the dead letter."""
        ...

    async def fail(self, claim: Claim, pause: float, *, counted: bool = True, why: str = "") -> bool:
        """Back into the queue, not before `pause` seconds. `why` holds no message text."""
        ...

    async def park(self, claim: Claim, outbox: bytes, pause: float) -> bool:
        """Back into the queue uncounted, with `outbox` on record, until `pause` seconds are over or anything arrives in
        the conversation."""
        ...

    async def move(self, claim: Claim, to: str) -> bool:
        """The claim's person has another id by now: its batch goes to the end of the conversation `to`, with whatever
        of theirs waits behind it, and so does what is put for them from now on. False: the claim was lost."""
        ...

    async def forget(self, tenant: str, goes: Callable[[InboundMessage], bool]) -> int:
        """Removes what waits of a tenant and `goes`, with what was prepared to be sent for it; the number of messages.
        What a worker has in hand stays."""
        ...

    async def depth(self) -> Depth: ...

    async def close(self) -> None: ...


def conversation_of(message: InboundMessage) -> ConversationRef:
    return ConversationRef(message.tenant, message.user_id, message.agent, message.conversation_id)


def name_of(message: InboundMessage) -> str:
    """The conversation's name in the inbox."""
    if message.agent == DEFAULT_AGENT and message.conversation_id == MAIN:
        return keys.main_session(message.tenant, message.user_id)
    return keys.session(conversation_of(message))


def event_of(message: InboundMessage) -> str:
    """What identifies a delivery within its conversation."""
    return f"{keys.escape(message.channel)}:{keys.escape_once(message.event_id)}"
