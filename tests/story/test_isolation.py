"""Two tenants with the same customers: whatever one of them asks for by the other's names, nothing crosses.

Every route of the application is walked; one whose path has a part that is not known here fails the walk, so that a new
one can't be forgotten.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import redis

from gateway import app, assembly, dead_letter_commands, front_door, memory_commands
from gateway.dead_letters import DeadLetters
from gateway.inbox.base import Policy
from gateway.inbox.redis import RedisInbox
from gateway.key_ring import KeyRing
from gateway.messages import InboundMessage, encode
from gateway.routes.admin_lists import ref_of
from gateway.routes.known import taken
from gateway.staff_tasks import StaffTasks
from gateway.tools import MemoryTools
from memory.keys import ConversationRef
from memory.lists import FileLists
from processors.llm import ToolCall
from tests.house import ADMIN_KEY, House, house

HALF = "pistac"  # what is looked for: an answer that only says it again shows nothing
WORDS = {"alpha": "pistachio", "beta": "walnut"}  # what Ann told each shop
ANN = "web:ann"
TALK = "order-7"
KEY = {name: f"test-key-of-{name}" for name in WORDS}
LISTENS = 0.3  # seconds that a stream is listened to in the walk


def shop_of(name: str) -> dict[str, Any]:
    return {
        "name": name.title(),
        "language": "en",
        "channels": {"web": {"platform": "web"}},
        "behaviour": {"debounce_ms": 0, "rate_limit_per_minute": 0},
        "api_keys": [f"sha256:{sha256(KEY[name].encode()).hexdigest()}"],
        "understanding": {"policy": "never"},
    }


@dataclass
class Shop:
    """What is kept at one of them, and by which ids."""

    name: str
    ids: dict[str, str] = field(default_factory=dict)


@dataclass
class Town:
    home: House
    http: aiohttp.ClientSession
    alpha: Shop
    beta: Shop


async def ask(town: Town, method: str, path: str, key: str | None, **more: Any) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with town.http.request(
        method, town.home.url + path, headers=headers, allow_redirects=False, **more
    ) as answer:
        if "event-stream" not in answer.headers.get("Content-Type", ""):
            return answer.status, await answer.read()
        heard = b""
        try:
            async with asyncio.timeout(LISTENS):
                async for piece in answer.content.iter_any():
                    heard += piece
        except TimeoutError:
            return answer.status, heard
        return answer.status, heard


async def say(town: Town, name: str, words: str, conversation: str = "main") -> None:
    said = {"message": words, "user": "ann", "conversation_id": conversation}
    status, body = await ask(town, "POST", "/chat", KEY[name], json=said)
    assert status == 200, body


async def furnish(town: Town, shop: Shop) -> None:
    """Ann talks to the shop, sessions end, staff teach and keep things: all of it with this shop's word in it."""
    name, word, home = shop.name, WORDS[shop.name], town.home
    for conversation in ("main", TALK):
        await say(town, name, f"I am allergic to {word}, call me {word}", conversation)
    await home.quiet()  # a session is kept once the answer is out
    later = lambda: assembly.utc_now() + timedelta(hours=1)  # noqa: E731
    async with app.tidy(home.settings, home.tenants, home.redis_url, clock=later) as cleanup:
        assert (await cleanup.run(name)).sessions >= 1
    for conversation in ("main", TALK):
        await say(town, name, f"please order one {word} cake for tomorrow", conversation)
    manager = assembly.memory_of(home.settings, home.tenants, home.redis_url)
    await manager.teach(name, f"when a customer asks for delivery, offer {word}")
    await manager.remember(name, ANN, text=f"likes {word} cake", key="likes", value=f"{word} cake")
    await manager.close()
    kept = {
        "conversationId": "kept-1",
        "memoryName": word,
        "messages": [{"messageType": "USER", "content": word}],
    }
    status, body = await ask(town, "POST", "/api/memories", KEY[name], json=kept)
    assert status in (200, 201), body
    client = assembly.inbox_client(home.settings, home.redis_url)
    inbox = RedisInbox(client, "test")
    message = InboundMessage(
        tenant=name, channel="web", platform="web", event_id="d1", user_id="web:bob", chat_id="bob", text=word
    )
    await inbox.put([(message, Policy(max_attempts=1))])
    await home.quiet()
    with redis.Redis.from_url(home.redis_url) as plain:
        plain.xadd(
            f"cc:dead:{name}",
            {"conversation": f"sm:{name}:web:bob", "reason": "poison", "tries": 1, "at": 1_800_000_000_000,
             "message": encode(message)},
        )  # fmt: skip
    letters = await DeadLetters(client, inbox).list(name)
    await StaffTasks(client).note(message)
    tasks = await StaffTasks(client).all(name)
    await inbox.close()
    made, _ = KeyRing(FileLists(home.settings.data_dir)).make(name, f"till {word}", assembly.utc_now())

    async def first(path: str, of: str = "id") -> str:
        status, body = await ask(town, "GET", path, KEY[name])
        assert status == 200, body
        return str(json.loads(body)["items"][0][of])

    shop.ids = {
        "memory_id": await first("/api/v1/memory?user=web:ann"),
        "episode_id": await first("/api/v1/episodes"),
        "procedure_id": await first("/api/v1/procedures"),
        "checkpoint_id": await first("/api/v1/checkpoints"),
        "conversation_id": TALK,
        "conversationId": "kept-1",
        "letter": letters[0].id,
        "task_id": tasks[0].id,
        "key": made.id,
        "tenant": name,
        "tab": "facts",
    }


