"""The list of conversations as it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from gateway.board import KEPT_FOR, Board
from gateway.hooks import Exchange
from gateway.messages import InboundMessage
from memory import keys
from memory.keys import ConversationRef
from memory.redis_client import connect
from memory.session import new_session

REF = ConversationRef("shop", "line:U1")
NOW = datetime(2026, 11, 28, tzinfo=UTC)


def a_turn() -> Exchange:
    last = InboundMessage(
        tenant="shop", channel="main", platform="line", event_id="e1", user_id="line:U1", chat_id="U1", text="hello"
    )
    session = new_session(REF, "sess_1", None, [], NOW, 1800)
    return Exchange(id="e1", ref=REF, channel="main", words="hello", session=session, now=NOW, last=last)


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
