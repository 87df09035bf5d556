"""What waited too long."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway.texts import text
from tests.house import house, shop

CHAT = 55


@dataclass
class Clock:
    now: datetime = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


async def test_a_message_that_waited_longer_than_stale_after_gets_one_apology_and_the_next_an_answer(
    tmp_path: Path, redis_url: str
) -> None:
    clock = Clock()
    content = shop(
        language="en",
        behaviour={"debounce_ms": 700, "stale_after": 600},
        faq=[{"questions": ["What time do you open?"], "answer": "At nine."}],
    )
    async with house(tmp_path, redis_url, {"shop": content}, clock=clock) as home:
        for _ in range(2):
            await home.telegram_says(CHAT, "What time do you open?")
        clock.now += timedelta(seconds=601)  # while it waits for more of the same
        await home.telegram.until(lambda: home.telegram_shows(CHAT) == [text("stale", "en")])
        await home.telegram_says(CHAT, "What time do you open?")
        await home.telegram.until(lambda: home.telegram_shows(CHAT) == [text("stale", "en"), "At nine."])
        await home.quiet()
