"""One person under several ids: linked, parted, their sessions joined."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import datetime

from memory.canonical import all_ids, canonical
from memory.errors import LongTermUnavailable
from memory.keys import ConversationRef
from memory.models import ShortTermMemory
from memory.openings import Openings
from memory.protocols import LongTerm, Sessions
from memory.session import joined

log = logging.getLogger(__name__)

_TRIES = 5  # of a link against others of the same people
_NUMBER = re.compile(r"\+[1-9]\d{6,14}")
_MAIL = re.compile(r"[^@\s]{1,64}@[^@\s]+\.[^@\s.]+")


class Linking:
    """Raises InvalidId for ids that can't be a key, LongTermUnavailable where a file can't be read or written."""

    longterm: LongTerm
    sessions: Sessions
    openings: Openings
    _clock: Callable[[], datetime]

    async def merge_users(self, tenant_id: str, user_id: str, into: str) -> None:
        raise NotImplementedError

    async def unmerge_users(self, tenant_id: str, user_id: str, into: str) -> None:
        raise NotImplementedError

    async def _change(
        self,
        ref: ConversationRef,
        change: Callable[[ShortTermMemory], ShortTermMemory],
        *,
        session_id: str | None = None,
    ) -> ShortTermMemory:
        raise NotImplementedError

    def _longest(self, tenant_id: str) -> int:
        raise NotImplementedError

    async def link_users(self, tenant_id: str, user_id: str, to: str) -> str:
        """Both ids are one person from now on: everything of `user_id` moves to who stands for `to`, once; their main
        conversation goes on there. The id that stands for both. Done again, it changes nothing. Whoever calls it knows
        that both are one person: a name alone is no proof."""
        for tries_left in reversed(range(_TRIES)):
            into = await canonical(self.longterm, tenant_id, to)
            user = await canonical(self.longterm, tenant_id, user_id)
            if user == into:
                break
            try:
                await self.merge_users(tenant_id, user, into)
            except ValueError:  # somebody merged one of them just now: look again where it went
                if not tries_left:
                    raise
                continue
            await self.join(ConversationRef(tenant_id, user), ConversationRef(tenant_id, into))
            break
        return into

    async def unlink_user(self, tenant_id: str, user_id: str) -> str:
        """Parts `user_id` from whom it was merged into, and gives back what came from it; what was said since stays
        with the other. The id of that one. Raises ValueError where it was not merged, or that one was too."""
        memory = await self.longterm.load(tenant_id, user_id)
        into = memory.person.merged_into if memory and memory.person else None
        if into is None:
            raise ValueError(f"{user_id} is not merged into another id")
        if (further := await canonical(self.longterm, tenant_id, into)) != into:
            raise ValueError(f"{into} has been merged into {further} since: part those first")
        await self.unmerge_users(tenant_id, user_id, into)
        return into

    async def verified(self, tenant_id: str, user_id: str, kind: str, value: str) -> str | None:
        """A platform has verified that a `phone` (with its country's code) or an `email` is this person's. Where it was
        verified for another id before, both are linked, and that one's id comes back; None: it was new, or known.

        Never to be called for what somebody only typed. Raises ValueError for what is no number or address.
        """
        mark = f"{kind}:{_normal(kind, value)}"
        user = await canonical(self.longterm, tenant_id, user_id)
        known = await canonical(self.longterm, tenant_id, mark)
        if known == mark:
            await self.merge_users(tenant_id, mark, user)  # the number itself becomes one of the person's ids
            return None
        return None if known == user else await self.link_users(tenant_id, user, known)

    async def join(self, ref: ConversationRef, into: ConversationRef) -> None:
        """What the live session of one conversation holds goes on in the other's; one that is over is ended as usual.
        Done again, it changes nothing. Raises MemoryFault."""
        if ref == into:
            return
        left = await self.sessions.load(ref)
        if left is None:
            return
        if left.expired(self._clock()):
            await self.openings.open_session(ref, left, self._clock())
        elif left.history or left.facts or left.state == "human":
            live = left
            await self._change(into, lambda session: joined(session, live, self._longest(ref.tenant)))
        await self.sessions.delete(ref)

    async def shared(self, ref: ConversationRef) -> ConversationRef:
        """The conversation under the id that stands for the person now: itself, as long as that can't be read."""
        try:
            return ref._replace(user=await canonical(self.longterm, ref.tenant, ref.user))
        except LongTermUnavailable as error:
            log.error("a conversation goes on under its own id: %s", error)
            return ref

    async def every(self, ref: ConversationRef) -> list[ConversationRef]:
        """The conversation under each of the person's ids, the one that stands for them first."""
        try:
            ids = await all_ids(self.longterm, ref.tenant, ref.user)
        except LongTermUnavailable:
            ids = [ref.user]
        return [ref._replace(user=one) for one in ids]


def _normal(kind: str, value: str) -> str:
    if kind == "phone":
        number = "+" + re.sub(r"\D", "", value)
        if _NUMBER.fullmatch(number):
            return number
    elif kind == "email" and _MAIL.fullmatch(value.strip()):
        return value.strip().lower()
    raise ValueError(f"this is no {kind} that could be verified")
