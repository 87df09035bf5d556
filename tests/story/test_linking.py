"""One person on two channels: linked by a code that they carry over, from then on one conversation and one memory."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio

from gateway import app, assembly
from memory.keys import ConversationRef
from memory.memory_manager import MemoryManager
from tests.house import LINE_SECRET, LINE_TOKEN, LLM_KEY, TELEGRAM_SECRET, TELEGRAM_TOKEN, House, house, shop
from tests.standins.model import Fault

ANN, BEN = "U" + "a" * 32, "U" + "b" * 32
ANN_ID, BEN_ID = f"line:{ANN}", f"line:{BEN}"
CHAT, GROUP = 55, -1007
_CODE = re.compile(r"[A-Z2-9]{4}-[A-Z2-9]{4}")


async def line(home: House, text: str, user: str = ANN) -> list[str]:
    """What is new on the LINE screen once all is quiet."""
    before = len(home.line_shows(user))
    assert await home.line_says(user, text) == 200
    await home.quiet()
    return home.line_shows(user)[before:]


async def telegram(home: House, text: str, chat: int = CHAT, **more: Any) -> list[str]:
    before = len(home.telegram_shows(chat))
    update = home.telegram.text_update(chat, text, user=CHAT if chat < 0 else chat)
    update["message"] |= more
    assert await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET) == 200
    await home.quiet()
    return home.telegram_shows(chat)[before:]


async def code(home: House, user: str = ANN, command: str = "/link") -> str:
    [answer] = await line(home, command, user)
    found = _CODE.search(answer)
    assert found, answer
    return found[0]


def manager_of(home: House) -> MemoryManager:
    return assembly.memory_of(home.settings, home.tenants, home.redis_url)


async def canonical(home: House, user: str) -> str:
    manager = manager_of(home)
    found = await manager.knowledge.canonical("shop", user)
    await manager.close()
    return found


async def session(home: House, user: str) -> list[str] | None:
    manager = manager_of(home)
    stored = await manager.sessions.load(ConversationRef("shop", user))
    await manager.close()
    return [entry["message"] for entry in stored.history] if stored else None


async def test_a_code_from_line_typed_on_telegram_makes_one_person_of_both(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}) as home:
        await line(home, "my name is Ploy")
        await telegram(home, "i am allergic to nuts")
        given = await code(home)
        on_line = len(home.line_shows(ANN))
        assert await telegram(home, f"/link {given.lower()}") == [
            "Linked! From now on we know you on Telegram and on LINE as the same person."
        ]
        assert home.line_shows(ANN)[on_line:] == [
            "This chat is now linked with Telegram. If that wasn't you, please tell the shop."
        ]
        assert await canonical(home, f"telegram:{CHAT}") == ANN_ID
        manager = manager_of(home)
        memory = await manager.longterm.load("shop", ANN_ID)
        await manager.close()
        assert memory is not None
        assert memory.attributes["name"] == "Ploy"
        assert memory.attributes["allergies"] == ["nuts"]


async def test_thai_words_do_it_too_and_the_code_may_be_typed_alone_after_asking(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": shop()}) as home:
        given = await code(home, command="/เชื่อมต่อ")
        assert (
            given in (await telegram(home, f"/เชื่อมต่อ {given}"))[0]
            or await canonical(home, f"telegram:{CHAT}") == ANN_ID
        )
        again = await code(home, BEN)
        await telegram(home, "/link", 66)
        assert await telegram(home, again.replace("-", " "), 66) == [
            "เชื่อมต่อแล้วค่ะ ต่อไปจะทักมาทาง Telegram หรือ LINE เราก็รู้ว่าเป็นคุณลูกค้าคนเดิมนะคะ"
        ]
        assert await canonical(home, "telegram:66") == BEN_ID


async def test_both_channels_go_on_in_one_session_in_the_order_in_which_it_was_said(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "ok")
        await line(home, "apples on line")
        await telegram(home, "pears on telegram")
        given = await code(home)
        await telegram(home, f"/link {given}")
        assert await session(home, f"telegram:{CHAT}") is None
        assert await session(home, ANN_ID) == ["apples on line", "ok", "pears on telegram", "ok"]
        await telegram(home, "and plums")
        await line(home, "and figs")
        assert await session(home, ANN_ID) == [
            *("apples on line", "ok", "pears on telegram", "ok"),
            *("and plums", "ok", "and figs", "ok"),
        ]
        assert await session(home, f"telegram:{CHAT}") is None
        async with redis.asyncio.Redis.from_url(redis_url) as client:
            alias = await client.get(f"cc:alias:{{sm:shop:telegram:{CHAT}}}")
        assert alias == f"sm:shop:{ANN_ID}".encode()


async def test_the_next_session_begins_with_what_was_said_on_both(tmp_path: Path, redis_url: str) -> None:
    now = [datetime(2026, 3, 2, 3, 0, tzinfo=UTC)]

    def clock() -> datetime:
        now[0] += timedelta(milliseconds=5)
        return now[0]

    async with house(tmp_path, redis_url, llm_key=LLM_KEY, clock=clock) as home:
        home.llm.answers(
            lambda request: "|".join(str(m["content"]) for m in request["messages"] if m["role"] == "user")
        )
        await telegram(home, "pears on telegram")
        await line(home, "figs on line")
        await telegram(home, f"/link {await code(home)}")
        now[0] += timedelta(hours=5)
        assert (await line(home, "what did I say"))[0].startswith("pears on telegram|figs on line|what did I say")
        await telegram(home, "/reset")
        now[0] += timedelta(hours=5)
        assert await telegram(home, "and now") == ["and now"]


async def test_a_code_works_once_for_ten_minutes_and_not_in_its_own_chat(tmp_path: Path, redis_url: str) -> None:
    wrong = ["That code is wrong or no longer valid. Type /link in the other app for a new one."]
    async with house(tmp_path, redis_url, {"shop": shop(language="en"), "other": shop_two()}) as home:
        first = await code(home)
        second = await code(home)
        assert await telegram(home, f"/link {first}") == wrong  # a new one ends the old one
        assert (await line(home, f"/link {second}"))[0] == "That is this chat's own code: type it in the other app."
        async with redis.asyncio.Redis.from_url(redis_url) as client:
            found = [key async for key in client.scan_iter(match="cc:link:shop:*")]
            assert all([0 < await client.ttl(key) <= 600 for key in found])
            kept = b"".join(found) + b"".join([await client.get(k) or b"" for k in found if b":tries" not in k])
        assert second.encode() not in kept
        assert second.replace("-", "").encode() not in kept
        assert len(await telegram(home, f"/link {second}")) == 1
        assert await telegram(home, f"/link {second}", 66) == wrong
        assert await canonical(home, "telegram:66") == "telegram:66"


def shop_two() -> dict[str, Any]:
    other = shop("Other Shop", language="en")
    other["channels"] = {
        "tg": {"platform": "telegram", "bot_token": "2000002:second-test-bot", "webhook_secret": "second-secret"}
    }
    return other


async def test_another_shop_knows_nothing_of_a_code(tmp_path: Path, redis_url: str) -> None:
    tokens = (TELEGRAM_TOKEN, "2000002:second-test-bot")
    tenants = {"shop": shop(language="en"), "other": shop_two()}
    async with house(tmp_path, redis_url, tenants, telegram_tokens=tokens) as home:
        given = await code(home)
        update = home.telegram.text_update(CHAT, f"/link {given}")
        await home.telegram.deliver(home.telegram_hook("other", "tg"), update, "second-secret")
        await home.quiet()
        assert home.telegram_shows(CHAT)[-1].startswith("That code is wrong")
        assert len(await telegram(home, f"/link {given}")) == 1  # and it still works where it was made
        assert await canonical(home, f"telegram:{CHAT}") == ANN_ID


async def test_after_five_wrong_codes_no_code_is_taken(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}) as home:
        given = await code(home)
        for number in range(5):
            await telegram(home, f"/link AAAA-AAA{number + 2}")
        assert await telegram(home, f"/link {given}") == [
            "That was too many wrong codes. Please wait 10 minutes and try again."
        ]
        assert await canonical(home, f"telegram:{CHAT}") == f"telegram:{CHAT}"


async def test_in_a_group_no_code_is_shown_or_taken(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}) as home:
        given = await code(home)
        for words in ("/link@bot1000001_bot", f"/link@bot1000001_bot {given}"):
            command = {"type": "bot_command", "offset": 0, "length": len("/link@bot1000001_bot")}
            assert await telegram(home, words, GROUP, entities=[command]) == [
                "Please do that in a private chat with me."
            ]


async def test_the_command_can_be_renamed_and_switched_off(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en", commands={"link": "connect"})}) as home:
        [answer] = await line(home, "/connect")
        assert "type /connect " in answer
        assert "/connect link this chat with another app" in (await line(home, "/help"))[0]
        assert (await line(home, "/link"))[0].startswith("I don't know that command.")


def contact(number: str, user: int) -> dict[str, Any]:
    return {"contact": {"phone_number": number, "first_name": "Ploy", "user_id": user}}


async def test_a_number_that_telegram_verified_links_where_it_was_verified_before(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}) as home:
        manager = manager_of(home)
        assert await manager.verified("shop", ANN_ID, "phone", "+66 81 234 5678") is None
        await manager.close()
        for sender, owner in ((66, 55), (77, 0)):  # somebody else's contact, and one of nobody on Telegram
            update = home.telegram.text_update(sender, "x")
            del update["message"]["text"]
            update["message"] |= (
                contact("66812345678", owner)
                if owner
                else {"contact": {"phone_number": "66812345678", "first_name": "P"}}
            )
            await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET)
            await home.quiet()
            assert await canonical(home, f"telegram:{sender}") == f"telegram:{sender}"
        await telegram(home, "my number is 081-234-5678", 88)  # typed: proves nothing
        assert await canonical(home, "telegram:88") == "telegram:88"
        update = home.telegram.text_update(CHAT, "x")
        del update["message"]["text"]
        update["message"] |= contact("66812345678", CHAT)
        await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET)
        await home.quiet()
        assert home.telegram_shows(CHAT)[-1] == (
            "This number was verified on another channel too: we've linked both chats."
        )
        assert await canonical(home, f"telegram:{CHAT}") == ANN_ID


async def test_what_waits_on_the_old_channel_during_the_merge_is_answered_in_order_and_once(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "re " + request["messages"][-1]["content"])
        home.llm.next(Fault(delay=1.5))
        await home.telegram_says(CHAT, "one")  # its turn is under way when both become one
        await home.llm.until(lambda: bool(home.llm.requests))
        manager = manager_of(home)
        await manager.link_users("shop", f"telegram:{CHAT}", ANN_ID)
        for words in ("two", "three"):
            await home.telegram_says(CHAT, words)
        await home.line_says(ANN, "four")
        await home.quiet()
        await home.telegram_says(CHAT, "five")
        await home.quiet()
        assert home.telegram_shows(CHAT) == ["re one", "re two\nthree", "re five"]
        assert home.line_shows(ANN) == ["re four"]
        history = await session(home, ANN_ID)
        assert history is not None
        said = ("one", "re one", "two", "three", "re two\nthree", "four", "re four", "five", "re five")
        assert sorted(history) == sorted(said)
        assert await session(home, f"telegram:{CHAT}") is None
        await manager.close()


async def test_a_delivery_repeated_after_the_link_is_not_answered_again(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "ok")
        update = home.telegram.text_update(CHAT, "hello there")
        await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET)
        await home.quiet()
        await telegram(home, f"/link {await code(home)}")
        await telegram(home, "more")
        shown = home.telegram_shows(CHAT)
        await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET)
        await home.quiet()
        assert home.telegram_shows(CHAT) == shown


async def test_forgetting_on_one_side_forgets_both_and_leaves_no_trace_of_the_link(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}) as home:
        await line(home, "my name is Ploy")
        await telegram(home, "i am allergic to nuts")
        await telegram(home, f"/link {await code(home)}")
        await telegram(home, "hello again")
        await telegram(home, "/forget yes")
        assert list((tmp_path / "data" / "longterm" / "shop").glob("*.json*")) == []
        async with redis.asyncio.Redis.from_url(redis_url) as client:
            assert [key async for key in client.scan_iter(match="cc:alias:*")] == []
            assert [key async for key in client.scan_iter(match="cc:link:*")] == []
        await telegram(home, "hello once more")
        assert await session(home, f"telegram:{CHAT}") is not None  # two people again, as far as anybody knows
        assert "Ploy" not in json.dumps(await line(home, "/mydata"))


async def test_parted_again_each_has_what_came_from_it_and_a_conversation_of_its_own(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}) as home:
        await line(home, "my name is Ploy")
        await telegram(home, "i am allergic to nuts")
        await telegram(home, f"/link {await code(home)}")
        await telegram(home, "hello")
        manager = manager_of(home)
        assert await manager.unlink_user("shop", f"telegram:{CHAT}") == ANN_ID
        with pytest.raises(ValueError, match="not merged"):
            await manager.unlink_user("shop", f"telegram:{CHAT}")
        hers, his = [await manager.longterm.load("shop", one) for one in (ANN_ID, f"telegram:{CHAT}")]
        await manager.close()
        assert hers is not None
        assert his is not None
        assert (hers.attributes.get("name"), hers.attributes.get("allergies")) == ("Ploy", None)
        assert (his.attributes.get("name"), his.attributes.get("allergies")) == (None, ["nuts"])
        assert len(await telegram(home, "hello again")) == 1
        assert (await session(home, f"telegram:{CHAT}") or [])[:1] == ["hello again"]
        assert "hello again" not in (await session(home, ANN_ID) or [])
        async with app.tidy(home.settings, home.tenants, home.redis_url) as tidy:
            await tidy.run()


async def test_an_answer_that_waits_on_line_without_push_comes_along_on_telegram(
    tmp_path: Path, redis_url: str
) -> None:
    tenant = shop(language="en")
    tenant["channels"]["line-main"] = {
        "platform": "line",
        "channel_secret": LINE_SECRET,
        "channel_access_token": LINE_TOKEN,
        "allow_push": False,
    }
    async with house(tmp_path, redis_url, {"shop": tenant}) as home:
        given = await code(home)
        await home.telegram_says(CHAT, f"/link {given}")
        await home.parked()  # the word for LINE waits there for its customer
        await home.telegram_says(CHAT, "/help")
        await home.telegram.until(lambda: len(home.telegram_shows(CHAT)) == 2)
        await home.quiet()
        assert home.telegram_shows(CHAT)[1].startswith("This chat is now linked with Telegram.")
        assert "Just type your question" in home.telegram_shows(CHAT)[1]
