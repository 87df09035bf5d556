"""A person of the shop takes a conversation over from the bot, and gives it back: the customer's side.

Meanwhile the session's `state` is `human`, and `variables.human_until` says until when: staff's words prolong it.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from gateway.after_hours import AfterHours
from gateway.command_words import named
from gateway.described import described
from gateway.messages import Answer, Kind
from gateway.moment import Change, Done, Moment
from gateway.per_tenant import PerTenant
from gateway.rating import asked_for
from gateway.rendering import literal
from gateway.responder import Responder
from gateway.staff_desk import (
    BY_PAGE,
    GIVE_BACK,
    ON_PAGE,
    TAKE,
    UNHEARD,
    UNTIL,
    WANTED,
    StaffDesk,
    customer_of,
    staff_tongue,
    undelivered,
)
from gateway.texts import Tongue, text
from memory.models import ShortTermMemory
from processors.event_processor import EventProcessor
from processors.models import Band, EventType, iso
from processors.normalise import normalise
from processors.sought import Sought

CONTEXT_LINES, LINE_CHARACTERS = 6, 300  # of what was said before, for staff
_LONGEST_WISH = 100  # characters: a longer message wants something else as well

_PERSON = r"(?:คุณ)?(?:พนักงาน|แอดมิน|เจ้าหน้าที่|เจ้าของร้าน|ผู้จัดการ|ทีมงาน|คนจริง|คนขาย|มนุษย์|คน(?!ที่|อื่น|ละ)|admin|staff)"
_TO = r"(?:to|with) (?:an? |the |your |some )?(?:real |live |actual |human )*"
_HUMAN = r"(?:human(?! resources)|person|agent|staff|someone|somebody|representative|operator|admin|manager)\b"
_BOT = r"(?:บอท|บอต|หุ่นยนต์|ระบบอัตโนมัติ|ai\b|เอไอ)"
# Refusing the bot is a wish for a person.
_NO_BOT = (
    rf"ไม่(?:อยาก|เอา|ต้องการ|ขอ)(?:คุย|พูด|ถาม)?(?:กับ)?{_BOT}"
    r"|\b(?:don't|dont|do not) (?:want|like)(?: (?:to (?:talk|speak|chat)|talking|speaking|chatting) (?:to|with))?"
    r" (?:a |an |the |this )?(?:bot|robot|machine|ai)s?\b"
)
_WISH = Sought(
    rf"{_NO_BOT}|ขอ(?:คุณ)?(?:พนักงาน|แอดมิน|เจ้าหน้าที่|เจ้าของร้าน|ผู้จัดการ|คนจริง|มนุษย์|admin)\S{{0,4}}?\s?(?:หน่อย|ที|ด้วย|ตอบ|คุย|มา)|"
    rf"(?:ขอ|อยาก|ต้องการ|รบกวน|ช่วย)\S{{0,8}}?\s?(?:คุย|พูด|สนทนา|ปรึกษา|ติดต่อ|แชท|แชต|สาย|เรียก|ตาม)\s?(?:กับ|หา)?\s?{_PERSON}"
    rf"|^(?:คุย|พูด|ติดต่อ|เรียก|ตาม)\s?(?:กับ)?\s?{_PERSON}"
    rf"|มี{_PERSON}(?:มา)?(?:ตอบ|คุย)\S{{0,4}}ไหม"
    rf"|\b(?:talk|speak|chat)(?:ing)? {_TO}{_HUMAN}"
    rf"|\b(?:connect|transfer|put) me (?:through )?{_TO}{_HUMAN}"
    r"|\b(?:get|call|want|need) (?:me )?an? (?:real |live )*(?:real person|human(?! resources)|agent|representative)\b"
)
_REFUSED = Sought(_NO_BOT)
_ALONE = Sought(
    rf"^(?:(?:ขอ)?{_PERSON}\s?(?:หน่อย)?\s?(?:ค่ะ|คะ|ครับ|คับ|นะคะ)?"
    r"|(?:a |real |live )*(?:human|real person|live agent|human agent)(?: please)?)\Z",
    other_spaces=True,
)
# Asked about, refused, or told of: no wish.
_NO_WISH = re.compile(
    r"ที่ไหน|ตรงไหน|ยังไง|เบอร์|กี่โมง|เมื่อไหร่|วันไหน|เมื่อวาน|เมื่อกี้|ไม่(?:ต้อง|อยาก|ขอ|เอา)|แล้ว(?:ค่ะ|ครับ|นะ|$)"
    r"|\b(?:when|where|don't|do not|dont|not|never|no need|yesterday|already|without)\b"
)


def wants_a_person(said: str) -> bool:
    """Whether a message asks for a person in plain words: only where it can hardly mean anything else."""
    if len(said) > _LONGEST_WISH:
        return False
    plain = normalise(said)
    found = _WISH.search(plain) is not None or _ALONE.is_in(plain.strip(" .!…"), plain)
    return found and not _NO_WISH.search(_REFUSED.sub("", plain))


def in_hand(session: ShortTermMemory, now: datetime) -> bool:
    """Whether a person has the conversation."""
    if session.state != "human":
        return False
    try:
        return now < datetime.fromisoformat(str(session.variables.get(UNTIL)))
    except (ValueError, TypeError):
        return False


class Takeover:
    """Comes before whatever answers."""

    def __init__(
        self,
        desk: StaffDesk,
        processors: PerTenant[EventProcessor],
        responder: Responder,
        after_hours: AfterHours,
    ) -> None:
        self._desk = desk
        self._after_hours = after_hours
        self._processors = processors
        self._responder = responder

    async def settle(self, moment: Moment) -> Done | None:
        message = moment.last
        if message.kind is Kind.STAFF_REPLY:
            return self._from_staff(moment)
        held = in_hand(moment.session, moment.now)
        if message.kind is Kind.TEXT and message.text.startswith("/"):
            command = named(moment.tenant, message.text)
            if command == "human":
                return await self._asked(moment, held)
            return await self._back(moment, held) if command == "bot" else None
        if message.kind is Kind.FOLLOW:
            return None
        if held:
            return await self._forward(moment, None)
        wish = next((one.text for one in moment.messages if one.kind is Kind.TEXT and wants_a_person(one.text)), None)
        # A shop without a staff chat may have written down how else its people can be reached.
        if wish and (moment.tenant.staff or not self._responder.knows(moment.tenant, wish)):
            return await self._asked(moment, held)
        if moment.tenant.staff is not None and moment.tenant.is_open(moment.now) and await self._grave(moment):
            return await self._begin(moment, "staff_complaint", "human_for_complaint")
        return None

    async def _grave(self, moment: Moment) -> bool:
        words = "\n".join(one.text for one in moment.messages if one.kind is Kind.TEXT)
        if not words:
            return False
        event = await self._processors.of(moment.tenant).analyze_message(words, ask=False)
        return event.event_type is EventType.COMPLAINT and event.band is Band.CRITICAL

    async def _asked(self, moment: Moment, held: bool) -> Done:
        if held:
            return await self._forward(moment, Answer(text("human_already", moment.language)))
        if not moment.tenant.is_open(moment.now):
            return await self._when_open(moment)
        return await self._begin(moment, "staff_asked_for", "human_coming")

    async def _when_open(self, moment: Moment) -> Done:
        """Nobody is there: it is noted for staff, and the bot goes on until one of them writes."""
        noted = await self._after_hours.note(moment)
        return Done(Answer(text("human_when_open" if noted else "human_noted", moment.language)), _wanted, silent=False)

    async def _begin(self, moment: Moment, why: str, promise: str) -> Done:
        tongue = staff_tongue(moment.tenant)
        before = [*moment.session.carried, *moment.session.history][-CONTEXT_LINES:]
        lines = [_line(tongue, _speaker(one), one["message"][:LINE_CHARACTERS]) for one in before if one["message"]]
        parts = [
            f"**{text(why, tongue)}**\n{_from(moment, tongue)}",
            "\n".join([*lines, *_said(moment, tongue)]),
            text("staff_how", tongue, word=moment.tenant.command("bot") or "bot"),
        ]
        if not await self._tell(moment, "\n\n".join(parts)):
            return Done(Answer(text("human_noted", moment.language)), _wanted, silent=False)
        return Done(Answer(text(promise, moment.language)), _taken(moment), silent=False)

    async def _forward(self, moment: Moment, answer: Answer | None) -> Done:
        if BY_PAGE in moment.session.variables:
            return Done(answer, silent=False)
        tongue = staff_tongue(moment.tenant)
        if await self._tell(moment, "\n".join([_from(moment, tongue), *_said(moment, tongue)])):
            return Done(answer, silent=False)
        return _unheard(moment)

    async def _back(self, moment: Moment, held: bool) -> Done:
        if not held:
            return Done(Answer(text("bot_here", moment.language)))
        if BY_PAGE not in moment.session.variables:
            tongue = staff_tongue(moment.tenant)
            await self._tell(moment, f"{_from(moment, tongue)}\n{text('staff_went_back', tongue)}")
        return Done(_given_back(moment), _returned, silent=False)

    async def _tell(self, moment: Moment, markdown: str) -> bool:
        """False: staff can't be told."""
        if not self._desk.reachable(moment.tenant):
            return False
        await self._desk.tell(moment, markdown, about=customer_of(moment.last), event=moment.source)
        return True

    def _from_staff(self, moment: Moment) -> Done:
        message, held = moment.last, in_hand(moment.session, moment.now)
        if TAKE in message.extra:
            return Done(None, _taken(moment), silent=False)
        if GIVE_BACK in message.extra and ON_PAGE in message.extra:  # without a word, which on LINE would cost a push
            return Done(None, _returned, silent=False)
        if GIVE_BACK in message.extra:
            return Done(_given_back(moment), _returned, silent=False) if held else Done(None)
        if UNHEARD in message.extra:
            return _unheard(moment) if held else Done(None)
        return Done(
            Answer(literal(message.text)),
            _taken(moment),
            silent=False,
            staff_said=message.text,
            sent=lambda delivery: self._answered(moment, delivery.arrived),
        )

    async def _answered(self, moment: Moment, arrived: bool) -> None:
        if not arrived:
            await self._tell(moment, undelivered(moment))
        else:
            await self._after_hours.answered(moment)


