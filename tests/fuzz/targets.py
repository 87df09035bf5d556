"""One function a target: it takes an input, and raises when something is wrong with what became of it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import orjson
from hypothesis import strategies as st
from redis.asyncio import Redis

from config.settings import Settings
from config.tenant_files import read_tenant
from gateway.errors import ReceiveFault
from gateway.inbox.base import Outcome, Policy
from gateway.inbox.redis import RedisInbox
from gateway.messages import InboundMessage
from gateway.rendering import pack_line, render_line, render_telegram, render_terminal, utf16_len
from memory.errors import MemoryFault
from memory.long_term.json_files import JsonFiles
from memory.retention import Retention
from tests.unit.receiving import PAYLOADS, line, telegram

ROOT = Path(__file__).parents[2]

LONG_TERM = orjson.dumps(
    {
        "tenant_id": "shop",
        "user_id": "line:U1",
        "events": [
            {
                "event_id": "e1",
                "event_type": "COMPLAINT",
                "payload": {"text": "เย็นไป"},
                "importance_score": 0.8,
                "timestamp": "2026-11-20T03:00:00Z",
            }
        ],
        "attributes": {"city": "Chiang Mai"},
        "history_summary": "A regular.",
        "facts": [{"id": "f_1", "text": "city: Chiang Mai", "key": "city", "value": "Chiang Mai"}],
        "episodes": [],
    },
    option=orjson.OPT_INDENT_2,
)
ODD = [
    b"",
    b"\x00",
    b"\xff\xfe",
    b"[" * 3000,
    b"{" * 50,
    b"1e999",
    b"-0",
    b"null",
    b"\\ud800",
    b"&a *a",
    b"<<: *b",
    b"!!python",
]
ODD += ["ำ".encode() * 40, "\u202e\u0000".encode(), b'"', b"'", b":", b"\n", b"\t", b"9" * 400]

_HEADLINES = st.sampled_from(
    ["# ", "> ", "- ", "1. ", "```\n", "|a|b|\n|-|-|\n|", "**", "~~", "[", "](", "![", "<", "&#x"]
)
_SCRIPTS = st.sampled_from(
    ["ลาเต้", "น้ำ", "👩‍👩‍👧‍👦", "e\u0301", "\u202e", "\u200b", "\x00", "\ud800", "https://x.test/a?b=1", "x" * 5000]
)
markdown = st.lists(st.one_of(_HEADLINES, _SCRIPTS, st.text(max_size=20)), max_size=40).map("".join)


@dataclass(frozen=True, slots=True)
class Target:
    name: str
    inputs: st.SearchStrategy[Any]
    check: Callable[[Any], None]


def broken(*wholes: bytes) -> st.SearchStrategy[bytes]:
    """One of these with a few of its bytes cut out, doubled, or replaced by something odd."""

    @st.composite
    def made(draw: st.DrawFn) -> bytes:
        raw = draw(st.sampled_from(wholes))
        for _ in range(draw(st.integers(0, 4))):
            begin = draw(st.integers(0, len(raw)))
            end = min(len(raw), begin + draw(st.sampled_from((0, 0, 1, 2, 7, 40))))
            raw = (
                raw[:begin]
                + draw(st.sampled_from(ODD) | st.binary(max_size=6) | st.just(raw[begin:end] * 2))
                + raw[end:]
            )
        return raw

    return made()


def webhook(receive: Callable[[object], object]) -> Callable[[bytes], None]:
    """Refused, or taken: nothing else."""

    def check(raw: bytes) -> None:
        try:
            receive(raw)
        except ReceiveFault:
            return

    return check


def tenant_file(raw: bytes) -> None:
    """A tenant, or mistakes that each say where."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tenants" / "shop.yaml"
        file.parent.mkdir()
        file.write_bytes(raw)
        reading = read_tenant(file, Settings(config_dir=Path(folder)))
    assert reading.tenant is not None or reading.mistakes
    assert all(one.line >= 0 and "\n" not in str(one) for one in reading.mistakes)


def long_term_file(raw: bytes) -> None:
    """What is readable is had, and can be added to; what is not is set aside and nothing of it lost."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "shop" / "line:U1.json"
        file.parent.mkdir()
        file.write_bytes(raw)
        files = JsonFiles(folder, retention=Retention(days=0))

        async def use() -> None:
            await files.load("shop", "line:U1")
            await files.save_events("shop", "line:U1", [], attributes={"size": "L"})
            after = await files.load("shop", "line:U1")
            assert after is not None

        try:
            asyncio.run(use())
        except MemoryFault:
            return
        if file.read_bytes() != raw and not _whole(raw):
            assert any(raw == one.read_bytes() for one in file.parent.iterdir() if ".corrupt-" in one.name)


def answer(text: str) -> None:
    """On each platform within its limits."""
    text = text.encode("utf-8", "replace").decode()
    for call in pack_line(render_line(text)):
        assert len(call) <= 5
        assert all(0 < utf16_len(bubble) <= 5000 for bubble in call)
    for piece in render_telegram(text):
        assert utf16_len(piece.text) <= 4096
    render_terminal(text, 40, True)


def scripts(url: str) -> Callable[[tuple[str, ...]], None]:
    """A message goes through the scripts as it is, whatever its parts hold."""
    numbers = count()

    def check(parts: tuple[str, ...]) -> None:
        user, chat, text, event = (part.encode("utf-8", "replace").decode() for part in parts)

        async def through() -> None:
            client = Redis.from_url(url)
            inbox = RedisInbox(client, "fuzz")
            message = InboundMessage(
                tenant="shop",
                channel="tg",
                platform="telegram",
                event_id=f"{next(numbers)}:{event}",
                user_id=f"telegram:{user}",
                chat_id=chat,
                text=text,
            )
            policy = Policy(debounce=0, debounce_max=0, max_attempts=3)
            try:
                assert await inbox.put([(message, policy)]) == [True]
                assert await inbox.put([(message, policy)]) == [False]
                claims = (await inbox.claim(10)).claims
                assert [one.messages for one in claims] == [(message,)]
                assert (await inbox.finish(claims[0], None))[0] is Outcome.DONE
            finally:
                await inbox.close()

        asyncio.run(through())

    return check


_TEXT = st.text(min_size=1, max_size=40) | st.sampled_from(
    ["{x}", "a}b", "\x00", "\n", "%00", "..", "ก" * 300, "\u202e", "'\"\\"]
)


def targets(url: str) -> list[Target]:
    """`url`: of a Redis for the scripts."""
    shop = (ROOT / "config" / "examples" / "full.yaml").read_bytes()
    small = (ROOT / "config" / "tenants" / "demo.yaml").read_bytes()
    return [
        Target("LINE webhooks", broken(*_payloads("line")), webhook(line)),
        Target("Telegram webhooks", broken(*_payloads("telegram")), webhook(telegram)),
        Target("tenant files", broken(shop, small), tenant_file),
        Target("long-term files", broken(LONG_TERM), long_term_file),
        Target("Markdown", markdown, answer),
        Target("Lua arguments", st.tuples(_TEXT, _TEXT, st.text(max_size=200), _TEXT), scripts(url)),
    ]


def _payloads(platform: str) -> list[bytes]:
    return [file.read_bytes() for file in sorted((PAYLOADS / platform).glob("*.json"))]


def _whole(raw: bytes) -> bool:
    try:
        return isinstance(orjson.loads(raw), dict)
    except orjson.JSONDecodeError:
        return False
