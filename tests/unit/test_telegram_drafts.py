"""Drafts of a growing answer: what is shown, and when no more is tried."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gateway.adapters.telegram_drafts import Draft, Drafts, Times
from gateway.errors import (
    ChannelBroken,
    InboxUnavailable,
    SendAmbiguous,
    SendFault,
    SendRefused,
    SendRetry,
    Unreachable,
)
from gateway.guard import Guarded
from gateway.messages import Target
from gateway.pacing import Limit, limits_beside, limits_for
from gateway.rendering import utf16_len
from gateway.riding import Unseen

CHAT = Target(tenant="shop", channel="tg", platform="telegram", chat_id="55")
QUICK = Times(first_after=0.0, every=0.01, again=0.01, anew=0.05, in_flight=0.2)
BOT = "1000001:first-test-bot"


class Chat:
    """Takes drafts, or refuses them; has room for them, or not."""

    def __init__(self, *, error: SendFault | None = None, room: bool | InboxUnavailable = True) -> None:
        self.shown: list[dict[str, Any]] = []
        self.asked: list[Sequence[Limit]] = []
        self.error = error
        self.room = room
        self.takes_it: asyncio.Event | None = None

    async def show(self, body: dict[str, Any]) -> None:
        self.shown.append(body)
        if self.takes_it is not None:
            await self.takes_it.wait()
        if self.error is not None:
            raise self.error

    async def may_pass(self, limits: Sequence[Limit]) -> bool:
        self.asked.append(limits)
        if isinstance(self.room, InboxUnavailable):
            raise self.room
        return self.room

    def watch(self, drafts: Drafts | None = None, target: Target = CHAT) -> Draft:
        draft = (drafts or Drafts(self.may_pass, times=QUICK)).watch(BOT, target, self.show)
        assert draft is not None
        return draft


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)


async def test_each_draft_of_a_turn_replaces_the_one_before() -> None:
    chat = Chat()
    draft = chat.watch(target=Target(tenant="shop", channel="tg", platform="telegram", chat_id="55", thread_id="7"))
    draft.grew(lambda: "One **tw")
    await until(lambda: len(chat.shown) == 1)
    draft.grew(lambda: "One **two** three")
    await until(lambda: len(chat.shown) == 2)
    await draft.close()
    number = chat.shown[0]["draft_id"]
    assert number != 0
    assert chat.shown == [
        {"chat_id": "55", "message_thread_id": 7, "draft_id": number, "text": text, "entities": [bold]}
        for text, bold in (
            ("One tw", {"type": "bold", "offset": 4, "length": 2}),
            ("One two three", {"type": "bold", "offset": 4, "length": 3}),
        )
    ]


async def test_nothing_is_shown_once_it_is_closed() -> None:
    chat = Chat()
    draft = chat.watch()
    draft.grew(lambda: "One")
    await draft.close()
    draft.grew(lambda: "One two")
    await asyncio.sleep(0.05)
    assert chat.shown == []


async def test_closing_waits_for_a_draft_on_its_way_but_not_for_long() -> None:
    chat = Chat()
    chat.takes_it = asyncio.Event()
    draft = chat.watch()
    draft.grew(lambda: "One")
    await until(lambda: len(chat.shown) == 1)
    closing = asyncio.create_task(draft.close())
    await asyncio.sleep(0.02)
    assert not closing.done()
    chat.takes_it.set()
    await closing

    chat.takes_it.clear()
    draft = chat.watch()
    draft.grew(lambda: "One")
    await until(lambda: len(chat.shown) == 2)
    async with asyncio.timeout(60):
        await draft.close()


async def test_an_unchanged_draft_is_shown_again_before_it_fades() -> None:
    chat = Chat()
    draft = chat.watch()
    draft.grew(lambda: "One")
    await until(lambda: len(chat.shown) == 3)
    await draft.close()
    assert [body["text"] for body in chat.shown] == ["One"] * 3


async def test_of_a_long_answer_the_beginning_is_shown() -> None:
    chat = Chat()
    draft = chat.watch()
    draft.grew(lambda: "👕 ลาเต้ร้อน " * 2000)
    await until(lambda: len(chat.shown) == 1)
    await draft.close()
    text = chat.shown[0]["text"]
    assert 3000 < utf16_len(text) <= 4096
    assert text.startswith("👕 ลาเต้ร้อน 👕")


@pytest.mark.parametrize("blank", ["", "  \n", "**", "[the me"])
async def test_where_there_is_nothing_to_see_yet_there_is_no_draft(blank: str) -> None:
    chat = Chat()
    draft = chat.watch()
    draft.grew(lambda: blank)
    await asyncio.sleep(0.03)
    assert (chat.shown, chat.asked) == ([], [])
    draft.grew(lambda: "One")
    await until(lambda: len(chat.shown) == 1)
    await draft.close()


@pytest.mark.parametrize("room", [False, InboxUnavailable("away")])
async def test_without_room_there_is_no_draft(room: bool | InboxUnavailable) -> None:
    chat = Chat(room=room)
    draft = chat.watch()
    draft.grew(lambda: "One")
    await until(lambda: len(chat.asked) == 2)
    assert chat.shown == []
    chat.room = True
    await until(lambda: len(chat.shown) == 1)
    await draft.close()


async def test_drafts_take_half_of_the_room_at_most() -> None:
    assert [limit.key for limit in limits_beside(CHAT)] == [limit.key for limit in limits_for(CHAT)]
    assert [(limit.interval, limit.burst) for limit in limits_beside(CHAT)] == [(40, 2), (1000, 1)]


@pytest.mark.parametrize(
    ("error", "after", "again"),
    [
        (ChannelBroken("404 Not Found"), 1e9, False),
        (SendRetry("429", 30.0), 29.0, False),
        (SendRetry("429", 30.0), 31.0, True),
        (SendRefused("400 not for this bot"), 3599.0, False),
        (SendRefused("400 not for this bot"), 3601.0, True),
        (SendAmbiguous("502"), 0.0, True),
        (Unreachable("403"), 0.0, True),
    ],
)
async def test_a_refused_draft_ends_them_for_the_turn_and_some_for_the_bot(
    error: SendFault, after: float, again: bool
) -> None:
    now = 1000.0
    chat = Chat(error=error)
    drafts = Drafts(chat.may_pass, lambda: now, QUICK)
    draft = chat.watch(drafts)
    draft.grew(lambda: "One")
    await until(lambda: len(chat.shown) == 1)
    draft.grew(lambda: "One two")
    await asyncio.sleep(0.05)
    await draft.close()
    assert len(chat.shown) == 1
    now += after
    assert (drafts.watch(BOT, CHAT, chat.show) is not None) == again
    assert drafts.watch("1000002:another-bot", CHAT, chat.show) is not None


async def test_a_bot_whose_drafts_were_taken_is_not_left_alone_for_one_that_was_not() -> None:
    chat = Chat()
    drafts = Drafts(chat.may_pass, times=QUICK)
    draft = chat.watch(drafts)
    draft.grew(lambda: "One")
    await until(lambda: len(chat.shown) == 1)
    await draft.close()
    chat.error = SendRefused("400 can't parse entities")
    draft = chat.watch(drafts)
    draft.grew(lambda: "One")
    await until(lambda: len(chat.shown) == 2)
    await draft.close()
    assert drafts.watch(BOT, CHAT, chat.show) is not None


@pytest.mark.parametrize("shown", [True, False])
async def test_who_was_watched_is_held_by_nothing_once_the_turn_is_over(shown: bool) -> None:
    chat = Chat()
    draft = chat.watch()
    watch = Guarded(Unseen(draft), str)  # as a turn does
    watch.grew(lambda: "One")
    if shown:
        await until(lambda: len(chat.shown) == 1)
    await watch.close()
    gone = weakref.ref(draft)
    gc.disable()  # what holds itself would stay until all objects are looked through
    try:
        del draft, watch
        await asyncio.sleep(0)
        assert gone() is None
    finally:
        gc.enable()
