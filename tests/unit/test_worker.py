"""A worker beside its queue: what it takes in hand, keeps, gives back."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from gateway.inbox.base import Claim, Policy
from gateway.inbox.in_process import InProcessInbox, State
from gateway.messages import InboundMessage
from gateway.room import FIRST, LEAST, Room
from gateway.worker import Worker


class OwnTime(asyncio.SelectorEventLoop):
    """A loop in which time passes when it is said so, and when there is nothing to do but wait."""

    now = 1_000_000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        loop: Any = self
        if not loop._ready and loop._scheduled:
            self.now = max(self.now, loop._scheduled[0].when())
        super()._run_once()  # type: ignore[misc]


def message(user: int) -> InboundMessage:
    return InboundMessage(
        tenant="shop", channel="main", platform="line", event_id="e1", user_id=f"line:U{user}", chat_id=f"U{user}",
        text="hello",
    )  # fmt: skip


def test_a_worker_short_of_cpu_takes_no_more_than_it_can_keep(caplog: pytest.LogCaptureFixture) -> None:
    """A turn takes half a second of CPU six times: all that it may hold at once would be late with every heartbeat."""
    loop, state, tries, stop = OwnTime(), State(), Counter[str](), asyncio.Event()
    inbox = InProcessInbox(state, clock=loop.time)

    async def handle(claim: Claim) -> None:
        tries[claim.conversation] += 1
        for _ in range(6):
            loop.now += 0.5
            await asyncio.sleep(0)
        await inbox.finish(claim, None)
        if not state.conversations:
            stop.set()

    async def work() -> None:
        await inbox.put([(message(user), Policy()) for user in range(200)])
        async with asyncio.timeout(3600):
            await Worker(inbox, handle).run(stop)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(work())
    assert [record.message for record in caplog.records if "claim lost" in record.message] == []
    assert (len(tries), tries.total(), state.dead) == (200, 200, [])


def test_a_claim_taken_anew_by_the_same_worker_is_not_given_up_with_the_lost_one() -> None:
    loop, tries, stop = OwnTime(), [0], asyncio.Event()
    inbox = InProcessInbox(clock=loop.time)

    async def handle(claim: Claim) -> None:
        tries[0] += 1
        if tries[0] == 1:
            inbox.state.leases[claim.conversation] = 0  # it ended: the process was stopped for longer
            await asyncio.Event().wait()
        await asyncio.sleep(8)  # heartbeats come meanwhile
        await inbox.finish(claim, None)
        stop.set()

    async def work() -> None:
        await inbox.put([(message(1), Policy())])
        async with asyncio.timeout(3600):
            await Worker(inbox, handle).run(stop)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(work())
    assert tries == [2]


def test_the_room_shrinks_while_the_loop_is_late_and_grows_while_all_of_it_is_used() -> None:
    room = Room(64, 10.0)
    assert room.size == FIRST
    for _ in range(20):
        room.looked(0.0, room.size, 0.3)
    assert room.size == 64
    room.looked(0.1, 10, 0.3)
    assert room.size == 64
    room.looked(0.2, 64, 0.3)  # slow, but in no danger
    assert room.size == 48
    for _ in range(20):
        room.looked(0.2, room.size, 0.3)
    assert room.size == LEAST
    for _ in range(20):
        room.looked(0.0, room.size, 0.3)
    room.looked(3.0, 64, 0.3)
    assert room.size == 32
    for _ in range(10):
        room.looked(3.0, room.size, 0.3)
    assert room.size == 1
    room.looked(0.0, 0, 0.3)  # nothing to do is no proof of strength
    assert room.size == 1
    room.looked(0.0, 1, 0.3)
    assert room.size == 2


def test_a_worker_whose_core_is_full_leaves_what_it_can_not_speed_up_to_be_claimed_in_turn() -> None:
    room = Room(64, 10.0)
    for _ in range(20):
        room.looked(0.0, room.size, 0.3)  # what is in hand waits for the model
    assert room.size == 64
    for _ in range(20):
        room.looked(0.01, room.size, 0.99)
    assert room.size == LEAST
    few = Room(2, 10.0)
    few.looked(0.01, 2, 0.99)
    assert few.size == 2
