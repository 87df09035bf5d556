"""What a message means, told by the model in the same call that answers it: one line below the answer, which nobody
sees. A model that leaves the line out has the message classified in a call of its own."""

from __future__ import annotations

import re
from collections.abc import Callable

from gateway.adapters.base import Watch
from processors.models import EventType

ASK = (
    "Below your answer write one last line about the customer's last message, for our records; the customer never "
    "sees it: <kind>TYPE IMPORTANCE</kind>\n"
    "TYPE, by what the customer wants: TRANSACTION (an order, payment or transfer made, changed, confirmed or "
    "reported), COMPLAINT (something concrete went wrong), SUPPORT (stuck, wants help or steps), REQUEST (asks for one "
    "named act: book, cancel, change, refund), INQUIRY (wants a fact: price, stock, time, place), INFORMATION (gives "
    "facts: name, phone, address, number, date, diet), FEEDBACK (praise, rating, opinion), GENERIC_EVENT (greeting, "
    "thanks, yes or no, banter). Where two fit, the one named first here.\n"
    "IMPORTANCE from 0.0 to 1.0, how much the shop loses by forgetting it: 0.9 an order or money, 0.7 a request with "
    "specifics, an ordinary complaint, contact data or an allergy, 0.5 a question about goods, 0.3 a casual question, "
    "0.1 a greeting."
)
_BEGINS = "<kind>"
_ASKING = "ask_staff"
ASKS_STAFF = f"<{_ASKING}>"  # the model writes it below an answer that does not answer
_ASKS_STAFF = re.compile(rf"\s*</?{_ASKING}\s*/?>\s*")
_LINE = re.compile(r"<kind>\s*([A-Z_]+)[\s,:]+([01](?:\.\d+)?)\s*(?:</kind>)?\s*")

Ridden = tuple[str, float]  # the event type's name, the importance from 0.0 to 1.0


def split(text: str) -> tuple[str, Ridden | None]:
    """The answer without the line, and what the line says: the last one that makes sense."""
    told: Ridden | None = None
    for found in _LINE.finditer(text):
        if found[1] in EventType.__members__ and float(found[2]) <= 1.0:
            told = found[1], float(found[2])
    answer = _LINE.sub("", text).partition(_BEGINS)[0]
    return answer if answer == text else answer.rstrip(), told


def asks_staff(text: str) -> tuple[str, bool]:
    """The answer without the mark, and whether it had one: the model knows no answer, and says that staff will."""
    if _ASKING not in text:
        return text, False
    answer = _ASKS_STAFF.sub("\n", text)
    return (answer.strip(), True) if answer != text else (text, False)


def shown(text: str) -> str:
    """What of an answer that may still grow is for the customer: nothing from where one of the marks may begin."""
    at = min(_beginning(text, mark) for mark in (_BEGINS, ASKS_STAFF))
    return text[:at].rstrip() if at < len(text) else text


def _beginning(text: str, mark: str) -> int:
    at = text.find(mark)
    if at >= 0:
        return at
    # It may have begun: "…\n<ki".
    return next((len(text) - n for n in range(len(mark) - 1, 0, -1) if text.endswith(mark[:n])), len(text))


class Unseen:
    """Keeps the line from whoever watches the answer grow."""

    __slots__ = ("_watch", "gone")

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.gone = watch.gone

    def grew(self, said: Callable[[], str]) -> None:
        self._watch.grew(lambda: shown(said()))

    async def close(self) -> None:
        await self._watch.close()
