"""What a customer hears while the shop is closed: its own answers as always; whatever needs a person is noted for staff
with a promise, and once a conversation the shop's word that it is closed."""

from __future__ import annotations

import logging

from msgspec import structs
from redis.exceptions import RedisError

from gateway.described import described
from gateway.messages import Answer
from gateway.moment import Moment
from gateway.opening import opens_at
from gateway.rendering import literal
from gateway.responder import Question, Responder
from gateway.staff_desk import WANTED, StaffDesk, customer_of, staff_tongue
from gateway.staff_tasks import Noted, StaffTasks
from gateway.texts import text
from processors.models import EventType

log = logging.getLogger(__name__)

TOLD = "closed_until"  # in the session's variables: until when the customer knows the shop to be closed
_FOR_STAFF = (EventType.COMPLAINT, EventType.TRANSACTION, EventType.REQUEST)


class AfterHours:
    """Without tasks, as while Redis is away, nothing is promised."""

    def __init__(self, responder: Responder, desk: StaffDesk, tasks: StaffTasks | None) -> None:
        self._responder = responder
        self._desk = desk
        self._tasks = tasks

    async def answer(self, moment: Moment, question: Question) -> Answer:
        """For a shop that is closed at the moment."""
        own, _ = await self._responder.own(question)
        if own is not None:
            return own
        shop_only = moment.tenant.behaviour.when_closed == "shop_only"
        answer = await self._responder.answer(question)
        if answer.by_shop:
            return answer
        event = await self._responder.meant(question)
        if shop_only:
            wanted = event.event_type is not EventType.GENERIC_EVENT or not question.text
        else:
            wanted = event.event_type in _FOR_STAFF
        noted = await self.note(moment) if wanted else None
        said = [self._promise(moment, noted)] if shop_only and noted else [answer.text]
        if noted is Noted.NEW and not shop_only:
            said.append(self._promise(moment, noted))
        if noted:
            answer = structs.replace(answer, sets={**answer.sets, WANTED: True})
        until = self._until(moment)
        if (shop_only or moment.tenant.replies.out_of_hours) and moment.session.variables.get(TOLD) != until:
            word = moment.tenant.reply("out_of_hours", moment.language)
            said.insert(0 if shop_only else len(said), word)
            answer = structs.replace(answer, sets={**answer.sets, TOLD: until})
        return structs.replace(answer, text="\n\n".join(said))

    async def note(self, moment: Moment) -> Noted | None:
        """Staff find it among their tasks, and are told once in their chat. None: it could not be noted."""
        if self._tasks is None:
            return None
        try:
            noted = [await self._tasks.note(message) for message in moment.messages]
        except (RedisError, OSError) as error:
            log.warning("not noted for staff: %s", type(error).__name__, extra={"tenant": moment.tenant.id})
            return None
        if Noted.NEW not in noted:
            return Noted.MORE
        if self._desk.reachable(moment.tenant):
            await self._tell(moment)
        return Noted.NEW

    async def answered(self, moment: Moment) -> None:
        """A person of the shop has answered this conversation."""
        if self._tasks is None:
            return
        try:
            await self._tasks.answered(moment.last)
        except (RedisError, OSError) as error:
            log.warning("a task stays open: %s", type(error).__name__, extra={"tenant": moment.tenant.id})

    async def _tell(self, moment: Moment) -> None:
        tongue, message = staff_tongue(moment.tenant), moment.last
        name = message.sender_name or message.sender_id or message.user_id
        said = [f"{text('staff_customer', tongue)}: {literal(described(one))}" for one in moment.messages]
        parts = [
            f"**{text('staff_after_hours', tongue)}**\n{text('staff_from', tongue)} {literal(name)} "
            f"({literal(message.channel)})",
            "\n".join(said),
            text("staff_how", tongue, word=moment.tenant.command("bot") or "bot"),
        ]
        event = f"after-hours:{moment.source}"
        await self._desk.tell(moment, "\n\n".join(parts), about=customer_of(message), event=event)

    def _promise(self, moment: Moment, noted: Noted) -> str:
        if noted is Noted.MORE:
            return text("after_hours_more", moment.language)
        when = opens_at(moment.tenant, moment.now, moment.language)
        return text("after_hours_when", moment.language, when=when) if when else text("after_hours", moment.language)

    def _until(self, moment: Moment) -> str:
        opens = moment.tenant.times.opens(moment.now) if moment.tenant.times else None
        return opens.isoformat() if opens else "?"
