"""What the HTTP side does while the inbox is away: keeps messages on disk, answers them itself, and brings everything
home when the inbox is back. A small fallback, not a second inbox.

Three kinds of message are kept, but left to the workers, for an answer from here could be the second one, or come
before an earlier one: a message whose way into the inbox was cut off half-way, as it may stand there all the same; one
whose conversation had something put into the inbox shortly before that went away, as that may still wait there; and one
whose conversation had something put there since it was written, as that may be what is delivered again.

While the spool holds anything of a conversation, what else comes for it takes the same way, also when the inbox is
back: it must not overtake, and a delivery that was answered here has to be known as that.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from config.stopping import stopped
from gateway.errors import InboxUnavailable
from gateway.inbox.base import Policy, event_of, name_of
from gateway.inbox.last_puts import LastPuts
from gateway.inbox.redis import RedisInbox
from gateway.inbox.spool import Entry, Spool
from gateway.inbox.together import Together
from gateway.messages import InboundMessage
from memory.bounded import bounded
from memory.errors import MemoryFault
from memory.keys import ConversationRef

log = logging.getLogger(__name__)

PATIENCE = 1.0  # seconds for a put: LINE gives up on a webhook after two
AT_ONCE = 500  # messages of one put: a script takes no more than some thousand values, and holds up everybody meanwhile
PROBE_EVERY = 0.5  # seconds while it is away
CONTACT_EVERY = 5.0  # seconds while it is not
LOOK_EVERY = 0.001  # seconds between looks whether others left anything on disk; what this process does is known
SWEEP_EVERY = 30.0  # seconds between looks for what a writer who was killed left unfinished there

RECENT = 60.0  # seconds after which nothing put into the inbox waits there but what was seen waiting
MOST_SEEN = 5_000  # conversations that are looked through for that; if more wait, nobody is answered from here
_NOTED_AT_ONCE = 250  # of these, in one turn of the event loop

Messages = Sequence[tuple[InboundMessage, Policy]]
Told = Callable[[Sequence[bool] | BaseException], object]
PutSoon = Callable[[Messages, Told], bool]
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
        self._puts = LastPuts(spool.folder / "recent")
        self._contact_at = -CONTACT_EVERY
        self._swept_at = -SWEEP_EVERY
        self._crowded = False
        self._putting = Together(self._through)
        self._spooled = -LOOK_EVERY, False  # when that was last looked for, and whether the spool holds anything
        self._tasks: set[asyncio.Task[list[bool]]] = set()
        self._writing: dict[str, asyncio.Future[None]] = {}  # by conversation: the last that is on its way to the disk
        self._accepted = 0  # nanoseconds since 1970, the last one that was given out
        self._late = False  # the put that is under way took too long
        self.away = False

    async def put(self, messages: Sequence[tuple[InboundMessage, Policy]]) -> list[bool]:
        """Safe when it returns, in the inbox or on disk. Raises InboxUnavailable when neither takes them."""
        doubtful = False
        if not self.away and not self._kept_of(messages):
            try:
                with bounded(None):  # others' messages go with it: whoever began it is not in their way
                    return list(await self._putting(messages))
            except InboxUnavailable as error:
                doubtful = error.ambiguous
        return await self._keep_here(messages, doubtful)

    def put_soon(self, messages: Messages, told: Told) -> bool:
        """As `put`, for a caller who does not wait: `told` gets what that returns or raises. What comes in one turn of
        the event loop goes together. False: the inbox is away, and nothing was begun."""
        if self.away:
            return False
        if self._writing or self._holds_any():
            self._apart(self.put(messages), told)
        else:
            self._putting.soon(messages, partial(self._went, messages, told))
        return True

    def _holds_any(self) -> bool:
        """One look for all that comes together."""
        seen_at, spooled = self._spooled
        if (now := time.monotonic()) - seen_at >= LOOK_EVERY:
            spooled = not self._spool.is_empty()
            self._spooled = now, spooled
        return spooled

    def _went(self, messages: Messages, told: Told, outcome: Sequence[bool] | BaseException) -> None:
        if isinstance(outcome, InboxUnavailable):
            self._apart(self._keep_here(messages, outcome.ambiguous), told)
        else:
            told(outcome)

    def _apart(self, work: Coroutine[Any, Any, list[bool]], told: Told) -> None:
        def done(task: asyncio.Task[list[bool]]) -> None:
            self._tasks.discard(task)
            if not task.cancelled():
                told(task.exception() or task.result())

        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(done)

    def _kept_of(self, messages: Messages) -> bool:
        """Whether anything of their conversations is on disk, or on its way there: a disk may take its time."""
        return any(name_of(one) in self._writing for one, _ in messages) or self._spool.holds(messages)

    async def _keep_here(self, messages: Messages, doubtful: bool) -> list[bool]:
        """Goes on where its caller is cancelled: a thread may have written by then, and what nobody let go of would be
        held, with all that comes behind it, as long as this process lives."""
        keeping = asyncio.create_task(self._held_and_let_go(messages, doubtful))
        self._tasks.add(keeping)
        keeping.add_done_callback(self._kept_or_told)
        return await asyncio.shield(keeping)

    def _kept_or_told(self, keeping: asyncio.Task[list[bool]]) -> None:
        self._tasks.discard(keeping)
        if not keeping.cancelled():
            keeping.exception()  # its caller hears of it, if there is one

    async def _held_and_let_go(self, messages: Messages, doubtful: bool) -> list[bool]:
        for entry in (entries := await self._written(messages, doubtful)):
            if entry is None:
                continue
            if self.away and not await asyncio.to_thread(self._spool.earlier, entry):
                await self._answer_or_leave(entry)
            else:
                entry.release()
        return [entry is not None for entry in entries]

    async def _written(self, messages: Messages, doubtful: bool) -> list[Entry | None]:
        """On disk, behind what came before of their conversations: threads that write side by side end in any order,
        and who looks meanwhile would take a later one for the first."""
        names = {name_of(message) for message, _ in messages}
        before = {self._writing[name] for name in names if name in self._writing}
        written = asyncio.get_running_loop().create_future()
        self._writing |= dict.fromkeys(names, written)
        order = max(time.time_ns(), self._accepted + 1)  # a clock that is set back changes nothing
        self._accepted = order + len(messages)
        try:
            if before:
                await asyncio.wait(before)
            return await asyncio.to_thread(self._spool.add, messages, doubtful=doubtful, accepted_at=order)
        finally:
            self._spooled = -LOOK_EVERY, False
            written.set_result(None)
            for name in names:
                if self._writing.get(name) is written:
                    del self._writing[name]

    async def _through(self, messages: Sequence[tuple[InboundMessage, Policy]]) -> list[bool]:
        """Into the inbox, what several webhooks brought together."""
        if self.away:  # since they came
            raise InboxUnavailable("the inbox is away")
        names = [name_of(message) for message, _ in messages]
        noted = self._puts.note(names)  # first: this process may be killed before it hears the answer
        kept: list[bool] = []
        try:
            for begin in range(0, len(messages), AT_ONCE):
                kept += await self._in_time(messages[begin : begin + AT_ONCE])
        except (InboxUnavailable, TimeoutError) as error:
            self.away = True
            away = error if isinstance(error, InboxUnavailable) else InboxUnavailable("no answer", ambiguous=True)
            if kept:  # a part of them stands there
                away = InboxUnavailable(str(away), ambiguous=True)
            log.warning("the inbox is away: %s", away)
            if not away.ambiguous:
                self._puts.take_back(noted)
            raise away from error
        if not self._crowded:
            self._puts.note_contact()
        return kept

    async def _in_time(self, messages: Messages) -> list[bool]:
        """Raises TimeoutError, as `asyncio.timeout` would; where one put is made at a time, a third of that does."""
        task = asyncio.current_task()
        assert task is not None
        before, self._late = task.cancelling(), False
        timer = task.get_loop().call_later(PATIENCE, self._give_up, task)
        try:
            return await self._inbox.put(messages)
        except asyncio.CancelledError:
            if self._late and task.cancelling() <= before + 1:  # nobody but the timer wants it to end
                raise TimeoutError from None
            raise
        finally:
            timer.cancel()
            if self._late:  # whatever came of it: the task goes on to others' puts
                task.uncancel()

    def _give_up(self, put: asyncio.Task[Any]) -> None:
        self._late = True
        put.cancel()

    def _not_heard(self) -> None:
        """A put that is under way finds out itself: what comes next of its conversation would be on disk before it."""
        if not self._putting.busy:
            self.away = True

    async def watch(self, stop: asyncio.Event) -> None:
        """Until `stop`: notices when the inbox is back, and brings home what the spool holds, this process's and that
        of others which have ended."""
        while not stop.is_set():
            if self.away:
                self.away = not await self._answers()
                if not self.away:
                    log.info("the inbox is back")
            elif time.monotonic() - self._contact_at > CONTACT_EVERY and not await self._answers():
                self._not_heard()
            if self.away:
                behind: set[str] = set()  # conversations whose oldest message has been looked at
                for entry in await asyncio.to_thread(self._spool.free, (".json",)):
                    if entry.conversation in behind:
                        entry.release()
                    else:
                        behind.add(entry.conversation)
                        await self._answer_or_leave(entry)
            else:
                await self._bring_home()
            await stopped(stop, PROBE_EVERY)
        await self._putting.close()

    async def spooled(self) -> int:
        return await asyncio.to_thread(self._spool.count)

    async def keeps_more(self) -> bool:
        """Whether a message would be kept while the inbox is away."""
        return await asyncio.to_thread(self._spool.takes)

    async def _answer_or_leave(self, entry: Entry) -> None:
        """Of the oldest message of its conversation."""
        message = entry.spooled.message
        # What is to be forgotten has to be forgotten in the inbox's server too.
        forgetting = message.text.startswith("/")
        known = self._puts.recent(name_of(message), self._recent, message.sent_at)
        if forgetting or entry.spooled.doubtful or known:
            entry.release()
        else:
            await self._take(entry)

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(PATIENCE):
                waiting = await self._inbox.pending(MOST_SEEN)
        except (InboxUnavailable, TimeoutError):
            return False
        self._contact_at = time.monotonic()
        self._crowded = waiting is None
        if waiting is None:
            self._puts.forget_contact()
        else:  # however long ago it was put: an answer from here would come before an earlier one
            for at in range(0, len(waiting), _NOTED_AT_ONCE):
                self._puts.note(waiting[at : at + _NOTED_AT_ONCE])
                await asyncio.sleep(0)  # thousands take ten milliseconds, in which nobody would be answered
            self._puts.note_contact()
        return True

    async def _bring_home(self) -> None:
        if self._spool.is_empty() and time.monotonic() - self._swept_at < SWEEP_EVERY:
            return
        self._swept_at = time.monotonic()
        entries = await asyncio.to_thread(self._spool.free)
        try:
            while entries:
                entry = entries[0]
                message = entry.spooled.message
                self._puts.note(
                    [name_of(message)]
                )  # also of what was answered: with its file goes what tells of that here
                if entry.answered:
                    await self._inbox.mark_seen(name_of(message), event_of(message))
                    await self._catch_up(_ref(message))
                else:
                    await self._inbox.put([(message, entry.spooled.policy)])
                await asyncio.to_thread(entry.remove)
                entries.pop(0)
        except (InboxUnavailable, MemoryFault) as error:
            log.warning("the spool waits: %s", error)
            self._not_heard()
        finally:
            for entry in entries:
                entry.release()


def _ref(message: InboundMessage) -> ConversationRef:
    return ConversationRef(message.tenant, message.user_id, message.agent, message.conversation_id)
