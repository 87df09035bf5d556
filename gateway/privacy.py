"""What a tenant does not want written down, taken out of what a turn leaves; what is said to somebody new."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, cast

import msgspec

from gateway.messages import RELAYED, Answer
from gateway.moment import Moment
from memory.memory_manager import MemoryManager
from memory.models import Message
from processors.models import MemoryEvent
from processors.pii import Kind, masked, masked_within

_LISTED: dict[str, Kind] = {"phones": "phone", "emails": "email"}  # in an event's payload
_TOLD = (
    "actions",
    "edited",
    "forwarded",
    "sender_name",
)  # in a line's metadata; the rest are names of messages and files


def kept_lines(lines: Sequence[Message], kinds: Collection[Kind]) -> list[Message]:
    return [_line(one, kinds) for one in lines] if kinds else list(lines)


def kept_event(event: MemoryEvent | None, kinds: Collection[Kind]) -> MemoryEvent | None:
    """What is masked is no fact about anybody: it leaves the lists that facts are made of."""
    if event is None or not kinds:
        return event
    payload = {name: one for name, one in event.payload.items() if _LISTED.get(name) not in kinds}
    return event.model_copy(update={"payload": masked_within(payload, kinds)})


def _line(line: Message, kinds: Collection[Kind]) -> Message:
    out: dict[str, Any] = {**line, "message": masked(line["message"], kinds)}
    if metadata := line.get("metadata"):
        out["metadata"] = {name: masked_within(one, kinds) if name in _TOLD else one for name, one in metadata.items()}
    return cast("Message", out)


class Notices:
    """A tenant's notice goes before its first answer to somebody of whom nothing is kept."""

    def __init__(self, manager: MemoryManager) -> None:
        self._manager = manager

    async def before(self, moment: Moment, answer: Answer) -> Answer:
        """Raises MemoryFault."""
        notice = moment.tenant.privacy.notice
        session = moment.session
        if notice is None or not answer.text or session.history or session.carried or moment.last.kind in RELAYED:
            return answer
        if moment.last.group or await self._manager.longterm.load(moment.ref.tenant, moment.ref.user) is not None:
            return answer
        if await self._manager.transcripts.tail(moment.ref, 1):
            return answer
        return msgspec.structs.replace(answer, text=f"{notice.within(moment.language)}\n\n{answer.text}")
