"""The stand-ins as a process of their own: control over HTTP, and what outlives a kill -9."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.standins import Fault, OpenRouterStandIn, TelegramStandIn
from tests.standins.model import faults_of

USER = "U" + "1" * 32
LINE_AUTH = {"Authorization": "Bearer t1"}


class Running:
    """One process of stand-ins; `again` takes the same ports."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._process: Process | None = None
        self.urls: dict[str, str] = {}

    async def start(self) -> None:
        ports = {name: url.rpartition(":")[2] for name, url in self.urls.items()}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.standins",
            "--line-port", ports.get("line", "0"),
            "--line-data-port", ports.get("line_data", "0"),
            "--telegram-port", ports.get("telegram", "0"),
            "--llm-port", ports.get("llm_control", "0"),
            "--line-channel", f"t1:s1:{'U' + 'b' * 32}",
            "--any-reply-token",
            "--journal", str(self._journal),
            stdout=PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        async with asyncio.timeout(60):
            self.urls = json.loads(await self._process.stdout.readline())

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.communicate()

    async def end(self) -> int:
        assert self._process is not None
        self._process.terminate()
        await self._process.communicate()
        return int(self._process.returncode or 0)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    made = Running(tmp_path)
    await made.start()
    yield made
    assert await made.end() == 0


async def call(url: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as client:
        asked = client.get(url) if body is None else client.post(url, json=body, headers=headers or {})
        async with asked as answer:
            return answer.status, await answer.json()


async def test_what_the_platforms_know_outlives_a_kill(running: Running) -> None:
    line, telegram = running.urls["line"], running.urls["telegram"]
    key = {**LINE_AUTH, "X-Line-Retry-Key": str(uuid.uuid4())}
    messages = [{"type": "text", "text": "hello"}]
    reply = {"replyToken": f"{USER}.1", "messages": messages}
    send = f"{telegram}/bot1000001:first-test-bot/sendMessage"

    async def round_of_calls() -> list[int]:
        return [
            (await call(f"{line}/v2/bot/message/reply", reply, LINE_AUTH))[0],
            (await call(f"{line}/v2/bot/message/push", {"to": USER, "messages": messages}, key))[0],
            (await call(send, {"chat_id": 5, "text": "x"}))[0],
        ]

    assert await round_of_calls() == [200, 200, 200]
    urls = running.urls
    await running.kill()
    await running.start()
    assert running.urls == urls
    assert await round_of_calls() == [400, 409, 200]
    shown = (await call(f"{line}/_delivered"))[1]
    assert [one["text"] for one in (await call(f"{telegram}/_delivered"))[1]["delivered"]["5"]] == ["x", "x"]
    assert [one["via"] for one in shown["delivered"][USER]] == ["reply", "push"]
    assert [one["repeated"] for one in shown["raw"][USER]] == [False, False, True]
    calls = (await call(f"{line}/_calls"))[1]["calls"]
    assert [one["answered_status"] for one in calls] == [200, 200, 400, 409]
    assert len((await call(f"{line}/_calls?since=3"))[1]["calls"]) == 1


async def test_the_control_interface_scripts_each_stand_in(running: Running) -> None:
    line, telegram, llm = (running.urls[name] for name in ("line", "telegram", "llm_control"))
    _, made = await call(f"{line}/_script", {"tokens": [{"chat": USER, "token": "t"}], "quota": 0})
    assert made == {"tokens": ["t"]}
    push = {"to": USER, "messages": [{"type": "text", "text": "x"}]}
    assert (await call(f"{line}/v2/bot/message/push", push, LINE_AUTH))[0] == 429
    await call(f"{telegram}/_script", {"refuses": {"7": "Forbidden: bot was blocked by the user"}})
    send = f"{telegram}/bot1000001:first-test-bot/sendMessage"
    assert (await call(send, {"chat_id": 7, "text": "x"}))[0] == 403
    await call(f"{llm}/_script", {"answers": ["first"], "default": "later", "faults": [{"status": 503, "body": {}}]})
    ask = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
    heard = [
        await call(f"{llm}/api/v1/chat/completions", ask, {"Authorization": "Bearer sk-or-test-1"}) for _ in range(3)
    ]
    assert [status for status, _ in heard] == [503, 200, 200]
    assert [body["choices"][0]["message"]["content"] for _, body in heard[1:]] == ["first", "later"]
    await call(f"{llm}/_reset", {})
    assert (await call(f"{llm}/_calls"))[1] == {"calls": []}


def test_a_misspelt_fault_is_refused() -> None:
    assert faults_of([{"status": 500, "on": "/push"}]) == [Fault(500, on="/push")]
    with pytest.raises(ValueError, match="statsu"):
        faults_of([{"statsu": 500}])


async def test_a_journal_cut_in_mid_line_is_read_to_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "telegram.jsonl"
    async with TelegramStandIn(journal=path) as telegram:
        telegram.push_update({"update_id": 1})
        telegram.push_update({"update_id": 2})
    path.write_bytes(path.read_bytes()[:-5])
    async with TelegramStandIn(journal=path) as telegram:
        telegram.push_update({"update_id": 3})
    async with TelegramStandIn(journal=path) as telegram:
        assert [update["update_id"] for update in telegram.bots[telegram.tokens[0]].updates] == [1, 3]


async def test_a_stand_in_stopped_and_started_keeps_its_port_and_its_calls() -> None:
    async with OpenRouterStandIn() as llm:
        url = llm.url
        assert (await call(f"{url}/models"))[0] == 200
        await llm.stop()
        with pytest.raises(aiohttp.ClientConnectorError):
            await call(f"{url}/models")
        await llm.start()
        assert (llm.url, (await call(f"{url}/models"))[0], len(llm.calls)) == (url, 200, 2)


async def test_waiting_for_a_call_that_never_comes_says_what_came() -> None:
    async with OpenRouterStandIn() as llm:
        await call(f"{llm.url}/models")
        await llm.until(lambda: len(llm.calls) == 1)
        with pytest.raises(AssertionError, match="/api/v1/models"):
            await llm.until(lambda: len(llm.calls) == 2, timeout=0.05)


async def test_a_fault_lasts_for_as_many_calls_as_it_says() -> None:
    async with OpenRouterStandIn() as llm:
        llm.next(Fault(503, {}, times=2))
        assert [(await call(f"{llm.url}/models"))[0] for _ in range(3)] == [503, 503, 200]