@asynccontextmanager
async def town_of(tmp_path: Path, redis_url: str) -> AsyncIterator[Town]:
    async with (
        house(tmp_path, redis_url, {name: shop_of(name) for name in WORDS}) as home,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http,
    ):
        town = Town(home, http, Shop("alpha"), Shop("beta"))
        for shop in (town.alpha, town.beta):
            await furnish(town, shop)
        await home.quiet()
        yield town


def kept_of(home: House, name: str) -> dict[str, bytes]:
    """All that a tenant has at rest: files by path, keys by name."""
    found: dict[str, bytes] = {}
    for file in home.settings.data_dir.rglob("*"):
        where = file.relative_to(home.settings.data_dir)
        theirs = any(part.partition(".")[0] == name for part in where.parts)
        # What is made anew as somebody looks, and what notes who looked, may change.
        if theirs and file.is_file() and where.parts[0] not in ("index", "audit") and ".locks" not in where.parts:
            found[str(where)] = file.read_bytes()
    with redis.Redis.from_url(home.redis_url) as client:
        for key in client.scan_iter(match=f"*{name}*", count=1000):
            if not key.startswith((b"cc:spent:", b"cc:tally:")):  # counts, written a while after what they count
                found[key.decode()] = client.dump(key) or b""
    return found


async def settled(home: House, name: str) -> dict[str, bytes]:
    """The same, once nothing more is written: some is noted a moment behind the turns."""
    found = kept_of(home, name)
    while True:
        await asyncio.sleep(1.0)
        now = kept_of(home, name)
        if now == found:
            return now
        found = now


Takes = set[str] | None  # what a route takes in its query; None: whatever it is


def routes_of(door: Any) -> list[tuple[str, str, Takes]]:
    """Every (method, path, names in its query) of the application behind the door."""
    found: list[tuple[str, str, Takes]] = []

    def walk(routes: Any, before: str) -> Iterator[tuple[str, str, Takes]]:
        for one in routes:
            if (inner := getattr(one, "original_router", None)) is not None:
                yield from walk(inner.routes, before + one.include_context.prefix)
            else:
                path = before + one.path
                takes = (
                    {*taken(one.dependant), "tenant"}
                    if path.startswith("/api/") and hasattr(one, "dependant")
                    else None
                )
                yield from ((method, path, takes) for method in getattr(one, "methods", None) or ["WS"])

    application = door
    while not hasattr(application, "routes"):
        application = next(
            value for name, value in vars(application).items() if name in ("_api", "app", "_app", "_inner")
        )
    found.extend(walk(application.routes, ""))
    return found


