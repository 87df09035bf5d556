"""Whose conversation it is by now: people's ids may be merged, and parted, while messages are under way."""

from __future__ import annotations

import time

import msgspec
from msgspec import structs

from gateway.inbox.base import Claim, Inbox, conversation_of
from gateway.outbox import ClaimLost
from memory import keys
from memory.canonical import resolved_with_shared
from memory.errors import LongTermUnavailable
from memory.keys import ConversationRef
from memory.memory_manager import MemoryManager
from memory.models import LongTermMemory

_HOLDS = 1.0  # seconds

Known = tuple[LongTermMemory | None, LongTermMemory | None]  # of the person, of the tenant


class Settled(msgspec.Struct, frozen=True):
    """The claim as that of whom it belongs to, and what the look at the files told of them."""

    claim: Claim
    told: Known | None = None
    at: float = msgspec.field(default_factory=time.monotonic)

    @property
    def known(self) -> Known | None:
        """None: it has to be read, as nobody looked or that was too long ago."""
        return self.told if time.monotonic() - self.at < _HOLDS else None


class Homes:
    """The long-term files say who stands for whom. The inbox learns it from the first message that comes to the wrong
    conversation, and keeps to it until that is wrong again."""

    def __init__(self, inbox: Inbox, manager: MemoryManager) -> None:
        self._inbox = inbox
        self._manager = manager

    async def settled(self, claim: Claim) -> Settled | None:
        """None: it was moved to another conversation, and nothing is to be done here. Raises ClaimLost, MemoryFault."""
        first = claim.messages[0]
        if first.group:
            return Settled(claim)
        own = claim.ref if claim.owner is None else conversation_of(first)
        try:
            user, *known = await resolved_with_shared(self._manager.longterm, own.tenant, own.user)
        except LongTermUnavailable:  # it stays where it is
            return Settled(_of(claim, _here(claim, own)))
        home = own if user == own.user else own._replace(user=user)
        if keys.session(home) == claim.conversation:
            return Settled(_of(claim, user), (known[0], known[1]))
        if claim.outbox or claim.carried:  # what was begun here ends here
            return Settled(_of(claim, _here(claim, own)))
        if keys.session(own) == claim.conversation:
            await self._manager.join(own, home)
        if not await self._inbox.move(claim, keys.session(home)):
            raise ClaimLost(claim.conversation)
        return None


def _here(claim: Claim, own: ConversationRef) -> str:
    return keys.session_user(claim.conversation) or own.user


def _of(claim: Claim, user: str) -> Claim:
    return claim if user == claim.messages[0].user_id else structs.replace(claim, owner=user)