def _given_back(moment: Moment) -> Answer:
    return Answer(text("bot_back", moment.language), asked_for(moment.tenant))


def _unheard(moment: Moment) -> Done:
    """The bot goes on, and says that nobody else can."""
    answer = Answer(text("human_unheard", moment.language))
    return Done(answer, lambda session: _wanted(_returned(session)), silent=False)


def _taken(moment: Moment) -> Change:
    until = moment.now + timedelta(minutes=moment.tenant.behaviour.human_timeout_min)

    def change(session: ShortTermMemory) -> ShortTermMemory:
        left = {name: value for name, value in session.variables.items() if name not in (WANTED, BY_PAGE)}
        variables = {**left, UNTIL: iso(until)} | ({BY_PAGE: True} if ON_PAGE in moment.last.extra else {})
        ends = max(session.expires_at, until) if session.expires_at else None
        return session.model_copy(update={"state": "human", "variables": variables, "expires_at": ends})

    return change


def _returned(session: ShortTermMemory) -> ShortTermMemory:
    variables = {name: value for name, value in session.variables.items() if name not in (UNTIL, WANTED, BY_PAGE)}
    return session.model_copy(update={"state": "awaiting_input", "variables": variables})


def _wanted(session: ShortTermMemory) -> ShortTermMemory:
    return session.model_copy(update={"variables": {**session.variables, WANTED: True}})


def _speaker(line: Any) -> str:
    if line["role"] == "user":
        return "customer"
    return "staff" if (line.get("metadata") or {}).get("by") == "staff" else "bot"


def _said(moment: Moment, tongue: Tongue) -> list[str]:
    return [_line(tongue, "customer", described(message)) for message in moment.messages]


def _line(tongue: Tongue, speaker: str, said: str) -> str:
    return f"{text(f'staff_{speaker}', tongue)}: {literal(said)}"


def _from(moment: Moment, tongue: Tongue) -> str:
    message = moment.last
    name = message.sender_name or message.sender_id or message.user_id
    return f"{text('staff_from', tongue)} {literal(name)} ({literal(message.channel)})"
