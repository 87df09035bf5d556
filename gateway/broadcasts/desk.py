"""What staff do with broadcasts, on the command line and over HTTP: preview, send, pause, resume, cancel."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from zoneinfo import ZoneInfo

from config.broadcasts import quiet
from config.tenants import Tenant
from config.texts import Text
from config.variables import filled_in, unknown_in
from gateway.broadcasts.audience import Audiences, Person, Selection
from gateway.broadcasts.costs import Cost, Costs
from gateway.broadcasts.draft import Draft
from gateway.broadcasts.store import Broadcast, BroadcastStore, New, Recipient, State
from gateway.errors import GatewayFault
from gateway.personal import put_in
from gateway.texts import Tongue
from processors.models import iso

SAMPLES = 3
FOLLOW_UP = "follow-up-"  # how the ids of these begin; a broadcast's own may not


class Refused(GatewayFault):
    """It can't be done as asked; the message says why, and what to do."""


class NoSuch(GatewayFault):
    """There is no such broadcast."""


@dataclass(frozen=True, slots=True)
class Sample:
    user: str
    channel: str
    text: str


@dataclass(frozen=True, slots=True)
class Preview:
    """`by_channel`: who would get it; `left_out`: who fits as well and would not, by reason. `refused`: why it can't be
    sent at all; `confirm`: what has to be confirmed first. Both "" where nothing stands against it."""

    people: int
    by_channel: Mapping[str, int]
    left_out: Mapping[str, int]
    costs: Sequence[Cost]
    own_left: int | None
    samples: Sequence[Sample]
    quiet: bool
    refused: str
    confirm: str


@dataclass(frozen=True, slots=True)
class Report:
    """A broadcast with what became of its recipients: `left_out` and `failed` by reason."""

    broadcast: Broadcast
    people: int
    waiting: int
    under_way: int
    sent: int
    left_out: Mapping[str, int]
    failed: Mapping[str, int]


