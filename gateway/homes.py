"""Whose conversation it is by now: people's ids may be merged, and parted, while messages are under way."""

from __future__ import annotations

from dataclasses import replace

from gateway.inbox.base import Claim, Inbox, conversation_of
from gateway.outbox import ClaimLost
from memory import keys
from memory.canonical import canonical
from memory.errors import LongTermUnavailable
from memory.memory_manager import MemoryManager


class Homes:
    """The long-term files say who stands for whom. The inbox learns it from the first message that comes to the wrong
    conversation, and keeps to it until that is wrong again."""

    def __init__(self, inbox: Inbox, manager: MemoryManager) -> None:
        self._inbox = inbox
        self._manager = manager

    async def settled(self, claim: Claim) -> Claim | None:
        """The claim as that of whom it belongs to; None: it was moved to another conversation, and nothing is to be
        done here. Raises ClaimLost, MemoryFault."""
        own = conversation_of(claim.messages[0])
        if claim.messages[0].group:
            return claim
        here = keys.session_user(claim.conversation) or own.user
        try:
            home = own._replace(user=await canonical(self._manager.longterm, own.tenant, own.user))
        except LongTermUnavailable:  # it stays where it is
            return _of(claim, here)
        if keys.session(home) == claim.conversation:
            return _of(claim, home.user)
        if claim.outbox or claim.carried:  # what was begun here ends here
            return _of(claim, here)
        if keys.session(own) == claim.conversation:
            await self._manager.join(own, home)
        if not await self._inbox.move(claim, keys.session(home)):
            raise ClaimLost(claim.conversation)
        return None


def _of(claim: Claim, user: str) -> Claim:
    return claim if user == claim.messages[0].user_id else replace(claim, owner=user)
