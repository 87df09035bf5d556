"""The turn of one recipient, and what a customer says to news: no more of it, or again.

A recipient's message is a message in their own conversation: so it keeps its order with their talk, is sent once,
survives a crash and keeps to the platform's pace and quota as any answer does. Right before it is sent everything is
looked at again: it may have waited.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from config.broadcasts import FollowUp, quiet
from config.tenants import LineChannel, Tenant
from config.texts import Text
from gateway.audit import AuditLog
from gateway.blocked import OptedOut
from gateway.broadcasts.desk import FOLLOW_UP, said_to
from gateway.broadcasts.draft import Draft
from gateway.broadcasts.store import Broadcast, BroadcastStore, Fate, Recipient
from gateway.buttons import buttons_of
from gateway.channel_states import ChannelStates
from gateway.command_words import named
from gateway.inbox.base import event_of
from gateway.messages import Answer, Kind, QuickReply
from gateway.moment import Change, Delivery, Done, Moment, unchanged
from gateway.reach import Reach
from gateway.takeover import in_hand
from gateway.texts import Tongue, text
from memory.canonical import all_ids
from memory.errors import MemoryFault
from memory.memory_manager import MemoryManager
from memory.models import Message, ShortTermMemory
from memory.session import append
from processors.models import iso
from processors.normalise import normalise

log = logging.getLogger(__name__)

BROADCAST, USER, TRY = "broadcast", "user", "try"  # in `extra` of a recipient's message
NO_QUOTA = "LINE's monthly quota is used up: resume it when there is quota again"

# Said alone: in a longer message these words mean something else.
_STOP = frozenset(
    {
        *("หยุด", "หยุดส่ง", "หยุดส่งข้อความ", "หยุดส่งข่าวสาร", "หยุดรับข่าวสาร", "ไม่รับข่าวสาร", "ไม่รับโปรโมชั่น", "เลิกส่ง"),
        *("ยกเลิกรับข่าวสาร", "ยกเลิกการรับข่าวสาร", "ยกเลิกข่าวสาร", "ไม่ต้องส่งมาอีก", "ไม่ต้องส่งมาแล้ว", "ไม่เอาข่าวสาร"),
        *("stop", "unsubscribe", "opt out", "optout", "stop messages", "stop news", "no more messages", "no news"),
    }
)
_AGAIN = frozenset(
    {*("รับข่าวสาร", "รับข่าวสารอีก", "ขอรับข่าวสาร", "สมัครรับข่าวสาร"), *("subscribe", "opt in", "optin", "send news")}
)
_LONGEST = 40  # characters of what may be one of these
_POLITE = ("ค่ะ", "คะ", "ครับ", "คับ", "นะ", "น่ะ", "please")


class Deliveries:
    """A settler. Settling again has the same effect."""

    def __init__(
        self,
        store: BroadcastStore,
        manager: MemoryManager,
        states: ChannelStates,
        reach: Reach | None,
        opted_out: OptedOut,
        audit: AuditLog,
    ) -> None:
        self._store = store
        self._manager = manager
        self._states = states
        self._reach = reach
        self._opted_out = opted_out
        self._audit = audit

    async def settle(self, moment: Moment) -> Done | None:
        message = moment.last
        if message.kind is Kind.NOTICE and BROADCAST in message.extra:
            return await self._deliver(moment)
        alone = len(moment.messages) == 1 and message.kind in (Kind.TEXT, Kind.POSTBACK)
        if not alone or len(message.text) > _LONGEST:
            return None
        said = _plain(message.text)
        if (said not in _STOP and said not in _AGAIN) or (
            message.text.startswith("/") and named(moment.tenant, message.text)
        ):
            return None
        if message.group or moment.tenant.is_staff_chat(message.channel, message.chat_id):
            return None
        return await self._choose(moment, out=said in _STOP)

    # -- what a customer wants -----------------------------------------------------------------------------------------

    async def _choose(self, moment: Moment, *, out: bool) -> Done:
        tenant, user = moment.tenant.id, moment.ref.user
        ids = {user, moment.last.user_id, *await all_ids(self._manager.longterm, tenant, user)}
        await asyncio.to_thread(self._opted_out.block if out else self._opted_out.unblock, tenant, ids)
        by = "no more news" if out else "news again"
        await asyncio.to_thread(self._audit.note, tenant, moment.now, "customer", "change", by, user=user)
        return Done(Answer(text("news_stopped" if out else "news_again", moment.language)))

    # -- one recipient -------------------------------------------------------------------------------------------------

    async def _deliver(self, moment: Moment) -> Done:
        tenant, about = moment.tenant, moment.last.extra
        one = await asyncio.to_thread(self._store.recipient, tenant.id, about[BROADCAST], about[USER])
        if one is None or one.fate != "queued" or one.tries != about[TRY]:
            return Done(None)  # forgotten meanwhile, or settled by an earlier try of this turn
        broadcast = await asyncio.to_thread(self._store.get, tenant.id, one.broadcast)
        if broadcast is None:
            return Done(None)
        rule = rule_of(tenant, broadcast)
        fate, why = await self._instead(moment, one, broadcast, rule)
        if fate is not None:
            return Done(None, sent=lambda delivery: self._settled(moment, one, delivery, fate, why, None), spare=True)
        message, buttons = content_of(broadcast, rule)
        # As the preview had it: a session that goes on may not know yet what was told in it.
        said = said_to(tenant, message, moment.language, moment.last.sender_name or "", moment.now)
        line: Message = {
            "role": "bot",
            "message": said,
            "timestamp": iso(moment.now),
            "message_id": f"re:{event_of(moment.last)}",
            "metadata": {BROADCAST: one.broadcast},
        }
        arrived: list[Message] = []

        async def sent(delivery: Delivery) -> None:
            if delivery.arrived or delivery.promised:
                arrived.append(line)
            await self._settled(moment, one, delivery, None, "", line)

        answer = Answer(said, (*buttons_of(buttons), _stop_button(moment.language)), by_shop=True)
        talking = any(line["role"] == "user" for line in moment.session.history)
        return Done(answer, _adding(moment, arrived) if talking else unchanged, sent=sent, spare=True)

    async def _instead(
        self, moment: Moment, one: Recipient, broadcast: Broadcast, rule: FollowUp | None
    ) -> tuple[Fate | None, str]:
        """What becomes of it where it is not to be sent now."""
        tenant, to = moment.tenant, moment.last
        ids = {one.user, to.user_id, moment.ref.user}
        if broadcast.state == "cancelled" or (broadcast.kind == "follow_up" and rule is None):
            return "left_out", "cancelled"
        if ids & await asyncio.to_thread(self._opted_out.of, tenant.id):
            return "left_out", "opted_out"
        if in_hand(moment.session, moment.now):
            return "left_out", "with_staff"
        if rule is not None and any(line["role"] == "user" for line in moment.session.history):
            return "left_out", "wrote_again"
        if self._reach is not None and await self._reach.gone(tenant.id, to.channel, to.chat_id, one.heard):
            return "left_out", "gone"
        channel = tenant.channels.get(to.channel)
        if isinstance(channel, LineChannel) and not channel.allow_push:
            return "left_out", "no_push"
        no_quota = self._states.no_push(tenant.id, to.channel)
        if no_quota:
            await self._stop(moment, broadcast)
        if no_quota or broadcast.state != "running" or quiet(tenant, moment.now):
            return "waiting", ""
        return None, ""

    async def _settled(
        self, moment: Moment, one: Recipient, delivery: Delivery, fate: Fate | None, why: str, line: Message | None
    ) -> None:
        """Writes down what became of it. Of a try that was broken off the message may have arrived all the same."""
        tenant, to = moment.tenant.id, moment.last
        if delivery.arrived or delivery.promised:
            fate, why = "sent", ""
        elif fate is None and self._states.no_push(tenant, to.channel):
            fate, why = "waiting", ""
            broadcast = await asyncio.to_thread(self._store.get, tenant, one.broadcast)
            if broadcast is not None:
                await self._stop(moment, broadcast)
        elif fate is None:
            gone = self._reach is not None and await self._reach.gone(tenant, to.channel, to.chat_id, one.heard)
            fate, why = ("left_out", "gone") if gone else ("failed", "not_delivered")
        await asyncio.to_thread(self._store.settle, tenant, one, fate, why)
        if fate == "sent" and line is not None:
            await self._write_down(moment, line)

    async def _stop(self, moment: Moment, broadcast: Broadcast) -> None:
        """No push is left. What goes out by itself waits for the next month by itself."""
        tenant = moment.tenant.id
        if broadcast.kind == "once":
            await asyncio.to_thread(self._store.stop, tenant, broadcast.id, NO_QUOTA, moment.now)

    async def _write_down(self, moment: Moment, line: Message) -> None:
        """In the transcript, from which the next session is told what was said; no session is begun by it."""
        try:
            if not await self._manager.forgotten(moment.ref, moment.now):
                await self._manager.transcripts.append(moment.ref, [line])
        except MemoryFault as error:
            log.error("not written: %s", error, extra={"tenant": moment.ref.tenant})


def rule_of(tenant: Tenant, broadcast: Broadcast) -> FollowUp | None:
    """The rule of a follow-up, as the tenant's file has it now."""
    if broadcast.kind != "follow_up":
        return None
    return tenant.broadcasts.follow_ups.get(broadcast.id.removeprefix(FOLLOW_UP))


def content_of(broadcast: Broadcast, rule: FollowUp | None) -> tuple[Text, Sequence[str]]:
    """The message and its buttons."""
    if rule is not None:
        return rule.message, rule.buttons
    draft = Draft.model_validate_json(broadcast.draft)
    return draft.message, draft.buttons


def _adding(moment: Moment, arrived: Sequence[Message]) -> Change:
    """A talk that goes on has it in its history."""

    def change(session: ShortTermMemory) -> ShortTermMemory:
        own = moment.tenant.memory
        return append(session, arrived, max_messages=2 * own.max_turns, now=moment.now, ttl=own.sm_ttl)

    return change


def _stop_button(language: Tongue) -> QuickReply:
    return QuickReply(text("news_stop", language), text("news_stop_said", language))


def _plain(said: str) -> str:
    plain = normalise(said).strip(" .!…/")
    for ending in _POLITE:
        plain = plain.removesuffix(ending).strip()
    return plain
