"""A conversation as a whole: what was said in it, the points to which it can go back, and its end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, cast

from memory import keys
from memory.checkpoints import Checkpoint, checkpoints, decoded, once
from memory.config import MemoryRules
from memory.errors import SessionConflict
from memory.keys import ConversationRef
from memory.models import Message, is_fresh_start
from memory.openings import Openings
from memory.protocols import Sessions, Transcripts
from memory.session import append, kept_for

_TRIES = 50  # saves of one session against other writers
_AT_ONCE = 8  # people's transcripts read side by side


class Talks:
    """Facts and events that were learned of what is removed here stay: they are looked after where they are listed.

    Raises MemoryFault where a store can't be reached.
    """

    def __init__(
        self,
        sessions: Sessions,
        transcripts: Transcripts,
        openings: Openings,
        rules: Callable[[str], MemoryRules],
        clock: Callable[[], datetime],
    ) -> None:
        self._sessions = sessions
        self._transcripts = transcripts
        self._openings = openings
        self._rules = rules
        self._clock = clock

    async def said(self, tenant: str, user: str, conversation: str) -> list[Message]:
        """What was said in it with whichever agent, oldest first, each message once."""
        return once(
            [
                cast("Message", {name: value for name, value in line.items() if name != "conversation"})
                for line in await self._transcripts.everything(tenant, user)
                if line.get("conversation") == conversation and not is_fresh_start(cast("Message", line))
            ]
        )

    async def clear(self, tenant: str, user: str, conversation: str, agents: Iterable[str] = ()) -> dict[str, int]:
        """Removes what was said in it and its sessions; how many `messages` and `sessions` there were."""
        lines = await self._transcripts.everything(tenant, user)
        spoken = {str(line.get("agent")) for line in lines if line.get("conversation") == conversation}
        removed = {"messages": 0, "sessions": 0}
        for agent in sorted({keys.DEFAULT_AGENT, *agents, *spoken}):
            ref = ConversationRef(tenant, user, agent, conversation)
            removed["sessions"] += await self._sessions.delete(ref)  # first: nobody writes on from it
            removed["messages"] += await self._transcripts.remove(ref, lambda _: True)
        return removed

    async def points(
        self, tenant: str, user: str | None = None, agent: str | None = None, conversation: str | None = None
    ) -> list[Checkpoint]:
        """The checkpoints of a tenant's conversations, the newest first. Without a user everybody's are read."""
        users = [user] if user is not None else await self._transcripts.users(tenant)
        found: list[Checkpoint] = []
        for start in range(0, len(users), _AT_ONCE):
            some = users[start : start + _AT_ONCE]
            read = await asyncio.gather(*(self._transcripts.everything(tenant, one) for one in some))
            found += chain.from_iterable(map(checkpoints, [tenant] * len(some), some, read))
        kept = [one for one in found if agent in (None, one.ref.agent) and conversation in (None, one.ref.conversation)]
        return sorted(kept, key=lambda one: (one.at, one.id), reverse=True)

    async def point(self, tenant: str, checkpoint_id: str) -> tuple[Checkpoint, list[Message]] | None:
        """A checkpoint, and the conversation up to it; None: there is none (any more)."""
        if (named := decoded(tenant, checkpoint_id)) is None:
            return None
        ref, message_id = named
        for one in await self._of(ref):
            if one.lines[-1].get("message_id") == message_id:
                return one, await self._until(one)
        return None

    async def roll_back(self, point: Checkpoint) -> int:
        """Removes what was said behind the point; the number of messages. A turn that is under way is not held up: what
        it says comes behind the point."""
        later = {
            str(message["message_id"])
            for one in await self._of(point.ref)
            if one.before > point.before
            for message in one.lines
            if "message_id" in message
        }
        return await self.remove(point.ref, later)

    async def resume(self, point: Checkpoint, into: ConversationRef) -> int:
        """Lets another conversation begin with what was said up to the point, as much of it as a session holds; how
        many messages that is."""
        rules = self._rules(into.tenant)
        said = (await self._until(point))[-rules.max_messages :]
        now = self._clock()
        new = await self._openings.open_session(into, None, now)
        session = append(new, said, max_messages=rules.max_messages, now=now, ttl=rules.sm_ttl)
        if not await self._sessions.save(into, session, kept_for(session, now, rules.sm_ttl)):
            raise SessionConflict("somebody else began this conversation just now")
        await self._transcripts.append(into, said)
        return len(said)

    async def drop(self, tenant: str, checkpoint_ids: Collection[str]) -> int:
        """Removes these turns from their conversations; how many checkpoints that were."""
        wanted: dict[ConversationRef, set[str]] = {}
        for checkpoint_id in checkpoint_ids:
            if (named := decoded(tenant, checkpoint_id)) is not None:
                wanted.setdefault(named[0], set()).add(named[1])
        dropped = 0
        for ref, ends in wanted.items():
            going = [one for one in await self._of(ref) if one.lines[-1].get("message_id") in ends]
            gone = {str(line["message_id"]) for one in going for line in one.lines if "message_id" in line}
            if await self.remove(ref, gone):
                dropped += len(going)
        return dropped

    async def _of(self, ref: ConversationRef) -> list[Checkpoint]:
        lines = await self._transcripts.everything(ref.tenant, ref.user)
        return [one for one in checkpoints(ref.tenant, ref.user, lines) if one.ref == ref]

    async def _until(self, point: Checkpoint) -> list[Message]:
        earlier = [line for one in await self._of(point.ref) if one.before < point.before for line in one.lines]
        return [*earlier, *point.lines]

    async def remove(self, ref: ConversationRef, gone: Collection[str]) -> int:
        """Removes these messages, from the session first: what it holds would be said again otherwise. How many."""
        if not gone:
            return 0
        await self._forget_in_session(ref, gone)
        return await self._transcripts.remove(ref, lambda message: message.get("message_id") in gone)

    async def _forget_in_session(self, ref: ConversationRef, gone: Collection[str]) -> None:
        def without(lines: Sequence[Message]) -> list[Message]:
            return [line for line in lines if line.get("message_id") not in gone]

        for attempt in range(_TRIES):
            if (live := await self._sessions.load(ref)) is None:
                return
            # Their ids stay known: a repeat of the delivery must not bring them back.
            left = [one for one in (str(line.get("message_id")) for line in live.history) if one in gone]
            update: dict[str, Any] = {
                "history": without(live.history),
                "carried": without(live.carried),
                "recent_ids": [*live.recent_ids, *left],
            }
            now, ttl = self._clock(), self._rules(ref.tenant).sm_ttl
            if await self._sessions.save(ref, live.model_copy(update=update), kept_for(live, now, ttl)):
                return
            await asyncio.sleep(random.uniform(0, 0.002 * (attempt + 1)))
        raise SessionConflict(f"the session changed at each of {_TRIES} tries to save it")
