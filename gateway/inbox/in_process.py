"""The inbox's state machine in plain Python, in this process: what the scripts do, without a server.

It is the model that the scripts are compared with, and serves where no Redis can be had. Times in whole milliseconds.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.inbox.base import (
    LONGEST_BATCH,
    SEEN_FOR,
    Claim,
    Claims,
    Depth,
    Outcome,
    Policy,
    SessionWrite,
    event_of,
    name_of,
)
from gateway.messages import InboundMessage
from gateway.pacing import Limit

_REV = re.compile(rb'\{"rev":(\d+)')
AWAY, SPARED, NOTED = 5000, 5000, 500  # ms; as in lib.lua
SPARE_TRIES = 3  # beyond those allowed, for burying; a batch that kills even that worker is buried by the queue itself


@dataclass
class _Conversation:
    queue: deque[InboundMessage] = field(default_factory=deque)
    holder: str | None = None
    batch: int | None = None
    attempts: int = 0
    outbox: bytes | None = None
    first: int = 0
    last: int = 0
    policy: Policy = field(default_factory=Policy)
    paused_until: int = 0
    failure: str = ""
    wakeable: bool = False
    carried: bytes | None = None


@dataclass
class State:
    """Everything in the queue; several workers may share it."""

    conversations: dict[str, _Conversation] = field(default_factory=dict)
    seen: dict[tuple[str, str], int] = field(default_factory=dict)  # until when
    due: dict[str, int] = field(default_factory=dict)
    ready: OrderedDict[str, dict[str, float]] = field(default_factory=OrderedDict)  # tenant in turn -> since when
    leases: dict[str, float] = field(default_factory=dict)
    paces: dict[str, float] = field(default_factory=dict)  # when a limit's bucket is empty again
    aliases: dict[str, str] = field(default_factory=dict)  # whose messages go into another conversation
    sessions: dict[str, bytes] = field(default_factory=dict)
    dead: list[tuple[str, str, int, bytes | None, InboundMessage]] = field(default_factory=list)
    looked: int | None = None  # when a worker was last here
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class InProcessInbox:
    """`clock` in seconds."""

    def __init__(
        self,
        state: State | None = None,
        worker: str = "1",
        *,
        lease: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.state = state or State()
        self._worker = worker
        self._lease = int(lease * 1000)
        self._clock = clock
        self._tokens = itertools.count()

    async def put(self, messages: Sequence[tuple[InboundMessage, Policy]]) -> list[bool]:
        now, s, kept = self._now(), self.state, []
        for message, policy in messages:
            name, event = name_of(message), event_of(message)
            if s.seen.get((name, event), 0) > now:
                kept.append(False)
                continue
            s.seen[name, event] = now + SEEN_FOR * 1000
            while name in s.aliases:
                name = s.aliases[name]
            c = s.conversations.setdefault(name, _Conversation(first=now))
            c.queue.append(message)
            c.last, c.policy = now, policy
            at = now if policy.debounce == 0 else min(now + policy.debounce, c.first + policy.debounce_max)
            self._come(name, at, now)
            kept.append(True)
        return kept

    async def claim(self, limit: int, within: float = 0.0, stop: asyncio.Future[Any] | None = None) -> Claims:
        found = self._claim(limit)
        if found.claims or within <= 0 or (stop is not None and stop.done()):
            return found
        self.state.woken.clear()
        woken = asyncio.ensure_future(self.state.woken.wait())
        both = {woken} if stop is None else {woken, stop}
        within = within if found.next_due is None else min(within, found.next_due)
        await asyncio.wait(both, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        woken.cancel()
        return Claims((), None) if stop is not None and stop.done() else self._claim(limit)

    def _claim(self, limit: int) -> Claims:
        now, s = self._now(), self.state
        self._look(now)
        for at, name in sorted((at, name) for name, at in s.due.items() if at <= now):
            del s.due[name]
            self._make_ready(name, at)
        for ended, name in sorted((ended, name) for name, ended in s.leases.items() if ended <= now):
            del s.leases[name]
            s.conversations[name].holder = None
            self._make_ready(name, ended)
        claims: list[Claim] = []
        while len(claims) < limit and s.ready:
            tenant, waiting = s.ready.popitem(last=False)
            name = min(waiting, key=lambda one: (waiting[one], one))
            since = waiting.pop(name)
            if waiting:
                s.ready[tenant] = waiting
            claim = self._take(name, now, max(0, now - since) / 1000)
            if claim is not None:
                claims.append(claim)
        wait = min(s.due.values(), default=None)
        return Claims(tuple(claims), None if wait is None else max(0, wait - now) / 1000)

    async def beat(self, claims: Sequence[Claim]) -> set[str]:
        lost = set()
        if claims:
            self._look(self._now())
        for claim in claims:
            if self._holds(claim):
                self.state.leases[claim.conversation] = self._now() + self._lease
            else:
                lost.add(claim.conversation)
        return lost

    async def intent(self, claim: Claim, outbox: bytes, limits: Sequence[Limit] = ()) -> float | None:
        if not self._holds(claim):
            return None
        if self._now() - int(claim.token.partition(":")[0]) >= self._lease / 2:
            self.state.leases[claim.conversation] = self._now() + self._lease
        wait = self._pace(limits)
        if wait == 0:
            self.state.conversations[claim.conversation].outbox = outbox
        return wait / 1000

    def note(self, claim: Claim, outbox: bytes) -> None:
        """`intent` waits for nobody."""

    async def may_pass(self, limits: Sequence[Limit]) -> bool:
        return self._pace(limits) == 0

    async def hold(self, limits: Sequence[Limit], seconds: float) -> None:
        for limit in limits:
            full = self._now() + max(0, int(seconds * 1000)) + limit.interval * (limit.burst - 1)
            self.state.paces[limit.key] = max(full, self.state.paces.get(limit.key, 0))

    async def behind(self, claim: Claim, most: int = LONGEST_BATCH) -> tuple[InboundMessage, ...]:
        if not self._holds(claim):
            return ()
        c = self.state.conversations[claim.conversation]
        return tuple(itertools.islice(c.queue, c.batch, (c.batch or 0) + most))

    async def finish(
        self, claim: Claim, session: SessionWrite | None, dead: str | None = None, carry: bytes | None = None
    ) -> tuple[Outcome, bytes | None]:
        if not self._holds(claim):
            return Outcome.LOST, None
        s, name = self.state, claim.conversation
        c = s.conversations[name]
        if carry and not dead and len(c.queue) <= (c.batch or 0):
            return Outcome.LOST, None
        if session is not None:
            stored = s.sessions.get(name)
            found = _REV.match(stored) if stored else None
            if (int(found[1]) if found else 0) != session.rev:
                return Outcome.CONFLICT, stored
            s.sessions[name] = session.value
        for place in range(c.batch or 0):
            message = c.queue.popleft()
            if dead:
                s.dead.append((name, dead, c.attempts, None if place else carry, message))
        c.carried = None if dead else carry
        self._settle(name, self._now())
        return Outcome.DONE, None

    async def fail(self, claim: Claim, pause: float, *, counted: bool = True, why: str = "") -> bool:
        return self._give_back(claim, pause, counted, why)

    async def park(self, claim: Claim, outbox: bytes, pause: float) -> bool:
        return self._give_back(claim, pause, False, "", outbox)

    async def move(self, claim: Claim, to: str) -> bool:
        if not self._holds(claim):
            return False
        now, s, name, origin = self._now(), self.state, claim.conversation, name_of(claim.messages[0])
        c = s.conversations[name]
        count = len(c.queue) if origin == name else c.batch or 0
        if to == origin:
            s.aliases.pop(origin, None)
        else:
            s.aliases[origin] = to
            s.aliases.pop(to, None)  # of a time when it was the other way round
        policy = Policy(max_attempts=c.policy.max_attempts)
        there = s.conversations.setdefault(to, _Conversation(first=now, last=now, policy=policy))
        there.queue.extend(c.queue.popleft() for _ in range(count))
        self._come(to, now, now)
        self._settle(name, now)
        return True

    async def forget(self, tenant: str, goes: Callable[[InboundMessage], bool]) -> int:
        s, now, removed = self.state, self._now(), 0
        for name in [one for one in s.conversations if _tenant(one) == tenant]:
            c = s.conversations[name]
            frozen = c.batch or 0
            gone = [at for at, one in enumerate(c.queue) if goes(one) and not (c.holder and at < frozen)]
            removed += len(gone)
            if not gone:
                continue
            c.queue = deque(one for at, one in enumerate(c.queue) if at not in gone)
            if c.holder:
                continue
            begun = gone[0] < frozen
            if begun or not c.queue:
                s.due.pop(name, None)
                self._unready(name)
            if not c.queue:
                del s.conversations[name]
            elif begun:
                s.conversations[name] = _Conversation(queue=c.queue, first=c.first, last=c.last, policy=c.policy)
                self._mark(name, now, now)
        return removed

    def _give_back(self, claim: Claim, pause: float, counted: bool, why: str, parked_with: bytes | None = None) -> bool:
        if not self._holds(claim):
            return False
        now, name = self._now(), claim.conversation
        c = self.state.conversations[name]
        c.holder = None
        c.wakeable = parked_with is not None
        c.outbox = parked_with or c.outbox
        c.attempts -= not counted
        if c.outbox is None:
            c.batch = None
        if parked_with is not None and len(c.queue) > (c.batch or 0):
            pause = 0  # what it was to wait for came before it began
        c.paused_until, c.failure = now + max(0, int(pause * 1000)), why
        del self.state.leases[name]
        self._mark(name, c.paused_until, now)
        return True

    async def depth(self) -> Depth:
        s = self.state
        since = [at for waiting in s.ready.values() for at in waiting.values()]
        oldest = (self._now() - min(since)) / 1000 if since else 0.0
        return Depth(len(since), len(s.due), len(s.leases), len(s.dead), oldest)

    async def close(self) -> None:
        return None

    def _take(self, name: str, now: int, waited: float) -> Claim | None:
        s = self.state
        c = s.conversations[name]
        c.attempts += 1
        if c.batch is None:
            c.batch = 1
            if c.attempts == 1:
                lane = c.queue[0].lane
                together = itertools.takewhile(lambda message: message.lane == lane, c.queue)
                c.batch = len(list(itertools.islice(together, LONGEST_BATCH)))
        if c.attempts > c.policy.max_attempts + SPARE_TRIES:
            owed = c.carried if len(c.queue) <= c.batch else None
            for place in range(c.batch):
                reason = "every worker that took it died"
                s.dead.append((name, reason, c.attempts - 1, None if place else owed, c.queue.popleft()))
            self._settle(name, now)
            return None
        c.holder = f"{now}:{self._worker}:{next(self._tokens)}"
        s.leases[name] = now + self._lease
        messages = tuple(itertools.islice(c.queue, c.batch))
        return Claim(
            name,
            c.holder,
            c.attempts,
            c.policy.max_attempts,
            messages,
            s.sessions.get(name),
            c.outbox,
            c.failure or None,
            c.carried,
            waited,
        )

    def _look(self, now: int) -> None:
        s = self.state
        if s.looked is not None and 0 <= now - s.looked < NOTED:
            return
        if s.looked is not None and now - s.looked > AWAY:  # nobody could be here, nor have a heartbeat
            for name, at in s.leases.items():
                if at <= now + SPARED and at % 1 == 0:
                    s.leases[name] = now + SPARED + 0.5
        s.looked = now

    def _holds(self, claim: Claim) -> bool:
        c = self.state.conversations.get(claim.conversation)
        return c is not None and c.holder == claim.token

    def _pace(self, limits: Sequence[Limit]) -> int:
        now, wait, empty = self._now(), 0.0, {}
        for limit in limits:
            at = max(now, self.state.paces.get(limit.key, 0))
            wait = max(wait, at - now - limit.interval * (limit.burst - 1))
            empty[limit.key] = at + limit.interval
        if wait > 0:
            return math.ceil(wait)
        self.state.paces.update(empty)
        return 0

    def _settle(self, name: str, now: int) -> None:
        s = self.state
        s.leases.pop(name, None)
        c = s.conversations[name]
        if not c.queue:
            del s.conversations[name]
            return
        s.conversations[name] = _Conversation(queue=c.queue, first=now, last=c.last, policy=c.policy, carried=c.carried)
        self._mark(name, c.last + c.policy.debounce, now)

    def _come(self, name: str, at: int, now: int) -> None:
        c = self.state.conversations[name]
        if c.holder is None and (c.paused_until <= now or c.wakeable):
            self._mark(name, at, now)

    def _mark(self, name: str, at: int, now: int) -> None:
        s = self.state
        if name in s.leases or name in s.ready.get(_tenant(name), {}):
            return
        if at > now:
            s.due[name] = at
        else:
            s.due.pop(name, None)
            self._make_ready(name, now)
        s.woken.set()

    def _make_ready(self, name: str, since: float) -> None:
        self.state.ready.setdefault(_tenant(name), {}).setdefault(name, since)

    def _unready(self, name: str) -> None:
        waiting = self.state.ready.get(_tenant(name), {})
        if waiting.pop(name, None) is not None and not waiting:
            del self.state.ready[_tenant(name)]

    def _now(self) -> int:
        return int(self._clock() * 1000)


def _tenant(name: str) -> str:
    return name.split(":", 2)[1]
