"""Words that begin with `/`, as customers on LINE and Telegram type them and as shops name them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.house import LLM_KEY, TELEGRAM_SECRET, House, house, shop
from tests.standins.line_model import LineChannel
from tests.standins.model import Fault

ANN, GROUP = "U" + "a" * 32, "C" + "6" * 32
MENU = "/setMyCommands"


async def says(home: House, chat: int, text: str, **more: Any) -> list[str]:
    """What the chat then has on its screen that is new."""
    before = len(home.telegram_shows(chat))
    update = home.telegram.text_update(chat, text, user=55)
    update["message"] |= more
    assert await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET) == 200
    await home.quiet()
    return home.telegram_shows(chat)[before:]


async def test_help_names_the_commands_as_the_shop_does(tmp_path: Path, redis_url: str) -> None:
    commands = {"reset": "restart", "mydata": False, "human": "staff"}
    staff = {"channel": "telegram-main", "chat": "-100123"}
    async with house(tmp_path, redis_url, {"shop": shop(language="en", commands=commands, staff=staff)}) as home:
        assert await says(home, 55, "/help") == [
            "Just type your question, in Thai or English.\n\nCommands\n"
            "• /restart start the conversation afresh\n"
            "• /language choose the language: th or en\n"
            "• /forget make us forget everything\n"
            "• /link link this chat with another app\n"
            "• /staff talk to a person\n"
            "• /bot go back to the bot"
        ]
        unknown = ["I don't know that command. Type /help to see what I can do."]
        assert await says(home, 55, "/mydata") == unknown
        assert await says(home, 55, "/reset") == unknown
        assert await says(home, 55, "/RESTART") == ["We've started afresh. How can I help?"]


async def test_commands_have_thai_names_too_and_go_when_switched_off(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(commands={"mydata": False})}) as home:
        assert await says(home, 55, "/เริ่มใหม่") == ["เริ่มคุยใหม่แล้วค่ะ มีอะไรให้ช่วยไหมคะ"]
        assert await says(home, 55, "/ลืม") == ["ต้องการให้เราลืมทุกอย่างที่เคยคุยกันใช่ไหมคะ ถ้าใช่ พิมพ์ /forget yes ค่ะ"]
        assert await says(home, 55, "/ข้อมูลของฉัน") == ["ขอโทษค่ะ ไม่รู้จักคำสั่งนี้ค่ะ พิมพ์ /help เพื่อดูคำสั่งที่ใช้ได้นะคะ"]


async def test_who_asks_in_plain_words_to_be_forgotten_hears_how_and_is(tmp_path: Path, redis_url: str) -> None:
    ask = ["ต้องการให้เราลืมทุกอย่างที่เคยคุยกันใช่ไหมคะ ถ้าใช่ พิมพ์ /forget yes ค่ะ"]
    async with house(tmp_path, redis_url, {"shop": shop(language="th")}, llm_key=LLM_KEY) as home:
        for said in (
            "ลบข้อมูลของเราด้วยค่ะ",
            "ลืมที่เราเคยคุยกันไปเลยนะ",
            "please delete my data",
            "forget me",
            "forget everything I told you",
        ):
            assert await says(home, 55, said) == ask
        assert await says(home, 55, "/forget yes") == ["ลบข้อมูลของคุณลูกค้าเรียบร้อยแล้วค่ะ"]
        for said in ("ลืมที่คุยกันแล้วเหรอ", "don't forget me", "ลบที่อยู่เก่าออกจากออเดอร์ด้วย", "ลบข้อมูลของทุกคน"):
            assert await says(home, 55, said) != ask
        for said in ("two bunches of forget me nots", "forget everything about the cake, bread is fine"):
            assert await says(home, 55, said) != ask
    async with house(tmp_path / "off", redis_url, {"shop": shop(language="th", commands={"forget": False})}) as home:
        assert await says(home, 56, "ลบข้อมูลของเราด้วยค่ะ") != ask


async def test_a_commands_name_says_nothing_about_the_customers_language(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        assert (await says(home, 55, "/language"))[0].startswith("พิมพ์ /language th")
        await says(home, 55, "what time do you open?")
        assert (await says(home, 55, "/language"))[0].startswith("Type /language th")


@pytest.mark.parametrize("text", ["/reset@bot1000001_bot", "@bot1000001_bot /reset"])
async def test_in_a_telegram_group_a_command_may_come_with_a_mention(text: str, tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        start = text.index("@")
        mention = {"type": "mention", "offset": start, "length": len("@bot1000001_bot")}
        command = {"type": "bot_command", "offset": 0, "length": len(text)}
        found = await says(home, -1007, text, entities=[mention if start == 0 else command])
    assert found == ["เริ่มคุยใหม่แล้วค่ะ มีอะไรให้ช่วยไหมคะ"]


async def test_in_a_line_group_a_command_may_come_with_a_mention(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        event = home.line.text_event(ANN, "@ร้าน /reset", group=GROUP)
        mentionee = {"index": 0, "length": 5, "type": "user", "isSelf": True, "userId": LineChannel().user_id}
        event["message"]["mention"] = {"mentionees": [mentionee]}
        await home.line.deliver(home.line_hook(), event)
        await home.quiet()
        assert home.line_shows(GROUP) == ["เริ่มคุยใหม่แล้วค่ะ มีอะไรให้ช่วยไหมคะ"]


async def test_what_was_said_before_a_reset_does_not_come_back_with_the_next_session(
    tmp_path: Path, redis_url: str
) -> None:
    now = [datetime(2026, 3, 2, 3, 0, tzinfo=UTC)]

    def clock() -> datetime:
        now[0] += timedelta(milliseconds=5)
        return now[0]

    async with house(tmp_path, redis_url, llm_key=LLM_KEY, clock=clock) as home:
        home.llm.answers(
            lambda request: "heard: " + "|".join(m["content"] for m in request["messages"] if m["role"] == "user")
        )
        await says(home, 55, "remember the apples")
        await says(home, 55, "/reset")
        await says(home, 55, "remember the pears")
        now[0] += timedelta(hours=5)
        assert await says(home, 55, "what did I say") == ["heard: remember the pears|what did I say"]
    transcript = "".join(file.read_text("utf-8") for file in (tmp_path / "data" / "transcripts").rglob("*.jsonl"))
    assert "apples" in transcript  # hidden, not gone: /forget is for that


# -- the menu ----------------------------------------------------------------------------------------------------------


def menu(home: House, code: str | None) -> list[tuple[str, str]]:
    """The newest menu that the bot was given for a language."""
    bodies = [call.body for call in home.telegram.calls_to(MENU)]
    newest = [body for body in bodies if body.get("language_code") == code][-1]
    commands, scope = (json.loads(v) if isinstance(v, str) else v for v in (newest["commands"], newest["scope"]))
    assert scope == {"type": "default"}
    return [(one["command"], one["description"]) for one in commands]


async def test_a_bots_menu_is_set_once_and_again_when_the_file_changes(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop()}) as home:
        await home.telegram.until(lambda: len(home.telegram.calls_to(MENU)) == 3)
        assert menu(home, "th") == [
            ("start", "เริ่มคุยกัน"),
            ("help", "ดูวิธีใช้และคำสั่งทั้งหมด"),
            ("reset", "เริ่มคุยใหม่"),
            ("language", "เลือกภาษา พิมพ์ th หรือ en ต่อท้าย"),
            ("mydata", "ดูข้อมูลที่เราจำไว้"),
            ("forget", "ให้เราลืมข้อมูลทั้งหมด"),
            ("link", "เชื่อมแชตนี้กับอีกช่องทาง"),
        ]
        assert menu(home, "en")[:2] == [("start", "Start chatting"), ("help", "Show what I can do")]
        assert menu(home, None) == menu(home, "en")
        await home.until(menus_kept(redis_url), bool)
    async with house(tmp_path, redis_url, {"shop": shop()}) as home:  # another worker, the same file
        changed = shop(language="th", commands={"forget": False, "human": "staff"})
        changed["staff"] = {"channel": "telegram-main", "chat": "-100123"}
        file = home.settings.config_dir / "tenants" / "shop.yaml"
        await home.until(menus_kept(redis_url), bool)
        assert home.telegram.calls_to(MENU) == []
        file.write_text(yaml.safe_dump(changed), encoding="utf-8")
        home.tenants.load()
        await home.telegram.until(lambda: len(home.telegram.calls_to(MENU)) == 3, timeout=30)
        words = [word for word, _ in menu(home, None)]
        assert words == ["start", "help", "reset", "language", "mydata", "link", "staff", "bot"]
        assert menu(home, None) == menu(home, "th")


def menus_kept(redis_url: str) -> Any:
    import redis.asyncio

    async def ask() -> bool:
        async with redis.asyncio.Redis.from_url(redis_url) as client:
            kept, tried = "cc:menu:shop:telegram-main", "cc:menu:shop:telegram-main:tried"
            return (await client.exists(kept), await client.exists(tried)) == (1, 0)

    return ask


async def test_a_menu_that_could_not_be_set_holds_nobody_up(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        home.telegram.next(Fault(status=500, on=MENU))
        assert len(await says(home, 55, "hello")) == 1
