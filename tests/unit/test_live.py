"""What happens now is told, whichever thread it happens in, and with one call of the loop for all of a moment."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from redis.exceptions import ConnectionError as RedisAway

from gateway import live as module
from gateway.assembly import utc_now
from gateway.hooks import Exchange
from gateway.live import Live, channel_key
from memory.keys import ConversationRef
from memory.models import Message, ShortTermMemory

SHOP = "shop"


class Server:
    """Somebody listens to every channel."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.asked = 0
        self.away = False
        self.listeners = 1

    async def pubsub_numsub(self, *channels: str) -> list[tuple[bytes, int]]:
        if self.away:
            raise RedisAway
        self.asked += 1
        return [(channel.encode(), self.listeners) for channel in channels]

    async def publish(self, channel: str, events: bytes) -> None:
        assert channel == channel_key(SHOP)
        self.told += [event["data"]["user_id"] for event in orjson.loads(events)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(module, "TOGETHER", 0.02)
    return Server()


async def heard(server: Server, *names: str) -> None:
    async with asyncio.timeout(5):
        while server.told != list(names):
            await asyncio.sleep(0.005)


async def test_what_other_threads_write_is_told_also_while_something_is_told(server: Server) -> None:
    client: Any = server
    live = Live(client)
    live.begin()
    await asyncio.to_thread(live.remembered, SHOP, "ann")  # the loop is asleep
    live.tell(SHOP, "memory", {"user_id": "ben"})
    await asyncio.to_thread(live.remembered, SHOP, "cem")  # it is awake
    await heard(server, "ann", "ben", "cem")
    await asyncio.to_thread(live.remembered, SHOP, "dan")  # asleep again
    await heard(server, "ann", "ben", "cem", "dan")
    await live.close()


async def test_what_comes_in_the_moment_in_which_the_rest_was_told_is_told(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: Any = server
    live = Live(client)
    live.begin()
    plainly = live._tell_all

    async def and_then() -> None:
        await plainly()
        if server.told == ["ann"]:
            live.remembered(SHOP, "ben")  # as a thread would that sees it awake

    monkeypatch.setattr(live, "_tell_all", and_then)
    live.tell(SHOP, "memory", {"user_id": "ann"})
    await heard(server, "ann", "ben")
    await live.close()


async def test_a_server_that_is_away_ends_no_telling(server: Server) -> None:
    client: Any = server
    live = Live(client)
    live.begin()
    server.away = True
    live.tell(SHOP, "memory", {"user_id": "ann"})
    await asyncio.sleep(0.06)
    server.away = False
    await asyncio.to_thread(live.remembered, SHOP, "ben")
    await heard(server, "ben")
    await live.close()


async def test_what_cannot_be_told_keeps_nothing_else_back(server: Server) -> None:
    client: Any = server
    live = Live(client)
    live.begin()
    live.tell(SHOP, "memory", {"user_id": "\ud800"})  # no JSON can be made of it
    live.tell(SHOP, "memory", {"user_id": "ann"})
    session = ShortTermMemory(tenant_id=SHOP, user_id="ben", session_id="s")
    said: list[Message] = [{"role": "bot", "message": "hello"}]
    await live.after(Exchange("t", ConversationRef(SHOP, "ben"), "web", "hi", session, datetime.now(UTC), said=said))
    await heard(server, "ann", "ben")
    await live.close()


async def test_where_nobody_listens_what_turns_did_is_gathered_for_longer_and_told_in_order(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNHEARD", 0.2)
    server.listeners = 0
    client: Any = server
    live = Live(client)
    live.begin()
    session = ShortTermMemory(tenant_id=SHOP, user_id="line:ann", session_id="s")

    async def turn(user: str) -> None:
        ref = ConversationRef(SHOP, user)
        await live.after(
            Exchange(user, ref, "line", "hello", session, utc_now(), said=[Message(role="bot", message="hi")])
        )

    for _ in range(20):
        await turn("ann")
        await asyncio.sleep(0.02)
    assert server.asked <= 5  # of a look in each 0.02 seconds there would be 15 and more
    server.listeners = 1
    for user in ("ben", "cem"):
        await turn(user)
    async with asyncio.timeout(5):
        while server.told[-2:] != ["ben", "cem"]:
            await asyncio.sleep(0.005)
    monkeypatch.setattr(module, "UNHEARD", 60.0)  # it is heard: no longer gathered
    for user in ("dan", "eve"):
        await turn(user)
        async with asyncio.timeout(5):
            while server.told[-1] != user:
                await asyncio.sleep(0.005)
    await live.close()
