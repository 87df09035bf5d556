"""The staff chat: what staff are told there, and what they answer by replying to it.

What goes there is a message of its own in the staff chat's conversation, and what staff answer one in the customer's:
so both keep their order, are sent once, survive a crash and keep to the platform's pace as any answer does.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import Any

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.tenants import LineChannel, Staff, Tenant
from gateway.batch import AMENDS
from gateway.channel_states import ChannelStates
from gateway.command_words import named
from gateway.errors import InboxUnavailable
from gateway.inbox.base import Inbox, Policy, event_of
from gateway.messages import Answer, InboundMessage, Kind
from gateway.moment import Delivery, Done, Moment
from gateway.rendering import literal
from gateway.texts import Tongue, text
from memory import keys

log = logging.getLogger(__name__)

KEPT_FOR = 7 * 86_400  # seconds in which a message in the staff chat can be replied to

GIVE_BACK, UNHEARD, TAKE = "give_back", "unheard", "take"  # in `extra` of a STAFF_REPLY without words
ON_PAGE = "on_page"  # in `extra` of one that comes from the admin page
# In the session's variables: until when a person has the conversation; that one was asked for and nobody could be told;
# that whoever has it reads it on the admin page, and need not be told.
UNTIL, WANTED, BY_PAGE = "human_until", "human_wanted", "human_on_page"


class Customer(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Whom a message in the staff chat is about, and where an answer to it goes."""

    channel: str
    platform: str
    user_id: str
    chat_id: str
    agent: str = "default"
    conversation_id: str = "main"
    thread_id: str | None = None
    business_id: str | None = None


_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(Customer).decode


def customer_of(message: InboundMessage) -> Customer:
    return Customer(
        channel=message.channel,
        platform=message.platform,
        user_id=message.user_id,
        chat_id=message.chat_id,
        agent=message.agent,
        conversation_id=message.conversation_id,
        thread_id=message.thread_id,
        business_id=message.business_id,
    )


def staff_tongue(tenant: Tenant) -> Tongue:
    """The shop's own language."""
    return "en" if tenant.language == "en" else "th"


