"""What happens around messages: people come and go, change what they said or take it back, quote, talk in groups."""

from __future__ import annotations

import logging

import msgspec
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.batch import AMENDS, Amendment, amended_ids, as_message, fold
from gateway.buttons import suggested_by
from gateway.dead_letters import DeadLetters
from gateway.described import described
from gateway.errors import InboxUnavailable
from gateway.inbox.base import Claim, event_of
from gateway.media import FILE
from gateway.members import Members
from gateway.messages import Answer, InboundMessage, Kind
from gateway.moment import Change, Done, Moment, unchanged
from gateway.per_tenant import PerTenant
from gateway.reach import Reach
from memory.errors import MemoryFault
from memory.keys import ConversationRef
from memory.memory_manager import MemoryManager
from memory.session import worth_saving
from processors.event_processor import EventProcessor
from processors.models import MemoryEvent
from processors.pii import masked

log = logging.getLogger(__name__)

START = "start"  # in the session's variables: what the link said by which the person came
_LONGEST_QUOTE = 1000  # characters


class Events:
    """Prepares a claim's messages before a turn thinks about them, and settles those that want no thinking. Doing both
    again has the same effect."""

    def __init__(
        self,
        manager: MemoryManager,
        processors: PerTenant[EventProcessor],
        reach: Reach | None,
        members: Members | None = None,
        letters: DeadLetters | None = None,
    ) -> None:
        self._manager = manager
        self._members = members
        self._letters = letters
        self._processors = processors
        self._reach = reach

    async def prepare(self, tenant: Tenant, claim: Claim, remembers: bool) -> tuple[list[InboundMessage], bool]:
        """The messages as they are to be answered (never none), and whether the stored session changed on the way.

        Edits and unsends of earlier messages are carried out. Raises MemoryFault when they can't be, and another try is
        left.
        """
        changed = False
        amendments: list[Amendment] = []
        if len(claim.messages) == 1 and (only := claim.messages[0]).kind not in AMENDS and not only.extra:
            messages = [only]  # nearly always
        else:
            messages, amendments = fold(claim.messages)
        for amendment in amendments:
            try:
                if amendment.edited is None:
                    await self._unbury(claim, amendment.message_id)
                known = remembers and await self._amend(tenant, claim.ref, amendment)
            except MemoryFault as error:
                if claim.attempts < claim.max_attempts:
                    raise
                log.error("a message could not be amended: %s", error, extra={"conversation": claim.conversation})
                known = True
            if known:
                changed = True
            elif amendment.edited is not None:  # it never reached us: then this is it
                messages.append(as_message(amendment.edited))
        always = tenant.behaviour.groups == "always"
        ready = []
        for message in messages:
            one = message
            if one.extra or always:  # else it quotes nothing, and speaks to the bot or not as it says itself
                one = await self._ready(claim.ref, one, always, remembers)
            if self._members is not None and one.sender_id is not None and one.mentioned and one.group:
                one = await self._members.named(tenant, one)
            ready.append(one)
        return ready or [claim.messages[-1]], changed

    async def settle(self, moment: Moment) -> Done | None:
        last = moment.last
        if last.kind in AMENDS and all(message.kind in AMENDS for message in moment.messages):
            return Done(None)
        where = last.tenant, last.channel, last.chat_id
        if last.kind is Kind.UNFOLLOW:
            if self._reach is not None:
                await self._reach.left(*where, last.received_at)
            return Done(None)
        if last.kind is Kind.FOLLOW:
            if self._reach is not None:
                await self._reach.back(*where)
            if last.platform == "telegram" and last.extra.get("unblocked"):
                return Done(None)  # a /start comes with it, and one welcome is enough
            welcome = Answer(moment.tenant.reply("welcome", moment.language), suggested_by(moment.agent))
            return Done(welcome, _started(last), silent=False)
        if not last.mentioned and last.group and not any(message.mentioned for message in moment.messages):
            return Done(None)  # the group talks among itself
        return None

    async def _unbury(self, claim: Claim, message_id: str) -> None:
        """What was taken back stands among the dead letters no longer. Raises InboxUnavailable, MemoryFault."""
        by = next(one for one in claim.messages if one.kind is Kind.UNSEND and message_id in amended_ids(one))
        if self._letters is None:
            return
        line = await self._manager.said(claim.ref, message_id)
        try:
            await self._letters.take_back(by, message_id, line["message"] if line else None)
        except (RedisError, OSError) as error:
            raise InboxUnavailable(f"Redis can't be reached: {type(error).__name__}") from error

    async def _amend(self, tenant: Tenant, ref: ConversationRef, amendment: Amendment) -> bool:
        """Whether the message was known. An edit's meaning is found by rules: nobody waits for an answer to it."""
        edited = amendment.edited
        if edited is None:
            said = await self._manager.said(ref, amendment.message_id)
            if said and isinstance(file := (said.get("metadata") or {}).get(FILE), str):
                await self._manager.media.remove(ref.tenant, ref.user, file)
            return await self._manager.retract(ref, amendment.message_id) is not None
        line = await self._manager.said(ref, amendment.message_id)
        if line is None or line.get("message_id") == event_of(edited):
            return False
        words = masked(described(as_message(edited)), tenant.privacy.mask)
        event: MemoryEvent | None = None
        if words and "message_id" in line:
            event = await self._processors.of(tenant).analyze_message(words, event_id=line["message_id"], ask=False)
        if event is not None and not worth_saving(event, tenant.memory.importance_threshold):
            event = None
        await self._manager.correct(ref, amendment.message_id, words, event)
        return True

    async def _ready(
        self, ref: ConversationRef, message: InboundMessage, always: bool, remembers: bool
    ) -> InboundMessage:
        """With what it quotes, and whether a group's message speaks to the bot."""
        extra, mentioned = message.extra, message.mentioned or (always and message.group)
        quoted = extra.get("quoted_message_id")
        if isinstance(quoted, str) and remembers and ("quoted_text" not in extra or not mentioned):
            try:
                line = await self._manager.said(ref, quoted)
            except MemoryFault as error:
                log.warning("a quote is not found: %s", error, extra={"tenant": ref.tenant})
                line = None
            if line is not None:
                extra = {"quoted_text": line["message"][:_LONGEST_QUOTE], **extra}
                mentioned = mentioned or line["role"] == "bot"
        if extra is message.extra and mentioned == message.mentioned:
            return message
        return msgspec.structs.replace(message, extra=extra, mentioned=mentioned)


def _started(message: InboundMessage) -> Change:
    """Keeps what came with /start."""
    payload = message.extra.get("start")
    if not isinstance(payload, str):
        return unchanged
    return lambda session: session.model_copy(update={"variables": {**session.variables, START: payload}})
