"""Sends broadcasts on, a few recipients at a time, and takes up those of follow-ups. One worker does it for all.

Which one does it decides no more than who does the work: a recipient is written down as under way before the inbox has
the message, and the inbox keeps each once by its name. So whoever goes on after a crash asks the inbox for everybody
again who is under way.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import msgspec
from redis.asyncio import Redis
from redis.asyncio.lock import Lock
from redis.exceptions import LockError, RedisError

from config.broadcasts import FollowUp, quiet
from config.stopping import stopped
from config.tenants import LineChannel, Tenant, Tenants
from gateway.broadcasts.audience import Audiences, Person, called
from gateway.broadcasts.costs import Costs
from gateway.broadcasts.delivery import BROADCAST, NO_QUOTA, TRY, USER, rule_of
from gateway.broadcasts.desk import FOLLOW_UP, new_of
from gateway.broadcasts.draft import Audience
from gateway.broadcasts.store import Broadcast, BroadcastStore, Recipient
from gateway.channel_states import ChannelStates, Trouble
from gateway.errors import GatewayFault
from gateway.inbox.base import Inbox, Policy
from gateway.messages import InboundMessage, Kind
from memory import keys
from memory.errors import MemoryFault
from memory.memory_manager import MemoryManager
from processors.models import EventType, iso

log = logging.getLogger(__name__)

EVERY = 1.0  # seconds between looks
UNDER_WAY = 20  # recipients of a shop at once: its customers' own messages wait for no more than these
LEASE = 30.0  # seconds until another worker goes on
AGAIN = 60.0  # seconds after which the inbox is asked again for who is under way
LOST_AFTER = 48 * 3600.0  # seconds; within 72 hours the inbox knows a message again, so until then nothing is doubled
FOLLOW_UPS_EVERY = timedelta(minutes=10)
LATE = timedelta(days=7)  # a follow-up whose day was longer ago is not sent: a new rule is not for the past
AT_ONCE = timedelta(days=1)  # after an event in which they still talk about it
KEPT_FOR = timedelta(days=180)  # of who got what is over

QUIET = "quiet hours"
NO_RULE = "its rule stands in the tenant's file no longer"
OWN_LIMIT = "the shop's own limit of LINE pushes (broadcasts.monthly_pushes) is reached"


class Runner:
    def __init__(
        self,
        client: Redis,
        tenants: Tenants,
        store: BroadcastStore,
        audiences: Audiences,
        costs: Costs,
        states: ChannelStates,
        inbox: Inbox,
        manager: MemoryManager,
        clock: Callable[[], datetime],
    ) -> None:
        self._redis = client
        self._tenants = tenants
        self._store = store
        self._audiences = audiences
        self._costs = costs
        self._states = states
        self._inbox = inbox
        self._manager = manager
        self._clock = clock
        self._asked_again: dict[str, float] = {}  # by tenant, monotonic
        self._idle: dict[str, tuple[int, ...]] = {}  # by tenant: what its file was like when there was nothing to do
        self._followed_up: dict[str, datetime] = {}

    async def run(self, stop: asyncio.Event) -> None:
        lock = self._redis.lock(keys.shared("lock", "broadcasts"), timeout=LEASE, blocking=False, thread_local=False)
        mine = False
        try:
            while not stop.is_set():
                mine = await _held(lock, mine)
                if mine:
                    await self.step()
                else:  # whoever goes on later begins with a look at what is under way
                    self._asked_again.clear()
                    self._idle.clear()
                await stopped(stop, EVERY)
        finally:
            if mine:
                try:
                    await lock.release()
                except (LockError, RedisError, OSError):
                    log.debug("the lease of the broadcasts was gone")

    async def step(self) -> None:
        """One look at every shop; at those that send nothing no more than at their files, all together."""
        now = self._clock()
        try:
            marks = await asyncio.to_thread(self._store.marks)
        except GatewayFault as error:
            log.warning("broadcasts wait: %s", error)
            return
        for tenant in self._tenants.all():
            try:
                last = self._followed_up.get(tenant.id)
                if last is None or now - last >= FOLLOW_UPS_EVERY:
                    await self._follow_up(tenant, now)
                mark = marks.get(tenant.id)
                if mark is None or self._idle.get(tenant.id) == mark:
                    continue
                self._idle.pop(tenant.id, None)
                if not await self._look(tenant, now):
                    self._idle[tenant.id] = mark
            except (GatewayFault, MemoryFault, RedisError, OSError) as error:
                log.warning("broadcasts wait: %s", error, extra={"tenant": tenant.id})

    async def _look(self, tenant: Tenant, now: datetime) -> bool:
        """Whether anything is on its way."""
        under_way = await asyncio.to_thread(self._store.under_way, tenant.id)
        under_way = await self._again(tenant, under_way, now)
        room = UNDER_WAY - len(under_way)
        running = await asyncio.to_thread(self._store.running, tenant.id)
        for broadcast in running:
            room -= await self._feed(tenant, broadcast, room, under_way, now)
        return bool(under_way or running)

    async def _again(self, tenant: Tenant, under_way: Sequence[Recipient], now: datetime) -> list[Recipient]:
        """Asks the inbox for who may have got lost between here and there; it knows those that did not."""
        lost = [one for one in under_way if now.timestamp() - one.queued > LOST_AFTER]
        for one in lost:
            await asyncio.to_thread(self._store.settle, tenant.id, one, "failed", "not_settled")
        left = [one for one in under_way if one not in lost]
        last, at = self._asked_again.get(tenant.id), time.monotonic()
        if last is None or at - last > AGAIN:
            self._asked_again[tenant.id] = at
            await self._put(tenant, left, now)
        return left

    async def _feed(
        self, tenant: Tenant, broadcast: Broadcast, room: int, under_way: Sequence[Recipient], now: datetime
    ) -> int:
        """How many are under way now that waited."""
        if broadcast.kind == "follow_up" and rule_of(tenant, broadcast) is None:
            await self._stands(tenant, broadcast, NO_RULE)
            return 0
        waiting = await asyncio.to_thread(self._store.waiting, tenant.id, broadcast.id)
        if not waiting:
            over = broadcast.kind == "once" and all(one.broadcast != broadcast.id for one in under_way)
            if over:
                await asyncio.to_thread(self._store.done, tenant.id, broadcast.id, now)
            else:
                await self._stands(tenant, broadcast, "")
            return 0
        if quiet(tenant, now):
            await self._stands(tenant, broadcast, QUIET)
            return 0
        fed, held = 0, {}
        on_line = Counter(one.customer.channel for one in under_way if one.customer.platform == "line")
        for channel, number in waiting.items():
            most, why = await self._allowed(tenant, channel, on_line)
            if not most:
                held[channel] = why
                continue
            take = min(number, most, room - fed)
            if take <= 0:
                continue
            people = await asyncio.to_thread(self._store.take, tenant.id, broadcast.id, channel, take, now.timestamp())
            on_line[channel] += len(people)
            fed += len(people)
            await self._put(tenant, people, now)
        if held.keys() != waiting.keys():
            await self._stands(tenant, broadcast, "")
        elif broadcast.kind == "once":
            await asyncio.to_thread(self._store.stop, tenant.id, broadcast.id, next(iter(held.values())), now)
        else:  # what goes out by itself goes on by itself
            await self._stands(tenant, broadcast, next(iter(held.values())))
        return fed

    async def _allowed(self, tenant: Tenant, channel: str, on_line: Counter[str]) -> tuple[int, str]:
        """How many more may be sent on a channel now, and why none."""
        if not isinstance(tenant.channels.get(channel), LineChannel):
            return UNDER_WAY, ""
        state = (await self._states.of([(tenant.id, channel)])).get((tenant.id, channel))
        left = await self._costs.left(tenant, channel, on_line[channel])
        if (state is not None and state.trouble is Trouble.QUOTA) or left == 0:
            return 0, NO_QUOTA
        own = await self._costs.own_left(tenant, on_line)
        if own == 0:
            return 0, OWN_LIMIT
        return min(one for one in (left, own, UNDER_WAY) if one is not None), ""

    async def _put(self, tenant: Tenant, people: Sequence[Recipient], now: datetime) -> None:
        messages = []
        for one in people:
            to = one.customer
            if to.platform != "web" and to.channel not in tenant.channels:
                await asyncio.to_thread(self._store.settle, tenant.id, one, "left_out", "no_channel")
                continue
            known = await self._manager.longterm.load(tenant.id, one.user)
            message = InboundMessage(
                tenant=tenant.id,
                event_id=f"{BROADCAST}:{one.broadcast}:{one.tries}",
                kind=Kind.NOTICE,
                language_code=one.language,
                sender_name=called(known.attributes, known.person and known.person.display_name) if known else None,
                received_at=now.timestamp(),
                extra={BROADCAST: one.broadcast, USER: one.user, TRY: one.tries},
                **msgspec.structs.asdict(to),
            )
            messages.append((message, Policy(max_attempts=tenant.behaviour.max_attempts)))
        if messages:
            await self._inbox.put(messages)

    async def _stands(self, tenant: Tenant, broadcast: Broadcast, why: str) -> None:
        if broadcast.why != why:
            await asyncio.to_thread(self._store.note, tenant.id, broadcast.id, why)

    # -- follow-ups ----------------------------------------------------------------------------------------------------

    async def _follow_up(self, tenant: Tenant, now: datetime) -> None:
        self._followed_up[tenant.id] = now  # also where it fails: then the next look is in time
        await asyncio.to_thread(self._store.prune, tenant.id, now - KEPT_FOR)
        if not quiet(tenant, now):
            for name, rule in tenant.broadcasts.follow_ups.items():
                await self.take_up(tenant, name, rule, now)

    async def take_up(self, tenant: Tenant, name: str, rule: FollowUp, now: datetime) -> int:
        """Whose day it is for this rule; how many are new."""
        known = await asyncio.to_thread(self._store.get, tenant.id, FOLLOW_UP + name)
        if known is None:
            row = Broadcast(FOLLOW_UP + name, "follow_up", "running", "", iso(now), "", "rule", "", False, {})
            await asyncio.to_thread(self._store.add, tenant.id, row, ())
        elif known.state != "running":
            return 0
        until = now - timedelta(days=rule.days)
        span = {"event_since": until - LATE, "event_until": until} if rule.after else {"seen_since": until - LATE}
        asked = Audience(
            tags=rule.tags,
            events=(EventType(rule.after),) if rule.after else (),
            seen_until=until,
            channels=rule.channels,
            language=rule.language,
            **span,
        )
        chosen = await self._audiences.select(tenant, asked)
        due = [new_of(one) for one in chosen.people if _silent_since(one)]
        return await asyncio.to_thread(self._store.take_up, tenant.id, FOLLOW_UP + name, due)


def _silent_since(one: Person) -> bool:
    """Whether they have not written since the event, but for what still belonged to it."""
    return one.event_at is None or one.seen is None or one.seen - one.event_at <= AT_ONCE


async def _held(lock: Lock, mine: bool) -> bool:
    try:
        return bool(await (lock.reacquire() if mine else lock.acquire()))
    except (LockError, RedisError, OSError):
        return False
