"""What keeps one person, or another machine, from taking more than their share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.messages import MAX_TEXT
from gateway.patience import ANSWER_PLEASE
from gateway.texts import text
from tests.house import LLM_KEY, TELEGRAM_SECRET, House, house, shop

ANN, BEE, GROUP = "U" + "a" * 32, "U" + "b" * 32, "C" + "6" * 32
SLOW = "Sorry, that was a bit too fast for me. Please wait a minute, then write again."


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


async def says(home: House, chat: int, text: str, *, user: int | None = None, is_bot: bool = False) -> None:
    update = home.telegram.text_update(chat, text, user=user)
    update["message"]["from"]["is_bot"] = is_bot
    assert await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET) == 200
    await home.quiet()


async def counted(home: House, kind: str) -> float:
    async with aiohttp.ClientSession() as http, http.get(f"{home.url}/metrics") as response:
        page = await response.text()
    found = [line for line in page.splitlines() if "events_passed_over_total" in line and f'kind="{kind}"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in found)


async def test_too_many_messages_get_one_polite_word_a_minute(tmp_path: Path, redis_url: str) -> None:
    clock = Clock()
    tenant: dict[str, Any] = shop(behaviour={"debounce_ms": 0, "rate_limit_per_minute": 2})
    async with house(tmp_path, redis_url, {"shop": tenant}, clock=clock) as home:
        for number in range(5):
            await says(home, 55, f"hello number {number}")
        shown = home.telegram_shows(55)
        assert (len(shown), shown[2]) == (3, SLOW)
        await says(home, 66, "hello from somebody else")
        assert len(home.telegram_shows(66)) == 1
        clock.now += timedelta(minutes=1)
        await says(home, 55, "hello again")
        assert len(home.telegram_shows(55)) == 4
        assert home.telegram_shows(55)[3] != SLOW


async def test_in_a_group_each_member_has_a_limit_of_their_own(tmp_path: Path, redis_url: str) -> None:
    tenant: dict[str, Any] = shop(behaviour={"debounce_ms": 0, "rate_limit_per_minute": 1, "groups": "always"})
    async with house(tmp_path, redis_url, {"shop": tenant}, clock=Clock()) as home:
        for member in (ANN, BEE, ANN):
            await home.line.deliver(home.line_hook(), home.line.text_event(member, "hello everybody", group=GROUP))
            await home.quiet()
        assert [shown == SLOW for shown in home.line_shows(GROUP)] == [False, False, True]


def press(home: House, data: str) -> dict[str, Any]:
    event = home.line.text_event(ANN, "")
    del event["message"]
    return {**event, "type": "postback", "postback": {"data": data}}


async def test_presses_take_nothing_from_what_may_be_typed_and_an_answer_is_always_fetched(
    tmp_path: Path, redis_url: str
) -> None:
    tenant: dict[str, Any] = shop(behaviour={"debounce_ms": 0, "rate_limit_per_minute": 2})
    async with house(tmp_path, redis_url, {"shop": tenant}, clock=Clock()) as home:
        for data in ("one", "two"):
            await home.line.deliver(home.line_hook(), press(home, data))
            await home.quiet()
        for words in ("hello", "hello there"):
            await home.line_says(ANN, words)
            await home.quiet()
        assert SLOW not in home.line_shows(ANN)
        await home.line.deliver(home.line_hook(), press(home, "three"))
        await home.quiet()
        assert home.line_shows(ANN)[4:] == [SLOW]
        await home.line.deliver(home.line_hook(), press(home, ANSWER_PLEASE))
        await home.quiet()
        assert home.line_shows(ANN)[5:] == [text("no_answer_waits", "en")]


async def test_no_limit_is_no_limit(tmp_path: Path, redis_url: str) -> None:
    tenant: dict[str, Any] = shop(behaviour={"debounce_ms": 0, "rate_limit_per_minute": 0})
    async with house(tmp_path, redis_url, {"shop": tenant}, clock=Clock()) as home:
        events = [home.line.text_event(ANN, f"/nothing{number}") for number in range(25)]
        await home.line.deliver(home.line_hook(), *events)
        await home.quiet()
        assert SLOW not in home.line_shows(ANN)
        assert len(home.line_shows(ANN)) == 25


async def test_a_blocked_person_is_passed_over_everywhere(tmp_path: Path, redis_url: str) -> None:
    tenant: dict[str, Any] = shop(blocked_users=[f"line:{ANN}", "telegram:55"])
    tenant["behaviour"]["groups"] = "always"
    async with house(tmp_path, redis_url, {"shop": tenant}) as home:
        await says(home, 55, "hello")
        await says(home, -1007, "hello group", user=55)
        await home.line_says(ANN, "hello")
        await says(home, 66, "hello")
        await home.quiet()
        shown = [len(one) for one in (home.telegram_shows(55), home.telegram_shows(-1007), home.line_shows(ANN))]
        assert (shown, len(home.telegram_shows(66))) == ([0, 0, 0], 1)
        assert await counted(home, "not for us") == 3


async def test_a_message_that_was_cut_is_answered_and_said_to_be(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        await says(home, 55, "please help me with this " * 1000)
        assert home.telegram_shows(55)[0].startswith(
            f"Your message was very long: I could only read the first {MAX_TEXT:,} characters.\n\n"
        )


@pytest.mark.parametrize(("model", "less"), [("openai/gpt-4o-mini", False), ("nobody/knows", True)])
async def test_of_a_message_that_was_cut_it_is_told_once_how_far_it_was_read(
    tmp_path: Path, redis_url: str, model: str, less: bool
) -> None:
    """It is cut at the door, and once more where the model has no room for the rest."""
    tenants = {"shop": shop(agents={"default": {"model": model}})}
    async with house(tmp_path, redis_url, tenants, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "An answer.")
        await says(home, 55, "a" * 21_000)
        asked = [one["messages"][-1]["content"] for one in home.llm.requests if "response_format" not in one]
    told = home.telegram_shows(55)
    read = len(str(asked[-1]))
    assert (read < MAX_TEXT) is less
    assert told == [f"Your message was very long: I could only read the first {read:,} characters.\n\nAn answer."]


async def test_another_bot_is_not_answered(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        await says(home, -1007, "/help", user=99, is_bot=True)
        await says(home, 99, "hello, I am a machine", is_bot=True)
        assert await counted(home, "bot") == 2
        assert home.telegram.calls_to("/sendMessage") == []
