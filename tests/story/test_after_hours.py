"""A customer writes while the shop is closed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from redis.asyncio import Redis

from gateway.messages import InboundMessage
from gateway.staff_tasks import StaffTasks, Task
from gateway.texts import text
from tests.house import ADMIN_KEY, LLM_KEY, TELEGRAM_SECRET, House, house, shop

STAFF, MEMBER = -100123, 77
HOURS = {"mon-fri": ["09:00-18:00"]}
CLOSED = "We're closed now."
FAQ = [{"questions": ["Do you have wifi?", "wifi password"], "answer": "Yes, ask at the counter."}]
PROMISE = "I've noted your message for our staff. They will answer you here when we open tomorrow at 09:00."


class Clock:
    """Wednesday, half past eight in the evening in Bangkok."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 4, 13, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=5)
        return self.now


def closing(when_closed: str, **sections: Any) -> dict[str, Any]:
    own = shop(
        business_hours=HOURS,
        replies={"out_of_hours": CLOSED},
        faq=FAQ,
        staff={"channel": "telegram-main", "chat": str(STAFF)},
    )
    return own | {"behaviour": {"debounce_ms": 0, "when_closed": when_closed}} | sections


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def tasks(redis_url: str, clock: Clock) -> AsyncIterator[StaffTasks]:
    client = Redis.from_url(redis_url)
    yield StaffTasks(client, clock)
    await client.aclose()


async def says(home: House, words: str, chat: int = 55, tenant: str = "shop") -> None:
    update = home.telegram.text_update(chat, words)
    update["message"]["from"]["first_name"] = "Ann"
    assert await home.telegram.deliver(home.telegram_hook(tenant), update, TELEGRAM_SECRET) == 200
    await home.quiet()


async def api(home: House, path: str, method: str = "GET") -> Any:
    """What a program is told; of anything but a GET the status."""
    url, headers = f"{home.url}/api/v1/{path}", {"Authorization": f"Bearer {ADMIN_KEY}"}
    mark = "&" if "?" in path else "?"
    where = f"{url}{mark}tenant=shop"
    async with aiohttp.ClientSession() as http, http.request(method, where, headers=headers) as answer:
        return await answer.json() if method == "GET" else answer.status


async def waiting(tasks: StaffTasks) -> list[Task]:
    return await tasks.all("shop")


async def test_the_shop_alone_answers_and_what_it_cannot_answer_waits_for_staff(
    tmp_path: Path, redis_url: str, tasks: StaffTasks, clock: Clock
) -> None:
    tenants = {"shop": closing("shop_only")}
    async with house(tmp_path, redis_url, tenants, llm_key=LLM_KEY, clock=clock) as home:
        await says(home, "wifi password?")
        await says(home, "Can I change my order 4711 to pick-up?")
        await says(home, "and please add a cake")
        await says(home, "Do you have wifi?")
        shown = home.telegram_shows(55)
        assert shown[0] == "Yes, ask at the counter."
        assert shown[1] == f"{CLOSED}\n\n{PROMISE}"
        assert shown[2] == "I've added that to the note for our staff."
        assert shown[3] == "Yes, ask at the counter."
        assert home.llm.requests == []

        [task] = await waiting(tasks)
        assert (task.name, task.user_id, task.channel) == ("Ann", "telegram:55", "telegram-main")
        assert task.said == ("Can I change my order 4711 to pick-up?", "and please add a cake")
        assert task.since.startswith("2026-03-04T13:30:0")
        shown_to_programs, rest = await api(home, "tasks"), await api(home, "tasks?limit=1")
        assert shown_to_programs["items"][0]["id"] == task.id
        assert shown_to_programs["items"][0]["said"] == list(task.said)
        assert (rest["total"], rest["next_cursor"]) == (1, None)
        assert (await api(home, "budget"))["daily_tokens"] is None
        assert await api(home, "tasks/0123456789", "DELETE") == 404
        [told] = home.telegram_shows(STAFF)
        assert text("staff_after_hours", "th") in told
        assert "4711" in told

        update = home.telegram.text_update(STAFF, "Sure, done!", user=MEMBER)
        first = home.telegram.delivered[str(STAFF)][0]
        bot = {"id": 1000001, "is_bot": True, "first_name": "Bot"}
        update["message"]["reply_to_message"] = {
            "message_id": first.message_id,
            "from": bot,
            "date": 1,
            "text": first.text,
            "chat": update["message"]["chat"],
        }
        assert await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET) == 200
        await home.quiet()
        assert home.telegram_shows(55)[-1] == "Sure, done!"
        assert await waiting(tasks) == []


async def test_the_bot_goes_on_answering_and_says_once_that_the_shop_is_closed(
    tmp_path: Path, redis_url: str, tasks: StaffTasks, clock: Clock
) -> None:
    async with house(tmp_path, redis_url, {"shop": closing("answer")}, clock=clock) as home:
        await says(home, "hello")
        await says(home, "hello again, are you there")
        await says(home, "I'd like to talk to a human")
        shown = home.telegram_shows(55)
        assert [CLOSED in one for one in shown] == [True, False, False]
        assert shown[0] != CLOSED  # the answer stands before it
        assert "a person will answer you here when we open" in shown[2]
        [task] = await waiting(tasks)
        assert task.said == ("I'd like to talk to a human",)
        await says(home, "Do you have wifi?")  # the bot was not silenced with nobody there
        assert home.telegram_shows(55)[3] == "Yes, ask at the counter."

        clock.now += timedelta(hours=16)  # Thursday at noon
        await says(home, "hello", chat=56)
        assert CLOSED not in home.telegram_shows(56)[0]


async def test_a_task_is_noted_once_however_often_a_turn_is_tried_and_goes_with_its_person(
    tasks: StaffTasks,
) -> None:
    message = InboundMessage(
        tenant="shop", channel="c", platform="line", event_id="1", user_id="line:U1", chat_id="U1", text="help"
    )
    first = [await tasks.note(message) for _ in range(2)]
    assert [one.name for one in first] == ["NEW", "NEW"]  # the second is the first, tried again
    [task] = await waiting(tasks)
    assert task.said == ("help",)
    assert await tasks.forget("shop", {"line:U2"}) == 0
    assert await tasks.forget("shop", {"line:U1"}) == 1
    assert await waiting(tasks) == []
    await tasks.note(message)
    assert await tasks.done("shop", task.id) is True
    assert await tasks.done("shop", task.id) is False
