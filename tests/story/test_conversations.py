"""Conversations by name, the points to which they go back, and what is told of them live."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from redis.asyncio import Redis

from tests.house import ADMIN_KEY, LLM_KEY, House
from tests.story.test_chat_api import FAQ, KEY, OTHER_KEY, asked, post, transcript, web_house, web_shop

MEMORIES, POINTS = "/api/memories", "/api/v1/checkpoints"
ANN = "U" + "a" * 32


async def ask(home: House, method: str, path: str, body: Any = None, key: str = KEY, **query: str) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key}"}
    more = {"json": body} if body is not None else {}
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, home.url + path, params=query, headers=headers, **more) as answer,
    ):
        return answer.status, json.loads(await answer.read() or "null")


async def test_a_conversation_is_made_named_found_and_removed(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url) as home:
        status, made = await ask(home, "POST", MEMORIES, {"conversationId": "order-1", "memoryName": "Order 1"})
        assert (status, made["conversationId"], made["memoryName"], made["messages"]) == (200, "order-1", "Order 1", [])
        body = {"message": "What time do you open?", "conversation_id": "order-1"}
        assert (await post(home, body))[0] == 200
        await home.quiet()
        renamed = {"conversationId": "order-1", "memoryName": "Order 1, paid"}
        status, named = await ask(home, "PUT", MEMORIES, renamed)
        assert (status, named["memoryName"], named["createTime"]) == (200, "Order 1, paid", made["createTime"])
        status, one = await ask(home, "GET", f"{MEMORIES}/single", conversationId="order-1")
        assert [(line["messageType"], line["content"]) for line in one["messages"]] == [
            ("USER", "What time do you open?"),
            ("ASSISTANT", "At **nine**."),
        ]
        again = await ask(home, "POST", MEMORIES, {"conversationId": "order-1", "memoryName": "Order 1"})
        assert (again[0], again[1]["memoryName"], len(again[1]["messages"])) == (200, "Order 1", 2)
        status, removed = await ask(home, "DELETE", f"{MEMORIES}/order-1")
        assert (status, removed) == (200, {"deleted": 1, "messages": 2, "sessions": 1})
        assert (await ask(home, "GET", f"{MEMORIES}/single", conversationId="order-1"))[0] == 404
        assert (await ask(home, "PUT", MEMORIES, renamed))[0] == 404
        assert (await ask(home, "DELETE", f"{MEMORIES}/order-1"))[0] == 404
        assert (await ask(home, "GET", POINTS))[1]["items"] == []
        async with Redis.from_url(redis_url) as client:
            assert await client.keys("sm:*") == []
            assert await client.keys("cc:web:*") == []
    assert transcript(tmp_path, "web:anonymous:order-1") == []


async def test_conversations_are_listed_the_last_used_first_in_pages_and_found_by_words(
    tmp_path: Path, redis_url: str
) -> None:
    async with web_house(tmp_path, redis_url) as home:
        for name in ("a", "b", "c"):
            await post(home, {"message": f"hello {name}", "conversation_id": name, "user": "ann"})
        await post(home, {"message": "the apples", "conversation_id": "a", "user": "ann"})
        await home.quiet()
        _, first = await ask(home, "GET", MEMORIES, limit="2")
        _, second = await ask(home, "GET", MEMORIES, limit="2", cursor=first["next_cursor"])
        listed = [one["conversationId"] for one in first["items"] + second["items"]]
        assert (listed, first["total"], second["next_cursor"]) == (["a", "c", "b"], 3, None)
        _, found = await ask(home, "GET", MEMORIES, q="APPLES")
        assert [one["conversationId"] for one in found["items"]] == ["a"]
        assert (await ask(home, "GET", MEMORIES, user="bee"))[1]["total"] == 0


async def test_another_keys_conversations_are_not_there_and_the_admin_sees_all(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url) as home:
        await ask(home, "POST", MEMORIES, {"conversationId": "mine", "memoryName": "Mine"})
        assert (await ask(home, "GET", MEMORIES, key=OTHER_KEY))[1]["total"] == 0
        theirs = {"conversationId": "mine", "memoryName": "Theirs"}
        assert (await ask(home, "POST", MEMORIES, theirs, OTHER_KEY))[0] == 404
        assert (await ask(home, "PUT", MEMORIES, theirs, OTHER_KEY))[0] == 404
        assert (await ask(home, "DELETE", f"{MEMORIES}/mine", key=OTHER_KEY))[0] == 404
        assert (await ask(home, "GET", MEMORIES, key=ADMIN_KEY, tenant="shop"))[1]["total"] == 1
        assert (await ask(home, "GET", MEMORIES, key=ADMIN_KEY))[0] == 422


async def test_forgetting_a_person_takes_their_conversations_along(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url) as home:
        await post(home, {"message": "hello", "conversation_id": "one", "user": "ann"})
        await post(home, {"message": "hello", "conversation_id": "two", "user": "bee"})
        await home.quiet()
        await post(home, {"message": "/forget yes", "conversation_id": "one", "user": "ann"})
        await home.quiet()
        _, left = await ask(home, "GET", MEMORIES)
    assert [one["conversationId"] for one in left["items"]] == ["two"]


async def test_a_conversation_goes_back_to_a_point(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "noted")
        for word in ("one", "two", "three"):
            await post(home, {"message": word, "conversation_id": "c", "user": "ann"})
        await home.quiet()
        _, listed = await ask(home, "GET", POINTS, user="web:ann")
        assert [(one["said"], one["messages"]) for one in listed["items"]] == [("three", 6), ("two", 4), ("one", 2)]
        point = f"{POINTS}/{listed['items'][2]['id']}"
        _, inside = await ask(home, "GET", point)
        assert [line["message"] for line in inside["history"]] == ["one", "noted"]
        assert (await ask(home, "POST", f"{point}/rollback"))[1] == {"removed": 4}
        await post(home, {"message": "four", "conversation_id": "c", "user": "ann"})
        assert asked(home, "four") == [["one", "noted", "four"]]
        assert (await ask(home, "GET", f"{POINTS}/{listed['items'][0]['id']}"))[0] == 404


async def test_a_conversation_goes_on_from_a_point_in_another_one(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "noted")
        for word in ("one", "two"):
            await post(home, {"message": word, "conversation_id": "c", "user": "ann"})
        await home.quiet()
        _, listed = await ask(home, "GET", POINTS, conversation="c")
        status, resumed = await ask(home, "POST", f"{POINTS}/{listed['items'][1]['id']}/resume")
        assert (status, resumed["messages"]) == (200, 2)
        more = {"conversation_id": resumed["conversation_id"], "user": "ann"}
        assert (await post(home, {"message": "three"} | more))[0] == 200
        assert asked(home, "three") == [["one", "noted", "three"]]
        assert (await ask(home, "GET", POINTS, conversation="c"))[1]["total"] == 2


async def test_checkpoints_are_removed_in_batches(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "noted")
        for word in ("one", "two", "three"):
            await post(home, {"message": word, "conversation_id": "c", "user": "ann"})
        await home.quiet()
        _, listed = await ask(home, "GET", POINTS)
        ids = [one["id"] for one in listed["items"][1:]]
        wanted = {"ids": [*ids, "00", "no id"]}
        assert await ask(home, "POST", f"{POINTS}/batch-delete", wanted) == (200, {"deleted": 2})
        await post(home, {"message": "four", "conversation_id": "c", "user": "ann"})
        assert asked(home, "four") == [["three", "noted", "four"]]
        assert (await ask(home, "POST", f"{POINTS}/batch-delete", {"ids": 5}))[0] == 422


@asynccontextmanager
async def looking_on(
    home: House, first: Any = None, query: str = "", **headers: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    where = f"{home.url.replace('http', 'ws')}/api/v1/live{query}"
    async with aiohttp.ClientSession() as http, http.ws_connect(where, headers=headers) as socket:
        if first is not None:
            await socket.send_json(first)
        yield socket


async def heard(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    """What is told next, signs of life apart."""
    while (told := await socket.receive_json(timeout=60))["kind"] == "alive":
        pass
    return dict(told)


async def test_what_happens_is_told_live_to_the_tenants_own(tmp_path: Path, redis_url: str) -> None:
    tenants = {"shop": web_shop(faq=FAQ), "other": web_shop() | {"api_keys": []}}
    async with (
        web_house(tmp_path, redis_url, tenants=tenants) as home,
        looking_on(home, {"key": KEY}) as socket,
        looking_on(home, {"key": ADMIN_KEY, "tenant": "other"}) as elsewhere,
    ):
        assert await heard(socket) == {"kind": "ready", "data": {"tenant": "shop"}}
        assert (await heard(elsewhere))["data"] == {"tenant": "other"}
        body = {"message": "I want to order 2 lattes", "user": "ann", "conversation_id": "c"}
        _, answer = await post(home, body)
        told = [await heard(socket) for _ in range(4)]
        kinds = sorted(one["kind"] for one in told)
        said = [one["data"] for one in told if one["kind"] == "message"]
        assert kinds == ["event", "memory", "message", "message"]
        assert [(one["role"], one["message"]) for one in said] == [("user", body["message"]), ("bot", answer["reply"])]
        assert {one["conversation_id"] for one in said} == {"c"}
        await post(home, {"message": "hello", "tenant": "other"}, ADMIN_KEY)
        assert (await heard(elsewhere))["data"]["message"] == "hello"


async def test_what_a_person_says_is_told_when_it_arrives_and_once(tmp_path: Path, redis_url: str) -> None:
    may_answer = asyncio.Event()

    async def slowly(request: dict[str, Any]) -> str:
        await may_answer.wait()
        return "An answer."

    async with (
        web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home,
        looking_on(home, {"key": KEY}) as socket,
    ):
        home.llm.answers(slowly)
        await heard(socket)
        asking = asyncio.create_task(post(home, {"message": "where are my apples", "user": "ann"}))
        first = await heard(socket)  # nothing else can come before the model has said a word
        may_answer.set()
        await asking
        said = [first["data"]]
        while said[-1]["role"] != "bot":
            told = await heard(socket)
            said += [told["data"]] if told["kind"] == "message" else []
        command = asyncio.create_task(post(home, {"message": "and my pears", "user": "ann"}))
        while len(said) < 4:
            told = await heard(socket)
            said += [told["data"]] if told["kind"] == "message" else []
        await command
    assert [one["role"] for one in said] == ["user", "bot", "user", "bot"]
    assert [said[n]["message"] for n in (0, 1, 2)] == ["where are my apples", "An answer.", "and my pears"]
    assert (first["data"]["user_id"], first["data"]["channel"]) == ("web:ann", "web")


async def test_who_may_not_look_on_is_told_nothing(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url) as home:
        for first in ({"key": "wrong"}, {"key": KEY, "tenant": "other"}, {"key": ADMIN_KEY}, [], "x"):
            async with looking_on(home, first) as socket:
                assert (await socket.receive(timeout=60)).type == aiohttp.WSMsgType.CLOSE
                assert socket.close_code == 1008
        assert (await ask(home, "GET", "/api/v1/live", key="wrong"))[0] == 401
        for query, first in (
            ("?tenant=shop&tenant=other", {"key": ADMIN_KEY}),
            ("?tenant=other", {"key": ADMIN_KEY, "tenant": "shop"}),
            ("?kinds=message", {"key": KEY}),
        ):
            async with looking_on(home, first, query) as socket:
                assert (await socket.receive(timeout=60)).type == aiohttp.WSMsgType.CLOSE
                assert socket.close_code == 1008


async def test_an_opening_that_is_refused_says_why_as_any_call_does(
    tmp_path: Path, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with web_house(tmp_path, redis_url) as home, aiohttp.ClientSession() as http:
        where = f"{home.url}/api/v1/live"
        for key, query, status in (
            ("wrong", "", 401),
            (KEY, "?tenant=other", 404),
            (ADMIN_KEY, "", 422),
            (ADMIN_KEY, "?tenant=shop&tenant=other", 422),
            (KEY, "?kinds=message", 422),
        ):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(where + query, headers={"Authorization": f"Bearer {key}"})
            assert (refused.value.status, key + query) == (status, key + query)
        async with http.ws_connect(f"{where}/", headers={"Authorization": f"Bearer {KEY}"}) as socket:
            assert (await socket.receive_json(timeout=60))["kind"] == "ready"
        async with http.ws_connect(where) as socket:
            await socket.send_bytes(b"\x00")
            assert (await socket.receive(timeout=60)).type == aiohttp.WSMsgType.CLOSE
            assert socket.close_code == 1008
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []


async def test_the_same_is_told_as_server_sent_events(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url) as home, aiohttp.ClientSession() as http:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with http.get(f"{home.url}/api/v1/live?kind=message&kind=takeover", headers=headers) as answer:
            assert answer.content_type == "text/event-stream"
            while (await answer.content.readline()) != b": alive\n":
                pass
            await post(home, {"message": "hello"})
            lines = []
            async with asyncio.timeout(60):
                while len(lines) < 2:
                    line = (await answer.content.readline()).decode()
                    lines += [json.loads(line[6:])] if line.startswith("data: ") else []
        assert [one["role"] for one in lines] == ["user", "bot"]
