"""A live session is read every few messages, so that what somebody says of themselves is known before they leave."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from memory.errors import MemoryFault
from memory.keys import ConversationRef
from memory.models import Message, ShortTermMemory
from processors.models import Language

if TYPE_CHECKING:
    from memory.memory_manager import MemoryManager

log = logging.getLogger(__name__)

READ, TRIES = "read_to", "read_tries"  # in the session's variables: the last message that was read; failures since
MOST_TRIES = 3  # of one part; then the session's end reads it


class Part(msgspec.Struct, frozen=True):
    """What is to be read now. `before`: the last message that was read before; `tries`: this one included."""

    lines: Sequence[Message]
    before: object
    tries: int
    language: Language | None


def begun(session: ShortTermMemory, every: int) -> tuple[ShortTermMemory, Part | None]:
    """If the person said `every` things since the last reading: the session with the note that they are read, and what
    they are. Who writes that session reads them, nobody else. `every` 0: never."""
    lines = _since(session) if every else ()
    if not every or sum(line["role"] == "user" for line in lines) < every:
        return session, None
    known = session.variables
    language = known.get("preferred_language")
    part = Part(
        lines, known.get(READ), int(known.get(TRIES) or 0) + 1, language if language in ("th", "en", "mixed") else None
    )
    return _noted(session, lines[-1].get("message_id"), 0), part


async def read_on(manager: MemoryManager, ref: ConversationRef, part: Part) -> bool:
    """Reads it; what could not be read is noted as unread again. Whether it was read. Raises MemoryFault."""
    read = False
    try:
        read = await manager.openings.read_so_far(ref, part.lines, part.language)
    finally:
        if not read and part.tries < MOST_TRIES:
            await _note(manager, ref, part.lines[-1].get("message_id"), part.before, part.tries)
    return read


def _since(session: ShortTermMemory) -> Sequence[Message]:
    history, read = session.history, session.variables.get(READ)
    at = len(history)
    while at and (read is None or history[at - 1].get("message_id") != read):
        at -= 1
    return history[at:]


def _noted(session: ShortTermMemory, read: object, tries: int) -> ShortTermMemory:
    return session.changed({"variables": {**session.variables, READ: read, TRIES: tries}})


async def _note(manager: MemoryManager, ref: ConversationRef, was: object, now: object, tries: int) -> bool:
    """Against what was read: False when somebody else has noted something there, or the session is over."""
    for _ in range(20):
        session = await manager.sessions.load(ref)
        if session is None or session.variables.get(READ) != was:
            return False
        after = _noted(session, now, tries)
        try:
            if await manager.sessions.save(ref, after, manager.kept_for(after)):
                return True
        except MemoryFault as error:
            log.warning("not noted what was read: %s", error)
            return False
    return False
