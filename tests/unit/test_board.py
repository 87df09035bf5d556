"""The list of conversations as it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from gateway import board as module
from gateway.board import KEPT_FOR, Board
from gateway.hooks import Exchange
from gateway.messages import InboundMessage
from memory import keys
from memory.keys import ConversationRef
from memory.models import Message
from memory.redis_client import connect
from memory.session import new_session
from processors.models import iso

REF = ConversationRef("shop", "line:U1")
NOW = datetime(2026, 11, 28, tzinfo=UTC)


def a_turn(ref: ConversationRef = REF, now: datetime = NOW) -> Exchange:
    user = ref.user
    last = InboundMessage(
        tenant=ref.tenant, channel="main", platform="line", event_id="e1", user_id=user, chat_id=user, text="hello"
    )
    session = new_session(ref, "sess_1", None, [], now, 1800)
    said: list[Message] = [{"role": "user", "message": "hello", "timestamp": iso(now)}]
    return Exchange(id="e1", ref=ref, channel="main", words="hello", session=session, now=now, last=last, said=said)


@pytest.mark.parametrize(
    ("told", "stays"), [([False, False], True), ([True], False), ([False, True], False)], ids=["no", "before", "since"]
)
async def test_who_is_forgotten_before_or_while_it_is_written_is_not_in_the_list(
    redis_url: str, told: list[bool], stays: bool
) -> None:
    client = connect(redis_url)

    async def forgotten(some: Sequence[tuple[ConversationRef, datetime]]) -> list[bool]:
        return [told.pop(0)]

    board = Board(client, forgotten)
    await board.after(a_turn())
    await board.close()
    assert (told, (await board.entry(REF)) is not None) == ([], stays)
    await client.aclose()


async def test_a_list_that_is_made_anew_has_its_time_to_live_again(redis_url: str) -> None:
    client = connect(redis_url)
    board, key = Board(client), keys.shared("board", "shop")
    for _ in range(2):
        await board.after(a_turn())
        await board.close()
        assert KEPT_FOR.total_seconds() - 60 <= await client.ttl(key) <= KEPT_FOR.total_seconds()
        await board.forget("shop", ["line:U1"])
        assert not await client.exists(key)
        await asyncio.sleep(0)
    await client.aclose()


async def test_of_several_shops_each_conversation_is_in_its_own_list_at_its_time(redis_url: str) -> None:
    client = connect(redis_url)
    board = Board(client)
    refs = [ConversationRef(shop, f"line:U{at}") for shop in ("shop", "other") for at in range(3)]
    for at, ref in enumerate(refs):
        await board.after(a_turn(ref, NOW + timedelta(seconds=at)))
    await board.close()
    for shop in ("shop", "other"):
        rows = await board.rows(shop)
        mine = [(at, ref) for at, ref in enumerate(refs) if ref.tenant == shop]
        heard = [(row.name, row.entry.heard) for row in rows]
        assert heard == [(keys.session(ref), int(NOW.timestamp() + at) * 1000) for at, ref in reversed(mine)]
        assert await client.ttl(keys.shared("board", shop)) > 0
    await client.aclose()


async def test_what_is_too_old_goes_with_the_next_look_however_much_it_is(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 2)
    client = connect(redis_url)
    before = Board(client)
    kept = ConversationRef("shop", "line:kept")
    for at in range(5):
        await before.after(a_turn(ConversationRef("shop", f"line:old{at}"), NOW - KEPT_FOR - timedelta(minutes=1)))
    await before.after(a_turn(kept, NOW - KEPT_FOR + timedelta(minutes=1)))
    await before.close()
    assert len(await before.rows("shop")) == 6
    board = Board(client)
    await board.after(a_turn())
    await board.close()
    assert [row.name for row in await board.rows("shop")] == [keys.session(REF), keys.session(kept)]
    await client.aclose()