class Desk:
    """Raises Refused, NoSuch, BroadcastsUnavailable; MemoryFault and RedisError for what can't be asked just now."""

    def __init__(
        self, store: BroadcastStore, audiences: Audiences, costs: Costs, clock: Callable[[], datetime]
    ) -> None:
        self._store = store
        self._audiences = audiences
        self._costs = costs
        self._clock = clock

    async def preview(self, tenant: Tenant, draft: Draft) -> Preview:
        return await self._preview(tenant, draft, await self._audiences.select(tenant, draft.to))

    async def send(
        self, tenant: Tenant, draft: Draft, *, by: str, name: str | None = None, confirmed: bool = False
    ) -> tuple[Report, bool]:
        """Taken up, to be sent by a worker; and whether it is new. `name` is its id: sent again under the same one it
        is sent once. `confirmed`: also beyond LINE's quota."""
        kept = draft.model_copy(update={"to": draft.to.model_copy(update={"users": ()})}).model_dump_json()
        now = self._clock()
        if name is not None:
            if name.startswith(FOLLOW_UP):
                raise Refused(f"an id can't begin with {FOLLOW_UP}: follow-ups have these")
            there = await asyncio.to_thread(self._store.get, tenant.id, name)
            if there is not None and there.draft != kept:
                raise Refused(f"there is a broadcast {name} already, and it says something else: choose another id")
            if there is not None:
                return await self._report(tenant, there), False
        local = now.astimezone(ZoneInfo(tenant.timezone))
        name = name or f"{local:%Y%m%d-%H%M}-{secrets.token_hex(2)}"
        chosen = await self._audiences.select(tenant, draft.to)
        seen = await self._preview(tenant, draft, chosen)
        if seen.refused:
            raise Refused(seen.refused)
        if seen.confirm and not confirmed:
            raise Refused(seen.confirm)
        broadcast = Broadcast(
            name, "once", "running", "", iso(now), "", by, kept, bool(seen.confirm), dict(chosen.left_out)
        )
        people = [new_of(one) for one in chosen.people]
        new = await asyncio.to_thread(self._store.add, tenant.id, broadcast, people)
        return await self.show(tenant, name), new

    async def all(self, tenant: Tenant) -> list[Broadcast]:
        """The newest first."""
        return await asyncio.to_thread(self._store.all, tenant.id)

    async def show(self, tenant: Tenant, name: str) -> Report:
        return await self._report(tenant, await self._known(tenant, name))

    async def recipients(self, tenant: Tenant, name: str, after: str, limit: int) -> list[Recipient]:
        """By id, those that come after `after`."""
        await self._known(tenant, name)
        return await asyncio.to_thread(self._store.page, tenant.id, name, after, limit)

    async def pause(self, tenant: Tenant, name: str, by: str) -> Report:
        """What is not yet on its way waits."""
        return await self._turned(tenant, name, "paused", f"paused by {by}", ("running", "paused"))

    async def resume(self, tenant: Tenant, name: str) -> Report:
        return await self._turned(tenant, name, "running", "", ("running", "paused"))

    async def cancel(self, tenant: Tenant, name: str, by: str) -> Report:
        """For good: who still waits gets nothing."""
        known = await self._known(tenant, name)
        if known.kind == "follow_up":
            raise Refused(f"{name} stands in the tenant's file: remove it there, or pause it")
        return await self._turned(tenant, name, "cancelled", f"cancelled by {by}", ("running", "paused", "cancelled"))

    async def _turned(self, tenant: Tenant, name: str, to: State, why: str, only: Sequence[State]) -> Report:
        known = await self._known(tenant, name)
        if known.state != to:
            turn = partial(self._store.turn, tenant.id, name, to, why, self._clock(), only=only)
            done = await asyncio.to_thread(turn)
            if not done:
                raise Refused(f"{name} is {known.state}: nothing is left to be done with it")
        return await self.show(tenant, name)

    async def _known(self, tenant: Tenant, name: str) -> Broadcast:
        found = await asyncio.to_thread(self._store.get, tenant.id, name)
        if found is None:
            raise NoSuch(f"there is no broadcast {name}")
        return found

    async def _report(self, tenant: Tenant, broadcast: Broadcast) -> Report:
        counts = await asyncio.to_thread(self._store.counts, tenant.id, broadcast.id)

        def of(fate: str) -> dict[str, int]:
            return {why: number for (one, why), number in sorted(counts.items()) if one == fate}

        left_out = Counter(broadcast.left_out) + Counter(of("left_out"))
        waiting, under_way, sent = (sum(of(fate).values()) for fate in ("waiting", "queued", "sent"))
        return Report(broadcast, sum(counts.values()), waiting, under_way, sent, dict(left_out), of("failed"))

    async def _preview(self, tenant: Tenant, draft: Draft, chosen: Selection) -> Preview:
        by_channel = Counter(one.customer.channel for one in chosen.people)
        promised = await asyncio.to_thread(self._store.waiting, tenant.id)
        costs = await self._costs.of(tenant, by_channel, promised)
        own_left = await self._costs.own_left(tenant, promised)
        said = [
            (one, said_to(tenant, draft.message, one.language, one.name or "", self._clock()))
            for one in chosen.people[:SAMPLES]
        ]
        return Preview(
            people=len(chosen.people),
            by_channel=dict(sorted(by_channel.items())),
            left_out=dict(sorted(chosen.left_out.items())),
            costs=costs,
            own_left=own_left,
            samples=[Sample(one.user, one.customer.channel, text) for one, text in said],
            quiet=quiet(tenant, self._clock()),
            refused=_refused(tenant, draft, len(chosen.people), costs, own_left),
            confirm=_to_confirm(costs),
        )


def new_of(person: Person) -> New:
    heard = person.seen.timestamp() if person.seen else 0.0
    return New(person.user, person.ids, person.customer, person.language, heard)


def said_to(tenant: Tenant, message: Text, language: Tongue, name: str, now: datetime) -> str:
    """The text as this person would read it at `now`."""
    return put_in(tenant, filled_in(tenant, message).within(language), language, name, now)


def _refused(tenant: Tenant, draft: Draft, people: int, costs: Sequence[Cost], own_left: int | None) -> str:
    if wrong := [*unknown_in(tenant, draft.message)]:
        return f"the message has a variable that is not known: {wrong[0]}"
    if not people:
        return "nobody would get it: see who was left out, or ask for others"
    pushes = sum(one.pushes for one in costs)
    if own_left is not None and pushes > own_left:
        return (
            f"it takes {pushes} LINE pushes, and of the shop's own limit (broadcasts.monthly_pushes) {own_left} are"
            " left this month: raise it in the tenant's file, or write to fewer people"
        )
    return ""


def _to_confirm(costs: Sequence[Cost]) -> str:
    for one in costs:
        if not one.known:
            return (
                f"it takes {one.pushes} LINE pushes on {one.channel}, and LINE can't be asked now how many are left:"
                " confirm that it may use them up"
            )
        if not one.fits:
            return (
                f"it takes {one.pushes} LINE pushes on {one.channel}, and {one.left} are left of the month's quota:"
                f" confirm that {one.left} people are enough and answers can't be pushed any more this month, or write"
                " to fewer"
            )
    return ""
