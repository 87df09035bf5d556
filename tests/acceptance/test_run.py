"""`chat-chat run` with its embedded server: killed whole, killed in part, and the terminal beside it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import redis.asyncio as aioredis

from tests.acceptance.processes import Stage, alive, descendants, free_port, line_event, stage, until

pytestmark = pytest.mark.slow

ANN, BEE = "U" + "a" * 32, "U" + "b" * 32


async def server_pid(s: Stage) -> int:
    """Of the embedded server of the stage's data directory."""
    socket = (s.data / "redis" / "lock").read_text()
    async with aioredis.Redis.from_url(f"unix://{socket}") as client:
        return int((await client.info("server"))["process_id"])


async def test_run_killed_with_9_leaves_no_process_and_a_restart_answers_what_waited(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        port = free_port()
        run, url = await s.run(port, workers=2, SHUTDOWN_GRACE="1")
        await s.slow_model(60)
        assert await s.line_says(url, line_event(ANN, "is there tea")) == 200
        await s.asked()
        family = descendants(run.pid)
        assert await server_pid(s) in family
        await run.kill()

        async def gone() -> bool:
            return not any(map(alive, family))

        await until(gone)
        await s.slow_model(0)
        again, _ = await s.run(port, workers=2)
        await until(lambda: s.line_shows(ANN))
        assert await s.line_shows(ANN) == ["echo: is there tea"]
        assert await again.end() == 0


async def test_an_embedded_server_killed_with_9_is_started_again_and_nothing_is_lost(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        _, url = await s.run()
        await s.slow_model(3)
        assert await s.line_says(url, line_event(ANN, "is there tea")) == 200
        await s.asked()
        pid = await server_pid(s)
        os.kill(pid, signal.SIGKILL)
        assert await s.line_says(url, line_event(BEE, "is there cake")) == 200
        await until(lambda: s.line_shows(ANN))
        await until(lambda: s.line_shows(BEE))
        assert await server_pid(s) != pid
        assert await s.line_says(url, line_event(ANN, "and coffee")) == 200

        async def three() -> bool:
            return len(await s.line_shows(ANN)) == 2

        await until(three)
        assert await s.line_shows(ANN) == ["echo: is there tea", "echo: and coffee"]
        assert await s.line_shows(BEE) == ["echo: is there cake"]


@pytest.mark.parametrize("with_run", [False, True])
async def test_a_talk_in_the_terminal_goes_on_after_a_restart(tmp_path: Path, with_run: bool) -> None:
    async with stage(tmp_path) as s:

        async def talk(line: str) -> tuple[int, str, str]:
            return await s.cli("chat", "--tenant", "shop", "--user", "Nok", stdin=line.encode() + b"\n")

        for line in ("my name is Nok", "what is my name"):
            if with_run:
                run, _ = await s.run()
            code, out, err = await talk(line)
            assert (code, out.strip(), err) == (0, f"echo: {line}", "")
            if with_run:
                assert await run.end() == 0
        asked = [call["body"] for call in await s.calls("llm_control") if "/chat/completions" in call["path"]]
        heard = [message["content"] for message in asked[-1]["messages"]]
        assert [one for one in heard if one.endswith("my name is Nok")] == ["my name is Nok", "echo: my name is Nok"]
