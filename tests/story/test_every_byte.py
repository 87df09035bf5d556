"""Every byte at rest of a default installation: after a person was forgotten none of it holds their words."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import redis

from gateway import app, assembly
from gateway.blocked import Blocked
from gateway.inbox.base import Policy
from gateway.inbox.redis import RedisInbox
from gateway.inbox.spool import Spool
from gateway.memory_commands import forget
from gateway.messages import InboundMessage
from gateway.patience import Times
from gateway.redis_server import EmbeddedRedis
from gateway.undo import Undo
from memory.facts import new as new_fact
from memory.keys import understanding_dir
from memory.listing import Wanted
from memory.lists import FileLists
from processors import corrections
from processors.corrections import Correction
from processors.models import EventType
from tests.house import LINE_SECRET, LINE_TOKEN, LLM_KEY, TELEGRAM_SECRET, House, house, shop
from tests.standins.model import Fault
from tests.story.test_forgetting import REFUSED, SEND, traces

ANN = "U" + "a" * 32
WORDS = (b"pistachio", b"0812345678", b"Zaphira", b"picture of ann")
SLOW = Times(hold_after=0.2, push_after=60, look_every=0.1)


def bytes_at_rest(folder: Path, *words: bytes) -> list[str]:
    """Files whose name or content holds one of these."""
    found = []
    for file in folder.rglob("*"):
        if file.is_file() and any(word in str(file).encode() + file.read_bytes() for word in words):
            found.append(str(file.relative_to(folder)))
    return sorted(found)


def written_anew(url: str) -> None:
    """Until the server's append-only file holds no more than what the server holds."""
    with redis.Redis.from_url(url) as client:
        deadline = time.monotonic() + 60
        client.bgrewriteaof()
        while (now := client.info("persistence"))["aof_rewrite_in_progress"] or now["aof_rewrite_scheduled"]:
            assert time.monotonic() < deadline, "the append-only file was not written anew"
            time.sleep(0.02)
        assert now["aof_last_bgrewrite_status"] == "ok"


def in_an_hour() -> datetime:
    return assembly.utc_now() + timedelta(hours=1)


async def told_of_everywhere(home: House) -> None:
    """Ann leaves her words in every store that there is."""
    model_may = asyncio.Event()

    async def model(request: dict[str, Any]) -> str:
        if not request.get("response_format") and "slowly" in str(request["messages"][-1]["content"]):
            await model_may.wait()
        return "{}" if request.get("response_format") else "No pistachio for Zaphira, we call 0812345678."

    home.llm.answers(model)
    manager = assembly.memory_of(home.settings, home.tenants, home.redis_url)
    await home.telegram_says(4242424242, "call me Zaphira, I am allergic to pistachio, my phone is 0812345678")
    await home.quiet()
    photo = home.telegram.text_update(4242424242, "")
    del photo["message"]["text"]
    photo["message"]["photo"] = [{"file_id": "p1", "file_unique_id": "u1", "width": 9, "height": 9, "file_size": 20}]
    home.telegram.files["p1"] = b"\xff\xd8\xff\xe0picture of ann"
    await home.telegram.deliver(home.telegram_hook(), photo, TELEGRAM_SECRET)
    await home.quiet()
    # In a group, before another member.
    for user, words in ((4242424242, "No pistachio for Zaphira, 0812345678"), (777, "pears for me")):
        update = home.telegram.text_update(-1007, f"@bot1000001_bot {words}", user=user)
        update["message"]["entities"] = [{"type": "mention", "offset": 0, "length": 15}]
        await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET)
        await home.quiet()
    async with app.tidy(home.settings, home.tenants, home.redis_url, clock=in_an_hour) as cleanup:
        assert (await cleanup.run()).sessions == 2
    # On LINE too; asks for a person, and what can't be delivered.
    await manager.link_users("shop", f"line:{ANN}", "telegram:4242424242")
    await home.telegram_says(4242424242, "talk to a human about pistachio")
    await home.quiet()
    await home.telegram_says(4242424242, "/bot")
    await home.quiet()
    home.telegram.next(Fault(status=400, body=REFUSED, on=SEND))
    await home.telegram_says(4242424242, "where is my pistachio")
    await home.quiet()
    # What staff did with her memories.
    data, user = home.settings.data_dir, "telegram:4242424242"
    corrected = Correction("no pistachio", EventType.REQUEST, user=user)
    corrections.add(understanding_dir(data / "understanding", "shop"), corrected)
    now = assembly.utc_now()
    fact = new_fact(now=now, key="likes", value="pistachio", owner=user)
    await manager.archive.add("shop", user, [fact], now)
    client = assembly.inbox_client(home.settings, home.redis_url)
    assert await Undo(client).keep("shop", "a ref", user, fact, fact)
    Blocked(FileLists(data)).block("shop", ["telegram:4242424242"])
    await manager.catalog.page("shop", "facts", Wanted(), limit=10)
    await manager.search("shop", user, "pistachio")
    # On its way: kept while the inbox was away, unreadable, and an answer that waits for her.
    waiting = InboundMessage(
        tenant="shop", channel="line-main", platform="line", event_id="s1", user_id=user, chat_id=ANN,
        text="pistachio on the way",
    )  # fmt: skip
    spool = Spool(data / "spool")
    for entry in spool.add([(waiting, Policy())]):
        assert entry is not None
        entry.path.rename(entry.path.with_suffix(".broken"))
        entry.release()
    await home.line_says(ANN, "pistachio, slowly")
    await home.line.until(lambda: bool(home.line.delivered.get(ANN)))  # the word that it takes longer
    model_may.set()
    await home.parked()
    await RedisInbox(client, "test").close()
    await manager.close()


