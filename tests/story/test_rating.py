"""A customer says how the talk was; the episode that it becomes has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway import app, assembly
from memory.episodes import Episode
from tests.house import TELEGRAM_SECRET, House, house, shop

USER = "telegram:55"


class Clock:
    now = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=5)
        return self.now


async def says(home: House, text: str, chat: int = 55, **more: Any) -> list[str]:
    before = len(home.telegram_shows(chat))
    update = home.telegram.text_update(chat, text)
    update["message"] |= more
    await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET)
    await home.quiet()
    return home.telegram_shows(chat)[before:]


async def episodes(home: House, clock: Clock) -> list[Episode]:
    async with app.tidy(home.settings, home.tenants, home.redis_url, clock=clock) as tidy:
        await tidy.run()
    manager = assembly.memory_of(home.settings, home.tenants, home.redis_url, clock=clock)
    memory = await manager.longterm.load("shop", USER)
    await manager.close()
    return list(memory.episodes) if memory else []


async def test_a_rating_with_words_stands_in_the_episode(tmp_path: Path, redis_url: str) -> None:
    clock = Clock()
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}, clock=clock) as home:
        await says(home, "i would like a table for two")
        await says(home, "tomorrow at 7 pm")
        assert (await says(home, "/rate"))[0].startswith("How was this chat?")
        assert await says(home, "/rate 1") == [
            "I'm sorry. If you like, type /rate 1 and a few words on what went wrong, for the shop to mend."
        ]
        assert await says(home, "/rate 👎 nobody called back") == ["Thank you for telling us!"]
        clock.now += timedelta(hours=2)
        [episode] = await episodes(home, clock)
        assert episode.feedback is not None
        assert (episode.feedback.rating, episode.feedback.comment) == (1, "nobody called back")
        assert all("/rate" not in line["message"] for line in episode.conversation)
        assert await says(home, "/ให้คะแนน ดี") == ["Thank you for telling us!"]  # of the talk that is over
        [episode] = await episodes(home, clock)
        assert episode.feedback is not None
        assert (episode.feedback.rating, episode.feedback.comment) == (5, "")


async def test_without_a_talk_there_is_nothing_to_rate(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}) as home:
        assert await says(home, "/rate 5") == ["There is no chat to rate yet."]


@pytest.mark.parametrize("asks", [False, True])
async def test_buttons_are_offered_after_a_persons_help_where_the_shop_asks_and_nowhere_else(
    asks: bool, tmp_path: Path, redis_url: str
) -> None:
    staff = {"channel": "telegram-main", "chat": "-100123"}
    tenant = shop(language="en", staff=staff, behaviour={"debounce_ms": 0, "ask_rating": asks})
    async with house(tmp_path, redis_url, {"shop": tenant}) as home:
        await says(home, "/human")
        assert (await says(home, "/bot"))[0].startswith("You're back with the bot.")
        assert [label for one in home.telegram.delivered["55"] for label in shown(one)] == (
            ["👍", "👎"] if asks else []
        )
        assert ("/rate say how this chat went" in (await says(home, "/help"))[0]) is asks


def shown(message: Any) -> list[str]:
    """The words on a message's buttons."""
    rows = (message.markup or {}).get("inline_keyboard", []) if hasattr(message, "markup") else []
    return [button["text"] for row in rows for button in row]
