"""How a turn ends: what was said and learned goes to disk, then session and end of the turn are one step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from config.tenants import Tenant
from gateway import record
from gateway.inbox.base import Claim, Inbox, Outcome, SessionWrite
from gateway.messages import RELAYED, InboundMessage
from gateway.moment import Change
from gateway.outbox import ClaimLost
from memory.errors import MemoryFault
from memory.memory_manager import MemoryManager
from memory.models import Message, ShortTermMemory
from memory.reading import Part, begun
from memory.session import append, kept_for, note_event, worth_saving
from memory.short_term import codec, lua
from processors.models import MemoryEvent

log = logging.getLogger(__name__)


class Ending:
    def __init__(self, inbox: Inbox, manager: MemoryManager, clock: Callable[[], datetime]) -> None:
        self._inbox = inbox
        self._manager = manager
        self._openings = manager.openings
        self._transcripts = manager.transcripts
        self._remember = manager.saving
        self._never_forgotten = manager.longterm.never_forgotten
        self._clock = clock

    async def keep(
        self,
        claim: Claim,
        tenant: Tenant,
        messages: Sequence[InboundMessage],
        event: MemoryEvent | None,
    ) -> None:
        """On disk before the messages leave the inbox. A disk that fails does not hold up the conversation."""
        whose = record.owner(claim.ref, messages)
        if event is None or not whose:
            return
        kept = [record.with_sources(event, messages)]
        worth = worth_saving(event, tenant.memory.importance_threshold)
        try:
            await self._remember.save(
                tenant.id, whose, kept if worth else (), heard=() if worth else kept, name=_name(messages[-1])
            )
        except MemoryFault as error:
            log.error("not written: %s", error, extra={"conversation": claim.conversation})

    async def keep_elsewhere(self, claim: Claim, said: Sequence[Message]) -> None:
        """Also under the ids that were merged into the conversation's own."""
        try:
            for one in (await self._manager.every(claim.ref))[1:]:
                await self._transcripts.append(one, said)
        except MemoryFault as error:
            log.error("not written: %s", error, extra={"conversation": claim.conversation})

    async def finish(
        self,
        claim: Claim,
        tenant: Tenant,
        session: ShortTermMemory,
        rev: int,
        said: Sequence[Message],
        event: MemoryEvent | None,
        change: Change,
        dead: str | None,
        carry: bytes | None,
        every: int = 0,
    ) -> Part | None:
        """Session and end of the turn in one step. When somebody else wrote the session meanwhile, ours goes on top. Of
        who was forgotten since they wrote nothing is kept. With it goes the note of what is to be read now by the
        language model, which comes back; see `reading.begun` for `every`."""
        ttl = tenant.memory.sm_ttl
        ref = claim.ref
        if dead is not None and await self._about_forgotten(claim):
            log.warning("about somebody forgotten: %s", dead, extra={"conversation": claim.conversation})
            dead = None
        for _ in range(5):
            # At each try: who forgets somebody removes the session first.
            if not self._never_forgotten(ref.tenant, ref.user) and await self.was_forgotten(claim):
                await self._finish_forgotten(claim, dead, carry)
                return None
            now = self._clock()
            session = append(change(session), said, max_messages=2 * tenant.memory.max_turns, now=now, ttl=ttl)
            if event is not None:
                session = note_event(session, event)
            session, part = begun(session, every)
            write = SessionWrite(
                value=codec.encode(session, rev + 1),
                rev=rev,
                ttl_ms=codec.ttl_ms(kept_for(session, now, ttl)),
                member=lua.member(ref),
                score=lua.score(session),
            )
            outcome, stored = await self._inbox.finish(claim, write, dead, carry)
            if outcome is Outcome.DONE:
                await self._manager.sessions.used(ref)
                return part
            if outcome is Outcome.LOST:
                raise ClaimLost(claim.conversation)
            other = codec.decode(stored) if stored else None
            rev = other.rev if other else 0
            session = await self._openings.open_session(ref, other, now)
        raise MemoryFault("the session was changed by somebody else at every try")

    async def _finish_forgotten(self, claim: Claim, dead: str | None, carry: bytes | None) -> None:
        await self._manager.forget(claim.ref.tenant, claim.ref.user)  # what this turn has kept since
        if dead is not None:  # no dead letter either
            log.warning("of somebody forgotten: %s", dead, extra={"conversation": claim.conversation})
        outcome, _ = await self._inbox.finish(claim, None, None, carry)
        if outcome is Outcome.LOST:
            raise ClaimLost(claim.conversation)

    async def was_forgotten(self, claim: Claim) -> bool:
        """Whether the conversation's person was forgotten since they wrote."""
        return await self._manager.forgotten(claim.ref, _asked(claim))

    async def _about_forgotten(self, claim: Claim) -> bool:
        """Whether it is something that staff were to be told of somebody who was forgotten since."""
        about = claim.messages[-1].extra.get("about")
        customer = about.get("user_id") if isinstance(about, dict) else None
        if not isinstance(customer, str):
            return False
        return await self._manager.forgotten(claim.ref._replace(user=customer), _asked(claim))


def _asked(claim: Claim) -> datetime:
    return datetime.fromtimestamp(min([message.received_at for message in claim.messages]), UTC)


def _name(message: InboundMessage) -> str | None:
    """What who wrote it calls themselves, where their platform tells and it is a person by themselves."""
    return None if message.group or message.kind in RELAYED else message.sender_name