async def test_no_byte_at_rest_holds_what_a_forgotten_person_said(tmp_path: Path) -> None:
    line = {"platform": "line", "channel_secret": LINE_SECRET, "channel_access_token": LINE_TOKEN, "allow_push": False}
    staff = {"channel": "telegram-main", "chat": "-100123"}
    own = shop(language="en", staff=staff)
    own["channels"]["line-main"] = line
    server = EmbeddedRedis(tmp_path / "data")
    url = server.start()
    with redis.Redis.from_url(url) as client:
        client.config_set("appendfsync", "no")  # what is written is the same; a busy disk holds nobody up
    try:
        async with house(tmp_path, url, {"shop": own}, llm_key=LLM_KEY, times=SLOW) as home:
            await told_of_everywhere(home)
            data = home.settings.data_dir
            before = {name.split("/")[0] for name in bytes_at_rest(data, *WORDS)}
            # Each of these was looked through for something that was there.
            assert before == {
                *("archive", "index", "longterm", "media", "redis", "spool", "transcripts", "understanding"),
            }
            assert bytes_at_rest(data / "blocked", b"4242424242") == ["shop.json"]
            receipt = dict(line.split(": ") for line in await forget(home.settings, "shop", "telegram:4242424242"))
            removed = {name for name, count in receipt.items() if count.isdigit() and count != "0"}
            assert removed >= {
                *("sessions", "longterm_files", "events", "facts", "episodes", "archived", "transcript_messages"),
                *("media_files", "group_messages", "waiting_messages", "dead_letters", "staff_notes", "marks"),
                *("corrections", "spool_files", "blocks"),
            }
            await home.quiet()
            written_anew(url)
            assert bytes_at_rest(data, *WORDS) == []
            # Ids of deliveries stay known for three days, so that a repeat is not answered anew.
            left = {name for name in traces(home, b"4242424242", ANN.encode()) if not name.startswith("redis/")}
            assert left == set()
            # Another member's words stand, and what Ann says from now on begins with nothing.
            assert any(name.startswith("transcripts/shop/telegram:group:-1007/") for name in traces(home, b"pears"))
            await home.telegram_says(4242424242, "hello")
            await home.quiet()
            asked = str(home.llm.requests[-1]["messages"])
            assert not any(word.decode() in asked for word in WORDS)
    finally:
        server.stop()


async def test_a_restored_backup_brings_nobody_back_who_was_forgotten(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}) as home:
        await home.telegram_says(4242424242, "I am allergic to pistachio")
        await home.telegram_says(777, "I am allergic to pears")
        await home.quiet()
        home.telegram.next(Fault(status=400, body=REFUSED, on=SEND))
        await home.telegram_says(4242424242, "where is my pistachio")
        await home.quiet()
        data = home.settings.data_dir
        backup = {one: one.read_bytes() for one in data.rglob("*") if one.is_file()}
        with redis.Redis.from_url(redis_url) as client:
            dead = client.xrange("cc:dead:shop")
        await forget(home.settings, "shop", "telegram:4242424242")
        await home.telegram_says(4242424242, "I am allergic to walnuts")
        await home.quiet()
        async with app.tidy(home.settings, home.tenants, redis_url) as cleanup:
            await cleanup.run()
        assert traces(home, b"walnuts") != []  # who came back is left alone
        for path, content in backup.items():
            path.write_bytes(content)
        with redis.Redis.from_url(redis_url) as client:
            for _, fields in dead:
                client.xadd("cc:dead:shop", fields)
        assert traces(home, b"pistachio") != []
        async with app.tidy(home.settings, home.tenants, redis_url) as cleanup:
            await cleanup.run()
        assert traces(home, b"pistachio") == []
        assert "longterm/shop/telegram:777.json" in traces(home, b"pears")
