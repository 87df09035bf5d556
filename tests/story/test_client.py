"""A program talks to us through the Python client: over real connections, also such as break off."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from chat_chat_client import Blocking, Client, Conversation, Piece, Refused, Unreachable
from memory.episodes import made_of
from memory.models import Changes
from tests.api_side import SHOP_KEY, Api, api_side
from tests.house import ADMIN_KEY, LLM_KEY
from tests.standins.openrouter import Said
from tests.story.test_chat_api import FAQ, KEY, OTHER_KEY, asked, prompt, web_house, web_shop
from tests.story.test_memory_api import ANN, BEE, Clock, event, known

WORDS = "หนึ่ง สอง สาม four five six 🙂 eight nine ten"
DOCS = Path(__file__).parents[2] / "docs" / "api.md"


class Line:
    """The line to a server. Each connection takes the next of `cuts`: behind what it matches in an answer it breaks."""

    def __init__(self, to: str, cuts: list[bytes]) -> None:
        self._port = int(to.rpartition(":")[2])
        self.cuts = cuts

    @asynccontextmanager
    async def laid(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        cut = self.cuts.pop(0) if self.cuts else None
        back, forth = await asyncio.open_connection("127.0.0.1", self._port)
        asking = asyncio.create_task(_copy(reader, forth))
        seen = b""
        try:
            while piece := await back.read(65536):
                seen += piece
                if cut is not None and (found := re.search(cut, seen)):
                    writer.write(piece[: len(piece) - len(seen) + found.end()])
                    await writer.drain()
                    return
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            return
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            writer.close()
            forth.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()


@asynccontextmanager
async def serving(*routes: web.RouteDef) -> AsyncIterator[str]:
    """A server that does what ours would do in a case that can't be brought about."""
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture
async def api(tmp_path: Path, redis_url: str) -> AsyncIterator[tuple[Api, Client, Clock]]:
    clock = Clock()
    async with (
        api_side(tmp_path, redis_url, clock=clock, timezone="Asia/Bangkok") as side,
        Client(side.url, SHOP_KEY) as client,
    ):
        yield side, client, clock


async def test_an_answer_is_had_whole_in_any_script(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home, Client(home.url, KEY) as client:
        home.llm.answers(lambda request: f"ได้ยิน {prompt(request)[-1]}")
        first = await client.chat("สวัสดี 🙂", user="แอน & co/?")
        again = await client.chat("again", user="แอน & co/?", conversation_id=first.conversation_id)
        assert (await client.health()).status == "ok"
    assert (first.reply, first.model) == ("ได้ยิน สวัสดี 🙂", "openai/gpt-4o-mini")
    assert again.conversation_id == first.conversation_id


async def pieces_of(client: Client, message: str) -> list[Piece]:
    return [piece async for piece in client.stream(message, user="ann")]


def shown(pieces: list[Piece]) -> str:
    text = ""
    for piece in pieces:
        text = piece.text if piece.replace else text + piece.text
    return text


@pytest.mark.parametrize(
    "cuts",
    [
        [],
        [rb"id: s-\w+\n\n"],
        [rb"event: delta\ndata: \{"],
        ["หนึ่ง".encode()[:-1]],
        ["ส".encode(), "🙂".encode(), b"event: done"],
        [b"event: done"],
    ],
    ids=["never", "before the first words", "within the first ones", "within a letter", "three times", "at the end"],
)
async def test_a_stream_that_is_cut_goes_on_without_a_gap(tmp_path: Path, redis_url: str, cuts: list[bytes]) -> None:
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: Said(WORDS, pause=0.05))
        line = Line(home.url, [*cuts])
        async with line.laid() as url, Client(url, KEY) as client:
            pieces = await pieces_of(client, "count")
    assert line.cuts == []
    assert (shown(pieces), pieces[-1].whole) == (WORDS, WORDS)
    assert pieces[-1].usage is not None
    assert len({piece.conversation_id for piece in pieces}) == 1
    assert len(asked(home, "count")) == 1


async def test_a_stream_that_is_cut_goes_on_whichever_agent_answers(tmp_path: Path, redis_url: str) -> None:
    tenants = {"shop": web_shop(agents={"default": {}, "sales": {}})}
    async with web_house(tmp_path, redis_url, tenants=tenants, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: Said(WORDS, pause=0.05))
        line = Line(home.url, [b"event: delta\ndata: {", "ส".encode()])
        async with line.laid() as url, Client(url, KEY) as client:
            begun = await client.chat("hello", user="ann", conversation_id="order-1")
            stream = client.stream("count", user="ann", agent="sales", conversation_id=begun.conversation_id)
            pieces = [piece async for piece in stream]
    assert line.cuts == []
    assert (shown(pieces), pieces[-1].whole) == (WORDS, WORDS)


