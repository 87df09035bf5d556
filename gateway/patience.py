"""How an answer reaches a customer whose platform lets us speak for nothing only for a while: LINE's reply token.

In time, the token carries the answer. When the answer takes longer, the token is spent on a short word with a button;
pressing it, like whatever else the customer sends, brings a fresh token, and the answer goes with that. Only when
nothing comes, and only where the shop allows it, the answer is pushed, which costs quota. Nothing of this lives in a
worker: what is known so far stands in the conversation's outbox, and what one batch could not deliver comes with the
next.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Protocol

import msgspec

from config.tenants import LineChannel, Tenant
from gateway.adapters.base import Call
from gateway.inbox.base import Claim, Inbox
from gateway.meanwhile import Meanwhile
from gateway.messages import BEGUN, RELAYED, Answer, InboundMessage, Kind, QuickReply, Target, target_of
from gateway.moment import Done, Moment
from gateway.outbox import Courier, Outbox, decode
from gateway.soon import Soon
from gateway.texts import text

ANSWER_PLEASE = "cc:answer"  # what the button sends back
OWED = "owed"  # in the `extra` of a message that is sent again: what was to be delivered with it the first time
MOST_SPENT = 20  # spent tokens that are remembered: far more than live at a time


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds."""

    fresh: float = 50.0  # after receipt, within which a reply token is used; LINE promises about a minute
    hold_after: float = 40.0  # after receipt, when a token goes to a word that it takes longer
    push_after: float = 60.0  # that a finished answer waits for its button before it costs quota
    keep_for: float = 86_400.0  # that it waits for the customer where it may not be pushed
    look_every: float = 5.0  # while thinking: whether a pressed button's token grows old as well


class Holder(Protocol):
    """The sender of a platform with reply tokens."""

    def hold(
        self, tenant: Tenant, target: Target, before: Sequence[Answer], said: str, button: QuickReply
    ) -> Call | None:
        """The reply that shows `before`, then `said` with a button that sends back its text. None: it is too much for
        one call."""
        ...


