"""What becomes of a message, wherever it is kept, when its writer changes it or takes it back."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, cast

from memory import amend, unsaid
from memory.config import MemoryRules
from memory.errors import SessionConflict
from memory.keys import ConversationRef
from memory.models import Message
from memory.protocols import LongTerm, Sessions, Transcripts
from memory.remember import Remember
from processors.models import MemoryEvent, iso

_TRIES = 50  # saves of one session against other writers
_SOON = 20  # lines of a conversation


class Amendments:
    """`platform_id` is the id by which the platform knows the message; see `memory.amend`."""

    def __init__(
        self,
        sessions: Sessions,
        longterm: LongTerm,
        transcripts: Transcripts,
        remember: Remember,
        rules: Callable[[str], MemoryRules],
        clock: Callable[[], datetime],
    ) -> None:
        self._sessions = sessions
        self._longterm = longterm
        self._transcripts = transcripts
        self._remember = remember
        self._rules = rules
        self._clock = clock

    async def said(self, ref: ConversationRef, platform_id: str) -> Message | None:
        """The message that the platform knows by this id, of either side; None: it is not kept (any more).

        Raises MemoryFault.
        """
        stored = await self._sessions.load(ref)
        line = amend.find([*stored.carried, *stored.history], platform_id) if stored else None
        return line or await self._transcripts.find(ref, platform_id)

    async def correct(
        self, ref: ConversationRef, platform_id: str, text: str, event: MemoryEvent | None = None
    ) -> Message | None:
        """Its writer changed a message: the session and the transcript have the new text, and the one before in
        `metadata["edited"]`; long-term memory holds `event`, what the new text means, in place of what the old one
        meant. Doing it again changes nothing. The line as it was; None: it is not kept.

        Raises MemoryFault; to be asked for again then.
        """
        change = amend.corrected(text, iso(self._clock()))
        return await self._amend(ref, platform_id, change, event)

    async def retract(self, ref: ConversationRef, platform_id: str) -> Message | None:
        """Its writer took a message back: its text goes from the session, the transcript, the events, and from what
        was made of them (attributes, summary), and what the bot's answers repeated of it from the session and the
        transcript. The line as it was; None: it is not kept.

        Raises MemoryFault; to be asked for again then.
        """
        line = await self.said(ref, platform_id)
        if line is not None and line["role"] == "user":
            await self._unsay(ref, line)
        return await self._amend(ref, platform_id, amend.removed, None)

    async def unsay(self, ref: ConversationRef, message_ids: Collection[str]) -> None:
        """Takes out of what the bot said soon after these messages, to whomever, what it repeats of them. Raises
        MemoryFault."""
        stored = await self._sessions.load(ref)
        lines = [*stored.carried, *stored.history] if stored else []
        lines += [
            cast("Message", one)
            for one in await self._transcripts.everything(ref.tenant, ref.user)
            if (one.get("agent"), one.get("conversation")) == ref[2:]
        ]
        gone = [one for one in lines if one.get("message_id") in message_ids]
        for at, line in enumerate(lines):
            if line["role"] != "user" or line not in gone:
                continue
            for answer in lines[at + 1 : at + 1 + _SOON]:
                if answer["role"] == "bot" and answer not in gone:
                    await self._mask(ref, answer, lambda one, said=line["message"]: unsaid.without(one, said))  # type: ignore[misc]

    async def _mask(self, ref: ConversationRef, answer: Message, change: Callable[[Message], Message]) -> None:
        names: Any = (answer.get("metadata") or {}).get("platform_ids")
        if names and change(answer) != answer:
            await self._amend(ref, str(names[0]), change, None)

    async def _unsay(self, ref: ConversationRef, line: Message) -> None:
        """Takes out of the bot's answers what they repeat of the line: in the session, and of what was said in an ended
        one."""
        stored = await self._sessions.load(ref)
        owner = (line.get("metadata") or {}).get("sender") or ref.user
        memory = await self._longterm.load(ref.tenant, owner)
        ids = {line["message_id"]} if "message_id" in line else set()
        told = amend.told_by([event for event in memory.events if amend.is_of(event, ids)] if memory else [])

        def change(answer: Message) -> Message:
            return unsaid.without(answer, line["message"], told)

        lines = [*stored.carried, *stored.history] if stored else []
        if stored is None or line not in stored.history:
            said = await self._transcripts.everything(ref.tenant, ref.user)
            lines += [cast("Message", one) for one in said if (one.get("agent"), one.get("conversation")) == ref[2:]]
        for answer in lines:
            if answer["role"] == "bot":
                await self._mask(ref, answer, change)

    async def _amend(
        self, ref: ConversationRef, platform_id: str, change: amend.Change, event: MemoryEvent | None
    ) -> Message | None:
        stored = await self._sessions.load(ref)
        lines = [*stored.carried, *stored.history] if stored else []
        line = amend.find(lines, platform_id) or await self._transcripts.find(ref, platform_id)
        if line is None or change(line) == line:
            return line
        message_ids = {line["message_id"]} if "message_id" in line else set()
        fresh = stored is not None and amend.find(stored.history, platform_id) is not None
        owner = (line.get("metadata") or {}).get("sender") or ref.user
        if line["role"] == "user":
            await self._remember.amend(ref.tenant, owner, message_ids, event, keep_gist=fresh)
            if owner != ref.user and not fresh:  # what a group's ended session was about stands in the group's own file
                await self._remember.amend(ref.tenant, ref.user, message_ids, None, keep_gist=False)
        memory = await self._longterm.load(ref.tenant, ref.user)
        await self._transcripts.amend(ref, platform_id, change)
        # Last: as long as it stands there, a repeat finds what is to be done. One that is over is changed as it stands,
        # before anything is made of it.
        for _ in range(_TRIES):
            if stored is None or (after := amend.in_session(stored, platform_id, change)) is stored:
                return line
            if await self._sessions.save(ref, amend.retold(after, memory), self._rules(ref.tenant).sm_ttl):
                return line
            stored = await self._sessions.load(ref)
        raise SessionConflict(f"the session changed at each of {_TRIES} tries to save it")
