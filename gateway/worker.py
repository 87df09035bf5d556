"""A worker: claims conversations, handles each in a task of its own, keeps their leases alive."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
import traceback
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Literal

from msgspec import structs

from gateway.errors import ChannelBroken, InboxUnavailable, SendFault, SendRetry, UnknownTenant
from gateway.inbox.base import Claim, Inbox, event_of
from gateway.outbox import ClaimLost
from gateway.pressure import Pressure
from gateway.room import Room

log = logging.getLogger(__name__)

AT_ONCE = 64  # conversations that are worked at
LEASE = 10.0  # seconds
POLL = 2.0  # seconds between looks for leases that ended: with the lease itself the longest wait after a worker's death
PAUSES = (2.0, 8.0, 30.0, 120.0, 600.0)  # seconds before the second, third … try

LAST_WORDS = 1.0  # seconds that a turn has for what it does once its conversation is no longer its own
HAND_BACK = 3.0  # seconds of the grace that are for handing back what is still in hand
BROKEN_PAUSE = 60.0  # seconds between tries at a channel whose token is refused


def pause_after(attempts: int) -> float:
    """Grows with each try, with jitter so that what failed together does not come back together."""
    return PAUSES[min(attempts, len(PAUSES)) - 1] * random.uniform(0.75, 1.25)


class Worker:
    """`handle` does one claim to its end, `finish` or `fail` included; whatever escapes it is a failed try."""

    def __init__(
        self,
        inbox: Inbox,
        handle: Callable[[Claim], Coroutine[Any, Any, None]],
        *,
        room: Room | None = None,
        lease: float = LEASE,
        grace: float = 25.0,
        on_alive: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._inbox = inbox
        self._handle = handle
        self._room = room or Room(AT_ONCE, lease)
        self._beat_every = lease / 3
        self._grace = grace
        self._on_alive = on_alive
        self._active: dict[asyncio.Task[None], Claim] = {}
        self._newest: dict[str, asyncio.Task[None]] = {}  # of each conversation in hand
        self._pressure: defaultdict[str, Pressure] = defaultdict(Pressure)  # of each tenant: one's flood is its own
        self.handled = 0
        self.failed = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then no more claims: what is in hand ends in `grace` seconds or is handed back uncounted."""
        beside = [asyncio.create_task(self._beat(), name="beat"), asyncio.create_task(self._keep_pace(), name="pace")]
        stopped = asyncio.create_task(stop.wait(), name="stop")
        try:
            while not stop.is_set():
                try:
                    await self._round(stopped)
                except InboxUnavailable as error:
                    log.warning("inbox away: %s", error)
                    await asyncio.wait({stopped}, timeout=random.uniform(0.5, 1.5))
            await self._drain()
        finally:
            for task in (*beside, stopped):
                task.cancel()
            await asyncio.gather(*beside, stopped, return_exceptions=True)

    async def _round(self, stopped: asyncio.Task[Literal[True]]) -> None:
        most = min(self._room.free, 16)
        if most <= 0:
            self._room.changed.clear()
            waiting = asyncio.create_task(self._room.changed.wait())
            await asyncio.wait({waiting, stopped}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            return
        found, loop = await self._inbox.claim(most, POLL, stopped), asyncio.get_running_loop()
        for claim in found.claims:
            pressure = self._pressure[claim.ref.tenant]
            pressure.note(claim.waited)
            if pressure.high():
                claim = structs.replace(claim, hurried=True)
            name = claim.conversation
            if (earlier := self._newest.get(name)) is not None:
                before = self._active[earlier]
                again = event_of(before.messages[0]) == event_of(claim.messages[0])
                if again and claim.attempts > before.attempts:  # a turn that waits for its customer counts no try
                    _stop(earlier)  # its lease ended while this process was not running
                else:
                    _stop_soon(earlier)
            task = self._newest[name] = loop.create_task(self._one(claim), name=name)
            self._active[task] = claim
            self._room.held += 1
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        name = self._active.pop(task).conversation
        if self._newest.get(name) is task:
            del self._newest[name]
        self._room.held -= 1
        self._room.changed.set()

    async def _one(self, claim: Claim) -> None:
        try:
            await self._handle(claim)
            self.handled += 1
        except asyncio.CancelledError:
            raise
        except ClaimLost:
            log.warning("claim lost", extra={"conversation": claim.conversation})
        except InboxUnavailable:
            log.warning("inbox went away in mid-turn; the lease will end", extra={"conversation": claim.conversation})
        except SendFault as error:
            await self._send_failed(claim, error)
        except UnknownTenant as error:
            log.warning("it waits: %s", error, extra={"conversation": claim.conversation, "attempt": claim.attempts})
            await self._give_back(claim, pause_after(claim.attempts), counted=True, why=str(error))
        except Exception as error:  # noqa: BLE001 - the one place: whatever it was, it gets a pause and another try
            self.failed += 1
            # An exception's own words may quote a customer's: the log names its kind and place alone.
            place = "".join(traceback.format_tb(error.__traceback__))
            log.error(
                "turn failed: %s\n%s",
                type(error).__name__,
                place,
                extra={"conversation": claim.conversation, "attempt": claim.attempts},
            )
            await self._give_back(claim, pause_after(claim.attempts), counted=True, why=type(error).__name__)

    async def _send_failed(self, claim: Claim, error: SendFault) -> None:
        """The answer stands in the outbox: the next try goes on from there."""
        log.warning(
            "not sent: %s", type(error).__name__, extra={"conversation": claim.conversation, "attempt": claim.attempts}
        )
        why = f"{type(error).__name__}: {error}"[:300]
        if isinstance(error, ChannelBroken):  # an operator has to mend it: the messages wait
            await self._give_back(claim, BROKEN_PAUSE, counted=False, why=why)
        elif isinstance(error, SendRetry) and error.retry_after is not None:  # as told, which is nobody's failure
            await self._give_back(claim, error.retry_after * random.uniform(1.0, 1.1), counted=False, why=why)
        else:
            await self._give_back(claim, pause_after(claim.attempts), counted=True, why=why)

    async def _give_back(self, claim: Claim, pause: float, *, counted: bool, why: str = "") -> None:
        try:
            await self._inbox.fail(claim, pause, counted=counted, why=why)
        except InboxUnavailable:
            log.warning("could not hand back; the lease will end", extra={"conversation": claim.conversation})

    async def _beat(self) -> None:
        """Keeps every lease well before it ends, and stops a turn whose claim was lost: it could not save any more."""
        now = asyncio.get_running_loop().time
        while True:
            started = now()
            held = {claim.conversation: (task, claim) for task, claim in self._active.items()}  # the newest of each
            try:
                lost = await self._inbox.beat([claim for _, claim in held.values()])
                if self._on_alive is not None:
                    await self._on_alive()
            except InboxUnavailable as error:
                log.warning("no heartbeat: %s", error)
                lost = set()
            except Exception as error:  # noqa: BLE001 - what goes along with it must not end it: all leases would
                place = "".join(traceback.format_tb(error.__traceback__))
                log.error("a heartbeat failed: %s\n%s", type(error).__name__, place)
                lost = set()
            for name in lost:
                _stop_soon(held[name][0])
            await asyncio.sleep(max(0.05, self._beat_every - (now() - started)))

    async def _keep_pace(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            began, worked = now(), time.thread_time()
            await asyncio.sleep(self._room.every)
            took = now() - began
            busy = (time.thread_time() - worked) / took if took else 0.0
            self._room.looked(took - self._room.every, busy)

    async def _drain(self) -> None:
        if self._active:
            await asyncio.wait(set(self._active), timeout=max(self._grace - HAND_BACK, self._grace / 2))
        left = dict(self._active)
        for task in left:
            task.cancel()
        # All at once and no longer than this: with the inbox away each would wait for its answer in vain. What can't be
        # handed back is free when its lease ends.
        handing_back = [self._hand_back(task, claim) for task, claim in left.items()]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HAND_BACK):
                await asyncio.gather(*handing_back)

    async def _hand_back(self, task: asyncio.Task[None], claim: Claim) -> None:
        await asyncio.wait({task})
        await self._give_back(claim, 0.0, counted=False)


def _stop_soon(turn: asyncio.Task[None]) -> None:
    """Of a turn that has let go of its conversation: the queue's answer to that may come later than the news that it is
    another's, and what a turn does behind its end is done all the same."""
    asyncio.get_running_loop().call_later(LAST_WORDS, _stop, turn)


def _stop(turn: asyncio.Task[None]) -> None:
    if not turn.done():
        log.warning("claim lost", extra={"conversation": turn.get_name()})
        turn.cancel()