class StaffDesk:
    """The settler of the staff chat's conversation. Without a client, as while Redis is away, staff are told all the
    same, but what they answer waits."""

    def __init__(self, inbox: Inbox, client: Redis | None, states: ChannelStates) -> None:
        self._inbox = inbox
        self._redis = client
        self._states = states

    async def settle(self, moment: Moment) -> Done | None:
        message = moment.last
        if message.kind is Kind.NOTICE:
            return Done(Answer(message.text), sent=lambda delivery: self._told(moment, delivery))
        ours = message.kind is not Kind.STAFF_REPLY and moment.tenant.is_staff_chat(message.channel, message.chat_id)
        return await self._heard(moment) if ours else None

    def reachable(self, tenant: Tenant) -> bool:
        """Whether a message to staff may be sent at all: on LINE it costs quota."""
        if tenant.staff is None:
            return False
        channel = tenant.channels.get(tenant.staff.channel)
        if not isinstance(channel, LineChannel):
            return channel is not None
        if channel.allow_push and not self._states.no_push(tenant.id, tenant.staff.channel):
            return True
        log.warning(
            "staff can't be told: no push is allowed or left",
            extra={"tenant": tenant.id, "channel": tenant.staff.channel},
        )
        return False

    async def tell(self, moment: Moment, markdown: str, *, about: Customer, event: str) -> None:
        """Puts it into the staff chat's conversation; with the same `event` again it is kept once."""
        staff = moment.tenant.staff
        assert staff is not None
        extra = {"about": msgspec.to_builtins(about)}
        await self._put(moment, _at(moment.tenant, staff), Kind.NOTICE, f"notice:{event}", markdown, extra)

    async def budget_spent(self, tenant: Tenant, span: str, period: str) -> None:
        """Tells staff that the language model's budget of a `day` or `month` is used up; of the same period once."""
        if tenant.staff is None or not self.reachable(tenant):
            return
        notice = InboundMessage(
            tenant=tenant.id,
            event_id=f"budget:{span}:{period}",
            kind=Kind.NOTICE,
            text=text(f"budget_{span}", staff_tongue(tenant)),
            received_at=time.time(),
            **msgspec.structs.asdict(_at(tenant, tenant.staff)),
        )
        await self._inbox.put([(notice, Policy(max_attempts=tenant.behaviour.max_attempts))])

    # -- the staff chat's conversation ---------------------------------------------------------------------------------

    async def _told(self, moment: Moment, delivery: Delivery) -> None:
        """Which customer each message in the staff chat is about. One that never arrived is told to the customer."""
        message = moment.last
        if "about" not in message.extra:  # about nobody: there is nothing to reply to
            return
        about = msgspec.convert(message.extra["about"], Customer)
        if not delivery.arrived:
            log.error("staff were not told", extra={"tenant": message.tenant, "channel": message.channel})
            await self._put(moment, about, Kind.STAFF_REPLY, f"unheard:{message.event_id}", "", {UNHEARD: True})
            return
        if self._redis is None:
            return
        try:
            for message_id in delivery.message_ids:
                await self._redis.set(_key(message, message_id), _encode(about), ex=KEPT_FOR)
        except (RedisError, OSError) as error:
            log.error("replies to this won't find the customer: %s", type(error).__name__)

    async def _heard(self, moment: Moment) -> Done:
        """Staff wrote something. What is no reply to the bot is none of its business."""
        told = [await self._heard_one(moment, message) for message in moment.messages]
        answers = [text(name, staff_tongue(moment.tenant)) for name in dict.fromkeys(told) if name]
        return Done(Answer("\n".join(answers)) if answers else None)

    async def _heard_one(self, moment: Moment, message: InboundMessage) -> str | None:
        """Passes a reply on; the name of the text to answer with, if there is anything to say."""
        replied = message.extra.get("quoted_message_id")
        if not replied or message.kind in AMENDS:
            return None
        if self._redis is None:
            raise InboxUnavailable("Redis is away")
        try:
            raw = await self._redis.get(_key(message, str(replied)))
        except (RedisError, OSError) as error:
            raise InboxUnavailable(f"Redis can't be reached: {type(error).__name__}") from error
        if raw is None:
            # LINE does not say whose message was quoted: it may have been a colleague's.
            return "staff_unknown" if message.mentioned and message.platform == "telegram" else None
        if message.kind is not Kind.TEXT or not message.text.strip():
            return "staff_words_only"
        event = f"staff:{event_of(message)}"
        if not message.text.startswith("/"):
            await self._put(moment, _decode(raw), Kind.STAFF_REPLY, event, message.text, {})
            return None
        if named(moment.tenant, message.text) != "bot":
            return None
        await self._put(moment, _decode(raw), Kind.STAFF_REPLY, event, "", {GIVE_BACK: True})
        return "staff_gave_back"

    async def _put(
        self, moment: Moment, to: Customer, kind: Kind, event_id: str, words: str, extra: dict[str, Any]
    ) -> None:
        message = InboundMessage(
            tenant=moment.tenant.id,
            event_id=event_id,
            kind=kind,
            text=words,
            extra=extra,
            received_at=moment.now.timestamp(),
            **msgspec.structs.asdict(to),
        )
        await self._inbox.put([(message, Policy(max_attempts=moment.tenant.behaviour.max_attempts))])


async def forget_customer(client: Redis, tenant: str, ids: Collection[str]) -> int:
    """Removes what leads from messages in the staff chat to these customers; how much that was. Looks at every key:
    people are seldom forgotten. Raises RedisError."""
    found = []
    async for key in client.scan_iter(match=f"{keys.shared('staff', tenant)}:*", count=1000):
        raw = await client.get(key)
        if raw is not None and _decode(raw).user_id in ids:
            found.append(key)
    for key in found:
        await client.delete(key)
    return len(found)


def undelivered(moment: Moment) -> str:
    """What staff are told of a reply that did not reach its customer."""
    return f"{text('staff_undelivered', staff_tongue(moment.tenant))}\n\n{literal(moment.last.text)}"


def _at(tenant: Tenant, staff: Staff) -> Customer:
    """The staff chat as a conversation, under the name that what is written there has."""
    platform = tenant.channels[staff.channel].platform
    alone = staff.chat.startswith("U") if platform == "line" else not staff.chat.startswith("-")
    user_id = f"{platform}:{staff.chat}" if alone else f"{platform}:group:{staff.chat}"
    return Customer(channel=staff.channel, platform=platform, user_id=user_id, chat_id=staff.chat)


def _key(message: InboundMessage, message_id: str) -> str:
    return keys.shared("staff", message.tenant, message.channel, message_id)
