"""What the HTTP side does while the inbox is away: keeps messages on disk, answers them itself, and brings everything
home when the inbox is back. A small fallback, not a second inbox.

Two kinds of message are kept, but left to the workers, for an answer from here could be the second one, or come before
an earlier one: a message whose way into the inbox was cut off half-way, as it may stand there all the same; and one
whose conversation had something put into the inbox a short while ago, as that may still wait there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from gateway.errors import InboxUnavailable
from gateway.inbox.base import Policy, event_of, name_of
from gateway.inbox.redis import RedisInbox
from gateway.inbox.spool import Entry, Spool
from gateway.messages import InboundMessage
from memory.errors import MemoryFault
from memory.keys import ConversationRef

log = logging.getLogger(__name__)

PATIENCE = 1.0  # seconds for a put: LINE gives up on a webhook after two
PROBE_EVERY = 0.5  # seconds

RECENT = 60.0  # seconds for which something put into the inbox may still be waiting there
MOST_RECENT = 100_000  # conversations

Take = Callable[[Entry], Awaitable[None]]
CatchUp = Callable[[ConversationRef], Awaitable[None]]


class SafeInbox:
    """The inbox as the webhooks see it. `take` answers a message from here; `catch_up` brings a conversation's session
    up to what was said meanwhile."""

    def __init__(
        self, inbox: RedisInbox, spool: Spool, take: Take, catch_up: CatchUp, *, recent: float = RECENT
    ) -> None:
        self._inbox = inbox
        self._spool = spool
        self._take = take
        self._catch_up = catch_up
        self._recent = recent
        self._put_at: OrderedDict[str, float] = OrderedDict()
        self._doubtful: set[str] = set()  # conversations with a message that may stand in the inbox
        self.away = False

    async def put(self, messages: Sequence[tuple[InboundMessage, Policy]]) -> list[bool]:
        """Safe when it returns, in the inbox or on disk. Raises InboxUnavailable when neither takes them."""
        certain = self.away
        if not self.away:
            try:
                async with asyncio.timeout(PATIENCE):
                    kept = await self._inbox.put(messages)
                self._note(messages)
                return kept
            except InboxUnavailable as error:
                certain = not error.ambiguous
                log.warning("the inbox is away: %s", error)
            except TimeoutError:
                log.warning("the inbox is away: no answer")
            self.away = True
        entries = await asyncio.to_thread(self._spool.add, messages)
        for entry in entries:
            if entry is not None and not certain:
                self._doubtful.add(name_of(entry.spooled.message))
        for entry in entries:
            if entry is not None:
                await self._answer_or_leave(entry)
        return [entry is not None for entry in entries]

    async def watch(self, stop: asyncio.Event) -> None:
        """Until `stop`: notices when the inbox is back, and brings home what the spool holds, this process's and that
        of others which have ended."""
        while not stop.is_set():
            if self.away:
                self.away = not await self._answers()
                if not self.away:
                    log.info("the inbox is back")
            if self.away:
                for entry in await asyncio.to_thread(self._spool.free, (".json",)):
                    await self._answer_or_leave(entry)
            else:
                await self._bring_home()
            try:
                await asyncio.wait_for(stop.wait(), PROBE_EVERY)
            except TimeoutError:
                continue

    async def spooled(self) -> int:
        return await asyncio.to_thread(self._spool.count)

    async def _answer_or_leave(self, entry: Entry) -> None:
        message = entry.spooled.message
        name = name_of(message)
        put_at = self._put_at.get(name)
        recent = put_at is not None and time.monotonic() - put_at < self._recent
        # What is to be forgotten has to be forgotten in the inbox's server too.
        forgetting = message.text.startswith("/")
        if recent or forgetting or name in self._doubtful or await asyncio.to_thread(self._spool.earlier, entry):
            entry.release()
        else:
            await self._take(entry)

    def _note(self, messages: Sequence[tuple[InboundMessage, Policy]]) -> None:
        now = time.monotonic()
        for message, _ in messages:
            name = name_of(message)
            self._put_at[name] = now
            self._put_at.move_to_end(name)
        while self._put_at and (
            len(self._put_at) > MOST_RECENT or now - next(iter(self._put_at.values())) > self._recent
        ):
            self._put_at.popitem(last=False)

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._inbox.ping()
        except (InboxUnavailable, TimeoutError):
            return False
        return True

    async def _bring_home(self) -> None:
        entries = await asyncio.to_thread(self._spool.free)
        try:
            while entries:
                entry = entries[0]
                message = entry.spooled.message
                if entry.answered:
                    await self._inbox.mark_seen(name_of(message), event_of(message))
                    await self._catch_up(_ref(message))
                else:
                    await self._inbox.put([(message, entry.spooled.policy)])
                await asyncio.to_thread(entry.remove)
                self._doubtful.discard(name_of(message))
                entries.pop(0)
        except (InboxUnavailable, MemoryFault) as error:
            log.warning("the spool waits: %s", error)
            self.away = True
        finally:
            for entry in entries:
                entry.release()


def _ref(message: InboundMessage) -> ConversationRef:
    return ConversationRef(message.tenant, message.user_id, message.agent, message.conversation_id)
