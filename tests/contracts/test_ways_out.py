"""The ways out that are not the plain one: an environment's proxy, and a server that sends calls on elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec import structs

from config.settings import Settings
from gateway.adapters.base import Call
from gateway.adapters.line_sender import LineSender
from gateway.adapters.telegram_sender import TelegramSender
from processors.llm import Access, ChatRequest, Completion, LLMUnauthorized, LLMUnavailable
from processors.openrouter import OpenRouter
from tests.contracts.test_posts import Place, Script, place
from tests.contracts.test_senders import BOT_TOKEN, SHOP, USER, line_target, telegram_target

SAID = b'{"model":"m","choices":[{"message":{"content":"hello"},"finish_reason":"stop"}]}'
TAKEN = b'{"sentMessages":[{"id":"1"}]}'
STREAMED = b'data: {"choices":[{"delta":{"content":"hel"}}]}\n\ndata: {"choices":[{"delta":{"content":"lo"}}]}\n\n'
ENDED = b'data: {"model":"m","choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
SENT = b'{"ok":true,"result":{"message_id":7}}'


def answers(body: bytes) -> Script:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        await reader.read()

    return script


def leads_to(port: int) -> Script:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split(b" ")[1].decode()
        where = f"Location: http://127.0.0.1:{port}{path}\r\n".encode()
        writer.write(b"HTTP/1.1 308 Permanent\r\nConnection: close\r\n" + where + b"Content-Length: 0\r\n\r\n")

    return script


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """From then on all of HTTP goes through this port, but for this machine's own addresses."""
    for name in ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)

    def through(port: int) -> None:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    return through


def first_line(here: Place) -> str:
    return here.asked[0][0].partition(b"\r\n")[0].decode()


async def test_the_model_is_asked_through_the_environments_proxy(proxied: Callable[[int], None]) -> None:
    async with place(answers(SAID)) as proxy, place(answers(SAID)) as near:
        proxied(proxy.port)
        llm = OpenRouter()
        for base in ("http://model.invalid/v1", f"http://127.0.0.1:{near.port}/v1"):
            request = ChatRequest([{"role": "user", "content": "hi"}], Access("k", base, timeout=20))
            assert (await llm.complete(request)).text == "hello"
        assert first_line(proxy) == "POST http://model.invalid/v1/chat/completions HTTP/1.1"
        assert first_line(near) == "POST /v1/chat/completions HTTP/1.1"
        await llm.close()


async def test_an_answer_grows_through_the_environments_proxy(proxied: Callable[[int], None]) -> None:
    async def script(here: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await here.hears(reader)
        if here.connections == 1:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + STREAMED)
            await here.gate.wait()
            writer.write(ENDED)
            return
        if here.connections == 2:
            writer.write(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\n{}")
        await reader.read()  # a third says nothing at all

    async with place(script) as proxy:
        proxied(proxy.port)
        llm = OpenRouter()
        request = ChatRequest(
            [{"role": "user", "content": "hi"}], Access("k", "http://model.example/v1", "m", timeout=10)
        )
        pieces = llm.stream(request)
        said = await anext(pieces)
        proxy.gate.set()
        *more, whole = [piece async for piece in pieces]
        assert "".join(map(str, [said, *more])) == "hello"
        assert isinstance(whole, Completion)
        assert whole.text == "hello"
        with pytest.raises(LLMUnauthorized):
            await anext(llm.stream(request))
        late = structs.replace(request, access=Access("other", "http://model.example/v1", "m", timeout=0.3))
        async with asyncio.timeout(20):
            with pytest.raises(LLMUnavailable):
                await anext(llm.stream(late))
        await llm.close()


async def test_line_is_called_through_the_environments_proxy(proxied: Callable[[int], None]) -> None:
    call = Call("reply", {"replyToken": "t", "messages": [{"type": "text", "text": "hi"}]})
    async with place(answers(TAKEN)) as proxy, place(answers(TAKEN)) as near:
        proxied(proxy.port)
        for base in ("http://line.invalid", f"http://127.0.0.1:{near.port}"):
            sender = LineSender(Settings(line_api_base=base))
            assert (await sender.send(SHOP, line_target(), call)).message_ids == ("1",)
            await sender.close()
        assert first_line(proxy) == "POST http://line.invalid/v2/bot/message/reply HTTP/1.1"
        assert first_line(near) == "POST /v2/bot/message/reply HTTP/1.1"


async def test_a_platforms_call_that_is_sent_on_is_made_where_it_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    push = Call(
        "push", {"to": USER, "messages": [{"type": "text", "text": "hi"}]}, key="8f14e45f-0000-4000-8000-000000000001"
    )
    async with place(answers(TAKEN)) as real, place(leads_to(real.port)) as door:
        line = LineSender(Settings(line_api_base=f"http://127.0.0.1:{door.port}"))
        assert (await line.send(SHOP, line_target(), push)).message_ids == ("1",)
        assert f"x-line-retry-key: {push.key}" in real.asked[0][0].decode().lower()
        await line.close()
    async with place(answers(SENT)) as real, place(leads_to(real.port)) as door:
        telegram = TelegramSender(Settings(telegram_api_base=f"http://127.0.0.1:{door.port}"))
        sent = await telegram.send(SHOP, telegram_target(), Call("sendMessage", {"chat_id": "5", "text": "hi"}))
        assert sent.message_ids == ("7",)
        assert first_line(real) == f"POST /bot{BOT_TOKEN}/sendMessage HTTP/1.1"
        await telegram.close()
