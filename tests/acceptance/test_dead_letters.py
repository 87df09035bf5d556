"""Messages that can't be handled: buried with their reason, and what an operator does with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.processes import RedisServer, line_event, stage, telegram_update, until
from tests.house import shop

pytestmark = pytest.mark.slow

ANN = "U" + "a" * 32
SORRY = "We could not answer just now."


async def test_a_message_that_its_worker_dies_of_is_buried_and_the_customer_is_told_once(
    tmp_path: Path, server: RedisServer
) -> None:
    content = shop(
        understanding={"policy": "never"},
        language="en",
        behaviour={"debounce_ms": 0, "max_attempts": 1},
        replies={"error": SORRY},
    )
    async with stage(tmp_path, redis_url=server.url, tenants={"shop": content}) as s:
        _, url = await s.serve()
        first = await s.worker()
        await s.slow_model(60)
        assert await s.line_says(url, line_event(ANN, "poison")) == 200
        await s.asked()
        await first.kill()
        await s.worker()
        await until(lambda: s.line_shows(ANN))
        await s.quiet()
        assert await s.line_shows(ANN) == [SORRY]
        code, out, err = await s.cli("dead-letters", "list")
        assert (code, err) == (0, "")
        assert "gave up after 1 tries: the worker died each time" in out
        assert "poison" not in out
        # what comes after it is answered as ever
        assert await s.line_says(url, line_event(ANN, "is there tea")) == 200

        async def next_one() -> bool:
            return await s.line_shows(ANN) == [SORRY, "echo: is there tea"]

        await until(next_one)


async def test_dead_letters_can_be_listed_shown_sent_again_and_dropped(tmp_path: Path, server: RedisServer) -> None:
    async with stage(tmp_path, redis_url=server.url) as s:
        _, url = await s.serve()
        await s.worker()
        refusal = {"ok": False, "error_code": 400, "description": "Bad Request: odd"}
        # The apologies as well.
        await s.script("telegram", faults=[{"status": 400, "body": refusal, "on": "sendMessage", "times": 4}])
        for number, text in enumerate(("first", "second")):
            assert await s.telegram_says(url, telegram_update(7 + number, text, 1 + number)) == 200

        async def buried() -> list[str]:
            return (await s.cli("dead-letters", "list", "--tenant", "shop"))[1].splitlines()

        async def both() -> list[str]:
            lines = await buried()
            return lines if len(lines) == 2 else []

        lines = await until(both)
        assert all("the platform refused it" in line for line in lines)
        letters = {line.split()[3]: line.split()[0] for line in lines}
        code, out, _ = await s.cli("dead-letters", "show", "--tenant", "shop", letters["telegram:7"])
        assert (code, '"text": "first"' in out) == (0, True)
        assert await s.cli("dead-letters", "retry", "--tenant", "shop", letters["telegram:7"]) == (
            *(0, "1 put back into the queue\n", ""),
        )
        await until(lambda: s.telegram_shows(7))
        assert await s.telegram_shows(7) == ["echo: first"]
        assert await s.cli("dead-letters", "drop", "--tenant", "shop", letters["telegram:8"]) == (0, "1 dropped\n", "")
        assert await buried() == ["no dead letters"]
        assert await s.telegram_shows(8) == []
        code, out, err = await s.cli("dead-letters", "show", "--tenant", "shop", letters["telegram:8"])
        assert (code, out, err.count("\n")) == (1, "", 1)
