"""An upgrade: serve and worker are replaced one after the other while customers write."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import aiohttp
import pytest

from memory.transcripts import TranscriptFiles
from tests.acceptance.processes import RedisServer, Running, line_event, stage, until
from tests.house import shop

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PEOPLE = [f"U{number:032x}" for number in range(1, 13)]
EVERY = 0.1  # seconds between messages


async def test_a_rolling_restart_under_load_loses_nothing_and_keeps_the_order(
    tmp_path: Path, server: RedisServer
) -> None:
    behaviour = {"debounce_ms": 0, "rate_limit_per_minute": 0}
    content = shop(understanding={"policy": "never"}, language="en", behaviour=behaviour)
    async with stage(tmp_path, redis_url=server.url, tenants={"shop": content}) as s:
        serves = [await s.serve(), await s.serve()]
        workers = [await s.worker(), await s.worker()]
        written: dict[str, list[str]] = {one: [] for one in PEOPLE}
        stop = asyncio.Event()

        async def write() -> None:
            """As LINE does it: what a door does not take comes again, to whichever is up."""
            number = 0
            while not stop.is_set():
                who, number = PEOPLE[number % len(PEOPLE)], number + 1
                event = line_event(who, f"message {number}")
                for again in range(1000):
                    with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                        if await s.line_says(serves[again % 2][1], event) == 200:
                            break
                    await asyncio.sleep(0.05)
                else:
                    raise AssertionError("no door takes it")
                written[who].append(f"message {number}")
                await asyncio.sleep(EVERY)

        async def replaced(old: Running, new: Running) -> Running:
            assert await old.end(90) == 0, old.said[-2000:]
            assert "Traceback" not in old.said
            return new

        async def everybody_has_written() -> bool:
            return all(written.values())

        writing = asyncio.create_task(write())
        await until(everybody_has_written)
        for place in (0, 1):
            workers[place] = await replaced(workers[place], await s.worker())
            serves[place] = (await replaced(serves[place][0], (door := await s.serve())[0]), door[1])
        stop.set()
        await writing
        await s.quiet(120)
        transcripts = TranscriptFiles(s.data / "transcripts")
        for who, said in written.items():
            kept = await transcripts.everything("shop", f"line:{who}")
            assert [one["message"] for one in kept if one["role"] == "user"] == said
            # A slow machine lets the queue grow: then some answers come by rules and repeat no words.
            answers = [one["message"] for one in kept if one["role"] == "bot"]
            assert "\n".join(await s.line_shows(who)) == "\n".join(answers)
            told = [text.removeprefix("echo: ") for text in "\n".join(answers).splitlines() if "message" in text]
            assert told == sorted(set(told), key=said.index)