def query(takes: Takes, **names: str) -> str:
    """As far as the route takes them: what it does not know it refuses, and then it shows nothing."""
    return "&".join(f"{name}={value}" for name, value in names.items() if takes is None or name in takes)


def bodies(shop: Shop, csrf: str, path: str) -> list[dict[str, Any]]:
    """What a client or a page's form may send to name the shop's things, as `json` or `data` of a request."""
    ids = shop.ids
    every = [ids["memory_id"], ids["episode_id"], ids["procedure_id"], ids["checkpoint_id"], ANN]
    out: list[dict[str, Any]] = [
        {"json": {"ids": every}},
        {"json": {"ids": every, "user": ANN}},
        {"json": {"text": "stolen", "priority": "low"}},
        {"json": {"message": "what am I allergic to?", "tenant": shop.name, "user": "ann", "conversation_id": TALK}},
        {"json": {"model": f"{shop.name}/default", "messages": [{"role": "user", "content": "hello"}], "user": "ann"}},
        {"json": {"conversationId": ids["conversationId"], "memoryName": "stolen", "messages": []}},
        {"json": {"conversation_id": "mine-now"}},
        {"json": {"tenant": shop.name}},
    ]
    form = {"csrf": csrf, "sure": "1", "user": ANN, "other": "web:bob", "back": f"/memories/{shop.name}/facts"}
    form |= {"ref": ref_of(ANN, ids["memory_id"]), "text": "stolen", "priority": "low", "say": "hi", "name": shop.name}
    form |= {"id": ids["letter"], "letter": ids["letter"], "key": ids["key"], "rule": "when asked for tea, say no"}
    dos = ("delete", "pin", "save", "undo", "clear", "off", "teach", "roll", "know", "merge", "part", "block", "forget")
    dos += ("drop", "retry", "revoke", "make", "answer", "take", "give_back", "say")
    pages = [{"data": {**form, "do": do}} for do in dos]
    return pages if path.startswith(("/admin/", "/memories")) else out


async def test_whatever_one_shop_asks_for_by_the_others_names_nothing_crosses(tmp_path: Path, redis_url: str) -> None:
    async with town_of(tmp_path, redis_url) as town:
        await listen(town)
        await town.home.quiet()
        before = await settled(town.home, "alpha")
        await use_commands_and_tools(town)
        await walk_every_route(town)
        await memory_commands.forget(town.home.settings, "beta", ANN)
        await town.home.quiet()
        after = await settled(town.home, "alpha")
        assert {name for name in {*before, *after} if after.get(name) != before.get(name)} == set()


async def walk_every_route(town: Town) -> None:
    home, alpha = town.home, town.alpha
    async with front_door.door(home.settings, home.tenants, home.redis_url, ADMIN_KEY) as door:
        await door.whole()
        every = routes_of(door)
    unknown = {part for _, path, _ in every for part in re.findall(r"{(\w+)(?::\w+)?}", path)}
    assert unknown <= {*alpha.ids, "version", "name", "model", "rest"}, (
        "a new route: say here which thing of a shop it names"
    )
    assert len(every) > 60
    async with town.http.post(f"{home.url}/admin/sign-in", data={"key": KEY["beta"]}) as answer:
        assert answer.status == 200
    async with town.http.get(f"{home.url}/memories/beta/facts") as answer:
        csrf = (await answer.text()).partition('name="csrf" value="')[2].partition('"')[0]
    visitor = json.loads((await ask(town, "POST", "/web/beta/visitor", None))[1]).get("token")
    asked = opened = 0
    for method, path, takes in every:
        if method == "WS" or path.startswith("/admin/sign-"):
            continue
        there = re.sub(r"{(\w+)(?::\w+)?}", lambda one: alpha.ids.get(one[1], "x"), path)
        ids = {"conversationId": alpha.ids["conversationId"], "id": alpha.ids["letter"]}
        ids |= {"user": ANN, "q": HALF, "find": HALF, "ref": ref_of(ANN, alpha.ids["episode_id"])}
        names = query(takes, confirm="true", scope="session", **ids)
        sent = bodies(alpha, csrf, path) if method in ("POST", "PUT", "PATCH") else [{}]
        # Beta by its key and its signed-in staff, a visitor of its, the admin who asks about beta.
        for key, tenant in (
            (KEY["beta"], "tenant=alpha&"),
            (KEY["beta"], ""),
            (visitor, "tenant=alpha&"),
            (ADMIN_KEY, "tenant=beta&"),
        ):
            if "{tenant}" in path and key == ADMIN_KEY:
                continue  # the path says alpha, and the admin key opens it
            for more in sent:
                if key == ADMIN_KEY and more.get("json", {}).get("tenant"):
                    continue  # the same in the body
                status, body = await ask(town, method, f"{there}?{tenant}{names}", key, **more)
                asked += 1
                opened += status == 200
                assert status != 403, (method, there)
                assert status < 500, (method, there, more, body)
                assert WORDS["alpha"].encode() not in body, (method, there, key)
    assert asked > 300
    assert opened > 50  # beta has things of its own to see
    # With its own key alpha sees what beta could not: the walk looked where something was.
    shown = 0
    for method, path, takes in every:
        if method == "GET" and "{tenant}" not in path:
            there = re.sub(r"{(\w+)}", lambda one: alpha.ids.get(one[1], "x"), path)
            names = query(takes, conversationId=alpha.ids["conversationId"])
            _, body = await ask(town, "GET", f"{there}?{names}", KEY["alpha"])
            shown += WORDS["alpha"].encode() in body
    assert shown >= 12


