"""The HTTP side ends while people wait for answers: nobody's connection is torn, and nothing is said of errors."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import aiohttp
import pytest

from gateway.routes import sse
from tests.api_side import SHOP_KEY, api_side

HEAD = {"Authorization": f"Bearer {SHOP_KEY}"}


async def test_whoever_waits_is_sent_away_politely(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sse, "LINGER", 0.2)
    caplog.set_level(logging.INFO)
    async with aiohttp.ClientSession(headers=HEAD) as http:
        async with api_side(tmp_path, redis_url) as api:  # without a worker: no answer comes
            said = {"message": "hello", "user": "ann", "conversation_id": "c"}
            streams = [
                await http.post(f"{api.url}/chat", json=said | {"stream": True}),
                await http.get(f"{api.url}/chat/c/events?user=ann"),
                await http.get(f"{api.url}/api/v1/live"),
            ]
            assert [one.status for one in streams] == [200, 200, 200]
            plain = asyncio.create_task(http.post(f"{api.url}/chat", json=said | {"conversation_id": "d"}))
            openai = {"model": "default", "messages": [{"role": "user", "content": "hello"}]}
            asked = asyncio.create_task(http.post(f"{api.url}/v1/chat/completions", json=openai))
            socket = await http.ws_connect(f"{api.url.replace('http', 'ws')}/api/v1/live?kind=takeover")
            assert (await socket.receive_json(timeout=60))["kind"] == "ready"
            async with asyncio.timeout(60):
                while sum(one["total"] for one in [await api.get("/api/memories")]) < 3:
                    await asyncio.sleep(0.02)
        for stream in streams:
            await stream.read()  # to its end: a torn one raises
        refused = [await plain, await asked]
        assert [(one.status, one.headers["Retry-After"]) for one in refused] == [(503, "5"), (503, "5")]
        assert [one.headers["X-Should-Retry"] for one in refused] == ["false", "false"]
        assert "We are closing" in (await refused[0].json(content_type=None))["detail"]
        assert (await socket.receive(timeout=60)).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []
