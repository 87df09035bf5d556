"""A worker beside its queue: what it takes in hand, keeps, gives back."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import pytest
from msgspec import structs

from gateway.errors import SendRetry
from gateway.inbox.base import Claim, Policy
from gateway.inbox.in_process import InProcessInbox, State
from gateway.messages import InboundMessage
from gateway.outbox import ClaimLost
from gateway.room import FIRST, HELD, LEAST, Room
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


@pytest.mark.parametrize("hears_first", ["claim", "beat"])
def test_a_turn_whose_conversation_goes_on_at_once_comes_to_its_own_end(
    hears_first: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The queue's answer that a turn is over arrives after the next claim of the same conversation, or a heartbeat."""
    loop, ended, stop = OwnTime(), list[str](), asyncio.Event()
    inbox = InProcessInbox(clock=loop.time)

    async def handle(claim: Claim) -> None:
        if len(ended) == 0 and hears_first == "beat":
            await asyncio.sleep(10 / 3 - 0.01)  # the next heartbeat comes right behind its end
        await inbox.finish(claim, None)
        await asyncio.sleep(0.1)  # for the answer
        ended.append(claim.messages[0].event_id)
        if len(ended) == 3:
            stop.set()

    async def work() -> None:
        batches = [structs.replace(message(1), event_id=str(number), platform="web") for number in range(3)]
        await inbox.put([(one, Policy()) for one in batches])
        async with asyncio.timeout(3600):
            await Worker(inbox, handle).run(stop)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(work())
    assert ended == ["0", "1", "2"]
    assert [record.message for record in caplog.records if "claim lost" in record.message] == []


