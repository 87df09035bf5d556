"""One turn, in the order of the data: who is it, session, what do we know, reply (and classify beside it), send,
remember, done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from msgspec import structs

from config.tenants import Agent, Tenant
from gateway import record
from gateway.adapters.base import Sender
from gateway.after_hours import AfterHours
from gateway.asking_staff import AskStaff
from gateway.channel_states import ChannelStates
from gateway.ending import Ending
from gateway.errors import InboxUnavailable, SendFault, UnknownTenant
from gateway.events import Events
from gateway.homes import Homes, Settled
from gateway.hooks import Exchange, History, Hooks
from gateway.inbox.base import Claim, Inbox, Noted, event_of
from gateway.inbox.spool import BEGUN
from gateway.ledger import Ledger
from gateway.media import KINDS as MEDIA
from gateway.media import Media
from gateway.messages import MAX_TEXT, RELAYED, Answer, InboundMessage, Kind, Target, target_of
from gateway.minding import Minded, Minding
from gateway.moment import Change, Delivery, Done, Moment, Settler, begun, unchanged
from gateway.names import Names
from gateway.outbox import REFUSED, ClaimLost, Courier, Outbox, encode
from gateway.pacing import limits_for
from gateway.patience import CarryOn, Expired, Holder, Park, Patience, Times
from gateway.per_tenant import PerTenant
from gateway.personal import personal
from gateway.privacy import Notices, kept_event, kept_lines
from gateway.reach import Reach
from gateway.responder import Question, Responder, access_of
from gateway.riding import Ridden
from gateway.room import Room
from gateway.routing import Routing
from gateway.soon import Soon
from gateway.standalone import size_of
from gateway.texts import Tongue, text
from memory.budget import budget
from memory.memory_manager import MemoryManager
from memory.models import ShortTermMemory, fresh_start
from memory.short_term import codec
from processors.event_processor import EventProcessor
from processors.language import answer_language
from processors.models import EventType, MemoryEvent

log = logging.getLogger(__name__)

# Of these a confident local answer is not checked with the model.
_TRUSTED: Mapping[str, Collection[EventType]] = {
    "always": (),
    "when_unsure": tuple(EventType),
    "never": (),
}
CLASSIFY_AFTER = 10.0  # seconds a finished answer waits for its message's classification
TYPING_AFTER = 0.5  # seconds before the typing sign shows: instant answers need none
TYPING_EVERY = 4.5  # seconds: Telegram's sign lasts five
TOGETHER = 0.1  # seconds in which signs are gathered: what several turns ask and send costs fewer wake-ups at once

_WITHOUT_CHANNEL = ("terminal", "web")  # every tenant can be talked to in the terminal and by the API

Attaching = asyncio.Task[Sequence[InboundMessage]] | None  # None: there is nothing to wait for
Riding = asyncio.Future[Ridden | None]  # what the model that answers says of the message's kind


class Turn:
    """Handles one claim to its end."""

    def __init__(
        self,
        *,
        tenant_of: Callable[[str], Tenant | None],
        inbox: Inbox,
        senders: Mapping[str, Sender],
        states: ChannelStates,
        responder: Responder,
        processors: PerTenant[EventProcessor],
        events: Events,
        media: Media,
        settlers: Sequence[Settler],
        manager: MemoryManager,
        holders: Mapping[str, Holder],
        ledger: Ledger | None = None,
        reach: Reach | None = None,
        names: Names | None = None,
        hooks: Hooks | None = None,
        after_hours: AfterHours | None = None,
        routing: Routing | None = None,
        ask_staff: AskStaff | None = None,
        times: Times = Times(),
        room: Room | None = None,
        enable_memory: bool = True,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        seconds: Callable[[], float] | None = None,
    ) -> None:
        """`seconds` since 1970, where that is told faster than by `clock`."""
        self._tenant_of = tenant_of
        self._inbox = inbox
        self._senders = senders

        if seconds is None:

            def seconds() -> float:
                return clock().timestamp()

        self._courier = Courier(inbox, senders, states, seconds, ledger, reach)
        self._patience = Patience(inbox, self._courier, holders, seconds, times)
        self._responder = responder
        self._processors = processors
        self._events = events
        self._media = media
        self._settlers = settlers
        self._manager = manager
        self._openings = manager.openings
        self._ending = Ending(inbox, manager, clock)
        self._names = names
        self._notices = Notices(manager)
        self._hooks = hooks or Hooks(History(manager.transcripts))
        self._minding = Minding(manager, all_told=not self._hooks.alone)
        self._after_hours = after_hours
        self._routing = routing
        self._ask_staff = ask_staff
        self._homes = Homes(inbox, manager)
        self._signs = Soon(TOGETHER)
        self._resting = (room or Room(1, 1.0)).resting
        self._enable_memory = enable_memory
        self._clock = clock

    async def __call__(self, claim: Claim) -> None:
        try:
            tenant, agent = self._who(claim)
        except UnknownTenant as error:  # its file may be on the way back
            if claim.attempts <= claim.max_attempts:
                raise
            why = f"gave up after {claim.max_attempts} tries: {error}"
            await self._inbox.finish(claim, None, why, claim.carried)
            return
        at_home = await self._homes.settled(claim)
        if at_home is None:
            return
        claim = at_home.claim
        now = self._clock()
        remembers = self._enable_memory and agent.conversation_memory
        messages, amended = await self._events.prepare(tenant, claim, remembers)
        home = Settled(claim) if amended else at_home
        stored = await self._stored(claim, amended) if remembers else None
        session = await self._openings.open_session(claim.ref, stored, now)
        language = self._language(tenant, messages, session)
        hurried = claim.hurried or (tenant.behaviour.when_closed == "shop_only" and not tenant.is_open(now))
        moment = begun(tenant, agent, claim.ref, messages, session, language, now, hurried)
        done = await self._settled(moment)
        sets: dict[str, Any] = {}
        if done is None and tenant.routing is not None and self._routing is not None:
            routed = await self._routing.of(moment)
            moment, sets = structs.replace(moment, agent=routed.agent), dict(routed.sets)
        off_record = done is not None and done.silent
        kinds = {message.kind for message in messages}
        acknowledging = asyncio.create_task(self._acknowledge(moment)) if Kind.POSTBACK in kinds else None
        attaching = None if done is not None or kinds.isdisjoint(MEDIA) else self._attach(moment)
        asks = self._asks(moment)
        rides = asyncio.create_task(self._rides(moment, attaching)) if asks and done is None else None
        ridden: Riding | None = None if rides is None else asyncio.get_running_loop().create_future()
        words = record.words(messages) if attaching is None else None  # else as they are once that is there
        classify = partial(self._classify, moment, words, attaching, off_record, asks, rides, ridden)
        # Beside the answer where anything is waited for; else once it is out.
        classifying = asyncio.create_task(classify()) if asks or attaching is not None else None
        notes: list[Noted] = []
        try:
            try:
                outbox = self._patience.opened(claim)
                dead: str | None = None
                carry: bytes | None = None
                if claim.attempts > claim.max_attempts:
                    dead = f"gave up after {claim.max_attempts} tries: {claim.failure or 'the worker died each time'}"
                    if outbox.thinking:
                        outbox = await self._apologise(claim, moment, outbox)
                else:
                    if outbox.thinking:
                        thinks = partial(self._answer, home, words, attaching, rides)
                        answer = done.answer if done else await self._patience.during(claim, moment, outbox, thinks)
                        noticed = tenant.privacy.notice is not None and remembers and not off_record
                        if noticed and answer is not None:
                            answer = await self._notices.before(moment, answer)
                        outbox = self._patience.pack(moment, outbox, personal(moment, answer or Answer("")))
                        if ridden is not None:
                            ridden.set_result(outbox.answer.ridden)
                        if moment.last.extra.get(BEGUN) is True:  # as an older version noted it
                            outbox.flying = True
                    match await self._patience.step(claim, tenant, outbox):
                        case Park(pause):
                            if acknowledging is not None:
                                await acknowledging
                            if await self._ending.was_forgotten(claim):  # nobody may wait for it
                                await self._inbox.finish(claim, None)
                                return
                            await self._park(claim, outbox, pause)
                            return
                        case CarryOn(waiting):
                            carry, outbox.promised = waiting, True
                        case Expired(why):
                            dead = why
                        case _:
                            dead = await self._courier.deliver(claim, tenant, outbox, notes)
                            if dead is not None and dead.startswith(REFUSED):
                                outbox = await self._apologise(claim, moment, outbox)
                sent_at = self._clock()
                if dead is not None:
                    carry = self._patience.owed(outbox)
                if done and done.sent:
                    await done.sent(Delivery(outbox.delivered > 0, outbox.message_ids, outbox.promised))
                if done and done.spare and carry is None:
                    dead = None
                if ridden is not None and not ridden.done():
                    ridden.set_result(outbox.answer.ridden)
                event = await (self._event(moment, classifying) if classifying else classify())
                if tenant.privacy.mask:
                    event = kept_event(event, tenant.privacy.mask)
                if acknowledging is not None:
                    await acknowledging
            finally:
                for task in (attaching, rides, classifying, acknowledging):
                    if task is not None:
                        task.cancel()
            if not remembers or (done and off_record and done.change is unchanged):
                await self._inbox.finish(claim, None, dead, carry)
                return
            if attaching is not None and attaching.done() and not attaching.cancelled():
                messages = list(attaching.result())
                words = None
            said = [] if off_record else record.said(messages, outbox, now, done.staff_said if done else None)
            if tenant.privacy.mask:
                said = kept_lines(said, tenant.privacy.mask)
            written = [fresh_start(f"fresh:{event_of(moment.last)}")] if done and done.forgets_talk else said
            sets |= outbox.answer.sets
            change = done.change if done else _setting(sets) if sets else unchanged
            after = change(session)
            exchange = Exchange(
                id=moment.source,
                ref=moment.ref,
                channel=moment.last.channel,
                words=record.words(messages) if words is None else words,
                session=session,
                now=now,
                answer=outbox.answer,
                said=written,
                event=event,
                last=moment.last,
                sent_at=sent_at,
                state=after.state,
                variables=after.variables,
            )
            writing = self._hooks.begun(exchange)  # and what is kept goes to the disk with it
            try:
                await self._ending.keep(claim, tenant, messages, event)
                await self._hooks.after(exchange, writing)
            finally:
                writing.cancel()
            if done and done.forgets_talk:
                await self._ending.keep_elsewhere(claim, written)
            rev = stored.rev if stored else 0
            every = self._minding.reads_every(moment) if said else 0
            part = await self._ending.finish(claim, tenant, session, rev, said, event, change, dead, carry, every)
            if part is not None:
                self._minding.read_on(moment, part)
        except Exception:
            if notes:
                await self._courier.settle(claim, outbox, notes)  # the next try goes on from there
            raise
        if self._names is not None:
            self._names.after(moment)

    async def close(self) -> None:
        """Waits for what is noted down behind the turns."""
        if self._names is not None:
            await self._names.close()
        await self._minding.close()

    async def _stored(self, claim: Claim, changed: bool) -> ShortTermMemory | None:
        """The session that came with the claim, or as it stands by now if it changed since."""
        if changed:
            return await self._manager.sessions.load(claim.ref)
        if not claim.session:
            return None
        try:
            return codec.decode(claim.session)
        except ValueError:  # the store sets it aside
            return await self._manager.sessions.load(claim.ref)

    async def _acknowledge(self, moment: Moment) -> None:
        for message in moment.messages:
            if message.kind is Kind.POSTBACK:
                await self._senders[message.platform].acknowledge(moment.tenant, message)

    async def _settled(self, moment: Moment) -> Done | None:
        """The first settler that takes the turn, in the order in which they were given."""
        for settler in self._settlers:
            if (done := await settler.settle(moment)) is not None:
                return done
        return None

    def _who(self, claim: Claim) -> tuple[Tenant, Agent]:
        first = claim.messages[0]
        tenant = self._tenant_of(first.tenant)
        agent = tenant.agent(first.agent) if tenant else None
        anyway = first.platform in _WITHOUT_CHANNEL
        if tenant is None or agent is None or not (anyway or first.channel in tenant.channels):
            raise UnknownTenant(f"{first.tenant}/{first.channel}/{first.agent} is not configured")
        return tenant, agent

    def _language(self, tenant: Tenant, messages: Sequence[InboundMessage], session: ShortTermMemory) -> Tongue:
        """The shop's, else the one the customer chose, else that of what they wrote last."""
        chosen = session.variables.get("language")
        previous: Any = session.variables.get("preferred_language") or _code(messages[-1].language_code)
        written = chosen or answer_language("\n".join(filter(None, map(_own_words, messages))), previous)
        return "en" if tenant.speaks(written) == "en" else "th"

    def _attach(self, moment: Moment) -> Attaching:
        """The messages with what they bring besides words; of a settled turn nobody looks at it."""
        access = access_of(moment.tenant, moment.agent)
        attach = self._media.attach(moment.tenant, moment.agent, moment.ref, moment.messages, access)
        return asyncio.create_task(attach)

    async def _answer(
        self,
        home: Settled,
        words: str | None,
        attaching: Attaching,
        rides: asyncio.Task[bool] | None,
        moment: Moment,
    ) -> Answer:
        tenant, last = moment.tenant, moment.last
        if moment.now.timestamp() - last.received_at > tenant.behaviour.stale_after:
            return Answer(text("stale", moment.language))
        messages = moment.messages if attaching is None else await asyncio.shield(attaching)
        minded = Minded()
        words = asked = record.words(messages) if words is None else words
        history = 2 * budget(size_of(moment.agent)).turns(tenant.memory.max_turns)
        if self._enable_memory and moment.agent.conversation_memory:
            asked = await self._responder.standalone(moment, words)
            source = moment.source
            minded = await self._minding.of(moment, words, asked, source, history, home.known)
        asking = Exchange(
            id=moment.source,
            ref=moment.ref,
            channel=last.channel,
            words=words,
            session=moment.session,
            now=moment.now,
            history=history,
            memory=minded.memory,
        )
        known = await self._hooks.before(asking, minded.context())
        images = await self._media.shown(moment.ref, messages) if moment.agent.vision else ()
        riding = rides is not None and await asyncio.shield(rides)
        target = target_of(last)
        watch = None if moment.hurried else self._senders[last.platform].watch(tenant, target)
        question = Question(
            tenant=tenant,
            agent=moment.agent,
            messages=messages,
            images=images,
            language=moment.language,
            context=known,
            now=moment.now,
            session_id=moment.session.session_id,
            hurried=moment.hurried,
            tools=minded.tools,
            standalone=asked if asked != words else None,
            riding=riding,
            watch=watch,
        )
        thinking = _Sign(self._signs, partial(self._think, tenant, target))
        try:
            with self._resting:
                if self._after_hours is not None and not tenant.is_open(moment.now):
                    answer = await self._after_hours.answer(moment, question)
                else:
                    answer = await self._responder.answer(question)
            if answer.for_staff and self._ask_staff is not None:
                answer = await self._ask_staff.noted(moment, answer)
        finally:
            thinking.cancel()
            if watch is not None:
                await watch.close()
        self._minding.after(moment, minded, answered=answer.model is not None)
        if question.cut and answer.model is None:  # with a model's answer comes how far that read
            answer = structs.replace(answer, text=f"{text('cut', moment.language, count=MAX_TEXT)}\n\n{answer.text}")
        return answer

    async def _think(self, tenant: Tenant, target: Target) -> None:
        limits = limits_for(target)
        while True:
            may = False
            with suppress(InboxUnavailable):  # a sign is no matter to speak of
                may = await self._inbox.may_pass(limits)
            if may:
                await self._senders[target.platform].typing(tenant, target)
            await asyncio.sleep(TYPING_EVERY)

    def _asks(self, moment: Moment) -> bool:
        """Whether the model may be asked what the message means."""
        may = moment.tenant.understanding.policy != "never" and not moment.hurried
        return may and access_of(moment.tenant, moment.agent).api_key is not None

    async def _rides(self, moment: Moment, attaching: Attaching) -> bool:
        """Whether the model that answers is to say what the message means as well: where it would be asked that anyway
        because nothing here is sure, and of small talk, which is not worth a second call."""
        policy = moment.tenant.understanding.policy
        if not (words := record.words(await _attached(moment, attaching))):
            return False
        known = await self._processors.of(moment.tenant).stands(words, _light(moment))
        return known is EventType.GENERIC_EVENT if policy == "always" else known is None

    async def _classify(
        self,
        moment: Moment,
        words: str | None,
        attaching: Attaching,
        off_record: bool,
        asks: bool,
        rides: asyncio.Task[bool] | None,
        ridden: Riding | None,
    ) -> MemoryEvent | None:
        if off_record:
            return None
        if words is None:
            words = record.words(await _attached(moment, attaching))
        if not words:
            return None
        riding = rides is not None and await asyncio.shield(rides)
        access = access_of(moment.tenant, moment.agent) if asks else None
        policy = moment.tenant.understanding.policy
        event = await self._processors.of(moment.tenant).analyze_message(
            words,
            _light(moment),
            event_id=moment.source,
            timestamp=moment.now,
            access=access,
            ask=asks,
            trusted=_TRUSTED[policy],
            told=asyncio.shield(ridden) if riding and ridden is not None else None,
        )
        if any(map(_own_words, moment.messages)):
            return event
        # What a sticker or a place is called says nothing of the customer's language.
        return event.model_copy(update={"payload": {**event.payload, "language": moment.language}})

    async def _event(self, moment: Moment, classifying: asyncio.Task[MemoryEvent | None]) -> MemoryEvent | None:
        """The classification: nearly always ready by now."""
        if not classifying.done():
            await asyncio.wait({classifying}, timeout=CLASSIFY_AFTER)
        if classifying.done():
            return classifying.result()
        return await self._processors.of(moment.tenant).analyze_message(
            record.words(moment.messages), event_id=moment.source, timestamp=moment.now, ask=False
        )

    async def _park(self, claim: Claim, outbox: Outbox, pause: float) -> None:
        if not await self._inbox.park(claim, encode(outbox), pause):
            raise ClaimLost(claim.conversation)

    async def _apologise(self, claim: Claim, moment: Moment, outbox: Outbox) -> Outbox:
        """Nothing worked and nothing was sent: the customer hears that, once, if they asked for something."""
        relayed = moment.last.kind in RELAYED
        answer = Answer("" if relayed else moment.tenant.reply("error", moment.language))
        outbox = self._patience.pack(moment, outbox, personal(moment, answer))
        try:
            await self._courier.deliver(claim, moment.tenant, outbox)
        except SendFault as error:
            log.warning("no apology: %s", type(error).__name__, extra={"conversation": claim.conversation})
        return outbox


