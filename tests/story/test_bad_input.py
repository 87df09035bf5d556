"""What comes through the front door and should not, or should all the same."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.house import ADMIN_KEY, LINE_SECRET, TELEGRAM_SECRET, House, house
from tests.standins.line import sign

ANN = "U" + "a" * 32


async def post(url: str, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as http, http.post(url, data=io.BytesIO(body), headers=headers) as answer:
        return answer.status, await answer.json(content_type=None)


def signed(body: bytes) -> dict[str, str]:
    return {"X-Line-Signature": sign(LINE_SECRET, body), "Content-Type": "application/json"}


def line_body(*events: Any) -> bytes:
    return json.dumps({"destination": "U" + "0" * 32, "events": list(events)}).encode("utf-8", "surrogatepass")


async def test_what_is_not_taken_says_why(tmp_path: Path, redis_url: str) -> None:
    empty = line_body()
    async with house(tmp_path, redis_url) as home:
        line, telegram = home.line_hook(), home.telegram_hook()
        secret = {"X-Telegram-Bot-Api-Secret-Token": TELEGRAM_SECRET}
        big = b'{"events": "' + b"x" * (1024 * 1024) + b'"}'
        answers = {
            "no signature": await post(line, empty, {}),
            "wrong signature": await post(line, empty, {"X-Line-Signature": sign("other", empty)}),
            "no signature at all": await post(line, empty, {"X-Line-Signature": "ก"}),
            "telegram without secret": await post(telegram, b"{}", {}),
            "telegram with a wrong secret": await post(telegram, b"{}", {"X-Telegram-Bot-Api-Secret-Token": "x"}),
            "unknown tenant": await post(home.line_hook("nobody"), empty, signed(empty)),
            "unknown channel": await post(home.line_hook(channel="nothing"), empty, signed(empty)),
            "a channel of the other platform": await post(home.line_hook(channel="telegram-main"), empty, secret),
            "a tenant that is a path": await post(
                f"{home.url}/webhooks/line/..%2F..%2Fx/line-main", empty, signed(empty)
            ),
            "no JSON": await post(line, b"hello", signed(b"hello")),
            "no JSON on Telegram": await post(telegram, b"\xff\xfe", secret),
            "too big": await post(line, big, signed(big)),
        }
    assert {name: status for name, (status, _) in answers.items()} == {
        "no signature": 401,
        "wrong signature": 401,
        "no signature at all": 401,
        "telegram without secret": 401,
        "telegram with a wrong secret": 401,
        "unknown tenant": 404,
        "unknown channel": 404,
        "a channel of the other platform": 404,
        "a tenant that is a path": 404,
        "no JSON": 400,
        "no JSON on Telegram": 400,
        "too big": 413,
    }
    assert all(body["status"] == status and body["title"] for status, body in answers.values())


async def test_json_that_makes_no_sense_is_passed_over(tmp_path: Path, redis_url: str) -> None:
    bodies = [b"[]", b"null", b"{}", b'{"events": 7}', b'{"events": [1, null, {}]}', b'{"events": []}', b"3e400"]
    deep = b'{"events": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    async with house(tmp_path, redis_url) as home:
        for body in bodies:
            assert (await post(home.line_hook(), body, signed(body)))[0] == 200, body
        assert (await post(home.line_hook(), deep, signed(deep)))[0] in (200, 400)
        assert await home.waiting() == 0


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "ก" * 30_000,
        "😀",
        "👨‍👩‍👧‍👦",
        "a\ud800b",
        "a\x00b",
        "\u200b\u200b",
        "\u202eabc",
        "{{x}} ${Y} %s",
        "/",
        "//",
    ],
    ids=[
        "100000 letters",
        "30000 Thai",
        "emoji",
        "family",
        "lone surrogate",
        "NUL",
        "zero width",
        "RTL",
        "marks",
        "/",
        "//",
    ],
)
async def test_any_text_gets_an_answer(tmp_path: Path, redis_url: str, text: str) -> None:
    async with house(tmp_path, redis_url) as home:
        event = home.line.text_event(ANN, "placeholder")
        event["message"]["text"] = text  # type: ignore[index, call-overload]
        body = line_body(event)
        assert (await post(home.line_hook(), body, signed(body)))[0] == 200
        await home.line.until(lambda: len(home.line_shows(ANN)) == 1)
        await home.quiet()


async def test_an_empty_text_is_answered_too(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url) as home:
        await home.line_says(ANN, "")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 1)


@pytest.mark.parametrize("user", ["../../x", "a/b", "a\x00b", "x" * 4096, ".", "_tenant", "%2e%2e", "ก"])
async def test_a_strange_user_id_never_leaves_the_tenants_folder(tmp_path: Path, redis_url: str, user: str) -> None:
    async with house(tmp_path, redis_url) as home:
        await _order(home, user)
        data = home.settings.data_dir
        outside = [path for path in tmp_path.rglob("*") if "x" == path.name]
        written = {path.parent for path in data.rglob("*.json")} | {
            path.parent.parent for path in data.rglob("*.jsonl")
        }
    assert outside == []
    assert written <= {data / "longterm" / "shop", data / "transcripts" / "shop"}


async def _order(home: House, user: str) -> None:
    """Telegram's ids are numbers and LINE's are checked; the terminal takes any name."""
    from gateway.assembly import inbox_client
    from gateway.inbox.base import Policy
    from gateway.inbox.redis import RedisInbox
    from gateway.messages import InboundMessage

    inbox = RedisInbox(inbox_client(home.settings, home.redis_url))
    message = InboundMessage(
        tenant="shop",
        channel="terminal",
        platform="terminal",
        event_id="1",
        user_id=user,
        chat_id="t",
        text="ขอสั่งลาเต้เย็น 2 แก้วครับ",
        received_at=9e9,
    )
    await inbox.put([(message, Policy())])
    await home.quiet()
    await inbox.close()


async def test_a_stranger_is_told_nothing_and_a_probe_may_ask_for_the_head_alone(
    tmp_path: Path, redis_url: str
) -> None:
    asked = [
        ("GET", "/api/v1/tenants?limit=many"),
        ("GET", "/api/v1/tenants?limit=0"),
        ("HEAD", "/healthz"),
        ("HEAD", "/readyz"),
        ("HEAD", "/metrics"),
        ("HEAD", "/docs"),
        ("HEAD", "/api/v1/memory?tenant=shop"),
        ("GET", "/webhooks/line/shop/line-main"),
    ]
    found = []
    async with house(tmp_path, redis_url) as home, aiohttp.ClientSession() as http:
        for method, path in asked:
            async with http.request(method, home.url + path) as answer:
                found.append((answer.status, answer.headers.get("Allow")))
    assert found == [*[(401, None)] * 2, *[(200, None)] * 4, (401, None), (405, "POST")]


async def test_the_head_of_whatever_may_be_had_is_told_and_what_may_be_asked_at_an_address(
    tmp_path: Path, redis_url: str
) -> None:
    """Also of a stream that has no end; the connection is good for the next request."""
    found = []
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with (
        house(tmp_path, redis_url) as home,
        aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=1)) as http,
    ):
        for method, path in [
            ("HEAD", "/api/v1/live"),
            ("HEAD", "/api/v1/memory"),
            ("PUT", "/api/v1/memory"),
            ("PATCH", "/api/memories"),
            ("DELETE", "/metrics"),
            ("PUT", "/chat"),
        ]:
            async with http.request(method, f"{home.url}{path}?tenant=shop") as answer:
                body = await answer.read()
                found.append((answer.status, answer.headers.get("Allow"), bool(body)))
    assert found == [
        (200, None, False),
        (200, None, False),
        (405, "HEAD, GET, DELETE", True),
        (405, "HEAD, GET, POST, PUT", True),
        (405, "HEAD, GET", True),
        (405, "POST", True),
    ]
