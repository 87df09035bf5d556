"""One turn, in the order of the data: who is it, session, what do we know, reply (and classify beside it), send,
remember, done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from config.tenants import Agent, Tenant
from gateway import outbox as outboxes
from gateway.adapters.base import Sender
from gateway.channel_states import ChannelStates
from gateway.errors import SendFault
from gateway.inbox.base import Claim, Inbox, Outcome, SessionWrite, event_of
from gateway.messages import Answer, InboundMessage, Kind, Target, target_of
from gateway.moment import Change, Done, Moment, Settler, unchanged
from gateway.outbox import ClaimLost, Courier, Outbox
from gateway.pacing import limits_for
from gateway.per_tenant import PerTenant
from gateway.responder import Question, Responder, access_of, described
from gateway.texts import Tongue, text
from memory import context
from memory.errors import MemoryFault
from memory.memory_manager import MemoryManager
from memory.models import LongTermMemory, Message, ShortTermMemory
from memory.session import append, note_event, worth_saving
from memory.short_term import codec, lua
from processors.event_processor import EventProcessor
from processors.language import answer_language
from processors.models import MemoryEvent, iso

log = logging.getLogger(__name__)

CLASSIFY_AFTER = 10.0  # seconds a finished answer waits for its message's classification
TYPING_AFTER = 0.5  # seconds before the typing sign shows: instant answers need none
TYPING_EVERY = 4.5  # seconds: Telegram's sign lasts five


class UnknownTenant(Exception):
    """The conversation's tenant or channel is not configured (any more)."""


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
        settlers: Sequence[Settler],
        manager: MemoryManager,
        enable_memory: bool = True,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._tenant_of = tenant_of
        self._inbox = inbox
        self._senders = senders
        self._courier = Courier(inbox, senders, states, lambda: clock().timestamp())
        self._responder = responder
        self._processors = processors
        self._settlers = settlers
        self._manager = manager
        self._openings = manager.openings
        self._longterm = manager.longterm
        self._transcripts = manager.transcripts
        self._remember = manager.remember
        self._enable_memory = enable_memory
        self._clock = clock

    async def __call__(self, claim: Claim) -> None:
        tenant, agent = self._who(claim)
        now = self._clock()
        remembers = self._enable_memory and agent.conversation_memory
        stored = await self._stored(claim) if remembers else None
        session = await self._openings.open_session(claim.ref, stored, now)
        language = self._language(tenant, claim.messages, session)
        moment = Moment(tenant, agent, claim.ref, claim.messages, session, language, now)
        classifying = asyncio.create_task(self._classify(moment))
        acknowledging = asyncio.create_task(self._acknowledge(moment))
        try:
            outbox = outboxes.decode(claim.outbox) if claim.outbox else None
            done = await self._settled(moment)
            dead = None
            if claim.attempts > claim.max_attempts:
                dead = f"gave up after {claim.max_attempts} tries: {claim.failure or 'the worker died each time'}"
                outbox = outbox or await self._apologise(claim, moment)
            else:
                if outbox is None:
                    answer = done.answer if done else await self._answer(moment)
                    outbox = self._courier.pack(tenant, target_of(moment.last), answer or Answer(""))
                dead = await self._courier.deliver(claim, tenant, outbox)
            event = await self._event(claim, moment, classifying, outbox)
            await acknowledging
        finally:
            classifying.cancel()
            acknowledging.cancel()
        if not remembers:
            await self._inbox.finish(claim, None, dead)
            return
        said = [] if done and done.silent else self._said(claim, outbox, now)
        await self._keep(claim, tenant, said, event)
        change = done.change if done else unchanged
        await self._finish(claim, tenant, session, stored.rev if stored else 0, said, event, change, dead)

    async def _stored(self, claim: Claim) -> ShortTermMemory | None:
        """The session that came with the claim."""
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
        if tenant is None or agent is None or (first.channel not in tenant.channels and first.platform != "terminal"):
            raise UnknownTenant(f"{first.tenant}/{first.channel}/{first.agent} is not configured")
        return tenant, agent

    def _language(self, tenant: Tenant, messages: Sequence[InboundMessage], session: ShortTermMemory) -> Tongue:
        """The shop's, else the one the customer chose, else that of what they wrote last."""
        chosen = session.variables.get("language")
        previous: Any = session.variables.get("preferred_language") or _code(messages[-1].language_code)
        written = chosen or answer_language(
            "\n".join(m.text for m in messages if m.kind is not Kind.POSTBACK), previous
        )
        return "en" if tenant.speaks(written) == "en" else "th"

    async def _answer(self, moment: Moment) -> Answer:
        tenant, last = moment.tenant, moment.last
        if moment.now.timestamp() - last.received_at > tenant.behaviour.stale_after:
            return Answer(text("stale", moment.language))
        if last.kind is Kind.FOLLOW:
            return Answer(tenant.reply("welcome", moment.language))
        memory = await self._known(moment)
        question = Question(
            tenant=tenant,
            agent=moment.agent,
            messages=moment.messages,
            language=moment.language,
            context=context.build(moment.session, memory, max_recent_messages=2 * tenant.memory.max_turns),
            now=moment.now,
        )
        thinking = asyncio.create_task(self._think(tenant, target_of(last)))
        try:
            return await self._responder.answer(question)
        finally:
            thinking.cancel()

    async def _known(self, moment: Moment) -> LongTermMemory | None:
        try:
            return await self._longterm.load(moment.ref.tenant, moment.ref.user)
        except MemoryFault as error:
            log.error("answering without long-term memory: %s", error, extra={"tenant": moment.tenant.id})
            return None

    async def _think(self, tenant: Tenant, target: Target) -> None:
        await asyncio.sleep(TYPING_AFTER)
        limits = limits_for(target)
        while True:
            if await self._inbox.may_pass(limits):
                await self._senders[target.platform].typing(tenant, target)
            await asyncio.sleep(TYPING_EVERY)

    async def _classify(self, moment: Moment) -> MemoryEvent | None:
        words = _words(moment.messages)
        if not words:
            return None
        access = access_of(moment.tenant, moment.agent)
        session = moment.session
        return await self._processors.of(moment.tenant).analyze_message(
            words,
            {"last_intent": session.last_intent, "recent": [line["message"][:300] for line in session.history[-4:]]},
            event_id=event_of(moment.messages[0]),
            timestamp=moment.now,
            access=access,
            ask=access.api_key is not None and moment.tenant.understanding.policy != "never",
        )

    async def _event(
        self, claim: Claim, moment: Moment, classifying: asyncio.Task[MemoryEvent | None], outbox: Outbox
    ) -> MemoryEvent | None:
        """The classification: nearly always ready by now. While it isn't, what was sent is on record."""
        if not classifying.done():
            await self._courier.mark_sent(claim, outbox)
            await asyncio.wait({classifying}, timeout=CLASSIFY_AFTER)
        if classifying.done():
            return classifying.result()
        return await self._processors.of(moment.tenant).analyze_message(
            _words(moment.messages), event_id=event_of(moment.messages[0]), timestamp=moment.now, ask=False
        )

    async def _apologise(self, claim: Claim, moment: Moment) -> Outbox:
        """Nothing worked and nothing was sent: the customer hears that, once."""
        answer = Answer(moment.tenant.reply("error", moment.language))
        outbox = self._courier.pack(moment.tenant, target_of(moment.last), answer)
        try:
            await self._courier.deliver(claim, moment.tenant, outbox)
        except SendFault as error:
            log.warning("no apology: %s", type(error).__name__, extra={"conversation": claim.conversation})
        return outbox

    def _said(self, claim: Claim, outbox: Outbox, now: datetime) -> list[Message]:
        said: list[Message] = []
        for message in claim.messages:
            line: Message = {
                "role": "user",
                "message": described(message),
                "timestamp": iso(datetime.fromtimestamp(message.received_at, UTC)),
                "message_id": event_of(message),
            }
            if line["message"] and message.kind is not Kind.FOLLOW:
                said.append(line)
        if outbox.answer.text and (outbox.delivered or outbox.over):
            said.append(
                {
                    "role": "bot",
                    "message": outbox.answer.text,
                    "timestamp": iso(now),
                    "message_id": f"re:{event_of(claim.messages[-1])}",
                }
            )
        return said

    async def _keep(self, claim: Claim, tenant: Tenant, said: Sequence[Message], event: MemoryEvent | None) -> None:
        """On disk before the messages leave the inbox. A disk that fails does not hold up the conversation."""
        ref = claim.ref
        keeping: list[Any] = [self._transcripts.append(ref, said)]
        if event is not None and worth_saving(event, tenant.memory.importance_threshold):
            keeping.append(self._remember.save(ref.tenant, ref.user, [event]))
        for result in await asyncio.gather(*keeping, return_exceptions=True):
            if isinstance(result, MemoryFault):
                log.error("not written: %s", result, extra={"conversation": claim.conversation})
            elif isinstance(result, BaseException):
                raise result

    async def _finish(
        self,
        claim: Claim,
        tenant: Tenant,
        session: ShortTermMemory,
        rev: int,
        said: Sequence[Message],
        event: MemoryEvent | None,
        change: Change,
        dead: str | None,
    ) -> None:
        """Session and end of the turn in one step. When somebody else wrote the session meanwhile, ours goes on top."""
        ttl = tenant.memory.sm_ttl
        for _ in range(5):
            now = self._clock()
            session = append(change(session), said, max_messages=2 * tenant.memory.max_turns, now=now, ttl=ttl)
            if event is not None:
                session = note_event(session, event)
            write = SessionWrite(
                value=codec.encode(session, rev + 1),
                rev=rev,
                ttl_ms=codec.ttl_ms(ttl),
                member=lua.member(claim.ref),
                score=lua.score(session),
            )
            outcome, stored = await self._inbox.finish(claim, write, dead)
            if outcome is Outcome.DONE:
                await self._manager.sessions.used(claim.ref)
                return
            if outcome is Outcome.LOST:
                raise ClaimLost(claim.conversation)
            other = codec.decode(stored) if stored else None
            rev = other.rev if other else 0
            session = await self._openings.open_session(claim.ref, other, now)
        raise MemoryFault("the session was changed by somebody else at every try")


def _words(messages: Sequence[InboundMessage]) -> str:
    """What is to be understood: commands and new contacts say nothing."""
    return "\n".join(described(m) for m in messages if m.kind is not Kind.FOLLOW and not m.text.startswith("/"))


def _code(language_code: str | None) -> str | None:
    """An app's language (`th`, `en-GB`) as a guess for somebody who has written no words yet."""
    return language_code[:2].lower() if language_code and language_code[:2].lower() in ("th", "en") else None
