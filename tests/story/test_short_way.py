"""A webhook that comes whole in one piece takes a shorter way. What it is told, and what becomes of it, is the same."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from gateway import serving
from gateway.errors import InboxUnavailable
from gateway.inbox import away
from gateway.inbox.redis import RedisInbox
from gateway.inbox.spool import Spool
from gateway.routes.webhooks import Webhooks
from tests.house import LINE_SECRET, TELEGRAM_SECRET, House, house
from tests.standins.line import sign

ANN = "U" + "a" * 32
HOOK = "/webhooks/line/shop/line-main"


def said(text: str, event: str) -> bytes:
    message = {"type": "text", "id": f"1{event}", "text": text}
    event_ = {
        "type": "message",
        "mode": "active",
        "timestamp": 1,
        "webhookEventId": event,
        "source": {"type": "user", "userId": ANN},
        "replyToken": f"token-{event}",
        "message": message,
    }
    return json.dumps({"destination": "U" + "0" * 32, "events": [event_]}).encode()


def request(body: bytes, *more: str, path: str = HOOK, signature: str | None = None, method: str = "POST") -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: shop",
        f"Content-Length: {len(body)}",
        f"X-Line-Signature: {sign(LINE_SECRET, body) if signature is None else signature}",
        *more,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def told(home: House, *pieces: bytes) -> bytes:
    """All that is answered until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(home.url.rpartition(":")[2]))
    try:
        async with asyncio.timeout(60):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.05)
            return await reader.read()
    finally:
        writer.close()


def statuses(answer: bytes) -> list[str]:
    return re.findall(r"HTTP/1\.1 (\d+) ", answer.decode())


async def test_in_one_piece_and_in_two_the_answer_is_the_same(tmp_path: Path, redis_url: str) -> None:
    close, body = "Connection: close", b'{"events": []}'
    telegram, secret = "/webhooks/telegram/shop/telegram-main", f"X-Telegram-Bot-Api-Secret-Token: {TELEGRAM_SECRET}"
    requests = {
        "taken": request(body, close),
        "nothing in it": request(b"[]", close),
        "telegram": request(b'{"update_id": 1}', close, secret, path=telegram),
        "telegram without its secret": request(b"{}", close, path=telegram),
        "no signature": request(body, close, signature=""),
        "wrong signature": request(body, close, signature=sign("other", body)),
        "signed in Thai": request(body, close, signature="ก"),
        "no JSON": request(b"hello", close),
        "unknown tenant": request(body, close, path="/webhooks/line/nobody/line-main"),
        "unknown channel": request(body, close, path="/webhooks/line/shop/other"),
        "another platform's": request(body, close, path="/webhooks/line/shop/telegram-main"),
        "no such platform": request(body, close, path="/webhooks/fax/shop/line-main"),
        "a path that is another": request(body, close, path="/webhooks/line/shop%2Fx/line-main"),
        "with a slash at its end": request(body, close, path=HOOK + "/"),
        "with a question": request(body, close, path=HOOK + "?a=b"),
        "not posted": request(body, close, method="PUT"),
        "a size that is none": request(body, close).replace(b"Content-Length: 14", b"Content-Length: x"),
        "two sizes": request(body, "Content-Length: 3", close),
        "size and pieces": request(body, "Transfer-Encoding: chunked", close),
    }
    expected = {
        **dict.fromkeys(("taken", "nothing in it", "telegram", "with a slash at its end", "with a question"), "200"),
        **dict.fromkeys(("telegram without its secret", "no signature", "wrong signature", "signed in Thai"), "401"),
        **dict.fromkeys(("no JSON", "a size that is none", "two sizes", "size and pieces"), "400"),
        **dict.fromkeys(("unknown tenant", "unknown channel", "another platform's", "no such platform"), "404"),
        "a path that is another": "404",
        "not posted": "405",
    }
    async with house(tmp_path, redis_url) as home:
        for name, whole in requests.items():
            head, _, rest = whole.partition(b"\r\n\r\n")
            together = await told(home, whole)
            assert (name, statuses(together)) == (name, [expected[name]])
            assert (name, await told(home, head + b"\r\n\r\n" + rest[:1], rest[1:])) == (name, together)


async def test_it_does_not_need_the_long_way_and_a_repeat_is_known(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        raise AssertionError("the long way")

    monkeypatch.setattr(Webhooks, "__call__", never)
    async with house(tmp_path, redis_url) as home:
        body = said("สวัสดีค่ะ", "E1")
        reader, writer = await asyncio.open_connection("127.0.0.1", int(home.url.rpartition(":")[2]))
        taken = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n"
        async with asyncio.timeout(60):
            for _ in range(2):
                writer.write(request(body))
                assert await reader.readexactly(len(taken) + 4) == taken + b"\r\n{}"
            writer.write(request(body, "Connection: close"))
            assert await reader.read() == taken + b"connection: close\r\n\r\n{}"
        writer.close()
        await home.quiet()
        assert len(home.line.calls_to("/message/reply")) == 1


async def test_a_connection_is_closed_once_nothing_came_for_long_since_the_last_answer(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "IDLE", 1)
    async with house(tmp_path, redis_url) as home, asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(home.url.rpartition(":")[2]))
        for event in ("E1", "E2", "E3"):
            writer.write(request(said("สวัสดีค่ะ", event)))
            assert (await reader.readuntil(b"{}")).startswith(b"HTTP/1.1 200 OK\r\n")
            answered = asyncio.get_running_loop().time()
            await asyncio.sleep(0.6)
        assert await reader.read() == b""
        assert asyncio.get_running_loop().time() - answered > 0.9
        writer.close()


async def test_what_is_sent_before_the_last_answer_came_is_answered_in_order(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        several = [
            request(said("one", "E1")),
            request(said("two", "E2"), signature="wrong"),
            request(said("three", "E3")),
            request(b"", "Connection: close", path="/healthz", method="GET"),
        ]
        answer = await told(home, b"".join(several))
        assert statuses(answer) == ["200", "401", "200", "200"]
        await home.quiet()
        assert {call.body["replyToken"] for call in home.line.calls_to("/message/reply")} <= {"token-E1", "token-E3"}


async def test_without_redis_it_is_kept_on_disk_and_where_nothing_keeps_it_the_platform_is_told(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> list[bool]:
        raise InboxUnavailable("refused")

    def full(*_: object, **__: object) -> None:
        raise InboxUnavailable("the disk is full")

    monkeypatch.setattr(away, "PROBE_EVERY", 60.0)
    async with house(tmp_path, redis_url) as home:
        with monkeypatch.context() as broken:
            broken.setattr(RedisInbox, "_keep", refused)
            with monkeypatch.context() as fuller:
                fuller.setattr(Spool, "add", full)
                answer = await told(home, request(said("one", "E1"), "Connection: close"))
            assert (statuses(answer), b"retry-after: 5" in answer) == (["503"], True)
            home_again = await told(home, request(said("two", "E2"), "Connection: close"))
            assert statuses(home_again) == ["200"]