class Waiting(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one batch leaves to the next of its conversation."""

    answers: tuple[Answer, ...] = ()
    spent: tuple[str, ...] = ()
    noticed: bool = False


@dataclass(frozen=True, slots=True)
class Deliver:
    """The outbox's calls are to be made."""


@dataclass(frozen=True, slots=True)
class CarryOn:
    """The next batch delivers it."""

    waiting: bytes


@dataclass(frozen=True, slots=True)
class Park:
    """The customer has to come first: nothing else is to be done for that many seconds."""

    pause: float


@dataclass(frozen=True, slots=True)
class Expired:
    why: str


_DELIVER = Deliver()
_NOTHING = Answer("")  # no answer yet
_received_at = attrgetter("received_at")
_encoder = msgspec.json.Encoder()
_waiting = msgspec.json.Decoder(Waiting)


class Presses:
    """The button needs no thinking: the answers that wait go with its token anyway."""

    async def settle(self, moment: Moment) -> Done | None:
        return Done(None) if is_press(moment.last) else None


class Patience:
    """`holders` by platform: those that are not named have nothing to wait for."""

    def __init__(
        self,
        inbox: Inbox,
        courier: Courier,
        holders: Mapping[str, Holder],
        clock: Callable[[], float],
        times: Times = Times(),
    ) -> None:
        self._inbox = inbox
        self._courier = courier
        self._holders = holders
        self._clock = clock
        self._times = times
        self._soon = Soon()

    def opened(self, claim: Claim) -> Outbox:
        """What an earlier try left; else an outbox that has no answer of its own yet, with what the last batch left."""
        last = claim.messages[-1]
        if claim.outbox:
            return decode(claim.outbox)
        if isinstance(begun := last.extra.get(BEGUN), str):
            return decode(begun.encode())
        owed = [message.extra[OWED] for message in claim.messages if message.extra.get(OWED)]
        if claim.carried:
            owed.insert(0, claim.carried)
        if not owed:  # nearly always
            return Outbox(target_of(last), _NOTHING, [], 0, thinking=True)
        left = [_waiting.decode(raw) for raw in owed]
        answers = tuple(answer for one in left for answer in one.answers)
        spent = tuple(token for one in left for token in one.spent)
        noticed = any(one.noticed for one in left)
        return Outbox(target_of(last), Answer("", before=answers), [], 0, thinking=True, noticed=noticed, spent=spent)

    def owed(self, outbox: Outbox) -> bytes | None:
        """Of a batch that is buried: the answers of earlier ones that were to go with its own, and did not."""
        before = outbox.answer.before
        return _encoder.encode(Waiting(before, outbox.spent)) if before and not outbox.delivered else None

    def during(
        self, claim: Claim, moment: Moment, outbox: Outbox, answer: Callable[[Moment], Coroutine[None, None, Answer]]
    ) -> Coroutine[None, None, Answer]:
        """The answer. While it is sought, tokens that grow old are spent on a word that it takes longer. Awaited, it
        raises ClaimLost."""
        holder = self._holders.get(outbox.target.platform)
        return answer(moment) if holder is None else self._beside(claim, moment, outbox, holder, answer(moment))

    async def _beside(
        self, claim: Claim, moment: Moment, outbox: Outbox, holder: Holder, answer: Coroutine[None, None, Answer]
    ) -> Answer:
        hold = partial(self._hold, claim, moment, outbox, holder)
        async with Meanwhile(partial(self._until_old, claim, outbox), hold, self._soon):
            return await answer

    def pack(self, moment: Moment, outbox: Outbox, answer: Answer) -> Outbox:
        """The outbox with its answer, to go by the freshest token that is left."""
        before = outbox.answer.before
        if before and moment.last.platform not in self._holders:  # they waited for another channel of the same person
            words = "\n\n".join(filter(None, [*(one.text for one in before), answer.text]))
            media = (*(item for one in before for item in one.media), *answer.media)
            answer, before = msgspec.structs.replace(answer, text=words, media=media), ()
        if not answer.text and not before and is_press(moment.last):
            answer = Answer(text("no_answer_waits", moment.language))
        target = target_of(moment.last)
        if target.platform in self._holders:
            fresh = [one for one in self._tokens(moment.messages, outbox) if self._age(one) <= self._times.fresh]
            if not fresh or fresh[-1] is not moment.last:
                token = fresh[-1].reply_token if fresh else None
                at = fresh[-1].received_at if fresh else _heard(moment)
                target = msgspec.structs.replace(target, reply_token=token, token_received_at=at)
        if before != answer.before:
            answer = msgspec.structs.replace(answer, before=before)
        packed = self._courier.pack(moment.tenant, target, answer)
        packed.noticed, packed.spent = outbox.noticed, outbox.spent
        return packed

    async def step(self, claim: Claim, tenant: Tenant, outbox: Outbox) -> Deliver | CarryOn | Park | Expired:
        """What is to be done with a finished answer."""
        target, now = outbox.target, self._clock()
        if target.platform not in self._holders or outbox.begun or not outbox.visible:
            return _DELIVER
        if target.reply_token is not None and now - target.token_received_at <= self._times.fresh:
            return _DELIVER
        if await self._inbox.behind(claim, 1):  # on whatever channel: it is the same person
            return CarryOn(_encoder.encode(_left_by(outbox)))
        push = _allows_push(tenant, target.channel)
        if push and not outbox.noticed:
            return _DELIVER
        outbox.ready_at = outbox.ready_at or now
        waited = now - outbox.ready_at
        if push and waited >= self._times.push_after:
            self._courier.plan_again(tenant, outbox)
            return _DELIVER
        if waited >= self._times.keep_for:
            return Expired("the customer did not come back for it, and the channel does not allow a push")
        return Park((self._times.push_after if push else self._times.keep_for) - waited)

    def _until_old(self, claim: Claim, outbox: Outbox) -> float:
        """Seconds until a token has to be looked at."""
        if outbox.flying:
            return min(1.0, self._times.look_every)
        if not outbox.held and (own := self._tokens(claim.messages, outbox)):
            return max(0.0, self._times.hold_after - self._age(own[-1]))
        return self._times.look_every

    async def _hold(self, claim: Claim, moment: Moment, outbox: Outbox, holder: Holder) -> None:
        if outbox.flying:  # it is not known whether the last word arrived
            await self._spend(claim, moment, outbox)
            return
        tokens = self._tokens(moment.messages, outbox)
        if not tokens or outbox.held:
            waiting = await self._inbox.behind(claim)
            tokens = [one for one in self._tokens(waiting, outbox) if is_press(one) and self._old(one)]
        elif not self._old(tokens[-1]):
            return
        outbox.held = True
        usable = [one for one in tokens if self._age(one) <= self._times.fresh]
        if not usable:
            return
        said, button = text("thinking", moment.language), text("get_answer", moment.language)
        oldest = target_of(usable[0])  # the younger ones may still carry the answer itself
        call = holder.hold(moment.tenant, oldest, outbox.answer.before, said, QuickReply(button, ANSWER_PLEASE))
        if call is None:
            return
        outbox.target, outbox.calls, outbox.next = oldest, [call], 0
        await self._spend(claim, moment, outbox)

    async def _spend(self, claim: Claim, moment: Moment, outbox: Outbox) -> None:
        shown = await self._courier.spend(claim, moment.tenant, outbox)
        token = outbox.target.reply_token
        if shown is not None and token is not None:
            outbox.spent = (*outbox.spent, token)[-MOST_SPENT:]
        if shown:
            outbox.noticed = True
            outbox.answer = Answer("")
        if not outbox.flying:
            await self._courier.mark_sent(claim, outbox)

    def _tokens(self, messages: Sequence[InboundMessage], outbox: Outbox) -> list[InboundMessage]:
        """The messages of the outbox's chat whose tokens are not known to be spent, the freshest last."""
        target, spent = outbox.target, outbox.spent
        found = []
        for one in messages:
            here = one.chat_id == target.chat_id and one.channel == target.channel
            if here and one.reply_token and one.reply_token not in spent:
                found.append(one)
        if len(found) > 1:
            found.sort(key=_received_at)
        return found

    def _age(self, message: InboundMessage) -> float:
        return self._clock() - message.received_at

    def _old(self, message: InboundMessage) -> bool:
        return self._age(message) >= self._times.hold_after


def answers_in(carried: bytes | None) -> tuple[Answer, ...]:
    """The answers in what one batch left to be delivered with the next."""
    return _waiting.decode(carried).answers if carried else ()


def is_press(message: InboundMessage) -> bool:
    return message.kind is Kind.POSTBACK and message.text == ANSWER_PLEASE


def _heard(moment: Moment) -> float:
    """When the person wrote last, in seconds since 1970; 0.0: never, as far as we know. Staff's words tell nothing."""
    if moment.last.kind not in RELAYED or moment.last.group:  # a group that threw the bot out refuses what comes
        return moment.last.received_at
    own = [line for line in (*moment.session.carried, *moment.session.history) if line["role"] == "user"]
    return datetime.fromisoformat(own[-1]["timestamp"]).timestamp() if own else 0.0


def _left_by(outbox: Outbox) -> Waiting:
    own = msgspec.structs.replace(outbox.answer, before=())
    answers = (*outbox.answer.before, own) if own.text.strip() or own.media else outbox.answer.before
    return Waiting(answers, outbox.spent, outbox.noticed)


def _allows_push(tenant: Tenant, channel: str) -> bool:
    settings = tenant.channels.get(channel)
    return not isinstance(settings, LineChannel) or settings.allow_push
