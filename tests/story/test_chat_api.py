"""A program talks to the bot over HTTP: `POST /chat`, whole and streamed."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from openai import AsyncOpenAI, InternalServerError, NotFoundError, UnprocessableEntityError
from redis.asyncio import Redis

from gateway.chat import Chat
from tests.house import ADMIN_KEY, LLM_KEY, House, house, shop
from tests.standins.model import Fault
from tests.standins.openrouter import Said

FAQ = [{"questions": ["What time do you open?"], "answer": "At **nine**."}]
KEY, OTHER_KEY = "shop-test-key-1", "shop-test-key-2"
KEYS = [f"sha256:{hashlib.sha256(key.encode()).hexdigest()}" for key in (KEY, OTHER_KEY)]


def web_shop(**sections: Any) -> dict[str, Any]:
    return shop(api_keys=KEYS, channels={"web": {"platform": "web"}}, **sections)


@asynccontextmanager
async def web_house(tmp_path: Path, redis_url: str, **more: Any) -> AsyncIterator[House]:
    tenants = more.pop("tenants", None) or {"shop": web_shop(faq=FAQ)}
    async with house(tmp_path, redis_url, tenants, **more) as home:
        yield home


async def post(home: House, body: Any, key: str | None = KEY, path: str = "/chat", **headers: str) -> tuple[int, Any]:
    """The status and the JSON."""
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers.setdefault("Content-Type", "application/json")
    async with aiohttp.ClientSession() as http, http.post(home.url + path, data=data, headers=headers) as answer:
        return answer.status, json.loads(await answer.read() or "null")


async def fetched(home: House, path: str) -> Any:
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with aiohttp.ClientSession() as http, http.get(home.url + path, headers=headers) as answer:
        return await answer.json()


class Stream:
    """A client of server-sent events: what came so far, as (name, data)."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer
        self.last_id = ""

    async def __aiter__(self) -> AsyncIterator[tuple[str, Any]]:
        name = ""
        async for raw in self.answer.content:
            line = raw.decode().rstrip("\n")
            if line.startswith("id: "):
                self.last_id = line[4:]
            elif line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                yield name, json.loads(line[6:])

    async def all(self) -> list[tuple[str, Any]]:
        return [one async for one in self]


@asynccontextmanager
async def streaming(home: House, body: dict[str, Any], key: str = KEY, **headers: str) -> AsyncIterator[Stream]:
    headers["Authorization"] = f"Bearer {key}"
    data = {"stream": True} | body
    async with aiohttp.ClientSession() as http, http.post(f"{home.url}/chat", json=data, headers=headers) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        yield Stream(answer)


def said(events: list[tuple[str, Any]]) -> str:
    """What a client that keeps to the contract shows in the end."""
    shown = ""
    for name, data in events:
        if name == "delta":
            shown = data["text"] if data.get("replace") else shown + data["text"]
    return shown


def prompt(request: dict[str, Any]) -> list[str]:
    return [str(one["content"]) for one in request["messages"] if one["role"] in ("user", "assistant")]


def asked(home: House, word: str) -> list[list[str]]:
    """What the model was shown whenever it was to answer a message with this word in it."""
    answering = [prompt(one) for one in home.llm.requests if "response_format" not in one]
    return [one for one in answering if word in one[-1]]


async def test_a_message_gets_its_answer_and_a_conversation_of_its_own(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url) as home:
        status, first = await post(home, {"message": "What time do you open?"})
        _, second = await post(home, {"message": "What time do you open?"})
    assert (status, first["reply"]) == (200, "At **nine**.")
    assert sorted(first) == ["conversation_id", "model", "provider", "reply"]
    assert (first["model"], first["provider"]) == (None, None)
    assert first["conversation_id"] != second["conversation_id"]
    assert len(first["conversation_id"]) >= 22


async def test_a_conversation_goes_on_where_it_was(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: f"heard {len(prompt(request))}")
        _, first = await post(home, {"message": "remember the apples", "user": "ann"})
        again = {"message": "and now?", "user": "ann", "conversation_id": first["conversation_id"]}
        _, second = await post(home, again)
        shown = asked(home, "and now?")
    assert first["model"] == "openai/gpt-4o-mini"
    assert second["conversation_id"] == first["conversation_id"]
    assert shown[-1] == ["remember the apples", first["reply"], "and now?"]


