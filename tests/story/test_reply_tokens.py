"""On LINE a reply is free for about a minute, a push costs the shop money: how a slow answer gets there for nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import redis

from gateway import assembly
from gateway.dead_letter_commands import show_letter
from gateway.dead_letters import DeadLetters
from gateway.inbox.base import Policy
from gateway.inbox.redis import RedisInbox
from gateway.patience import Times
from gateway.texts import text
from tests.house import LINE_SECRET, LINE_TOKEN, LLM_KEY, House, house, shop
from tests.standins.model import Fault

ANN = "U" + "a" * 32
QUICK = Times(hold_after=0.3, push_after=0.6, look_every=0.1)
PATIENT = Times(hold_after=0.3, push_after=60, look_every=0.1)
HELD = text("thinking", "en")


def saving(**sections: Any) -> dict[str, Any]:
    """A shop whose answers may not cost quota."""
    line = {
        "platform": "line",
        "channel_secret": LINE_SECRET,
        "channel_access_token": LINE_TOKEN,
        "allow_push": False,
    }
    return shop(channels={"line-main": line}) | sections


class Slow:
    """A model that answers when it is told to, each message in its own words."""

    def __init__(self, home: House) -> None:
        self.may = asyncio.Event()
        home.llm.answers(self._say)

    async def _say(self, request: dict[str, Any]) -> str:
        if request.get("response_format"):
            return "{}"
        await self.may.wait()
        return f"answer to {request['messages'][-1]['content']}"


def screen(home: House) -> list[str]:
    return [str(one.message.get("altText") or one.text) for one in home.line.delivered.get(ANN, [])]


def ways(home: House) -> list[str]:
    return [call.path.rsplit("/", 1)[1] for call in home.line.calls if "/message/" in call.path]


async def press(home: House) -> None:
    """The customer presses the newest button."""
    button = next(
        one.message["template"]["actions"][0]
        for one in reversed(home.line.delivered[ANN])
        if one.message["type"] == "template"
    )
    event = home.line.text_event(ANN, "")
    del event["message"]
    assert (
        await home.line.deliver(home.line_hook(), {**event, "type": "postback", "postback": {"data": button["data"]}})
        == 200
    )


async def test_a_slow_answer_comes_for_nothing_at_the_press_of_a_button(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY, times=PATIENT) as home:
        model = Slow(home)
        await home.line_says(ANN, "hello there")
        await home.line.until(lambda: screen(home) == [HELD])
        model.may.set()
        await press(home)
        await home.line.until(lambda: screen(home) == [HELD, "answer to hello there"])
        await home.quiet()
        assert ways(home) == ["reply", "reply"]


async def test_a_button_pressed_before_the_answer_is_there_brings_it_all_the_same(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY, times=PATIENT) as home:
        model = Slow(home)
        await home.line_says(ANN, "hello there")
        await home.line.until(lambda: screen(home) == [HELD])
        await press(home)
        await home.line.until(lambda: screen(home) == [HELD, HELD])  # the press's token grew old as well
        model.may.set()
        await press(home)
        await home.line.until(lambda: screen(home) == [HELD, HELD, "answer to hello there"])
        await home.quiet()
        assert set(ways(home)) == {"reply"}


async def test_a_button_that_nobody_presses_costs_one_push(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY, times=QUICK) as home:
        model = Slow(home)
        await home.line_says(ANN, "hello there")
        await home.line.until(lambda: screen(home) == [HELD])
        model.may.set()
        await home.line.until(lambda: screen(home) == [HELD, "answer to hello there"])
        await home.quiet()
        assert ways(home) == ["reply", "push"]
        await press(home)
        await home.line.until(lambda: screen(home)[2:] == [text("no_answer_waits", "en")])
    with redis.Redis.from_url(redis_url) as client:
        (key,) = client.keys("cc:ledger:shop:line-main:*")
        assert client.hgetall(key) == {b"free": b"2", b"paid": b"1"}
        assert 0 < client.ttl(key) <= 100 * 86_400


async def test_where_pushes_are_not_allowed_the_next_message_brings_the_answer(tmp_path: Path, redis_url: str) -> None:
    faq = [{"questions": ["What time do you open?"], "answer": "At nine."}]
    async with house(tmp_path, redis_url, {"shop": saving(faq=faq)}, llm_key=LLM_KEY, times=QUICK) as home:
        model = Slow(home)
        await home.line_says(ANN, "hello there")
        await home.line.until(lambda: screen(home) == [HELD])
        model.may.set()
        await home.parked()
        await home.line_says(ANN, "What time do you open?")
        await home.quiet()
        assert screen(home) == [HELD, "answer to hello there", "At nine."]
        await home.quiet()
        assert ways(home) == ["reply", "reply"]


async def test_several_slow_answers_all_arrive_with_one_press_the_oldest_first(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY, times=PATIENT) as home:
        model = Slow(home)
        await home.line_says(ANN, "first question")
        await home.line.until(lambda: screen(home) == [HELD])
        await home.line_says(ANN, "second question")
        model.may.set()
        # The first answer goes with the second message, whose token is fresh.
        await home.line.until(lambda: screen(home) == [HELD, "answer to first question", "answer to second question"])
        await home.quiet()
        assert ways(home) == ["reply", "reply"]


async def test_an_answer_left_to_a_slow_turn_is_shown_with_the_word_that_it_takes_longer(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY, times=PATIENT) as home:
        gates = [asyncio.Event(), asyncio.Event()]

        async def say(request: dict[str, Any]) -> str:
            if request.get("response_format"):
                return "{}"
            said = request["messages"][-1]["content"]
            await gates["second" in said].wait()
            return f"answer to {said}"

        home.llm.answers(say)
        await home.line_says(ANN, "first question")
        await home.line.until(lambda: screen(home) == [HELD])
        await home.line_says(ANN, "second question")
        gates[0].set()
        await home.line.until(lambda: screen(home) == [HELD, "answer to first question", HELD])
        gates[1].set()
        await press(home)
        await home.line.until(
            lambda: screen(home) == [HELD, "answer to first question", HELD, "answer to second question"]
        )
        await home.quiet()
        assert set(ways(home)) == {"reply"}


async def test_a_finished_answer_outlives_every_worker(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY, times=PATIENT) as home:
        model = Slow(home)
        await home.line_says(ANN, "hello there")
        await home.line.until(lambda: screen(home) == [HELD])
        model.may.set()
        await home.parked()
    async with house(tmp_path, redis_url, llm_key=LLM_KEY, times=PATIENT) as later:
        later.llm.answers(lambda request: "something else")
        later.line.shown += home.line.shown
        await press(later)
        await later.line.until(lambda: screen(later) == [HELD, "answer to hello there"])
        await later.quiet()
        assert ways(later) == ["reply"]


async def test_a_word_that_may_have_arrived_is_not_shown_twice(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY, times=PATIENT) as home:
        model = Slow(home)
        home.line.next(Fault(cut=True, landed=True, on="/reply"))
        await home.line_says(ANN, "hello there")
        await home.line.until(lambda: len(home.line.calls_to("/reply")) == 2)
        model.may.set()
        await press(home)
        await home.line.until(lambda: screen(home) == [HELD, "answer to hello there"])
        await home.quiet()
        assert home.line.calls_to("/push") == []


async def test_the_last_button_still_works_after_a_lost_press(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY, times=PATIENT) as home:
        model = Slow(home)
        await home.line_says(ANN, "hello there")
        await home.line.until(lambda: screen(home) == [HELD])
        model.may.set()
        await home.parked()
        home.line.next(Fault(status=400, body={"message": "Invalid reply token"}, on="/reply"))
        await press(home)
        await home.line.until(lambda: screen(home) == [HELD, "answer to hello there"])
        await home.quiet()
        assert ways(home) == ["reply", "reply", "push"]


async def test_what_was_promised_stands_in_the_history_once(tmp_path: Path, redis_url: str) -> None:
    import json

    async with house(tmp_path, redis_url, llm_key=LLM_KEY, times=PATIENT) as home:
        model = Slow(home)
        await home.line_says(ANN, "hello there")
        await home.line.until(lambda: screen(home) == [HELD])
        model.may.set()
        await home.parked()
        await press(home)
        await home.quiet()
    with redis.Redis.from_url(redis_url) as client:
        session = json.loads(client.get(f"sm:shop:line:{ANN}"))
    assert [(line["role"], line["message"]) for line in session["history"]] == [
        ("user", "hello there"),
        ("bot", "answer to hello there"),
    ]


async def test_a_late_answer_is_not_lost_with_the_message_it_was_to_go_with(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY, times=PATIENT) as home:
        model = Slow(home)
        await home.line_says(ANN, "first question")
        await home.line.until(lambda: screen(home) == [HELD])
        model.may.set()
        await home.parked()
        # The apology is refused as well.
        home.line.next(Fault(status=400, body={"message": "The request body has 1 error(s)"}, on="/reply", times=2))
        await home.line_says(ANN, "second question")
        await home.quiet()
        assert screen(home) == [HELD]
        client = assembly.inbox_client(home.settings, redis_url)
        inbox = RedisInbox(client, "operator")
        letters = DeadLetters(client, inbox)
        (letter,) = await letters.list("shop")
        shown = await show_letter(home.settings, "shop", letter.id)
        assert "an earlier answer that was to go with it: answer to first question" in shown
        await letters.retry(letter, Policy())
        await inbox.close()
        await home.line.until(lambda: screen(home) == [HELD, "answer to first question", "answer to second question"])
        await home.quiet()
