"""What the bot has no answer to: noted among staff's tasks, told once in their chat, and listed for whoever writes the
shop's answers. The bot goes on meanwhile."""

from __future__ import annotations

import logging

from msgspec import structs
from redis.exceptions import RedisError

from gateway import record
from gateway.described import described
from gateway.messages import Answer
from gateway.moment import Moment
from gateway.rendering import literal
from gateway.responder import UNKNOWN
from gateway.staff_desk import WANTED, StaffDesk, customer_of, staff_tongue
from gateway.staff_tasks import Noted, StaffTasks
from gateway.texts import text
from memory.unanswered import UnansweredQuestions

log = logging.getLogger(__name__)


class AskStaff:
    """Without tasks, as while Redis is away, staff find the question in the list alone."""

    def __init__(self, desk: StaffDesk, tasks: StaffTasks | None, unanswered: UnansweredQuestions) -> None:
        self._desk = desk
        self._tasks = tasks
        self._unanswered = unanswered

    async def noted(self, moment: Moment, answer: Answer) -> Answer:
        """The answer, which says that staff will be asked, once they are. Done again it changes nothing."""
        if not answer.for_staff:
            return answer
        if answer.for_staff == UNKNOWN:
            self._listed(moment, answer)
        if WANTED in answer.sets:  # staff were told, as of what is asked while the shop is closed
            return answer
        if await self._task(moment) is Noted.NEW and self._desk.reachable(moment.tenant):
            await self._tell(moment)
        return structs.replace(answer, sets={**answer.sets, WANTED: True})

    def _listed(self, moment: Moment, answer: Answer) -> None:
        whose = record.owner(moment.ref, moment.messages)
        words = record.words(moment.messages)
        if whose is not None and words:
            self._unanswered.soon(
                moment.tenant.id, whose, words, moment.now, language=moment.language, near=answer.nearest
            )

    async def _task(self, moment: Moment) -> Noted | None:
        if self._tasks is None:
            return None
        try:
            noted = [await self._tasks.note(message) for message in moment.messages]
        except (RedisError, OSError) as error:
            log.warning("not noted for staff: %s", type(error).__name__, extra={"tenant": moment.tenant.id})
            return None
        return Noted.NEW if Noted.NEW in noted else Noted.MORE

    async def _tell(self, moment: Moment) -> None:
        tongue, message = staff_tongue(moment.tenant), moment.last
        name = message.sender_name or message.sender_id or message.user_id
        said = [f"{text('staff_customer', tongue)}: {literal(described(one))}" for one in moment.messages]
        parts = [
            f"**{text('staff_unknown_question', tongue)}**\n{text('staff_from', tongue)} {literal(name)} "
            f"({literal(message.channel)})",
            "\n".join(said),
            text("staff_how", tongue, word=moment.tenant.command("bot") or "bot"),
        ]
        event = f"unknown:{moment.source}"
        await self._desk.tell(moment, "\n\n".join(parts), about=customer_of(message), event=event)
