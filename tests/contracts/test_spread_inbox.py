"""What may happen between a conversation's own step and its mark in a shard, and a change of their number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway.errors import InboxUnavailable
from gateway.inbox import shards
from gateway.inbox.base import Claim, Outcome
from gateway.inbox.shards import NUMBERS
from gateway.inbox.spread_inbox import SpreadInbox
from memory.redis_client import connect
from tests.contracts.test_inbox import AT_ONCE, claim_one, message

Make = Callable[..., SpreadInbox]


@pytest.fixture
async def make(redis_url: str) -> AsyncIterator[Make]:
    made: list[SpreadInbox] = []

    def one(kind: type[SpreadInbox] = SpreadInbox, **options: Any) -> SpreadInbox:
        made.append(kind(connect(redis_url, retries=0), str(len(made)), **options))
        return made[-1]

    yield one
    for inbox in made:
        await inbox.close()


async def waiting(inbox: SpreadInbox) -> tuple[int, int, int]:
    depth = await inbox.depth()
    return depth.ready, depth.due, depth.leased


class EndsBeforeItMarks(SpreadInbox):
    async def _mark(self, marks: Any) -> None:
        raise InboxUnavailable("killed")


class EndsBeforeItSettles(SpreadInbox):
    async def _settle(self, name: str, token: str, wait: int) -> None:
        return


class EndsBeforeItTakes(SpreadInbox):
    async def _take(self, shard: int, raw: bytes, raw_token: bytes, waited: int) -> Claim | None:
        raise InboxUnavailable("killed")


class HearsOneMoreBeforeItSettles(SpreadInbox):
    async def _settle(self, name: str, token: str, wait: int) -> None:
        await self.put([(message("late"), AT_ONCE)])
        await super()._settle(name, token, wait)


async def test_what_was_appended_and_not_marked_was_not_acknowledged_and_a_repeat_marks_it(make: Make) -> None:
    with pytest.raises(InboxUnavailable):
        await make(EndsBeforeItMarks).put([(message("e1"), AT_ONCE)])
    inbox = make()
    assert (await inbox.claim(5)).claims == ()
    assert await inbox.put([(message("e1"), AT_ONCE)]) == [False]
    assert [one.event_id for one in (await claim_one(inbox)).messages] == ["e1"]


async def test_the_next_message_marks_what_was_appended_and_not_marked(make: Make) -> None:
    with pytest.raises(InboxUnavailable):
        await make(EndsBeforeItMarks).put([(message("e1"), AT_ONCE)])
    inbox = make()
    await inbox.put([(message("e2"), AT_ONCE)])
    assert [one.event_id for one in (await claim_one(inbox)).messages] == ["e1", "e2"]


async def test_a_conversation_that_was_given_out_and_not_taken_is_given_out_again(make: Make) -> None:
    dies, lives = make(EndsBeforeItTakes, lease=0.2), make()
    await lives.put([(message("e1"), AT_ONCE)])
    assert (await dies.claim(5)).claims == ()
    assert await waiting(lives) == (0, 0, 1)
    claim = await claim_one(lives, 30.0)
    assert ([one.event_id for one in claim.messages], claim.attempts) == (["e1"], 1)


async def test_the_mark_of_what_was_finished_and_not_settled_goes_when_its_lease_ends(make: Make) -> None:
    dies, lives = make(EndsBeforeItSettles, lease=0.2), make()
    await lives.put([(message("e1"), AT_ONCE)])
    claim = await claim_one(dies)
    await lives.put([(message("e2"), AT_ONCE)])
    assert await dies.finish(claim, None) == (Outcome.DONE, None)
    following = await claim_one(dies, 30.0)
    assert [one.event_id for one in following.messages] == ["e2"]
    assert await dies.finish(following, None) == (Outcome.DONE, None)
    while await waiting(lives) != (0, 0, 0):
        for shard in range(16):
            lives._shards.note(shard, 0)
        assert (await lives.claim(5, 0.5)).claims == ()


async def test_what_comes_between_the_end_of_a_batch_and_its_mark_is_not_lost(make: Make) -> None:
    inbox = make(HearsOneMoreBeforeItSettles)
    await inbox.put([(message("e1"), AT_ONCE)])
    assert await inbox.finish(await claim_one(inbox), None) == (Outcome.DONE, None)
    assert [one.event_id for one in (await claim_one(inbox)).messages] == ["late"]


@pytest.mark.parametrize(("before", "after"), [(7, 2), (2, 7)])
async def test_their_number_may_change_while_messages_wait(
    make: Make, monkeypatch: pytest.MonkeyPatch, before: int, after: int
) -> None:
    monkeypatch.setattr(shards, "TOLD_EVERY", 0.0)
    old, new = make(shards=before), make(shards=after)
    names = [f"line:U{number}" for number in range(12)]
    await old.put([(message("e1", name), AT_ONCE) for name in names])
    held = await claim_one(new)
    await new.put([(message("e2", name), AT_ONCE) for name in names])  # marked where they are already
    seen = {held.conversation: [one.event_id for one in held.messages]}
    await new.finish(held, None)
    monkeypatch.setattr(shards, "GONE_AFTER", 0.0)
    await new.depth()
    for _ in range(12):
        claim = await claim_one(new)
        seen.setdefault(claim.conversation, []).extend(one.event_id for one in claim.messages)
        await new.finish(claim, None)
    assert seen == {f"sm:shop:{name}": ["e1", "e2"] for name in names}
    assert await waiting(new) == (0, 0, 0)
    numbers: Any = await new._redis.zrange(NUMBERS, 0, -1)
    assert [int(number) for number in numbers] == [after]
    assert len((await new.depth()).parts) == after


async def test_a_worker_that_hears_no_shard_at_all_waits_all_the_same(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = make(shards=2)
    assert (await inbox.claim(1)).claims == ()

    async def nobody_there(*_: Any, **__: Any) -> None:
        raise RedisConnectionError("nobody there")

    monkeypatch.setattr(inbox._redis, "blpop", nobody_there)
    began = asyncio.get_running_loop().time()
    assert (await inbox.claim(1, 1.5)).claims == ()
    assert asyncio.get_running_loop().time() - began >= 1.5