def test_a_turn_that_waits_for_its_customer_is_no_lost_one_when_they_have_written_already(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What it was to wait for is there: the same messages are claimed again before the queue's answer is read."""
    loop, ended, stop = OwnTime(), list[str](), asyncio.Event()
    inbox = InProcessInbox(clock=loop.time)

    async def handle(claim: Claim) -> None:
        if not ended and claim.outbox is None:
            await inbox.put([(structs.replace(message(1), event_id="next", platform="web"), Policy())])
            assert await inbox.park(claim, b"{}", 60.0)
            await asyncio.sleep(0.1)  # for the answer
            ended.append("parked")
            return
        await asyncio.sleep(0.2)
        await inbox.finish(claim, None)
        ended.append(claim.messages[0].event_id)
        if ended[-1] == "next":
            stop.set()

    async def work() -> None:
        await inbox.put([(structs.replace(message(1), event_id="first", platform="web"), Policy())])
        async with asyncio.timeout(3600):
            await Worker(inbox, handle).run(stop)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(work())
    assert ended == ["parked", "first", "next"]
    assert [record.message for record in caplog.records if "claim lost" in record.message] == []


def test_what_goes_wrong_beside_a_heartbeat_does_not_end_the_next_ones(caplog: pytest.LogCaptureFixture) -> None:
    loop, stop, beats = OwnTime(), asyncio.Event(), [0]
    inbox = InProcessInbox(clock=loop.time)

    async def handle(claim: Claim) -> None:
        await asyncio.sleep(60)  # six leases long
        await inbox.finish(claim, None)
        stop.set()

    async def on_alive() -> None:
        beats[0] += 1
        if beats[0] == 1:
            raise KeyError("somebody's words")

    async def work() -> None:
        await inbox.put([(message(1), Policy())])
        async with asyncio.timeout(3600):
            await Worker(inbox, handle, on_alive=on_alive).run(stop)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(work())
    assert beats[0] > 10
    told = [record.getMessage().partition("\n")[0] for record in caplog.records]
    assert told == ["a heartbeat failed: KeyError"]


@pytest.mark.parametrize("seed", range(5))
def test_however_turns_end_their_places_are_free_again(seed: int) -> None:
    """They answer, raise, lose their claim while they wait for a model or work, or are still at it at the end."""
    loop, stop, luck = OwnTime(), asyncio.Event(), random.Random(seed)
    inbox, room, begun = InProcessInbox(clock=loop.time), Room(16, 10.0), Counter[str]()

    async def handle(claim: Claim) -> None:
        begun[claim.conversation] += 1
        how = luck.choice(("answers", "raises", "loses", "gives up", "retries"))
        if begun.total() >= 150:
            stop.set()
            how = luck.choice(("answers", "never"))
        await asyncio.sleep(luck.random())
        try:
            with room.resting:
                await asyncio.sleep(3 * luck.random())
                if how == "never":
                    await asyncio.Event().wait()
                if how == "raises":
                    raise ValueError
                if how == "loses":
                    inbox.state.leases[claim.conversation] = 0
                    await asyncio.sleep(30)
                if how == "retries":
                    raise SendRetry("in a moment", 1.0)
                if how == "gives up":
                    raise ClaimLost
        except ValueError:
            with room.resting:
                await asyncio.sleep(luck.random())
            raise
        await inbox.finish(claim, None)

    async def work() -> None:
        await inbox.put([(message(user), Policy()) for user in range(60)])
        async with asyncio.timeout(3600):
            await Worker(inbox, handle, room=room, grace=5.0).run(stop)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(work())
    assert (begun.total() >= 150, room.held, room.resting.count, room.working) == (True, 0, 0, 0)


def looked(room: Room, held: int, late: float, busy: float, times: int = 1) -> int:
    """Its size after so many looks with `held` in hand; 0: as many as it takes each time."""
    for _ in range(times):
        room.held = held or room.size
        room.looked(late, busy)
    return room.size


def test_the_room_shrinks_while_the_loop_is_late_and_grows_while_all_of_it_is_used() -> None:
    room = Room(64, 10.0)
    assert room.size == FIRST
    assert looked(room, 0, 0.0, 0.3, times=20) == 64
    assert looked(room, 10, 0.1, 0.3) == 64
    assert looked(room, 64, 0.2, 0.3) == 48  # slow, but in no danger
    assert looked(room, 0, 0.2, 0.3, times=20) == LEAST
    looked(room, 0, 0.0, 0.3, times=20)
    assert looked(room, 64, 3.0, 0.3) == 32
    assert looked(room, 0, 3.0, 0.3, times=10) == 1
    room.held = 0
    room.looked(0.0, 0.3)  # nothing to do is no proof of strength
    assert room.size == 1
    assert looked(room, 1, 0.0, 0.3) == 2


def test_a_worker_whose_core_is_full_leaves_what_it_can_not_speed_up_to_be_claimed_in_turn() -> None:
    room = Room(64, 10.0)
    assert looked(room, 0, 0.0, 0.3, times=20) == 64
    assert looked(room, 0, 0.01, 0.99, times=20) == LEAST
    few = Room(2, 10.0)
    assert looked(few, 2, 0.01, 0.99) == 2


def test_who_waits_for_a_model_takes_nobodys_place() -> None:
    room = Room(8, 10.0)
    looked(room, 0, 0.01, 0.99, times=20)
    room.held = LEAST
    assert (room.working, room.free) == (LEAST, 0)
    with room.resting, room.resting:
        assert (room.working, room.free) == (LEAST - 2, 2)
    assert room.free == 0
    room.held = HELD * 8
    with room.resting:
        room.resting.count = room.held
        assert room.free == 0  # each of them holds a session and a lease
        room.resting.count = 1
    room.held, room.size = 20, 8
    room.resting.count = 20
    room.looked(3.0, 0.3)  # late by what else the machine does: nobody is to be found working at nothing
    assert room.size == 4


def test_a_full_core_and_a_slow_model_do_not_hold_each_other_up() -> None:
    """A turn takes 10 ms of the core and waits 3 s for its model: 100 a second need 300 in hand."""
    loop, stop, done = OwnTime(), asyncio.Event(), [0]
    inbox = InProcessInbox(clock=loop.time)
    room = Room(96, 10.0)

    async def handle(claim: Claim) -> None:
        loop.now += 0.005
        with room.resting:
            await asyncio.sleep(3)
        loop.now += 0.005
        await inbox.finish(claim, None)
        done[0] += 1
        if done[0] == 1000:
            stop.set()

    async def work() -> float:
        await inbox.put([(message(user), Policy()) for user in range(1000)])
        began = loop.time()
        async with asyncio.timeout(3600):
            await Worker(inbox, handle, room=room).run(stop)
        return loop.time() - began

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        assert runner.run(work()) < 20
