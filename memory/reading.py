"""A live session is read every few messages, so that what somebody says of themselves is known before they leave."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory.errors import MemoryFault
from memory.keys import ConversationRef
from memory.models import Message, ShortTermMemory

if TYPE_CHECKING:
    from memory.memory_manager import MemoryManager

log = logging.getLogger(__name__)

READ, TRIES = "read_to", "read_tries"  # in the session's variables: the last message that was read; failures since
MOST_TRIES = 3  # of one part; then the session's end reads it


def unread(session: ShortTermMemory) -> list[Message]:
    """What the person said since the last reading."""
    return [line for line in _since(session) if line["role"] == "user"]


async def read_so_far(manager: MemoryManager, ref: ConversationRef, every: int) -> bool:
    """Reads a live session on if the person said `every` things since the last time. Whoever notes in the session that
    they read it does it, nobody else; what could not be read is noted as unread again. Whether it was read.

    Raises MemoryFault.
    """
    ref = await manager.shared(ref)
    session = await manager.sessions.load(ref)
    if session is None or session.expired(manager.now()) or len(unread(session)) < every:
        return False
    part, before = _since(session), session.variables.get(READ)
    if not await _note(manager, ref, before, part[-1].get("message_id"), 0):
        return False
    language = session.variables.get("preferred_language")
    tries = int(session.variables.get(TRIES) or 0) + 1
    read = False
    try:
        read = await manager.openings.read_so_far(ref, part, language if language in ("th", "en", "mixed") else None)
    finally:
        if not read and tries < MOST_TRIES:
            await _note(manager, ref, part[-1].get("message_id"), before, tries)
    return read


def _since(session: ShortTermMemory) -> Sequence[Message]:
    ids = [line.get("message_id") for line in session.history]
    read = session.variables.get(READ)
    return session.history[ids.index(read) + 1 :] if read is not None and read in ids else session.history


async def _note(manager: MemoryManager, ref: ConversationRef, was: object, now: object, tries: int) -> bool:
    """Against what was read: False when somebody else has noted something there, or the session is over."""
    for _ in range(20):
        session = await manager.sessions.load(ref)
        if session is None or session.variables.get(READ) != was:
            return False
        after = session.model_copy(update={"variables": {**session.variables, READ: now, TRIES: tries}})
        try:
            if await manager.sessions.save(ref, after, manager.kept_for(after)):
                return True
        except MemoryFault as error:
            log.warning("not noted what was read: %s", error)
            return False
    return False
