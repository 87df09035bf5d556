"""What a turn is about to send, recorded in the inbox before the first byte, and how a later try goes on from it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from config.tenants import Tenant
from gateway.adapters.base import Call, Sender
from gateway.channel_states import ChannelStates, Trouble
from gateway.errors import (
    ChannelBroken,
    ChatMoved,
    InboxUnavailable,
    QuotaSpent,
    SendAmbiguous,
    SendFault,
    SendRefused,
    SendRetry,
    TokenSpent,
    Unreachable,
)
from gateway.inbox.base import Claim, Inbox, Noted
from gateway.ledger import Ledger
from gateway.messages import Answer, Target
from gateway.pacing import Limit, limits_for
from gateway.reach import Reach

log = logging.getLogger(__name__)

QUOTA_SPENT = "the channel's monthly quota is used up"
REFUSED = "the platform refused it"
LONGEST_WAIT = 5.0  # seconds a turn sits out a pace limit; beyond that the conversation goes back into the queue
TOKEN_LIFE = 60.0  # seconds: within it a reply token that is "spent" was spent by our own earlier call
TOLD_WITHIN = 20.0  # seconds of that: whatever happens to this worker, the next try comes while the token still tells
RECORD_EVERY = 0.5  # seconds between tries to record what was taken
SETTLE_EVERY = 2.0  # seconds between tries to learn, as long as that lasts, whether a reply landed

_ON_RECORD = [0]  # what the inbox answers to a note


class ClaimLost(Exception):
    """Somebody else holds the conversation by now: nothing more may be sent or saved."""


class Outbox(msgspec.Struct, omit_defaults=True):
    """The calls that deliver one answer. `next` is the first not known to be delivered; `flying` says that it may have
    been made."""

    target: Target
    answer: Answer
    calls: list[Call]
    next: int = 0
    flying: bool = False
    delivered: int = 0  # calls the platform took
    thinking: bool = False  # there is no answer yet; the only call says that it takes longer
    held: bool = False  # … and has been made for this batch
    noticed: bool = False  # the customer has a button that brings the answer
    spent: tuple[str, ...] = ()  # reply tokens of this conversation that are gone
    promised: bool = False  # the next batch of the conversation delivers it
    ready_at: float = 0.0  # since when the answer waits for the customer; 0: it does not
    message_ids: list[str] = []  # the platform's, of what it took

    @property
    def over(self) -> bool:
        return self.next >= len(self.calls)

    @property
    def begun(self) -> bool:
        return bool(self.next or self.flying or self.delivered)

    @property
    def visible(self) -> bool:
        """Is there anything to show?"""
        answer = self.answer
        return bool(answer.text.strip() or answer.media) or any(one.text.strip() or one.media for one in answer.before)


encode: Callable[[Outbox], bytes] = msgspec.json.Encoder().encode
decode: Callable[[bytes], Outbox] = msgspec.json.Decoder(Outbox).decode


class Courier:
    """Delivers answers, each call preceded by the right to make it."""

    def __init__(
        self,
        inbox: Inbox,
        senders: Mapping[str, Sender],
        states: ChannelStates,
        clock: Callable[[], float] = time.time,
        ledger: Ledger | None = None,
        reach: Reach | None = None,
    ) -> None:
        self._inbox = inbox
        self._senders = senders
        self._states = states
        self._clock = clock
        self._ledger = ledger
        self._reach = reach

    def pack(self, tenant: Tenant, target: Target, answer: Answer) -> Outbox:
        """The calls for an answer; none when it has no visible text or no way to the customer is allowed."""
        sender = self._senders[target.platform]
        return Outbox(target, answer, list(sender.plan(tenant, target, answer, self._clock())))

    def plan_again(self, tenant: Tenant, outbox: Outbox) -> None:
        """Nothing went out yet, and the world has changed: the calls as they would be made now."""
        sender = self._senders[outbox.target.platform]
        outbox.calls = list(sender.plan(tenant, outbox.target, outbox.answer, self._clock()))

    async def spend(self, claim: Claim, tenant: Tenant, outbox: Outbox) -> bool | None:
        """Makes the outbox's one call by reply token, and no other in its place. True: the customer has it; False: not,
        and the token is gone; None: not, and the token may be used. While `flying`, that is not known yet.

        Raises ClaimLost.
        """
        call, repeat = outbox.calls[outbox.next], outbox.flying
        outbox.flying = True
        try:
            await self._record(claim, outbox, limits_for(outbox.target))
            await self._senders[outbox.target.platform].send(tenant, outbox.target, call)
        except TokenSpent:
            outbox.flying = False
            return repeat and self._clock() - outbox.target.token_received_at <= TOKEN_LIFE
        except SendRetry:
            outbox.flying = repeat
            return None
        except SendAmbiguous:
            return None
        except SendFault as error:
            log.warning("no word that it takes longer: %s", type(error).__name__, extra={"tenant": tenant.id})
            outbox.flying = False
            return False
        outbox.flying = False
        if self._ledger is not None:
            await self._ledger.sent(tenant, outbox.target, call)
        return True

    async def deliver(
        self, claim: Claim, tenant: Tenant, outbox: Outbox, notes: list[Noted] | None = None
    ) -> str | None:
        """Makes the calls that are left. None: all was done that can be; else why the customer may not have the answer.
        With `notes` it does not wait until the last call is on record as taken: the turn's end is asked for behind
        that, and where the turn does not come to it, `settle` waits.

        Raises ClaimLost; SendRetry, SendAmbiguous and ChannelBroken for another try, which goes on from here.
        """
        sender = self._senders[outbox.target.platform]
        if not outbox.calls and outbox.visible:
            return "no way to the customer is left: the reply token was too old, and the channel does not allow a push"
        while outbox.next < len(outbox.calls):
            call, repeat = outbox.calls[outbox.next], outbox.flying
            where = tenant.id, outbox.target.channel
            if call.method == "push" and self._states.no_push(*where):
                return QUOTA_SPENT
            if call.method == "push" and await self._gone(outbox.target):
                return None
            outbox.flying = True
            limits = limits_for(outbox.target)
            await self._record(claim, outbox, limits)
            try:
                outbox.message_ids += (await sender.send(tenant, outbox.target, call)).message_ids
            except TokenSpent as error:
                if repeat:
                    if self._clock() - outbox.target.token_received_at > TOKEN_LIFE:
                        return "an earlier try may have answered: its reply token ran out before that could be settled"
                    # The earlier call spent it: that was this very message.
                elif (other := sender.instead(tenant, outbox.target, call, error)) is not None:
                    outbox.calls[outbox.next], outbox.flying = other, False
                    continue
                else:
                    return "the reply token was too old, and the channel does not allow a push"
            except SendRefused as error:
                other = sender.instead(tenant, outbox.target, call, error)
                if other is not None and other != call:
                    outbox.calls[outbox.next], outbox.flying = other, False
                    continue
                log.warning("message refused: %s", error, extra={"tenant": tenant.id, "channel": outbox.target.channel})
                outbox.next, outbox.flying = outbox.next + 1, False
                if outbox.over and not outbox.delivered:
                    return f"{REFUSED}: {error}"
                continue
            except ChatMoved as error:
                outbox.target = msgspec.structs.replace(outbox.target, chat_id=error.chat_id)
                outbox.calls = list(sender.plan(tenant, outbox.target, outbox.answer, self._clock()))
                outbox.flying = False
                continue
            except Unreachable as error:
                log.info("unreachable: %s", error, extra={"tenant": tenant.id, "conversation": claim.conversation})
                if self._reach is not None:
                    await self._reach.left(*where, outbox.target.chat_id, self._clock())
                return None  # the customer has left: there is nobody to answer
            except QuotaSpent as error:
                await self._states.met(*where, Trouble.QUOTA, str(error))
                return QUOTA_SPENT
            except ChannelBroken as error:
                await self._states.met(*where, Trouble.BROKEN, str(error))
                raise
            except SendRetry as error:
                outbox.flying = repeat  # this call was certainly not taken; an earlier one may have been
                await self._record(claim, outbox)
                if error.retry_after is not None:
                    await self._inbox.hold(limits[-1:], error.retry_after)
                    raise
                raise self._soon(outbox, call, error) from error
            except SendAmbiguous as error:
                raise self._soon(outbox, call, error) from error
            outbox.next, outbox.flying = outbox.next + 1, False
            outbox.delivered += 1
            if not self._token_tells(outbox, call):
                # At once: until then a crash, or a wait for the pace, repeats the call.
                note = self._inbox.note(claim, encode(outbox)) if notes is not None and outbox.over else None
                if notes is None or note is None:
                    await self._record(claim, outbox)
                else:
                    notes.append(note)
            if self._ledger is not None:
                await self._ledger.sent(tenant, outbox.target, call)
            await self._states.well(*where, Trouble.BROKEN)
            if call.method == "push":
                await self._states.well(*where, Trouble.QUOTA)
        return None

    def _token_tells(self, outbox: Outbox, call: Call) -> bool:
        """Whether the next try, should there be one, learns from the platform that the answer was taken: the round trip
        that would put it on record is saved."""
        if call.method != "reply" or not outbox.over:
            return False
        return self._clock() - outbox.target.token_received_at <= TOLD_WITHIN

    def _soon(self, outbox: Outbox, call: Call, error: SendFault) -> SendFault:
        """Whether a reply landed is told by the same call again, and only while its token lives: that can't wait for
        pauses that grow, nor is it a failed try."""
        left = outbox.target.token_received_at + TOKEN_LIFE - self._clock()
        if outbox.flying and call.method == "reply" and left > SETTLE_EVERY:
            return SendRetry(str(error), SETTLE_EVERY)
        return error

    async def _gone(self, target: Target) -> bool:
        """A push to somebody who left would be taken, counted and never seen."""
        if self._reach is None:
            return False
        return await self._reach.gone(target.tenant, target.channel, target.chat_id, target.token_received_at)

    async def settle(self, claim: Claim, outbox: Outbox, notes: list[Noted]) -> None:
        """Of a turn that did not come to its end, where nothing is asked any more what was sent: what `deliver` left in
        `notes` is on record when this returns. Raises ClaimLost."""
        while notes:
            note = notes.pop()
            if not note.done():
                await asyncio.wait({note})
            if note.cancelled() or note.exception() is not None or note.result() != _ON_RECORD:
                await self._record(claim, outbox)

    async def mark_sent(self, claim: Claim, outbox: Outbox) -> None:
        """Records what went out, and what is known of it by now."""
        await self._record(claim, outbox)

    async def _record(self, claim: Claim, outbox: Outbox, limits: Sequence[Limit] = ()) -> None:
        """Puts the outbox on record; with `limits`, once they let a call pass. While the inbox is away, what the
        platform took is kept in mind until it can be recorded: given up, it would be sent again. Raises ClaimLost;
        SendRetry for a wait that is too long to sit out; InboxUnavailable where nothing was taken."""
        while True:
            try:
                wait = await self._inbox.intent(claim, encode(outbox), limits)
            except InboxUnavailable:
                if not outbox.delivered:
                    raise
                await asyncio.sleep(RECORD_EVERY)
                continue
            if wait == 0:
                return
            if wait is None:
                raise ClaimLost(claim.conversation)
            if wait > LONGEST_WAIT:
                raise SendRetry("too much to say in this chat just now", wait)
            await asyncio.sleep(wait)
