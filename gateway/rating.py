"""What a customer thought of the talk: asked for where the shop wants that and a person's help has just ended, or said
unasked with a command. It is kept with the episode that the talk becomes."""

from __future__ import annotations

import re

from config.tenants import Tenant
from gateway.command_words import named
from gateway.messages import Answer, Kind, QuickReply
from gateway.moment import Change, Done, Moment
from gateway.texts import text
from memory.consolidate import FEEDBACK
from memory.episodes import Feedback
from memory.memory_manager import MemoryManager
from memory.models import ShortTermMemory

GOOD, BAD = 5, 1
LONGEST_COMMENT = 1000  # characters
_WORDS = {"👍": GOOD, "good": GOOD, "ดี": GOOD, "👎": BAD, "bad": BAD, "ไม่ดี": BAD, "แย่": BAD}
_GIVEN = re.compile(r"(?P<rating>[1-5](?![\d.])|👍|👎|good\b|bad\b|ไม่ดี|ดี|แย่)[\s:,/-]*(?P<comment>.*)", re.S | re.I)


def asked_for(tenant: Tenant) -> tuple[QuickReply, ...]:
    """Thumbs up and down, where the shop asks."""
    return buttons(tenant) if tenant.behaviour.ask_rating else ()


def buttons(tenant: Tenant) -> tuple[QuickReply, ...]:
    word = tenant.command("rate")
    return (QuickReply("👍", f"/{word} {GOOD}"), QuickReply("👎", f"/{word} {BAD}")) if word else ()


class Rating:
    """Settling again has the same effect."""

    def __init__(self, manager: MemoryManager) -> None:
        self._manager = manager

    async def settle(self, moment: Moment) -> Done | None:
        message, tenant, language = moment.last, moment.tenant, moment.language
        word, _, rest = message.text.partition(" ")
        if message.kind not in (Kind.TEXT, Kind.POSTBACK) or not word.startswith("/") or named(tenant, word) != "rate":
            return None
        given = _GIVEN.match(rest.strip())
        if given is None:
            return Done(Answer(text("rate_ask", language, word=tenant.command("rate")), buttons(tenant)))
        rating = _WORDS.get(given["rating"].lower()) or int(given["rating"])
        comment = given["comment"].strip()[:LONGEST_COMMENT]
        change = _noted(Feedback(rating=rating, comment=comment, at=moment.now))
        if not any(line["role"] == "user" for line in moment.session.history):  # the talk is over already
            ref = moment.ref
            if not await self._manager.rate(ref.tenant, ref.user, rating, comment):
                return Done(Answer(text("rate_nothing", language)))
            return Done(Answer(_thanks(moment, rating, comment)))
        return Done(Answer(_thanks(moment, rating, comment)), change)


def _thanks(moment: Moment, rating: int, comment: str) -> str:
    name = "rated" if comment or rating > 2 else "rated_bad"
    return text(name, moment.language, word=moment.tenant.command("rate"))


def _noted(feedback: Feedback) -> Change:
    def change(session: ShortTermMemory) -> ShortTermMemory:
        return session.model_copy(
            update={"variables": {**session.variables, FEEDBACK: feedback.model_dump(mode="json")}}
        )

    return change