async def listen(town: Town) -> None:
    """What happens in one shop is not told in the other."""
    heard: dict[str, str] = {}
    headers = {"Authorization": f"Bearer {KEY['beta']}"}

    async def stream(name: str, path: str) -> None:
        async with town.http.get(town.home.url + path, headers=headers) as answer:
            async for piece in answer.content.iter_any():
                heard[name] = heard.get(name, "") + piece.decode()

    async def socket() -> None:
        async with town.http.ws_connect(town.home.url + "/api/v1/live", headers=headers) as answer:
            heard["ws"] = ""
            async for piece in answer:
                heard["ws"] += str(piece.data)

    async with town.http.post(f"{town.home.url}/admin/sign-in", data={"key": KEY["beta"]}):
        pass
    listening = [
        asyncio.create_task(one)
        for one in (stream("sse", "/api/v1/live"), stream("page", "/admin/beta/live"), socket())
    ]
    try:
        async with asyncio.timeout(60):
            while not ("page" in heard and all("walnut" in heard.get(name, "") for name in ("sse", "ws"))):
                await say(town, "alpha", "more pistachio please")
                await say(town, "beta", "more walnut please")
        refused = town.http.ws_connect(town.home.url + "/api/v1/live?tenant=alpha", headers=headers)
        with pytest.raises(aiohttp.WSServerHandshakeError) as told:
            await refused
        assert told.value.status == 404
    finally:
        for one in listening:
            one.cancel()
        await asyncio.gather(*listening, return_exceptions=True)
    assert [name for name, words in heard.items() if "pistachio" in words or "alpha" in words] == []


async def use_commands_and_tools(town: Town) -> None:
    settings = town.home.settings
    told = [
        *await memory_commands.show(settings, "beta", ANN),
        *await memory_commands.search(settings, "beta", ANN, "pistachio", 50),
        *await memory_commands.export(settings, "beta", None),
        *map(str, await dead_letter_commands.list_letters(settings, "beta")),
    ]
    assert any("walnut" in one for one in told)
    assert [one for one in told if "pistachio" in one] == []
    manager = assembly.memory_of(settings, town.home.tenants, town.home.redis_url)
    tools = MemoryTools(manager, ConversationRef("beta", ANN), None)
    for call in (
        ("recall", {"query": HALF, "memory_type": "all"}),
        ("recall", {}),
        ("recall", {"key": "likes", "tenant": "alpha"}),
        ("remember", {"key": "x", "value": "y", "tenant_id": "alpha"}),
        ("remember", {"key": "alpha:web:ann", "value": "walnut", "type": "fact"}),
    ):
        assert "pistachio" not in await tools.call(ToolCall("1", call[0], json.dumps(call[1]))), call
    await manager.close()