async def test_an_answer_that_is_none_of_ours_and_an_id_that_is_none_are_told_as_such() -> None:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="<html>Sign in to this network</html>", content_type="text/html")

    routes = web.get("/api/v1/memory/stats", page), web.get("/api/v1/memory/f_1", page)
    async with serving(*routes) as url, Client(url, KEY) as client:
        for asked_for in (client.memory.stats(), client.memory.get("f_1")):
            with pytest.raises(Unreachable, match="none of chat-chat's"):
                await asked_for
        for nameless in (client.memory.delete(""), client.memory.get(""), client.checkpoints.roll_back("")):
            with pytest.raises(ValueError, match="an id is empty"):
                await nameless


async def test_what_was_said_once_is_not_said_again_when_nothing_came_of_it(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "well")
        line = Line(home.url, [b"HTTP/1.1 200"])
        async with line.laid() as url, Client(url, KEY) as client:
            with pytest.raises(Unreachable):
                await client.chat("only once", user="ann")
        await home.quiet()
    assert len(asked(home, "only once")) == 1


async def test_words_that_replace_others_stand_in_their_place() -> None:
    async def chat(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"X-Conversation-Id": "c", "Content-Type": "text/event-stream"})
        await answer.prepare(request)
        usage = '{"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}'
        for data in ('delta\ndata: {"text":"Not "}', 'delta\ndata: {"text":"At nine.","replace":true}'):
            await answer.write(f"id: 1-1\nevent: {data}\n\n: alive\n\n".encode())
        await answer.write(f'event: extras\ndata: {{}}\n\nevent: done\ndata: {{"usage":{usage}}}\n\n'.encode())
        return answer

    async with serving(web.post("/chat", chat)) as url, Client(url, KEY) as client:
        pieces = await pieces_of(client, "When?")
    assert [(one.text, one.replace, one.whole) for one in pieces] == [
        ("Not ", False, "Not "),
        ("At nine.", True, "At nine."),
        ("", False, "At nine."),
    ]


async def test_only_what_changes_nothing_is_asked_again() -> None:
    calls: list[str] = []

    async def away(request: web.Request) -> web.Response:
        calls.append(request.method)
        if len(calls) == 2:
            return web.json_response({"total": 0, "by_type": {}, "by_priority": {}, "by_scope": {}})
        problem = {"title": "Service Unavailable", "status": 503, "detail": "The store is away"}
        return web.json_response(problem, status=503, headers={"Retry-After": "1" if len(calls) == 1 else "5"})

    routes = web.get("/api/v1/memory/stats", away), web.delete("/api/v1/memory", away)
    async with serving(*routes) as url, Client(url, KEY) as client:
        assert (await client.memory.stats()).total == 0
        with pytest.raises(Refused) as refused:
            await client.memory.clear()
    assert calls == ["GET", "GET", "DELETE"]
    assert (refused.value.status, refused.value.retry_after) == (503, 5.0)
    assert str(refused.value) == "503 Service Unavailable: The store is away"


async def test_a_refusal_is_an_exception_that_says_why(tmp_path: Path, redis_url: str) -> None:
    limited = web_shop(faq=FAQ, behaviour={"debounce_ms": 0, "rate_limit_per_minute": 2})
    async with web_house(tmp_path, redis_url, tenants={"shop": limited}) as home:
        async with Client(home.url, "wrong") as stranger:
            with pytest.raises(Refused, match="401 Unauthorized: A valid key is needed"):
                await stranger.chat("hello")
            with pytest.raises(Refused, match="401"):
                await anext(stranger.live())
        async with Client(home.url, KEY) as client, Client(home.url, OTHER_KEY) as other:
            await client.conversations.create(conversation_id="order-1")
            with pytest.raises(Refused, match="404 Not Found: There is no such conversation"):
                await other.conversations.get("order-1")
            with pytest.raises(Refused, match="404"):
                await anext(other.stream("hello", conversation_id="order-1"))
            many = [client.chat("hello", user="ann") for _ in range(5)]
            with pytest.raises(Refused) as refused:
                await asyncio.gather(*many)
            assert (refused.value.status, refused.value.title) == (429, "Too Many Requests")
            assert refused.value.retry_after == 60
        async with Client(home.url, ADMIN_KEY) as admin:
            with pytest.raises(Refused, match="422"):
                await admin.chat("hello")
    async with Client(home.url, KEY) as late:
        with pytest.raises(Unreachable):
            await late.chat("hello")


