"""Read this first: what happens to one message."""

from __future__ import annotations

import json
from pathlib import Path

import redis

from tests.house import LLM_KEY, TELEGRAM_SECRET, house, shop
from tests.standins.model import Fault

ANN = "U" + "a" * 32
BEE = "U" + "b" * 32


async def test_a_customer_on_line_asks_and_gets_one_answer(tmp_path: Path, redis_url: str) -> None:
    faq = [{"questions": ["What time do you open?"], "answer": "At nine."}]
    async with house(tmp_path, redis_url, {"shop": shop(faq=faq)}) as home:
        assert await home.line_says(ANN, "what time do you open") == 200
        await home.line.until(lambda: home.line_shows(ANN) == ["At nine."])
        await home.quiet()
    assert [call.path for call in home.line.calls if "/message/" in call.path] == ["/v2/bot/message/reply"]


async def test_a_customer_on_telegram_asks_and_gets_one_answer(tmp_path: Path, redis_url: str) -> None:
    faq = [{"questions": ["What time do you open?"], "answer": "At **nine**."}]
    async with house(tmp_path, redis_url, {"shop": shop(faq=faq)}) as home:
        assert await home.telegram_says(55, "What time do you open?") == 200
        await home.telegram.until(lambda: home.telegram_shows(55) == ["At nine."])


async def test_who_gets_no_answer_because_the_platform_refuses_it_hears_so(tmp_path: Path, redis_url: str) -> None:
    faq = [{"questions": ["What time do you open?"], "answer": "At nine."}]
    async with house(tmp_path, redis_url, {"shop": shop(faq=faq, replies={"error": {"en": "Sorry!"}})}) as home:
        home.line.next(Fault(status=400, body={"message": "odd"}, on="/message/reply"))
        refusal = {"ok": False, "error_code": 400, "description": "Bad Request: odd"}
        home.telegram.next(Fault(status=400, body=refusal, on="/sendMessage"))
        await home.line_says(ANN, "what time do you open")
        await home.telegram_says(55, "what time do you open")
        await home.quiet()
        assert (home.line_shows(ANN), home.telegram_shows(55)) == (["Sorry!"], ["Sorry!"])
        with redis.Redis.from_url(redis_url) as client:
            assert client.xlen("cc:dead:shop") == 2


async def test_the_same_delivery_again_leads_to_no_second_answer(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        event = home.line.text_event(ANN, "สวัสดีค่ะ")
        assert await home.line.deliver(home.line_hook(), event) == 200
        await home.line.until(lambda: len(home.line_shows(ANN)) == 1)
        assert await home.line.deliver(home.line_hook(), home.line.redelivered(event)) == 200
        update = home.telegram.text_update(55, "hello")
        for _ in range(2):
            assert await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET) == 200
        await home.telegram.until(lambda: len(home.telegram_shows(55)) == 1)
        await home.quiet()
        assert (len(home.line_shows(ANN)), len(home.telegram_shows(55))) == (1, 1)


async def test_three_quick_messages_are_answered_together(tmp_path: Path, redis_url: str) -> None:
    waits = shop(behaviour={"debounce_ms": 300})
    async with house(tmp_path, redis_url, {"shop": waits}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: f"{request['messages'][-1]['content'].count('part')} parts")
        for number in range(3):
            await home.line_says(ANN, f"part {number}")
        await home.line.until(lambda: home.line_shows(ANN) == ["3 parts"])
        await home.quiet()
    assert len(home.line_shows(ANN)) == 1


async def test_two_users_of_two_tenants_never_see_each_others_words(tmp_path: Path, redis_url: str) -> None:
    from tests.standins.line_model import LineChannel

    other = shop(
        "Other",
        channels={
            "line-main": {
                "platform": "line",
                "channel_secret": "line-secret-2",
                "channel_access_token": "line-token-2",
            },
        },
    )
    second = LineChannel(token="line-token-2", secret="line-secret-2", user_id="U" + "2" * 32)
    channels = (LineChannel(), second)
    async with house(
        tmp_path, redis_url, {"shop": shop(), "other": other}, llm_key=LLM_KEY, line_channels=channels
    ) as home:
        await home.line_says(ANN, "my secret is apples")
        event = home.line.text_event(ANN, "my secret is pears")
        await home.line.deliver(home.line_hook("other"), event, channel=second)
        await home.line.until(lambda: len(home.line_shows(ANN)) == 2)
        await home.line_says(ANN, "what did I say?")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 3)
        asked = [str(one["messages"]) for one in home.llm.requests if "response_format" not in one]
    said = sorted(("apples" in text, "pears" in text) for text in asked)
    assert said == [(False, True), (True, False), (True, False)]


async def test_what_matters_is_remembered_in_a_file_and_small_talk_is_not(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        await home.line_says(ANN, "สวัสดีครับ")
        await home.quiet()
        folder = tmp_path / "data" / "longterm" / "shop"
        assert list(folder.glob("line*")) == []
        await home.line_says(ANN, "ขอสั่งลาเต้เย็น 2 แก้วครับ")
        await home.quiet()
    assert [path.name for path in folder.glob("line*.json")] == [f"line:{ANN}.json"]
    kept = json.loads((folder / f"line:{ANN}.json").read_text("utf-8"))
    journal = folder / f"line:{ANN}.journal"
    events = (
        kept["events"]
        + [one for line in journal.read_text("utf-8").splitlines() for one in json.loads(line).get("events", ())]
        if journal.exists()
        else kept["events"]
    )
    assert (kept["tenant_id"], kept["user_id"]) == ("shop", f"line:{ANN}")
    assert [event["event_type"] for event in events] == ["TRANSACTION"]
    assert events[0]["payload"]["original_message"] == "ขอสั่งลาเต้เย็น 2 แก้วครับ"
    assert events[0]["importance_score"] >= 0.9


async def test_the_session_stands_in_one_key_with_a_ttl(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        await home.line_says(ANN, "สวัสดีครับ")
        await home.quiet()
    with redis.Redis.from_url(redis_url) as client:
        session = json.loads(client.get(f"sm:shop:line:{ANN}"))
        ttl = client.ttl(f"sm:shop:line:{ANN}")
    assert 1800 < ttl <= 3600
    assert session["history"][0]["message"] == "สวัสดีครับ"
    assert [line["role"] for line in session["history"]] == ["user", "bot"]
    assert session["last_intent"] == "GENERIC_EVENT"


async def test_without_a_working_model_the_bot_still_answers(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.down = True
        await home.line_says(ANN, "สวัสดีครับ")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 1, timeout=40)


async def test_a_command_resets_the_conversation(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(
            lambda request: "heard: " + "|".join(m["content"] for m in request["messages"] if m["role"] == "user")
        )
        await home.telegram_says(55, "remember the apples")
        await home.telegram.until(lambda: len(home.telegram_shows(55)) == 1)
        await home.telegram_says(55, "/reset")
        await home.telegram.until(lambda: len(home.telegram_shows(55)) == 2)
        await home.telegram_says(55, "what did I say")
        await home.telegram.until(lambda: len(home.telegram_shows(55)) == 3)
    assert home.telegram_shows(55)[2] == "heard: what did I say"