async def test_a_stream_brings_the_answer_in_pieces_and_says_what_it_took(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "a longer answer in several pieces")
        async with streaming(home, {"message": "tell me", "user": "ann"}) as stream:
            conversation = stream.answer.headers["X-Conversation-Id"]
            events = await stream.all()
    assert said(events) == "a longer answer in several pieces"
    assert [name for name, _ in events[:-1]] == ["delta"] * (len(events) - 1)
    name, done = events[-1]
    assert (name, sorted(done), done["conversation_id"]) == ("done", ["conversation_id", "usage"], conversation)
    assert done["usage"]["total_tokens"] == done["usage"]["prompt_tokens"] + done["usage"]["completion_tokens"]


async def test_two_messages_at_once_are_answered_in_order_each_by_itself(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: f"to {prompt(request)[-1]}")
        _, first = await post(home, {"message": "hello", "user": "ann"})
        more = {"user": "ann", "conversation_id": first["conversation_id"]}
        answers = await asyncio.gather(*(post(home, {"message": f"number {n}"} | more) for n in range(5)))
        shown = asked(home, "number")
    assert sorted(answer["reply"] for _, answer in answers) == [f"to number {n}" for n in range(5)]
    assert sorted(map(len, shown)) == [3, 5, 7, 9, 11]


async def test_a_conversation_belongs_to_its_key_and_user_alone(tmp_path: Path, redis_url: str) -> None:
    tenants = {"shop": web_shop(faq=FAQ), "other": shop("Other")}
    async with web_house(tmp_path, redis_url, tenants=tenants) as home:
        opened = {"message": "hello", "user": "ann", "conversation_id": "order-1"}
        assert (await post(home, opened))[0] == 200
        assert (await post(home, opened | {"user": "bee"}))[0] == 404
        assert (await post(home, opened, OTHER_KEY))[0] == 404
        assert (await post(home, opened | {"tenant": "shop"}, ADMIN_KEY))[0] == 404
        assert (await post(home, opened | {"tenant": "other"}, ADMIN_KEY))[0] == 200  # a name of its own there
        assert (await post(home, opened | {"tenant": "other"}))[0] == 404
        assert (await post(home, opened | {"tenant": "shop"}, ADMIN_KEY, "/chat?tenant=other"))[0] == 422  # which?
        assert (await post(home, opened, ADMIN_KEY, "/chat?tenant=shop&tenant=other"))[0] == 422
        assert (await post(home, opened | {"tenant": "shop"}, path="/chat?tenant=shop"))[0] == 200
        assert (await post(home, opened | {"message": "still mine"}))[0] == 200


BAD: list[tuple[Any, int]] = [
    ({"message": ""}, 422),
    ({"message": "   "}, 422),
    ({"message": " \u200b\n\u2060"}, 422),
    ({}, 422),
    ({"message": 5}, 422),
    ({"message": "hello", "agent": "nobody"}, 404),
    ({"message": "hello", "conversation_id": "no spaces"}, 422),
    ({"message": "hello", "conversation_id": "main"}, 422),
    ({"message": "hello", "user": ""}, 422),
    ({"message": "hello", "stream": "perhaps"}, 422),
    ([], 422),
    (b"", 400),
    (b"\xff\xfe{}", 400),
    (b'{"message": "\\ud800"}', 400),
    (b"[" * 100_000 + b"]" * 100_000, 400),
    (b'{"message": "' + b"x" * 1_000_000 + b'"}', 413),
]


async def test_bad_input_gets_a_problem_document(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url) as home:
        for body, status in BAD:
            got, problem = await post(home, body)
            assert (got, problem["status"], problem["type"]) == (status, status, "about:blank"), body


async def test_whoever_has_no_key_gets_401_whatever_they_send(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url) as home:
        for body in ({"message": "hello"}, b"no json", {}):
            assert (await post(home, body, None))[0] == 401
            assert (await post(home, body, "wrong"))[0] == 401
        assert (await post(home, {"message": "hello"}, ADMIN_KEY))[0] == 422  # of which tenant?


