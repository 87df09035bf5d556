"""Who is forgotten leaves nothing behind: in no store, on the customer's word and on the operator's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import redis

from gateway.ending import Ending
from gateway.inbox.base import Claim
from gateway.memory_commands import forget
from memory.keys import understanding_dir
from processors import corrections
from processors.corrections import Correction
from processors.models import EventType
from tests.house import ADMIN_KEY, LLM_KEY, TELEGRAM_SECRET, House, house, shop
from tests.standins.model import Fault

STAFF = {"channel": "telegram-main", "chat": "-100123"}
REFUSED = {"ok": False, "error_code": 400, "description": "Bad Request: odd"}
GONE = {"ok": False, "error_code": 403, "description": "Forbidden: bot was blocked by the user"}
SEND = "/sendMessage"


def traces(home: House, *words: bytes) -> list[str]:
    """Keys and files that hold one of these, but for the deliveries that were seen and a minute's counts."""
    found: list[str] = []
    read: dict[Any, Callable[..., Any]] = {
        b"string": redis.Redis.get,
        b"hash": redis.Redis.hgetall,
        b"list": lambda client, key: client.lrange(key, 0, -1),
        b"zset": lambda client, key: client.zrange(key, 0, -1),
        b"set": redis.Redis.smembers,
        b"stream": redis.Redis.xrange,
    }
    with redis.Redis.from_url(home.redis_url) as client:
        for key in client.scan_iter(count=1000):
            if not key.startswith((b"cc:seen:", b"cc:rate:", b"cc:pace:")):
                whole = key + repr(read[client.type(key)](client, key)).encode()
                found += [key.decode()] if any(word in whole for word in words) else []
    for file in home.settings.data_dir.rglob("*"):
        if file.is_file() and any(word in str(file).encode() + file.read_bytes() for word in words):
            found.append(str(file.relative_to(home.settings.data_dir)))
    return sorted(found)


@pytest.mark.parametrize("asked_by", ["customer", "operator"])
async def test_a_forgotten_person_leaves_no_dead_letter_and_no_note_to_staff(
    tmp_path: Path, redis_url: str, asked_by: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en", staff=STAFF)}) as home:
        await home.telegram_says(4242424242, "I am allergic to pistachio")
        await home.telegram_says(777, "is there tea")
        await home.quiet()
        await home.telegram_says(4242424242, "talk to a human")
        await home.quiet()
        await home.telegram_says(4242424242, "/bot")
        await home.quiet()
        home.telegram.next(Fault(status=400, body=REFUSED, on=SEND))
        await home.telegram_says(777, "pears")
        await home.quiet()
        home.telegram.next(Fault(status=400, body=REFUSED, on=SEND))
        await home.telegram_says(4242424242, "where is my pistachio")
        await home.quiet()
        home.telegram.next(Fault(status=403, body=GONE, on=SEND))
        await home.telegram_says(4242424242, "hello pistachio")
        await home.quiet()
        corrected = Correction("no pistachio", EventType.REQUEST, user="telegram:4242424242")
        corrections.add(understanding_dir(home.settings.data_dir / "understanding", "shop"), corrected)
        before = traces(home, b"telegram:4242424242", b"pistachio")
        assert {"cc:dead:shop", "sm:shop:telegram:4242424242"} < set(before)
        assert any(name.startswith("cc:staff:") for name in before)
        if asked_by == "customer":
            await home.telegram_says(4242424242, "/forget yes")
            await home.quiet()
        else:
            receipt = await forget(home.settings, "shop", "telegram:4242424242")
            assert "staff_notes: 0" not in receipt
            assert any(line.startswith("staff_notes: ") for line in receipt)
        # The session is made anew by the turn that forgets; it holds nothing that was said.
        assert traces(home, b"pistachio") == []
        left = [name for name in traces(home, b"4242424242") if not name.startswith(("sm:", "cc:i:sessions"))]
        assert left == []
        assert "cc:dead:shop" in traces(home, b"telegram:777")  # another person's stays


async def test_what_a_web_chat_shows_of_a_forgotten_person_goes_too(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}) as home, aiohttp.ClientSession() as http:
        for user in ("ann", "bea"):
            for conversation in ("main", f"order-of-{user}"):
                said = {"tenant": "shop", "user": user, "message": "pistachio?", "conversation_id": conversation}
                key = {"Authorization": f"Bearer {ADMIN_KEY}"}
                async with http.post(f"{home.url}/chat", json=said, headers=key) as answer:
                    assert answer.status == 200
        await home.quiet()
        logs = ["cc:web:{sm:shop:web:ann/default/order-of-ann}", "cc:web:{sm:shop:web:ann}"]
        assert set(logs) < set(traces(home, b"pistachio"))
        await forget(home.settings, "shop", "web:ann")
        assert traces(home, b"web:ann", b"order-of-ann") == []
        assert "cc:web:{sm:shop:web:bea/default/order-of-bea}" in traces(home, b"pistachio")


async def test_of_who_is_forgotten_while_a_turn_of_theirs_is_under_way_nothing_comes_back(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "we do")
        await home.telegram_says(4242424242, "hello there, pistachio")
        await home.quiet()
        home.llm.next(Fault(delay=2.0))
        asked = len(home.llm.requests)
        await home.telegram_says(4242424242, "I am allergic to pistachio, do you have other cakes?")
        await home.llm.until(lambda: len(home.llm.requests) > asked)
        await forget(home.settings, "shop", "telegram:4242424242")
        await home.quiet()
        assert home.telegram_shows(4242424242)[1:] == ["we do"]  # the question is answered all the same
        assert traces(home, b"pistachio", b"4242424242") == []
        await home.telegram_says(4242424242, "call me Bee, I am allergic to walnuts")
        await home.quiet()
        assert "longterm/shop/telegram:4242424242.json" in traces(home, b"walnuts")  # what is said from then on is kept


async def test_nor_of_who_is_forgotten_in_the_last_moment_of_one(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, gone = Ending.was_forgotten, False
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "we do")
        await home.telegram_says(4242424242, "hello there, pistachio")
        await home.quiet()

        async def goes_then(ending: Ending, claim: Claim) -> bool:
            nonlocal gone
            found = await looked(ending, claim)
            if not gone:
                gone = True
                await forget(home.settings, "shop", "telegram:4242424242")
            return found

        monkeypatch.setattr(Ending, "was_forgotten", goes_then)
        await home.telegram_says(4242424242, "I am allergic to pistachio, do you have other cakes?")
        await home.quiet()
        assert gone
        assert traces(home, b"pistachio", b"4242424242") == []


@pytest.mark.parametrize("command", ["/mydata", "/forget", "/forget yes", "/ลืม ใช่"])
async def test_in_a_group_nobody_is_shown_or_forgotten(tmp_path: Path, redis_url: str, command: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}) as home:
        for words in ("I am allergic to pistachio", command):
            update = home.telegram.text_update(-1007, f"@bot1000001_bot {words}", user=4242424242)
            update["message"]["entities"] = [{"type": "mention", "offset": 0, "length": 15}]
            await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET)
            await home.quiet()
        before = traces(home, b"pistachio")
        assert home.telegram_shows(-1007)[-1] == "That is between you and me: please write to me in a private chat."
        assert {"sm:shop:telegram:group:-1007", "longterm/shop/telegram:4242424242.json"} < set(before)
