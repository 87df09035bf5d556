"""What was sent is not sent again, whatever goes wrong behind it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisAway

from gateway.ending import Ending
from gateway.inbox.redis import RedisInbox
from tests.house import house, shop


@pytest.mark.parametrize("lost", [False, True])
async def test_a_turn_that_fails_behind_its_answer_goes_on_behind_it(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """Also where Redis went away before it could tell that the answer is on record as sent."""
    noted, keep, note, tries = [], Ending.keep, RedisInbox.note, []

    def noting(inbox: RedisInbox, *given: Any) -> Any:
        found = asyncio.get_running_loop().create_future() if lost else note(inbox, *given)
        if lost:
            found.set_exception(RedisAway("gone"))
        noted.append(found)
        return found

    async def failing(ending: Ending, *given: Any) -> None:
        tries.append(given)
        if len(tries) == 1:
            raise ValueError("odd")
        await keep(ending, *given)

    monkeypatch.setattr(RedisInbox, "note", noting)
    monkeypatch.setattr(Ending, "keep", failing)
    monkeypatch.setattr("gateway.worker.PAUSES", (0.1,))
    faq = [{"questions": ["What time do you open?"], "answer": "At nine."}]
    async with house(tmp_path, redis_url, {"shop": shop(faq=faq)}) as home:
        await home.telegram_says(55, "What time do you open?")
        async with asyncio.timeout(60):
            while len(tries) < 2:
                await asyncio.sleep(0.01)
        await home.quiet()
        assert (home.telegram_shows(55), len(noted)) == (["At nine."], 1)