async def test_the_rest_of_an_answer_is_had_by_whoever_comes_back(tmp_path: Path, redis_url: str) -> None:
    words = "one two three four five six seven eight nine ten"
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: Said(words, pause=0.1))
        before: list[tuple[str, Any]] = []
        async with streaming(home, {"message": "count", "user": "ann"}) as stream:
            conversation = stream.answer.headers["X-Conversation-Id"]
            async for one in stream:
                before.append(one)
                if len(before) == 2:
                    break
            last = stream.last_id
        again = {"message": "count", "user": "ann", "conversation_id": conversation}
        async with streaming(home, again, **{"Last-Event-ID": last}) as stream:
            after = await stream.all()
            end = stream.last_id
        assert said([*before, *after]) == words
        assert after[-1][0] == "done"
        headers = {"Authorization": f"Bearer {KEY}", "Last-Event-ID": end}
        where = f"{home.url}/chat/{conversation}/events?rest=true"
        async with aiohttp.ClientSession() as http, http.get(where, headers=headers) as answer:
            assert answer.status == 204
        async with aiohttp.ClientSession() as http, http.get(where, headers=headers | {"Last-Event-ID": "1-1"}) as gone:
            assert gone.status == 410
    assert len(asked(home, "count")) == 1


@pytest.mark.parametrize("conversation", ["main", "order-1"])
async def test_the_rest_of_an_answer_is_had_whoever_of_the_shop_gave_it(
    tmp_path: Path, redis_url: str, conversation: str
) -> None:
    words = "one two three four five six"
    tenants = {"shop": web_shop(agents={"default": {}, "sales": {}})}
    async with web_house(tmp_path, redis_url, tenants=tenants, llm_key=LLM_KEY) as home:
        assert (await post(home, {"message": "hello", "user": "ann", "conversation_id": conversation}))[0] == 200
        home.llm.answers(lambda request: Said(words, pause=0.1))
        body = {"message": "count", "user": "ann", "conversation_id": conversation, "agent": "sales"}
        async with streaming(home, body) as stream:
            before = [await anext(aiter(stream))]
            last = stream.last_id
        async with streaming(home, body, **{"Last-Event-ID": last}) as stream:
            after = await stream.all()
        assert said([*before, *after]) == words
        where = f"{home.url}/chat/{conversation}/events?user=ann&rest=true"
        headers = {"Authorization": f"Bearer {KEY}", "Last-Event-ID": last}
        found = []
        async with aiohttp.ClientSession(headers=headers) as http:
            for agent in ("&agent=sales", "&agent=nobody", ""):
                async with http.get(where + agent) as answer:
                    found.append((answer.status, await answer.text()))
    assert [status for status, _ in found] == [200, 404, 410]
    assert "There is no such agent; there are default, sales" in found[1][1]
    assert len(asked(home, "count")) == 1


async def test_when_the_client_goes_away_the_model_is_stopped_and_what_was_said_is_kept(
    tmp_path: Path, redis_url: str
) -> None:
    words = " ".join(f"word{n}" for n in range(400))
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: Said(words, pause=0.05))
        async with streaming(home, {"message": "count", "user": "ann", "conversation_id": "long"}) as stream:
            async for _ in stream:
                break
        await home.quiet()
        home.llm.answers(lambda request: "well")
        await post(home, {"message": "go on", "user": "ann", "conversation_id": "long"})
        heard = asked(home, "go on")[0]
        await home.quiet()
        lines = transcript(tmp_path, "web:ann")
    assert words.startswith(heard[1])
    assert 0 < len(heard[1]) < len(words)
    assert [line.get("metadata") for line in lines if line["role"] == "bot"] == [{"cut": True}, None]


