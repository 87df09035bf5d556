"""Streams to web clients: order, places to go on from, and no patience for who does not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from config.tenants import Tenant
from gateway.adapters.web import WebSender
from gateway.assembly import utc_now
from gateway.chat import Caller, Chat, Talk
from gateway.hooks import Exchange, Hook, Hooks
from gateway.http_limits import ABORT, CLOSING
from gateway.inbox.in_process import InProcessInbox
from gateway.intake import Intake
from gateway.messages import Answer, Target, Tokens
from gateway.metrics import Metrics
from gateway.routes import sse
from gateway.web_log import WAITING, Entry, Follower, LocalLog, RedisLog, TooSlow, encode
from gateway.wire import Listener, Wire
from memory.conversation_files import ConversationFiles
from memory.keys import ConversationRef
from memory.models import ShortTermMemory
from memory.redis_client import connect

NAME = "sm:shop:web:ann/default/c"
SHOP = Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {"web": {"platform": "web"}}})
TARGET = Target(tenant="shop", channel="web", platform="web", chat_id=NAME, reply_token="s-1")


async def pieces(*some: bytes) -> AsyncGenerator[bytes, None]:
    for piece in some:
        yield piece


async def never() -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


async def test_a_reader_that_does_not_read_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "READ_WITHIN", 0.05)
    told: list[str] = []

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()  # the other side's buffers are full

    stream = sse.EventStream(pieces(b"x"), left=lambda: told.append("left"))
    scope = {"type": "http", ABORT: lambda: told.append("aborted")}
    async with asyncio.timeout(60):
        await stream(scope, never, send)
    assert told == ["left", "aborted"]


async def test_a_reader_that_leaves_is_noticed_and_one_that_heard_all_is_not_missed() -> None:
    told: list[str] = []

    async def take(message: dict[str, Any]) -> None:
        told.append(message["type"])

    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def endless() -> AsyncGenerator[bytes, None]:
        await asyncio.Event().wait()
        yield b""

    await sse.EventStream(endless(), left=lambda: told.append("left"))({"type": "http"}, gone, take)
    assert told[-1] == "left"
    told.clear()
    await sse.EventStream(pieces(b"x"), left=lambda: told.append("left"))({"type": "http"}, never, take)
    assert told[-1] == "http.response.body"


async def test_a_stream_without_an_end_ends_with_the_process() -> None:
    told: list[Any] = []

    async def take(message: dict[str, Any]) -> None:
        told.append(message.get("more_body"))
        closing.set()

    async def endless() -> AsyncGenerator[bytes, None]:
        await asyncio.Event().wait()
        yield b""

    closing = asyncio.Event()
    stream = sse.EventStream(endless(), left=lambda: told.append("left"), endless=True)
    async with asyncio.timeout(60):
        await stream({"type": "http", CLOSING: closing}, never, take)
    assert told[-1] is False


async def test_a_follower_that_is_too_far_behind_is_given_up() -> None:
    follower = Follower(NAME, Wire(Redis()), RedisLog(Redis()), LocalLog())
    for n in range(WAITING + 10):
        follower.take(f"1-{n + 1}", encode(Entry("delta", "s-1", "x")))
    heard = [await follower.next(0.1) for _ in range(WAITING)]
    assert len([one for one in heard if one]) == WAITING
    with pytest.raises(TooSlow):
        await follower.next(0.1)


@pytest.mark.parametrize("server", ["redis_url", "redis_cluster_url"])
async def test_what_a_worker_shows_is_heard_by_every_follower_in_order(
    server: str, request: pytest.FixtureRequest
) -> None:
    client = connect(request.getfixturevalue(server), cluster=server == "redis_cluster_url", retries=0)
    shown, wire = RedisLog(client), Wire(client)
    sender = WebSender(shown)
    async with (
        Follower(NAME, wire, shown, LocalLog()) as first,
        Follower(NAME, wire, shown, LocalLog()) as second,
    ):
        watch = sender.watch(SHOP, TARGET)
        assert watch is not None
        for text in ("one", "one two"):
            watch.grew(text.__str__)
            assert (await first.next(5)) is not None
        await watch.close()
        answer = Answer("one two three", tokens=Tokens(3, 2))
        for call in sender.plan(SHOP, TARGET, answer, 0.0):
            await sender.send(SHOP, TARGET, call)
        heard = [await second.next(5) for _ in range(3)]
    async with Follower(NAME, wire, shown, LocalLog()) as late:
        assert await late.everything() == heard
    await wire.close()
    assert 0 < await client.ttl("cc:web:{" + NAME + "}") <= 600
    await client.aclose()
    assert [(one[1].kind, one[1].text) for one in heard if one] == [
        ("delta", "one"),
        ("delta", " two"),
        ("done", "one two three"),
    ]


async def test_an_answer_that_begins_anew_replaces_what_was_shown(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as client:
        shown, wire = RedisLog(client), Wire(client)
        async with Follower(NAME, wire, shown, LocalLog()) as follower:
            watch = WebSender(shown).watch(SHOP, TARGET)
            assert watch is not None
            watch.grew(lambda: "let me look")
            first = await follower.next(5)
            watch.grew(str)
            watch.grew(lambda: "at nine")
            second = await follower.next(5)
            await watch.close()
        await wire.close()
    assert first is not None
    assert second is not None
    assert [(one.text, one.anew) for one in (first[1], second[1])] == [("let me look", False), ("at nine", True)]


async def test_a_worker_that_stands_in_for_a_dead_one_replaces_what_that_one_showed(
    redis_url: str, tmp_path: Path
) -> None:
    async with Redis.from_url(redis_url) as client:
        shown, wire = RedisLog(client), Wire(client)
        sender = WebSender(shown)
        chat = Chat(
            Intake(InProcessInbox(), Metrics()), ConversationFiles(tmp_path), wire, shown, LocalLog(), clock=utc_now
        )
        talk = Talk(Caller(SHOP, "admin"), ConversationRef("shop", "web:ann", "default", "c"))
        async with Follower(NAME, wire, shown, LocalLog()) as follower:
            answer = chat.answer(follower, talk, "s-1")
            seen = []
            for text in ("one tw", "one two"):  # the first worker dies, the next one begins again
                watch = sender.watch(SHOP, TARGET)
                assert watch is not None
                watch.grew(text.__str__)
                seen.append(await anext(answer))
                await watch.close()
            for call in sender.plan(SHOP, TARGET, Answer("one two three"), 0.0):
                await sender.send(SHOP, TARGET, call)
            seen += [one async for one in answer]
        async with Follower(NAME, wire, shown, LocalLog()) as late:
            last = seen[1]
            assert last is not None
            found = await chat.rest(late, talk, last.id)
            assert found is not None
            rest = [one async for one in found[1]]
        await wire.close()
    assert [(one.kind, one.text, one.anew) for one in seen if one] == [
        ("delta", "one tw", False),
        ("delta", "one two", True),
        ("delta", " three", False),
        ("done", "", False),
    ]
    assert rest == seen[2:]


async def test_a_watch_learns_that_the_client_has_gone_also_while_nothing_is_said(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as client:
        shown = RedisLog(client)
        watch = WebSender(shown).watch(SHOP, TARGET)
        assert watch is not None
        gone = watch.gone
        assert gone is not None
        await shown.leave(NAME, "s-1", "")
        async with asyncio.timeout(60):
            await gone.wait()
        await watch.close()


async def test_who_came_back_keeps_the_answer_going(redis_url: str) -> None:
    async with Redis.from_url(redis_url) as client:
        shown = RedisLog(client)
        await shown.came_back(NAME, "s-1", "second")
        await shown.leave(NAME, "s-1", "")  # the first connection
        assert not await shown.gone(NAME, "s-1")
        await shown.leave(NAME, "s-1", "second")
        assert await shown.gone(NAME, "s-1")


def test_an_answer_that_nobody_waits_for_a_whole_one_does_is_not_watched() -> None:
    sender = WebSender(LocalLog())
    assert sender.watch(SHOP, Target(tenant="shop", channel="web", platform="web", chat_id=NAME)) is None
    asked = Target(tenant="shop", channel="web", platform="web", chat_id=NAME, reply_token="1234")
    assert sender.watch(SHOP, asked) is None
    assert [call.body["kind"] for call in sender.plan(SHOP, asked, Answer(""), 0.0)] == ["done"]
    refused = Answer("slow down", status=429)
    assert [call.body["kind"] for call in sender.plan(SHOP, asked, refused, 0.0)] == ["error"]


SAID = "a secret of the customer's"


class Recording:
    """A hook that keeps what it was told, and fails when it is asked to."""

    def __init__(self, told: dict[str, Any] | None = None, *, fails: bool = False) -> None:
        self.told = told or {}
        self.fails = fails
        self.heard: list[str] = []

    async def before(self, exchange: Exchange) -> dict[str, Any]:
        self.heard.append("before")
        if self.fails:
            raise ValueError(SAID)
        return self.told

    async def after(self, exchange: Exchange) -> None:
        self.heard.append("after")
        if self.fails:
            raise ValueError(SAID)


def exchange(name: str = "m1") -> Exchange:
    session = ShortTermMemory(tenant_id="shop", user_id="web:ann", session_id="s")
    return Exchange(name, ConversationRef("shop", "web:ann"), "web", "hello", session, utc_now())


async def test_hooks_add_to_what_the_model_is_told_and_hear_of_each_turn_once() -> None:
    history, other = Recording({"recent_messages": [1], "a": 1, "b": 1, "c": 1}), Recording({"b": 3})
    others: list[Hook] = [other]
    hooks = Hooks(history, others)
    assert await hooks.before(exchange(), {"a": 2, "b": 2}) == {"recent_messages": [1], "a": 2, "b": 3, "c": 1}
    await hooks.after(exchange())
    await hooks.after(exchange())
    await hooks.after(exchange("m2"))
    assert other.heard == ["before", "after", "after"]


async def test_a_hook_that_fails_keeps_nobody_waiting_and_nothing_it_knows_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    history, last = Recording({"a": 1}), Recording({"b": 2})
    hooks = Hooks(history, [Recording(fails=True), last])
    assert await hooks.before(exchange(), {}) == {"a": 1, "b": 2}
    await hooks.after(exchange())
    assert last.heard == ["before", "after"]
    assert "ValueError" in caplog.text
    assert SAID not in caplog.text


async def test_whoever_joins_while_the_wire_connects_hears_too_and_nothing_is_left_open(redis_url: str) -> None:
    def hears(event: asyncio.Event) -> Listener:
        return Listener(lambda message: event.set(), lambda: None)

    for steps in range(0, 40, 3):
        client, speaker = connect(redis_url, retries=0), connect(redis_url)
        wire, one, other = Wire(client), asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(wire.join("test:one", hears(one)))
        for _ in range(steps):  # wherever the first one is by then
            await asyncio.sleep(0)
        await wire.join("test:other", hears(other))
        await first
        async with asyncio.timeout(60):
            await speaker.publish("test:one", b"x")
            await one.wait()
            await speaker.publish("test:other", b"x")
            await other.wait()
        assert len(client.connection_pool._in_use_connections) == 1
        await wire.close()
        await client.aclose()
        await speaker.aclose()
