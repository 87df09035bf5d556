"""What the HTTP side asks of strangers, over real sockets, and what each answer tells a browser."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway import http_limits
from tests.api_side import ADMIN_KEY, SHOP_KEY, Api, api_side

# When it is closed while we still write, what was answered may be lost.
TOO_MUCH = (b"HTTP/1.1 431 ", b"HTTP/1.1 400 ", b"")


async def raw(api: Api, *pieces: bytes) -> bytes:
    """What is answered until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
    try:
        async with asyncio.timeout(60):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_strangers_are_held_to_limits(tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_limits, "BODY_WITHIN", 0.3)
    async with api_side(tmp_path, redis_url) as api:
        begin = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
        endless = [begin, b"X-Long: ", *[b"x" * 1000] * 400]
        assert (await raw(api, *endless))[:13] in TOO_MUCH
        many = [begin, *[b"X-Short: x\r\n"] * 20_000, b"\r\n"]
        assert (await raw(api, *many))[:13] in TOO_MUCH
        monkeypatch.setattr(http_limits, "HEAD_WITHIN", 0.3)
        assert b" 408 " in (await raw(api, begin))[:40]
        assert (await raw(api)).startswith(b"HTTP/1.1 408 ")  # says nothing at all
        monkeypatch.undo()  # a busy machine may need longer than that for what is well
        monkeypatch.setattr(http_limits, "BODY_WITHIN", 0.3)
        head = b"POST /chat HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + SHOP_KEY.encode()
        assert await raw(api, head + b"\r\nContent-Length: 100\r\n\r\n{") == b""
        broken_off = b"\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{"
        _, writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
        writer.write(head + broken_off)
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await api.ask("GET", "/api/v1/memory"))[0] == 200  # and everybody else is served


async def test_every_answer_says_what_a_browser_may_do_with_it(tmp_path: Path, redis_url: str) -> None:
    async with api_side(tmp_path, redis_url) as api:
        for method, path, status in (
            ("GET", "/", 200),
            ("GET", "/memories", 200),
            ("GET", "/healthz", 200),
            ("GET", "/api/v1/memory", 401),
            ("POST", "/chat", 401),
            ("GET", "/nowhere", 404),
            ("POST", "/webhooks/line/shop/none", 404),
            ("GET", "/web/widget.js", 200),
        ):
            async with api.http.request(method, api.url + path) as answer:
                told = answer.headers
            assert (path, answer.status) == (path, status)
            assert (told["X-Content-Type-Options"], told["Referrer-Policy"]) == ("nosniff", told["Referrer-Policy"])
            assert "default-src 'none'" in told["Content-Security-Policy"], path
            assert "unsafe" not in told["Content-Security-Policy"]
            assert "Access-Control-Allow-Origin" not in told
            assert "Server" not in told


async def test_whoever_guesses_keys_has_to_wait_and_whoever_has_one_does_not(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_limits, "OF_WRONG_KEYS", http_limits.Share(a_second=0.0001, at_once=30.0))
    async with api_side(tmp_path, redis_url) as api:
        answers = [await api.ask_whole("GET", "/api/v1/memory", key=f"guess-{n}") for n in range(60)]
        assert [status for status, _, _ in answers] == [401] * 30 + [429] * 30
        status, told, headers = answers[-1]
        assert (status, told["status"], int(headers["Retry-After"]) > 0) == (429, 429, True)
        status, told, _ = await api.ask_whole("GET", "/v1/models", key="guess")  # OpenAI's clients show `error` alone
        assert (status, told["error"]["message"], told["error"]["code"]) == (429, told["detail"], 429)
        assert (await api.ask("GET", "/api/v1/memory"))[0] == 200
        assert (await api.ask("GET", "/api/v1/tenants", key=ADMIN_KEY))[0] == 200
