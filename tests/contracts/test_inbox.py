"""What every inbox does, in Redis and in this process."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import uvloop
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway.errors import InboxUnavailable
from gateway.inbox.base import Inbox, Outcome, Policy, SessionWrite
from gateway.inbox.in_process import InProcessInbox, State
from gateway.inbox.redis import RedisInbox
from gateway.inbox.spread_inbox import SpreadInbox
from gateway.messages import InboundMessage
from gateway.pacing import Limit
from gateway.redis_server import find_binary
from memory.redis_client import connect

AT_ONCE = Policy()
MakeInbox = Callable[..., Awaitable[Inbox]]


def message(
    event: str, user: str = "line:U1", *, tenant: str = "shop", text: str = "hello", **fields: str
) -> InboundMessage:
    return InboundMessage(
        tenant=tenant, channel="main", platform="line", event_id=event, user_id=user, chat_id=user, text=text, **fields
    )


def written(rev: int, text: str = "x") -> SessionWrite:
    value = f'{{"rev":{rev + 1},"text":"{text}"}}'.encode()
    return SessionWrite(value=value, rev=rev, ttl_ms=60_000, member="[]", score="1")


@pytest.fixture(params=["redis", "spread", "cluster", "in_process"])
async def make_inbox(request: pytest.FixtureRequest) -> AsyncIterator[MakeInbox]:
    """Workers of one queue: each call makes another one."""
    made: list[Inbox] = []
    state = State()
    servers = {"redis": "redis_url", "spread": "redis_url", "cluster": "cluster_url"}
    url = request.getfixturevalue(servers[request.param]) if request.param in servers else ""

    async def make(worker: str = "1", lease: float = 10.0) -> Inbox:
        if request.param == "redis":
            inbox: Inbox = RedisInbox(connect(url, retries=0), worker, lease=lease)
        elif request.param in servers:
            inbox = SpreadInbox(connect(url, retries=0), worker, lease=lease, shards=3)
        else:
            inbox = InProcessInbox(state, worker, lease=lease)
        made.append(inbox)
        return inbox

    yield make
    for inbox in made:
        await inbox.close()


async def claim_one(inbox: Inbox, patience: float = 5.0):
    """The next claim, waited for as a worker would."""
    async with asyncio.timeout(patience):
        while True:
            if found := (await inbox.claim(1, 0.5)).claims:
                return found[0]


async def test_a_message_is_claimed_once_and_gone_when_finished(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    assert await inbox.put([(message("e1"), AT_ONCE)]) == [True]
    claim = (await inbox.claim(5)).claims[0]
    assert [m.event_id for m in claim.messages] == ["e1"]
    assert (claim.attempts, claim.session, claim.outbox) == (1, None, None)
    assert (await inbox.claim(5)).claims == ()
    assert await inbox.finish(claim, None) == (Outcome.DONE, None)
    assert (await inbox.claim(5)).claims == ()
    depth = await inbox.depth()
    assert (depth.ready, depth.due, depth.leased, depth.dead) == (0, 0, 0, 0)


async def test_the_same_delivery_again_is_not_kept_again(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    assert await inbox.put([(message("e1"), AT_ONCE), (message("e1"), AT_ONCE)]) == [True, False]
    claim = await claim_one(inbox)
    assert await inbox.put([(message("e1"), AT_ONCE)]) == [False]
    await inbox.finish(claim, None)
    assert await inbox.put([(message("e1"), AT_ONCE)]) == [False]
    assert (await inbox.claim(5)).claims == ()


async def test_the_same_event_id_of_another_channel_or_tenant_is_another_event(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    events = [message("e1"), message("e1", tenant="other")]
    assert await inbox.put([(event, AT_ONCE) for event in events]) == [True, True]


async def test_a_conversation_is_handled_one_batch_at_a_time_in_order(make_inbox: MakeInbox) -> None:
    first, second = await make_inbox("1"), await make_inbox("2")
    await first.put([(message("e1"), AT_ONCE)])
    claim = await claim_one(first)
    await second.put([(message("e2"), AT_ONCE), (message("e3"), AT_ONCE)])
    assert (await second.claim(5)).claims == ()
    await first.finish(claim, None)
    following = await claim_one(second)
    assert [m.event_id for m in following.messages] == ["e2", "e3"]


async def test_what_is_moved_stands_behind_what_was_there_and_the_rest_follows_in_order(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    there = "sm:shop:line:U1"
    await inbox.put([(message("1"), AT_ONCE), (message("t1", "telegram:7"), AT_ONCE)])
    claims = [await claim_one(inbox), await claim_one(inbox)]
    held, moving = sorted(claims, key=lambda claim: claim.conversation)
    await inbox.put([(message("t2", "telegram:7", text="/start"), AT_ONCE)])
    assert await inbox.move(moving, there)
    assert await inbox.put([(message("t3", "telegram:7", text="/help"), AT_ONCE)]) == [True]
    assert (await inbox.claim(5)).claims == ()  # the other conversation is held: they wait for it
    assert await inbox.finish(held, None) == (Outcome.DONE, None)
    seen = []
    while (await inbox.depth()).ready:
        claim = await claim_one(inbox)
        assert claim.conversation == there
        seen += [one.event_id for one in claim.messages]
        await inbox.finish(claim, None)
    assert seen == ["t1", "t2", "t3"]


async def test_a_delivery_is_known_whatever_its_senders_id_was_merged_into_meanwhile(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("t1", "telegram:7"), AT_ONCE)])
    assert await inbox.move(await claim_one(inbox), "sm:shop:line:U1")
    assert await inbox.put([(message("t1", "telegram:7"), AT_ONCE)]) == [False]


async def test_a_claim_that_was_lost_moves_nothing(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("t1", "telegram:7"), AT_ONCE)])
    claim = await claim_one(inbox)
    await inbox.finish(claim, None)
    assert not await inbox.move(claim, "sm:shop:line:U1")
    await inbox.put([(message("t2", "telegram:7"), AT_ONCE)])
    assert (await claim_one(inbox)).conversation == "sm:shop:telegram:7"


async def test_what_came_to_the_wrong_conversation_goes_home_and_what_follows_too(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("t1", "telegram:7"), AT_ONCE)])
    await inbox.move(await claim_one(inbox), "sm:shop:line:U1")
    claim = await claim_one(inbox)
    await inbox.put([(message("2"), AT_ONCE)])
    assert await inbox.move(claim, "sm:shop:telegram:7")  # they were parted again
    await inbox.put([(message("t2", "telegram:7"), AT_ONCE)])
    found = [await claim_one(inbox), await claim_one(inbox)]
    assert {one.conversation: [m.event_id for m in one.messages] for one in found} == {
        "sm:shop:line:U1": ["2"],
        "sm:shop:telegram:7": ["t1", "t2"],
    }


async def test_conversations_do_not_wait_for_each_other(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("e1", "line:U1"), AT_ONCE), (message("e2", "line:U2"), AT_ONCE)])
    claims = (await inbox.claim(5)).claims
    assert {claim.conversation for claim in claims} == {"sm:shop:line:U1", "sm:shop:line:U2"}


async def test_tenants_take_turns(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    flood = [(message(f"f{n}", f"line:U{n}", tenant="loud"), AT_ONCE) for n in range(20)]
    await inbox.put(flood)
    await inbox.put([(message("q1", tenant="quiet"), AT_ONCE)])
    shards = 3 if isinstance(inbox, SpreadInbox) else 1  # which take turns themselves
    tenants = [claim.messages[0].tenant for claim in (await inbox.claim(2 * shards)).claims]
    assert sorted(tenants) == ["loud"] * (2 * shards - 1) + ["quiet"]


async def test_quick_messages_are_answered_together_after_the_pause(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    waits = Policy(debounce=150, debounce_max=1000)
    await inbox.put([(message("e1"), waits)])
    assert (await inbox.claim(5)).claims == ()
    await inbox.put([(message("e2"), waits)])
    claim = await claim_one(inbox)
    assert [m.event_id for m in claim.messages] == ["e1", "e2"]


async def test_a_stream_of_messages_is_not_put_off_for_ever(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    waits = Policy(debounce=200, debounce_max=300)
    started = asyncio.get_running_loop().time()
    number = 0
    claim = None
    while claim is None:
        await inbox.put([(message(f"e{number}"), waits)])
        number += 1
        found = (await inbox.claim(1)).claims
        claim = found[0] if found else None
        assert asyncio.get_running_loop().time() - started < 5
        await asyncio.sleep(0.02)  # the customer types on
    assert asyncio.get_running_loop().time() - started < 1.5


async def test_messages_of_another_channel_or_a_command_are_not_answered_together(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    events = [message("e1"), message("e2", text="/reset"), message("e3"), message("e4")]
    await inbox.put([(event, AT_ONCE) for event in events])
    batches = []
    for _ in range(3):
        claim = await claim_one(inbox)
        batches.append([m.event_id for m in claim.messages])
        await inbox.finish(claim, None)
    assert batches == [["e1"], ["e2"], ["e3", "e4"]]


async def test_a_batch_stays_as_it_was_claimed(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("e1"), AT_ONCE)])
    claim = await claim_one(inbox)
    await inbox.put([(message("e2"), AT_ONCE)])
    assert await inbox.intent(claim, b"about to send") == 0.0
    await inbox.fail(claim, 0)
    again = await claim_one(inbox)
    assert [m.event_id for m in again.messages] == ["e1"]
    assert (again.attempts, again.outbox) == (2, b"about to send")


async def test_a_note_is_on_record_before_whatever_is_asked_next(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("e1"), AT_ONCE)])
    claim = await claim_one(inbox)
    note = inbox.note(claim, b"sent")  # and nobody waits for it
    await inbox.fail(claim, 0)
    again = await claim_one(inbox)
    assert again.outbox == (None if note is None else b"sent")
    assert note is None or note.result() == [0]
    late = inbox.note(claim, b"too late")
    assert late is None or await late == [-1]


async def test_after_a_failure_messages_are_tried_singly(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("e1"), AT_ONCE), (message("e2"), AT_ONCE)])
    claim = await claim_one(inbox)
    assert len(claim.messages) == 2
    await inbox.fail(claim, 0, why="poison")
    again = await claim_one(inbox)
    assert ([m.event_id for m in again.messages], again.failure) == (["e1"], "poison")
    await inbox.finish(again, None, "could not be handled")
    rest = await claim_one(inbox)
    assert ([m.event_id for m in rest.messages], rest.attempts) == (["e2"], 1)
    assert (await inbox.depth()).dead == 1


async def test_a_pause_after_a_failure_is_kept_though_more_arrives(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("e1"), AT_ONCE)])
    claim = await claim_one(inbox)
    await inbox.fail(claim, 30)
    await inbox.put([(message("e2"), AT_ONCE)])
    found = await inbox.claim(5)
    assert found.claims == ()
    assert found.next_due is not None
    assert 25 < found.next_due <= 30


async def test_a_claim_handed_back_uncounted_does_not_use_up_a_try(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("e1"), AT_ONCE)])
    await inbox.fail(await claim_one(inbox), 0, counted=False)
    assert (await claim_one(inbox)).attempts == 1


async def test_a_dead_workers_conversation_is_taken_over_and_the_dead_one_can_do_nothing(make_inbox: MakeInbox) -> None:
    dead, alive = await make_inbox("1", 0.2), await make_inbox("2", 10.0)
    await dead.put([(message("e1"), AT_ONCE)])
    claim = await claim_one(dead)
    taken = await claim_one(alive)
    assert (taken.messages, taken.attempts) == (claim.messages, 2)
    assert await dead.intent(claim, b"too late") is None
    assert await dead.beat([claim]) == {claim.conversation}
    assert await dead.finish(claim, written(0)) == (Outcome.LOST, None)
    assert not await dead.fail(claim, 0)
    assert await alive.finish(taken, None) == (Outcome.DONE, None)


async def test_a_heartbeat_keeps_a_claim(make_inbox: MakeInbox) -> None:
    probe = await make_inbox()
    lease = 2.0 if isinstance(probe, SpreadInbox) else 0.4  # a busy machine takes its time over several servers
    holder, other = await make_inbox("1", lease), await make_inbox("2", lease)
    await holder.put([(message("e1"), AT_ONCE)])
    claim = await claim_one(holder)
    until = asyncio.get_running_loop().time() + 1.25 * lease + 0.5
    while asyncio.get_running_loop().time() < until:
        assert await holder.beat([claim]) == set()
        assert (await other.claim(1)).claims == ()
        await asyncio.sleep(0.1)
    assert await holder.finish(claim, None) == (Outcome.DONE, None)


async def test_what_kills_every_worker_is_buried_by_the_queue_itself(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("e1"), Policy(max_attempts=2)), (message("e2"), Policy(max_attempts=2))])
    for attempt in range(1, 6):
        claim = await claim_one(inbox)
        assert (claim.attempts, claim.messages[0].event_id) == (attempt, "e1")
        await inbox.fail(claim, 0)
    assert (await claim_one(inbox)).messages[0].event_id == "e2"
    assert (await inbox.depth()).dead == 1


async def test_what_changes_its_place_while_it_is_counted_is_counted_once(make_inbox: MakeInbox) -> None:
    worker, looker = await make_inbox("1"), await make_inbox("2")
    await worker.put([(message("e1"), AT_ONCE)])
    working = True

    async def work() -> None:
        nonlocal working
        for _ in range(30 if isinstance(worker, SpreadInbox) else 300):
            await worker.fail(await claim_one(worker), 0, counted=False)
            await asyncio.sleep(0)
        working = False

    counts = set()
    task = asyncio.create_task(work())
    while working:
        depth = await looker.depth()
        counts.add(depth.ready + depth.due + depth.leased)
        await asyncio.sleep(0)
    await task
    assert counts == {1}


async def test_the_session_is_written_with_the_end_of_the_turn(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("e1"), AT_ONCE)])
    assert await inbox.finish(await claim_one(inbox), written(0)) == (Outcome.DONE, None)
    await inbox.put([(message("e2"), AT_ONCE)])
    claim = await claim_one(inbox)
    assert claim.session == written(0).value
    outcome, stored = await inbox.finish(claim, written(0, "stale"))
    assert (outcome, stored) == (Outcome.CONFLICT, written(0).value)
    assert await inbox.finish(claim, written(1)) == (Outcome.DONE, None)


async def test_a_waiting_worker_is_given_what_comes(make_inbox: MakeInbox) -> None:
    inbox, sender = await make_inbox("1"), await make_inbox("2")
    assert (await inbox.claim(1)).claims == ()
    waiting = asyncio.create_task(inbox.claim(1, 3.5))
    await asyncio.sleep(0)
    loop = asyncio.get_running_loop()
    started = loop.time()
    await sender.put([(message("e1"), AT_ONCE)])
    assert [one.event_id for claim in (await waiting).claims for one in claim.messages] == ["e1"]
    assert loop.time() - started < 3.4  # unasked it comes back after 3.5


async def test_who_leaves_something_ready_wakes_another(make_inbox: MakeInbox) -> None:
    first, second = await make_inbox("1"), await make_inbox("2")
    assert (await second.claim(2)).claims == ()
    waiting = asyncio.create_task(second.claim(2, 60.0))
    await first.put([(message(f"e{n}", f"line:U{n}"), AT_ONCE) for n in range(3)])
    async with asyncio.timeout(60):
        found = [*(await first.claim(2, 60.0)).claims, *(await waiting).claims]
        while len(found) < 3:
            found += (await second.claim(2, 60.0)).claims
    assert len({claim.conversation for claim in found}) == 3


async def test_a_worker_that_waits_again_and_again_is_given_each_message(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    async with asyncio.timeout(60):
        for number in range(5):
            waiting = asyncio.create_task(inbox.claim(5, 60.0))
            await asyncio.sleep(0.01 * number)
            await inbox.put([(message(f"e{number}"), AT_ONCE)])
            claims = (await waiting).claims
            while not claims:
                claims = (await inbox.claim(5, 60.0)).claims
            assert [one.event_id for one in claims[0].messages] == [f"e{number}"]
            assert (await inbox.finish(claims[0], None))[0] is Outcome.DONE


async def test_what_waits_for_its_time_is_given_then_to_who_waits(make_inbox: MakeInbox) -> None:
    inbox, loop = await make_inbox(), asyncio.get_running_loop()
    assert (await inbox.claim(5)).claims == ()
    waiting = asyncio.create_task(inbox.claim(5, 60.0))
    await asyncio.sleep(0)
    began = loop.time()
    await inbox.put([(message("e1"), Policy(debounce=300, debounce_max=300))])
    async with asyncio.timeout(60):
        claims = (await waiting).claims
        while not claims:
            claims = (await inbox.claim(5, 60.0)).claims
    assert 0.29 <= loop.time() - began < 1.5  # an unasked look comes later


async def test_what_is_due_earlier_than_was_known_is_given_then_to_who_waits(make_inbox: MakeInbox) -> None:
    inbox, sender, loop = await make_inbox(), await make_inbox("2"), asyncio.get_running_loop()
    await inbox.put([(message("1"), AT_ONCE)])
    assert await inbox.park(await claim_one(inbox), b"answer", 3600)
    assert (await inbox.claim(5)).claims == ()  # from here on it knows when that is
    waiting = asyncio.create_task(inbox.claim(5, 60.0))
    await asyncio.sleep(0.05)
    began = loop.time()
    await sender.put([(message("2"), Policy(debounce=300, debounce_max=3000))])
    async with asyncio.timeout(60):
        claims = (await waiting).claims
        while not claims:
            claims = (await inbox.claim(5, 60.0)).claims
    assert 0.29 <= loop.time() - began < 1.5


async def test_who_is_to_stop_does_not_wait(make_inbox: MakeInbox) -> None:
    inbox, loop = await make_inbox(), asyncio.get_running_loop()
    stop = loop.create_future()
    assert (await inbox.claim(5)).claims == ()
    loop.call_later(0.05, stop.set_result, None)
    began = loop.time()
    async with asyncio.timeout(60):
        assert (await inbox.claim(5, 600.0, stop)).claims == ()
        assert (await inbox.claim(5, 600.0, stop)).claims == ()
    assert loop.time() - began < 1.5
    await inbox.put([(message("e1"), AT_ONCE)])  # nothing of it takes anything out any more
    other = await make_inbox("2")
    assert len((await other.claim(5)).claims) == 1


async def test_what_was_given_to_who_waited_and_never_heard_of_it_is_given_to_them_again(redis_url: str) -> None:
    client = connect(redis_url, retries=0)
    inbox, other = RedisInbox(client, "1"), RedisInbox(connect(redis_url, retries=0), "2")
    assert (await inbox.claim(5)).claims == ()
    async with asyncio.timeout(60):
        waiting = asyncio.create_task(inbox.claim(5, 60.0))
        while not (await client.info("clients"))["blocked_clients"]:
            await asyncio.sleep(0.01)
        client.waiting._wire._transport.pause_reading()  # type: ignore[attr-defined]
        await other.put([(message("e1"), AT_ONCE)])
        while (await other.depth()).leased == 0:
            await asyncio.sleep(0.01)
        client.waiting.end()  # type: ignore[attr-defined]
        with pytest.raises(InboxUnavailable):
            await waiting
        assert (await other.claim(5)).claims == ()
        [claim] = (await inbox.claim(5, 60.0)).claims
    assert ([one.event_id for one in claim.messages], claim.attempts) == (["e1"], 1)
    assert await inbox.finish(claim, None) == (Outcome.DONE, None)
    await other.close()
    await inbox.close()


async def test_sends_keep_to_a_limit_over_all_workers(make_inbox: MakeInbox) -> None:
    first, second = await make_inbox("1"), await make_inbox("2")
    limit = (Limit("cc:pace:shop:main", 1000, 2),)
    await first.put([(message("e1", "line:U1"), AT_ONCE), (message("e2", "line:U2"), AT_ONCE)])
    one, two = await claim_one(first), await claim_one(second)
    assert await first.intent(one, b"1", limit) == 0.0
    assert await second.intent(two, b"1", limit) == 0.0
    wait = await second.intent(two, b"2", limit)
    assert wait is not None
    assert 0.5 < wait <= 1.0
    assert not await first.may_pass(limit)
    await first.fail(two, 0)
    assert (await claim_one(first)).outbox == b"1"  # what had to wait is not on record


async def test_a_platforms_pause_holds_for_all_workers(make_inbox: MakeInbox) -> None:
    first, second = await make_inbox("1"), await make_inbox("2")
    limit = (Limit("cc:pace:shop:main", 40, 5),)
    await first.hold(limit, 7)
    await second.put([(message("e1"), AT_ONCE)])
    wait = await second.intent(await claim_one(second), b"1", limit)
    assert wait is not None
    assert 6 < wait <= 7.1
    assert await second.may_pass((Limit("cc:pace:shop:other", 40, 5),))


async def test_what_arrives_ends_the_pause_of_a_batch_that_waits_for_it(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("1"), AT_ONCE)])
    assert await inbox.park(await claim_one(inbox), b"answer", 3600)
    assert (await inbox.claim(1)).claims == ()
    await inbox.put([(message("2"), AT_ONCE)])
    claim = await claim_one(inbox)
    assert ([m.event_id for m in claim.messages], claim.outbox, claim.attempts) == (["1"], b"answer", 1)
    assert [m.event_id for m in await inbox.behind(claim)] == ["2"]


async def test_a_pause_after_a_failure_is_not_ended_by_what_arrives(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("1"), AT_ONCE)])
    assert await inbox.park(await claim_one(inbox), b"answer", 3600)
    await inbox.put([(message("2"), AT_ONCE)])
    await inbox.fail(await claim_one(inbox), 3600)
    await inbox.put([(message("3"), AT_ONCE)])
    assert (await inbox.claim(1)).claims == ()


async def test_what_a_batch_leaves_to_deliver_comes_with_the_next_and_only_then(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("1"), AT_ONCE)])
    first = await claim_one(inbox)
    assert await inbox.finish(first, None, carry=b"answer") == (Outcome.LOST, None)  # there is nobody to take it
    await inbox.put([(message("2", text="/help"), AT_ONCE), (message("3", text="/help"), AT_ONCE)])
    assert await inbox.finish(first, None, carry=b"answer") == (Outcome.DONE, None)
    second = await claim_one(inbox)
    assert (second.messages[0].event_id, second.carried) == ("2", b"answer")
    await inbox.fail(second, 0)
    second = await claim_one(inbox)
    assert (second.messages[0].event_id, second.carried) == ("2", b"answer")
    await inbox.finish(second, None)
    assert (await claim_one(inbox)).carried is None


async def carrying(inbox: Inbox, *more: tuple[InboundMessage, Policy]) -> None:
    """An answer is left to be delivered with the next message."""
    await inbox.put([(message("1"), Policy(max_attempts=1))])
    first = await claim_one(inbox)
    await inbox.put([(message("2"), Policy(max_attempts=1)), *more])
    assert await inbox.finish(first, None, carry=b"answer") == (Outcome.DONE, None)


async def carried(inbox: Inbox) -> list[bytes | None]:
    """What stands in the dead letters besides their messages."""
    if isinstance(inbox, InProcessInbox):
        return [owed for *_, owed, _ in inbox.state.dead]
    assert isinstance(inbox, RedisInbox)
    return [fields.get(b"carried") for _, fields in await inbox._redis.xrange("cc:dead:shop")]


async def test_what_was_to_be_delivered_with_a_dead_batch_stands_in_its_letter(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await carrying(inbox)
    second = await claim_one(inbox)
    assert await inbox.finish(second, None, "poison", carry=second.carried) == (Outcome.DONE, None)
    assert await carried(inbox) == [b"answer"]
    await inbox.put([(message("3"), AT_ONCE)])
    assert (await claim_one(inbox)).carried is None


async def test_what_was_to_be_delivered_with_what_kills_every_worker_stands_in_its_letter(
    make_inbox: MakeInbox,
) -> None:
    inbox = await make_inbox()
    await carrying(inbox)
    for _ in range(4):
        await inbox.fail(await claim_one(inbox), 0)
    assert (await inbox.claim(1)).claims == ()
    assert await carried(inbox) == [b"answer"]


async def test_what_was_to_be_delivered_goes_with_what_waits_behind_the_dead(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await carrying(inbox, (message("3", text="/help"), Policy(max_attempts=1)))
    for _ in range(4):
        await inbox.fail(await claim_one(inbox), 0)
    third = await claim_one(inbox)
    assert (third.messages[0].event_id, third.carried) == ("3", b"answer")
    assert await carried(inbox) == [None]


async def test_a_pause_that_waits_for_the_customer_does_not_begin_when_they_have_come(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("e1"), AT_ONCE)])
    claim = await claim_one(inbox)
    await inbox.put([(message("e2"), AT_ONCE)])  # between the holder's look and its word to wait
    assert await inbox.park(claim, b"an answer", 60)
    again = await claim_one(inbox)
    assert ([m.event_id for m in again.messages], again.outbox) == (["e1"], b"an answer")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("met_before", [False, True])
def test_a_put_that_nobody_took_is_known_to_stand_nowhere(loop: str, met_before: bool) -> None:
    """What may stand in the inbox is left to it, so this decides whether a customer is answered while Redis is away."""
    runner = uvloop.run if loop == "uvloop" else asyncio.run
    with tempfile.TemporaryDirectory(prefix="cc-", dir="/tmp") as folder:

        async def put_away() -> bool:
            command = [find_binary(), "--port", "0", "--unixsocket", f"{folder}/s", "--save", ""]
            server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True)
            inbox = RedisInbox(connect(f"unix://{folder}/s", retries=0))
            try:
                if met_before:
                    async with asyncio.timeout(60):
                        while True:
                            with contextlib.suppress(InboxUnavailable):
                                await inbox.put([(message("e1"), AT_ONCE)])
                                break
                            await asyncio.sleep(0.02)
            finally:
                server.kill()
                server.wait()
            await asyncio.sleep(0.05)  # the end of the connection is noticed
            with pytest.raises(InboxUnavailable) as caught:
                await inbox.put([(message("e2"), AT_ONCE)])
            await inbox.close()
            return caught.value.ambiguous

        assert runner(put_away()) is False


class BrokenOff:
    """A script for which nobody listens at first; then the connection breaks behind the words."""

    registered_client = None

    def __init__(self) -> None:
        self.ends = ["Error 111 connecting to localhost:6379.", "Connection closed by server."]

    async def __call__(self, *_: object) -> None:
        raise RedisConnectionError(self.ends.pop(0))


@pytest.mark.parametrize("copies", [0, 1])
async def test_a_put_that_broke_off_the_second_time_may_stand_there(
    monkeypatch: pytest.MonkeyPatch, copies: int
) -> None:
    """That nobody took it the first time tells nothing of the second."""
    script = BrokenOff()
    monkeypatch.setattr("gateway.inbox.redis.run_copied", script)
    inbox = RedisInbox(connect("unix:///nowhere", retries=0), copies=copies)
    inbox._scripts["put"] = script  # type: ignore[assignment]
    with pytest.raises(InboxUnavailable) as caught:
        await inbox.put([(message("e1"), AT_ONCE)])
    await inbox.close()
    assert (caught.value.ambiguous, script.ends) == (True, [])


async def test_what_waits_of_somebody_forgotten_goes_with_the_answer_kept_for_it(
    make_inbox: MakeInbox,
) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("e1"), AT_ONCE)])
    parked = (await inbox.claim(1)).claims[0]
    assert await inbox.park(parked, b"an answer", 3600.0)
    await inbox.put([(message("e2", "line:U2"), AT_ONCE), (message("e3", tenant="other"), AT_ONCE)])
    assert await inbox.forget("shop", lambda one: one.user_id == "line:U1") == 1
    assert await inbox.forget("shop", lambda one: one.user_id == "line:U1") == 0
    left = await inbox.claim(5)
    assert sorted((one.conversation, one.messages[0].event_id) for one in left.claims) == [
        ("sm:other:line:U1", "e3"),
        ("sm:shop:line:U2", "e2"),
    ]
    assert left.next_due is None  # the answer waits no more
    assert await inbox.put([(message("e1"), AT_ONCE)]) == [False]  # a repeated delivery is not answered anew
    await inbox.put([(message("e4"), AT_ONCE)])
    later = (await inbox.claim(5)).claims[0]
    assert (later.messages[0].event_id, later.attempts, later.outbox, later.carried) == ("e4", 1, None, None)


async def test_what_a_worker_has_in_hand_of_somebody_forgotten_stays_in_its_hand(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    await inbox.put([(message("e1"), AT_ONCE)])
    claim = (await inbox.claim(1)).claims[0]
    await inbox.put([(message("e2"), AT_ONCE)])
    assert await inbox.forget("shop", lambda one: one.user_id == "line:U1") == 1
    assert await inbox.intent(claim, b"out") == 0.0
    assert await inbox.finish(claim, None) == (Outcome.DONE, None)
    assert (await inbox.claim(1)).claims == ()


async def test_of_a_group_only_the_members_words_go_and_the_rest_is_begun_anew(make_inbox: MakeInbox) -> None:
    inbox = await make_inbox()
    for event, member in (("e1", "line:U1"), ("e2", "line:U2")):
        await inbox.put([(message(event, "line:group:C1", sender_id=member), AT_ONCE)])
    claim = (await inbox.claim(1)).claims[0]
    assert await inbox.intent(claim, b"to both of them") == 0.0
    assert await inbox.fail(claim, 600.0)
    assert await inbox.forget("shop", lambda one: one.sender_id == "line:U1") == 1
    again = (await inbox.claim(1)).claims[0]
    assert ([one.event_id for one in again.messages], again.attempts, again.outbox) == (["e2"], 1, None)