async def test_conversations_and_the_points_to_which_they_go_back(tmp_path: Path, redis_url: str) -> None:
    async with (
        web_house(tmp_path, redis_url) as home,
        Client(home.url, ADMIN_KEY, tenant="shop") as client,
    ):
        made = await client.conversations.create("Order 1", conversation_id="order-1", user="ann")
        assert made == Conversation("order-1", "Order 1", made.create_time, [])
        for _ in range(2):
            await client.chat("What time do you open?", user="ann", conversation_id="order-1")
        await client.chat("hello", user="bee", conversation_id="order-2")
        await home.quiet()
        renamed = await client.conversations.rename("order-1", "คำสั่งซื้อ 1")
        assert (renamed.memory_name, len(renamed.messages)) == ("คำสั่งซื้อ 1", 4)
        last = (await client.conversations.get("order-1")).messages[-1]
        assert (last.message_type, last.content) == ("ASSISTANT", "At **nine**.")
        found = [one.conversation_id async for one in client.conversations.list(limit=1)]
        assert found == ["order-2", "order-1"]
        assert [one.conversation_id async for one in client.conversations.list(user="ann")] == ["order-1"]

        points = [one async for one in client.checkpoints.list(user="web:ann", limit=1)]
        assert [one.messages for one in points] == [4, 2]
        assert [line.role for line in (await client.checkpoints.get(points[1].id)).history] == ["user", "bot"]
        assert (await client.checkpoints.resume(points[1].id)).messages == 2
        assert await client.checkpoints.roll_back(points[1].id) == 2
        assert await client.checkpoints.delete([points[1].id]) == 1
        assert (await client.conversations.get("order-1")).messages == []
        assert (await client.conversations.delete("order-1")).deleted == 1
        with pytest.raises(Refused, match="404"):
            await client.conversations.get("order-1")


async def test_memories_are_listed_mended_and_deleted(api: tuple[Api, Client, Clock]) -> None:
    side, client, clock = api
    ids = await known(side, clock)
    assert [one.key async for one in client.memory.list(limit=2)] == ["parking", "city", "report", "shoe_size", "drink"]
    assert [one.key async for one in client.memory.list(type=["fact", "context"], scope="user", q="q4")] == ["report"]
    assert [one.key async for one in client.facts.list(min_confidence=0.8, user=BEE)] == ["city"]
    seen = await client.memory.get(ids["drink"])
    assert (seen.text, seen.user_id, seen.type) == ("ชอบกาแฟเย็น", ANN, "preference")
    mended = await client.memory.patch(seen.id, text="ชอบชาเย็น", pinned=True, etag=seen.etag)
    assert (mended.text, mended.pinned, mended.etag != seen.etag) == ("ชอบชาเย็น", True, True)
    with pytest.raises(Refused, match="412"):
        await client.memory.patch(seen.id, priority="high", etag=seen.etag)
    stats = await client.memory.stats()
    assert (stats.total, stats.by_scope) == (5, {"global": 1, "user": 4})
    assert await client.memory.delete(ids["city"]) == 1
    assert await client.facts.delete([ids["report"], "f_nobody"]) == 1
    exported = await client.memory.export()
    assert sorted(one.key for one in exported.items) == ["drink", "parking", "shoe_size"]
    assert await client.memory.clear(user=ANN) == 2
    assert await client.memory.clear() == 1


async def test_a_list_that_changes_while_it_is_read_shows_what_stays_once(api: tuple[Api, Client, Clock]) -> None:
    side, client, clock = api
    ids = await known(side, clock)
    seen = []
    async for one in client.memory.list(limit=2):
        if not seen:
            clock.now += timedelta(minutes=1)
            await side.manager.remember("shop", BEE, key="new", value="since")
            await client.memory.delete(ids["parking"])
            await client.memory.delete(ids["report"])
        seen.append(one.key)
    assert seen == ["parking", "city", "shoe_size", "drink"]


