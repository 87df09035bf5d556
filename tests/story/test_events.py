"""People come and go, edit, take back, quote and talk in groups: what the table in docs/events.md says, through the
front door."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from gateway import assembly
from gateway.reach import Reach
from tests.house import LINE_SECRET, LINE_TOKEN, LLM_KEY, TELEGRAM_SECRET, House, house, shop
from tests.standins.line_model import LineChannel
from tests.standins.model import Fault
from tests.unit.receiving import payload

BOT = LineChannel(user_id="U2f7d2998820cd4e187e711f4aa950c20", token=LINE_TOKEN, secret=LINE_SECRET)
TOKEN = "7123456789:TESTTOKEN"
ANN, BEE, GROUP = "U" + "a" * 32, "U" + "b" * 32, "C" + "c" * 32
FREELY = {"debounce_ms": 0, "rate_limit_per_minute": 0}


def open_shop(**sections: Any) -> dict[str, Any]:
    channels = shop()["channels"]
    channels["telegram-main"]["bot_token"] = TOKEN
    return shop(channels=channels, **{"behaviour": FREELY} | sections)


def sent(home: House) -> int:
    """Calls that put something on a screen."""
    shown = [*home.line.calls_to("/message/reply"), *home.line.calls_to("/message/push")]
    return len(shown) + len(
        [call for call in home.telegram.calls if "/send" in call.path and "ChatAction" not in call.path]
    )


def unsend(home: House, event: dict[str, Any]) -> dict[str, Any]:
    taken = {key: value for key, value in event.items() if key not in ("message", "replyToken")}
    message_id = event["message"]["id"]
    return {**taken, "type": "unsend", "unsend": {"messageId": message_id}, "webhookEventId": f"UNSEND{message_id}"}


def kept_under(folder: Path) -> str:
    return "\n".join(path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file())


def sessions(redis_url: str) -> dict[str, Any]:
    with redis.Redis.from_url(redis_url) as client:
        return {key.decode(): json.loads(client.get(key)) for key in client.scan_iter("sm:*")}


async def test_what_is_taken_back_is_nowhere_and_not_answered(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}) as home:
        event = home.line.text_event(ANN, "ขอสั่งลาเต้เย็น 2 แก้ว เบอร์ 0812345678")
        await home.line.deliver(home.line_hook(), event)
        await home.quiet()
        assert "0812345678" in kept_under(tmp_path / "data")
        await home.line.deliver(home.line_hook(), unsend(home, event))
        await home.quiet()
        assert "0812345678" not in kept_under(tmp_path / "data")
        assert "0812345678" not in json.dumps(sessions(redis_url))
        assert sent(home) == 1


async def test_the_bots_answers_no_longer_repeat_what_was_taken_back(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "Hello Somchai! I'll call 081-234-5678 when they are ready.")
        event = home.line.text_event(ANN, "My name is Somchai, my phone is 0812345678, two lattes please")
        for one in (event, unsend(home, event)):
            await home.line.deliver(home.line_hook(), one)
            await home.quiet()
        kept = "Hello …! I'll call … when they are ready."
        (session,) = sessions(redis_url).values()
        assert [line["message"] for line in session["history"]] == [kept]
        assert kept in kept_under(tmp_path / "data" / "transcripts")
        everything = kept_under(tmp_path / "data") + json.dumps(session)
        assert [word for word in ("Somchai", "081-234-5678", "0812345678") if word in everything] == []


async def test_what_is_taken_back_before_it_is_answered_is_not_answered(tmp_path: Path, redis_url: str) -> None:
    waits = open_shop(behaviour=FREELY | {"debounce_ms": 500})
    async with house(tmp_path, redis_url, {"shop": waits}) as home:
        event = home.line.text_event(ANN, "my phone is 0812345678")
        await home.line.deliver(home.line_hook(), event, unsend(home, event))
        await home.quiet()
        assert sent(home) == 0
        assert "0812345678" not in kept_under(tmp_path / "data")


def edited(update: dict[str, Any], text: str) -> dict[str, Any]:
    message = {**update["message"], "text": text, "edit_date": update["message"]["date"] + 5}
    return {"update_id": update["update_id"] + 1000, "edited_message": message}


async def test_an_edit_corrects_the_history_and_is_not_answered(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}, telegram_tokens=(TOKEN,)) as home:
        update = home.telegram.text_update(55, "I want to order 2 lattes")
        for one in (update, edited(update, "I want to order 3 lattes")):
            await home.telegram.deliver(home.telegram_hook(), one, TELEGRAM_SECRET)
            await home.quiet()
        assert sent(home) == 1
        history = sessions(redis_url)["sm:shop:telegram:55"]["history"]
        assert [line["message"] for line in history if line["role"] == "user"] == ["I want to order 3 lattes"]
        assert [one["message"] for one in history[0]["metadata"]["edited"]] == ["I want to order 2 lattes"]
        longterm = kept_under(tmp_path / "data" / "longterm")
        assert ("order 3 lattes" in longterm, "order 2 lattes" in longterm) == (True, False)


async def test_an_edit_before_the_answer_is_what_is_answered(tmp_path: Path, redis_url: str) -> None:
    waits = open_shop(behaviour=FREELY | {"debounce_ms": 500})
    async with house(tmp_path, redis_url, {"shop": waits}, telegram_tokens=(TOKEN,), llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "heard: " + request["messages"][-1]["content"])
        update = home.telegram.text_update(55, "two lattes")
        for one in (update, edited(update, "three lattes")):
            await home.telegram.deliver(home.telegram_hook(), one, TELEGRAM_SECRET)
        await home.quiet()
        assert home.telegram_shows(55) == ["heard: three lattes"]


async def test_an_edit_of_a_message_that_never_reached_us_is_answered(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}, telegram_tokens=(TOKEN,)) as home:
        await home.telegram.deliver(home.telegram_hook(), payload("telegram/17_edited_message"), TELEGRAM_SECRET)
        await home.quiet()
        assert len(home.telegram_shows(5550001111)) == 1


async def test_nothing_is_pushed_to_who_blocked_the_bot_until_they_are_back(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}) as home:
        event = home.line.text_event(ANN, "hello")
        gone = {key: value for key, value in event.items() if key not in ("message", "replyToken")}
        await home.line.deliver(home.line_hook(), {**gone, "type": "unfollow", "webhookEventId": "LEFT1"})
        await home.quiet()
        client = assembly.inbox_client(home.settings, redis_url)
        reach = Reach(client)
        assert await reach.gone("shop", "line-main", ANN, time.time() - 60) is True
        assert await reach.gone("shop", "line-main", BEE, time.time() - 60) is False
        follow = {**event, "type": "follow", "follow": {"isUnblocked": True}, "webhookEventId": "BACK1"}
        del follow["message"]
        await home.line.deliver(home.line_hook(), follow)
        await home.quiet()
        assert await reach.gone("shop", "line-main", ANN, time.time() - 60) is False
        await client.aclose()
        assert len(home.line_shows(ANN)) == 1  # the welcome


async def test_an_answer_whose_token_is_gone_is_not_pushed_to_who_left_meanwhile(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}) as home:
        client = assembly.inbox_client(home.settings, redis_url)
        for user, left in ((ANN, True), (BEE, False)):
            if left:
                await Reach(client).left("shop", "line-main", user, time.time() + 60)
            late = {**home.line.text_event(user, "hello"), "replyToken": "gone"}
            await home.line.deliver(home.line_hook(), late)
            await home.quiet()
        await client.aclose()
        assert [call.body["to"] for call in home.line.calls_to("/message/push")] == [BEE]


async def test_what_came_with_start_is_in_the_session(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}, telegram_tokens=(TOKEN,)) as home:
        await home.telegram_says(55, "/start table-12")
        await home.quiet()
        assert sessions(redis_url)["sm:shop:telegram:55"]["variables"]["start"] == "table-12"
        assert len(home.telegram_shows(55)) == 1


async def test_what_is_quoted_on_line_is_given_to_the_model(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "asked: " + request["messages"][-1]["content"])
        first = home.line.text_event(ANN, "is the big table free?")
        await home.line.deliver(home.line_hook(), first)
        await home.quiet()
        second = home.line.text_event(ANN, "I mean this one")
        second["message"]["quotedMessageId"] = first["message"]["id"]
        await home.line.deliver(home.line_hook(), second)
        await home.quiet()
    assert home.line_shows(ANN)[1] == "asked: <quoted>\nis the big table free?\n</quoted>\nI mean this one"


def mention(event: dict[str, Any]) -> dict[str, Any]:
    """The text, after a mention of the bot."""
    text = "🎉 @bot " + event["message"]["text"]
    place = {"index": 3, "length": 4, "type": "user", "userId": BOT.user_id, "isSelf": True}
    return {**event, "message": {**event["message"], "text": text, "mention": {"mentionees": [place]}}}


async def test_in_a_group_only_who_speaks_to_the_bot_is_heard(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "asked: " + request["messages"][-1]["content"])
        chatter = home.line.text_event(ANN, "my phone is 0811111111", group=GROUP)
        asks = mention(home.line.text_event(ANN, "what is open?", group=GROUP))
        await home.line.deliver(home.line_hook(), chatter)
        await home.quiet()
        await home.line.deliver(home.line_hook(), asks)
        await home.quiet()
        assert home.line_shows(GROUP) == [f"asked: LINE {ANN[1:5]}: 🎉 what is open?"]
        assert "0811111111" not in kept_under(tmp_path / "data")
        quotes = home.line.text_event(BEE, "and tomorrow?", group=GROUP)
        quotes["message"]["quotedMessageId"] = home.line.delivered[GROUP][0].id
        await home.line.deliver(home.line_hook(), quotes)
        await home.quiet()
        assert len(home.line_shows(GROUP)) == 2
        assert "and tomorrow?" in home.line_shows(GROUP)[1]


async def test_a_groups_prompt_holds_nothing_said_one_to_one_and_its_members_keep_what_is_theirs(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "Noted.")  # what it is asked of the messages' kind, rules say
        await home.line_says(ANN, "My name is Ann, I am allergic to shrimp, my phone is 0812345678")
        await home.quiet()
        order = home.line.text_event(ANN, "I want to order 9 lattes, phone 0822222222", group=GROUP)
        await home.line.deliver(home.line_hook(), mention(order))
        await home.quiet()
        asked = [one["messages"] for one in home.llm.requests if "response_format" not in one]
        prompt = json.dumps(asked[-1], ensure_ascii=False)
        assert "9 lattes" in prompt
        assert not any(word in prompt for word in ("0812345678", "shrimp", "Ann"))
    folder = tmp_path / "data" / "longterm" / "shop"
    own = "".join(path.read_text("utf-8") for path in folder.glob(f"line:{ANN}.*"))
    groups = "".join(path.read_text("utf-8") for path in folder.glob("line:group:*"))
    assert ("9 lattes" in own, "9 lattes" in groups) == (True, False)


async def test_a_member_whom_nobody_names_is_answered_and_remembered_by_nobody(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}) as home:
        event = mention(home.line.text_event(ANN, "I want to order 9 lattes", group=GROUP))
        del event["source"]["userId"]
        await home.line.deliver(home.line_hook(), event)
        await home.quiet()
        assert len(home.line_shows(GROUP)) == 1
    assert kept_under(tmp_path / "data" / "longterm") == ""


async def test_each_topic_of_a_group_is_a_talk_of_its_own(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": open_shop()}, telegram_tokens=(TOKEN,)) as home:
        for number, thread in enumerate((7, 8)):
            update = home.telegram.text_update(-1001, f"/help {number}", user=55)
            update["message"] |= {"message_thread_id": thread, "is_topic_message": True}
            update["message"]["chat"] |= {"type": "supergroup", "is_forum": True}
            update["message"]["text"] = f"@siam_bot hello {number}"
            update["message"]["entities"] = [{"type": "mention", "offset": 0, "length": 9}]
            await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET)
            await home.quiet()
        assert sorted(sessions(redis_url)) == [
            "sm:shop:telegram:group:-1001/default/topic-7",
            "sm:shop:telegram:group:-1001/default/topic-8",
        ]
        assert [one.thread_id for one in home.telegram.delivered["-1001"]] == [7, 8]


@pytest.mark.parametrize("with_staff", [False, True])
async def test_what_was_taken_back_stands_among_the_dead_letters_no_longer(
    tmp_path: Path, redis_url: str, with_staff: bool
) -> None:
    staff: dict[str, Any] = {"staff": {"channel": "telegram-main", "chat": "-100123"}} if with_staff else {}
    async with house(tmp_path, redis_url, {"shop": shop(language="en", **staff)}) as home:
        if with_staff:
            await home.line_says(ANN, "talk to a human")
            await home.quiet()
            refused = {"ok": False, "error_code": 400, "description": "Bad Request: odd"}
            home.telegram.next(Fault(status=400, body=refused, on="/sendMessage"))
        else:
            home.line.next(Fault(status=400, body={"message": "odd"}, on="/message/reply"))
        said = home.line.text_event(ANN, "my *pistachio* [order]")
        await home.line.deliver(home.line_hook(), said)
        await home.quiet()

        def dead() -> list[bytes]:
            with redis.Redis.from_url(redis_url) as client:
                letters: Any = client.xrange("cc:dead:shop")
            return [fields[b"message"] for _, fields in letters]

        assert ["pistachio" in one.decode() for one in dead()] == [True]
        unsend = home.line.text_event(ANN, "") | {"type": "unsend", "unsend": {"messageId": said["message"]["id"]}}
        del unsend["message"], unsend["replyToken"]
        await home.line.deliver(home.line_hook(), unsend)
        await home.quiet()
        assert dead() == []