class _Sign:
    """Shown by `work` where the answer is not there by then: nearly always it is."""

    __slots__ = ("_task", "_waiting", "_work")

    def __init__(self, soon: Soon, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._work = work
        self._task: asyncio.Task[None] | None = None
        self._waiting = soon.call_later(TYPING_AFTER, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._work())

    def cancel(self) -> None:
        self._waiting.cancel()
        if self._task is not None:
            self._task.cancel()


async def _attached(moment: Moment, attaching: Attaching) -> Sequence[InboundMessage]:
    return moment.messages if attaching is None else await asyncio.shield(attaching)


def _setting(variables: dict[str, Any]) -> Change:
    return lambda session: session.model_copy(update={"variables": {**session.variables, **variables}})


def _light(moment: Moment) -> dict[str, Any]:
    """In which light a message is understood."""
    session = moment.session
    return {
        "last_intent": session.last_intent,
        "preferred_language": session.variables.get("preferred_language"),
        "recent_messages": session.history[-4:],
    }


def _own_words(message: InboundMessage) -> str:
    """What shows the writer's language: a button, a command's name and staff's words don't."""
    if message.kind is Kind.POSTBACK or message.kind in RELAYED:
        return ""
    return "" if message.text.startswith("/") and message.text.isascii() else message.text


def _code(language_code: str | None) -> str | None:
    """An app's language (`th`, `en-GB`) as a guess for somebody who has written no words yet."""
    return language_code[:2].lower() if language_code and language_code[:2].lower() in ("th", "en") else None