def transcript(tmp_path: Path, user: str) -> list[dict[str, Any]]:
    files = sorted((tmp_path / "data" / "transcripts" / "shop" / user).glob("*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text("utf-8").splitlines()]


async def test_without_memory_each_message_stands_alone(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY, enable_memory=False) as home:
        _, first = await post(home, {"message": "hello", "user": "ann"})
        await post(home, {"message": "again", "user": "ann", "conversation_id": first["conversation_id"]})
        async with Redis.from_url(redis_url) as client:
            assert await client.keys("sm:*") == []
    assert asked(home, "again") == [["again"]]


@pytest.mark.parametrize("user", ["group:7", "crm:group:7"])
async def test_whoever_is_called_a_group_by_a_program_is_a_person(tmp_path: Path, redis_url: str, user: str) -> None:
    shop_without_groups = {"shop": web_shop(faq=FAQ, behaviour={"groups": "never"})}
    async with web_house(tmp_path, redis_url, tenants=shop_without_groups, llm_key=LLM_KEY) as home:
        status, answer = await post(home, {"message": "I am allergic to peanuts", "user": user})
        assert (status, answer["reply"]) == (200, "echo: I am allergic to peanuts")
        known = f"/api/v1/facts?tenant=shop&user=web:{user}"
        found = await home.until(lambda: fetched(home, known), lambda one: one["total"] > 0)
        assert "allergies" in [one["key"] for one in found["items"]]


async def test_an_idle_conversation_begins_anew(tmp_path: Path, redis_url: str) -> None:
    now = [datetime(2026, 3, 1, 9, 0, tzinfo=UTC)]
    tenants = {"shop": web_shop(memory={"sm_ttl": 60})}
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY, tenants=tenants, clock=lambda: now[0]) as home:
        _, first = await post(home, {"message": "hello"})
        await home.quiet()
        now[0] += timedelta(seconds=61)
        await post(home, {"message": "again", "conversation_id": first["conversation_id"]})
    assert asked(home, "again") == [["again"]]


async def test_the_least_recently_used_conversation_gives_way(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY, memory_max_conversations=2) as home:
        for name in ("a", "b", "c"):
            await post(home, {"message": f"hello {name}", "conversation_id": name})
        await home.quiet()
        for name in ("c", "a"):
            await post(home, {"message": f"again {name}", "conversation_id": name})
    assert [len(one) for one in asked(home, "again")] == [3, 1]


async def test_too_many_messages_are_refused_with_429(tmp_path: Path, redis_url: str) -> None:
    tenants = {"shop": web_shop(faq=FAQ, behaviour={"debounce_ms": 0, "rate_limit_per_minute": 2})}
    async with web_house(tmp_path, redis_url, tenants=tenants) as home:
        statuses = [(await post(home, {"message": "hello", "user": "ann"}))[0] for _ in range(4)]
    assert sorted(statuses) in ([200, 200, 429, 429], [200, 200, 200, 429])  # a minute may have passed


async def test_a_visitor_has_a_token_for_one_shop_and_conversations_of_their_own(
    tmp_path: Path, redis_url: str
) -> None:
    tenants = {"shop": web_shop(faq=FAQ), "other": web_shop(faq=FAQ) | {"api_keys": []}, "plain": shop("Plain")}
    async with web_house(tmp_path, redis_url, tenants=tenants) as home:
        status, made = await post(home, b"", None, "/web/shop/visitor")
        assert (status, sorted(made)) == (200, ["expires_in", "name", "tenant", "token"])
        assert (await post(home, b"", None, "/web/plain/visitor"))[0] == 404
        assert (await post(home, b"", None, "/web/nobody/visitor"))[0] == 404
        token = made["token"]
        _, first = await post(home, {"message": "What time do you open?"}, token)
        assert first["reply"] == "At **nine**."
        again = {"message": "hello", "conversation_id": first["conversation_id"]}
        assert (await post(home, again, token))[0] == 200
        assert (await post(home, again, KEY))[0] == 404
        _, second = await post(home, b"", None, "/web/shop/visitor")
        assert (await post(home, again, second["token"]))[0] == 404
        _, renewed = await post(home, b"", token, "/web/shop/visitor")
        assert (await post(home, again, renewed["token"]))[0] == 200
        assert (await post(home, again | {"tenant": "other"}, token))[0] == 404
        assert (await post(home, again | {"user": "ann"}, token))[0] == 422
        assert (await post(home, again, token[:-2] + "xx"))[0] == 401
        assert (await post(home, {"message": "hello", "conversation_id": "main"}, token))[0] == 200


async def test_only_sites_that_a_shop_allows_may_show_its_chat(tmp_path: Path, redis_url: str) -> None:
    channels = {"web": {"platform": "web", "allowed_origins": ["https://shop.example.com"]}}
    async with web_house(tmp_path, redis_url, tenants={"shop": web_shop(faq=FAQ) | {"channels": channels}}) as home:
        _, made = await post(home, b"", None, "/web/shop/visitor")
        body, token = {"message": "hello"}, made["token"]
        assert (await post(home, body, token, Origin="https://evil.example.com"))[0] == 403
        assert (await post(home, body, token, Origin="https://shop.example.com"))[0] == 200
        assert (await post(home, body, token, Origin=home.url))[0] == 200
        async with aiohttp.ClientSession() as http:
            for origin, allowed in (("https://shop.example.com", "https://shop.example.com"), ("https://x.y", None)):
                asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
                async with http.options(f"{home.url}/chat", headers=asked) as answer:
                    assert (answer.status, answer.headers.get("Access-Control-Allow-Origin")) == (204, allowed)


async def test_openais_own_client_talks_to_the_bot(tmp_path: Path, redis_url: str) -> None:
    tenants = {"shop": web_shop(), "other": shop(channels={"web": {"platform": "web"}})}
    async with web_house(tmp_path, redis_url, tenants=tenants, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: f"answer {len(prompt(request))}")
        async with AsyncOpenAI(api_key=KEY, base_url=f"{home.url}/v1", max_retries=0) as client:
            assert [one.id async for one in await client.models.list()] == ["default"]
            hello: Any = [{"role": "user", "content": "hello"}]
            first = await client.chat.completions.create(model="default", messages=hello, user="ann")
            more: Any = [*hello, {"role": "assistant", "content": "?"}, {"role": "user", "content": "again"}]
            options: Any = {"include_usage": True}
            stream = await client.chat.completions.create(
                model="default", messages=more, user="ann", stream=True, stream_options=options
            )
            chunks = [one async for one in stream]
            with pytest.raises(NotFoundError):
                await client.chat.completions.create(
                    model="default", messages=hello, user="ann", extra_query={"tenant": "other"}
                )
            with pytest.raises(UnprocessableEntityError, match="the last one has to be a user's"):
                await client.chat.completions.create(model="default", messages=more[:2])
            assert (await client.models.retrieve("default")).id == "default"
            with pytest.raises(NotFoundError, match="there are default"):
                await client.models.retrieve("nobody")
            picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
            parts: Any = [{"role": "user", "content": [{"type": "text", "text": "look"}, picture]}]
            await client.chat.completions.create(model="default", messages=parts)
            assert len(asked(home, "look")) == 1
            assert asked(home, "look")[0][-1] == "look"
        async with AsyncOpenAI(api_key=ADMIN_KEY, base_url=f"{home.url}/v1", max_retries=0) as client:
            admins = await client.chat.completions.create(model="shop/default", messages=hello)
            named: Any = {"messages": hello, "extra_query": {"tenant": "shop"}}
            for model in ("shop/default", "default", "openai/gpt-4o"):
                await client.chat.completions.create(model=model, **named)
            with pytest.raises(UnprocessableEntityError, match="two different ones"):
                await client.chat.completions.create(model="other/default", **named)
        assert (await fetched(home, "/v1/models?tenant=shop&tenant=other"))["status"] == 422
    assert (first.choices[0].message.content, first.choices[0].finish_reason) == ("answer 1", "stop")
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "answer 3"
    assert chunks[-1].usage is not None
    assert admins.choices[0].message.content == "answer 1"


async def test_what_is_answered_too_late_is_not_said_again_by_openais_client_itself(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenants = {"shop": web_shop(llm={"timeout": 20})}
    monkeypatch.setitem(cast("dict[str, Any]", Chat.__init__.__kwdefaults__), "grace", -19.7)  # gives up after 0.3 s
    async with web_house(tmp_path, redis_url, tenants=tenants, llm_key=LLM_KEY) as home:
        home.llm.next(Fault(delay=2.0))
        async with AsyncOpenAI(api_key=KEY, base_url=f"{home.url}/v1", max_retries=2) as client:
            with pytest.raises(InternalServerError, match="504 - No answer came in time") as late:
                await client.chat.completions.create(
                    model="default", user="ann", messages=[{"role": "user", "content": "are you there"}]
                )
        await home.quiet()
    assert late.value.status_code == 504
    assert len(asked(home, "are you there")) == 1


async def test_while_redis_is_away_the_answer_comes_from_here(tmp_path: Path) -> None:
    """The address leads to no server."""
    async with web_house(tmp_path, f"unix://{tmp_path}/nobody.sock") as home:
        status, answer = await post(home, {"message": "What time do you open?", "user": "ann"})
        assert (status, answer["reply"]) == (200, "At **nine**.")
        async with streaming(home, {"message": "What time do you open?", "user": "bee"}) as stream:
            events = await stream.all()
    assert (said(events), events[-1][0]) == ("At **nine**.", "done")


async def test_whom_the_shop_does_not_hear_is_told_so(tmp_path: Path, redis_url: str) -> None:
    tenants = {"shop": web_shop(faq=FAQ, blocked_users=["web:ann"])}
    async with web_house(tmp_path, redis_url, tenants=tenants) as home:
        assert (await post(home, {"message": "hello", "user": "ann"}))[0] == 403
        assert (await post(home, {"message": "hello", "user": "bee"}))[0] == 200
