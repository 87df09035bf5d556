"""Workers that die, are stopped or are asked to end, as real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio as aioredis

from tests.acceptance.processes import RedisServer, line_event, stage, telegram_update, until
from tests.house import TELEGRAM_TOKEN, shop

pytestmark = pytest.mark.slow

ANN = "U" + "a" * 32


async def history(url: str, user: str) -> list[str]:
    async with aioredis.Redis.from_url(url) as client:
        raw = await client.get(f"sm:shop:line:{user}")
    return [line["message"] for line in json.loads(raw)["history"]] if raw else []


async def test_a_worker_killed_in_mid_turn_is_stood_in_for(tmp_path: Path, server: RedisServer) -> None:
    async with stage(tmp_path, redis_url=server.url) as s:
        _, url = await s.serve()
        first = await s.worker()
        await s.slow_model(60)
        assert await s.line_says(url, line_event(ANN, "is there tea")) == 200
        await s.asked()
        await s.worker()
        await first.kill()
        await until(lambda: s.line_shows(ANN))
        await s.quiet()
        assert await s.line_shows(ANN) == ["echo: is there tea"]


async def test_a_worker_killed_while_its_answer_grows_is_stood_in_for_and_the_answer_comes_once(
    tmp_path: Path, server: RedisServer
) -> None:
    text = "The latte has two shots of espresso. " * 40

    async def drafts() -> list[dict[str, Any]]:
        return list((await s.delivered("telegram"))["drafts"])

    async with stage(tmp_path, redis_url=server.url) as s:
        _, url = await s.serve()
        first = await s.worker()
        await s.script("llm_control", default="Hello!")
        assert await s.telegram_says(url, telegram_update(55, "hello there my friend", 1)) == 200
        await until(lambda: s.telegram_shows(55))  # the platform's SDK is loaded
        await s.script("llm_control", default=text.strip(), pace=0.1)  # 18 seconds
        assert await s.telegram_says(url, telegram_update(55, "tell me about the latte", 2)) == 200
        (begun, *_) = await until(drafts)
        await first.kill()
        await s.worker()

        async def answered() -> bool:
            return len(await s.telegram_shows(55)) > 1

        await until(answered)
        await s.quiet()
        assert await s.telegram_shows(55) == ["Hello!", text.strip()]
        numbers = [draft["draft_id"] for draft in await drafts()]
        assert numbers[0] == begun["draft_id"]
        assert len(set(numbers)) <= 2, "a turn that is tried again has one draft of its own"
        assert {draft["after"] for draft in await drafts()} == {1}, "none came after the answer"


async def test_a_worker_stopped_past_its_lease_neither_answers_nor_saves_when_it_goes_on(
    tmp_path: Path, server: RedisServer
) -> None:
    async with stage(tmp_path, redis_url=server.url) as s:
        _, url = await s.serve()
        first = await s.worker()
        await s.slow_model(4)  # the answer comes while the worker is stopped
        assert await s.line_says(url, line_event(ANN, "is there tea")) == 200
        await s.asked()
        first.pause()
        await s.worker()
        await until(lambda: s.line_shows(ANN))
        await s.quiet()
        first.resume()

        async def gave_up() -> bool:
            return "claim lost" in first.said

        await until(gave_up)
        await s.quiet()
        assert await s.line_shows(ANN) == ["echo: is there tea"]
        assert await history(server.url, ANN) == ["is there tea", "echo: is there tea"]


async def test_a_worker_asked_to_end_finishes_the_turn_in_hand(tmp_path: Path, server: RedisServer) -> None:
    async with stage(tmp_path, redis_url=server.url) as s:
        _, url = await s.serve()
        worker = await s.worker()
        await s.slow_model(2)
        assert await s.line_says(url, line_event(ANN, "is there tea")) == 200
        await s.asked()
        assert await worker.end(25) == 0
        assert await s.line_shows(ANN) == ["echo: is there tea"]
        assert "Traceback" not in worker.said


async def test_a_turn_longer_than_the_grace_is_handed_back_at_once(tmp_path: Path, server: RedisServer) -> None:
    async with stage(tmp_path, redis_url=server.url) as s:
        _, url = await s.serve()
        worker = await s.worker(SHUTDOWN_GRACE="1")
        await s.slow_model(60)
        assert await s.line_says(url, line_event(ANN, "is there tea")) == 200
        await s.asked()
        assert await worker.end(40) == 0
        depth = await s.depth()
        assert (depth.ready, depth.leased) == (1, 0), "nothing is left to a lease"
        await s.worker()
        await until(lambda: s.line_shows(ANN))
        assert await s.line_shows(ANN) == ["echo: is there tea"]


async def test_a_polled_bot_is_polled_by_one_worker_and_taken_over_when_that_dies(
    tmp_path: Path, server: RedisServer
) -> None:
    polled = {"platform": "telegram", "bot_token": TELEGRAM_TOKEN, "mode": "polling"}
    tenants = {"shop": shop(channels={"bot": polled}, understanding={"policy": "never"}, language="en")}
    async with stage(tmp_path, redis_url=server.url, tenants=tenants) as s:
        workers = [await s.worker(), await s.worker()]

        async def asks() -> list[dict[str, Any]]:
            return [call for call in await s.calls("telegram") if call["path"].lower().endswith("/getupdates")]

        await s.script("telegram", updates=[{"update": telegram_update(7, "one", 900_001)}])
        await until(lambda: s.telegram_shows(7))
        polling = [worker for worker in workers if '"message":"polling"' in worker.said]
        assert len(polling) == 1
        assert [call for call in await asks() if call["answered_status"] == 409] == []
        await s.quiet()  # that it was sent is on record
        before = len(await asks())
        await polling[0].kill()
        await s.script("telegram", updates=[{"update": telegram_update(7, "two", 900_002)}])

        async def second() -> bool:
            return len(await s.telegram_shows(7)) == 2

        await until(second)
        assert await s.telegram_shows(7) == ["echo: one", "echo: two"]
        # The dead one's call may have been cut off; nobody else's is.
        after = (await asks())[before:]
        assert [call for call in after if call["answered_status"] == 409] == []