async def test_people_episodes_procedures_and_events(api: tuple[Api, Client, Clock]) -> None:
    side, client, clock = api
    await known(side, clock)
    late = datetime(2026, 3, 1, 16, 59, tzinfo=UTC)  # one minute to midnight in Bangkok
    happened = [event("a", at=late), event("b", "COMPLAINT", 0.9, at=late + timedelta(minutes=2), text="มาช้ามาก")]
    await side.manager.longterm.save_events("shop", ANN, happened)
    said: Any = [{"role": "user", "message": "Where is it?", "timestamp": "2026-03-01T09:00:00Z"}]
    episode = made_of("s1", clock.now, said, summary="asked where it is", last_intent="SUPPORT")
    await side.manager.longterm.change("shop", ANN, lambda _: Changes(episodes=[episode]))
    await side.manager.teach("shop", "when a customer asks for delivery, ask for the postcode first")

    page = await client.events.list(limit=1).page()
    assert ([one.id for one in page.items], page.per_day) == (["b"], {"2026-03-01": 1, "2026-03-02": 1})
    assert [one.id async for one in client.events.list(limit=1, since=late)] == ["b", "a"]
    assert (await client.events.stats(importance=0.85)).by_type == {"COMPLAINT": 1}
    assert [one.id async for one in client.episodes.list(user=ANN)] == [episode.id]
    assert (await client.episodes.get(episode.id)).conversation[0]["message"] == "Where is it?"
    procedures = [one async for one in client.procedures.list(q="postcode")]
    assert [one.content for one in procedures] == ["ask for the postcode first"]
    assert await client.procedures.delete([procedures[0].id]) == 1
    assert await client.episodes.delete([episode.id]) == 1
    assert sorted([one.id async for one in client.users.list(limit=1)]) == [ANN, BEE]
    assert await client.users.delete([BEE]) == 1
    assert [one.id async for one in client.users.list()] == [ANN]


async def test_what_happens_is_told_and_told_on_when_the_line_was_cut(tmp_path: Path, redis_url: str) -> None:
    async with web_house(tmp_path, redis_url) as home, Client(home.url, KEY) as client:
        line = Line(home.url, [b'"role":"bot"'])
        async with line.laid() as url, Client(url, KEY) as looking, aclosing(looking.live("message")) as live:
            told: list[tuple[str, str | None]] = []
            async with asyncio.timeout(60):
                async for one in live:
                    told.append((one.kind, one.data.get("message")))
                    if one.kind == "ready":
                        await client.chat("สวัสดี" if len(told) == 1 else "What time do you open?", user="ann")
                    if one.data.get("role") == "bot":
                        break
    assert told == [
        ("ready", None),
        ("message", "สวัสดี"),
        ("ready", None),
        ("message", "What time do you open?"),
        ("message", "At **nine**."),
    ]


async def test_a_program_without_asyncio_has_all_of_it_too(tmp_path: Path, redis_url: str) -> None:
    def program(url: str) -> tuple[str, str, list[str]]:
        with Blocking(Client(url, KEY)) as bot:
            reply = bot.run(lambda client: client.chat("What time do you open?", user="ann")).reply
            pieces = list(bot.each(lambda client: client.stream("What time do you open?", user="ann")))
            names = [one.memory_name for one in bot.each(lambda client: client.conversations.list(limit=1))]
            return reply, pieces[-1].whole, names

    async with web_house(tmp_path, redis_url) as home:
        reply, streamed, names = await asyncio.to_thread(program, home.url)
    assert (reply, streamed) == ("At **nine**.", "At **nine**.")
    assert names == ["What time do you open?"] * 2


async def test_the_program_in_the_documentation_runs_as_printed(tmp_path: Path, redis_url: str) -> None:
    section = DOCS.read_text("utf-8").partition("\n## From Python\n")[2].partition("\n## ")[0]
    programs = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    async with web_house(tmp_path, redis_url, tenants={"demo": web_shop(faq=FAQ)}) as home:
        shows = []
        for program in programs:
            running = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program.replace("http://127.0.0.1:8080", home.url),
                stdout=asyncio.subprocess.PIPE, env=os.environ | {"ADMIN_API_KEY": ADMIN_KEY},
            )  # fmt: skip
            shown, _ = await running.communicate()
            shows.append((running.returncode, shown.decode().splitlines()[0]))
    assert shows == [(0, "At **nine**."), (0, "At **nine**.")]
