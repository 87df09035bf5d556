"""What happened on each day of a shop, as the overview is told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from gateway.hooks import Exchange
from gateway.messages import Answer, InboundMessage
from gateway.tally import STEPS, Tally, days, together, within
from memory.keys import ConversationRef
from memory.models import ShortTermMemory
from processors.models import EventType, MemoryEvent

LATE = datetime(2026, 11, 27, 17, 30, tzinfo=UTC)  # half past midnight of the 28th in Bangkok
BANGKOK: Callable[[str], Any] = lambda tenant: SimpleNamespace(timezone="Asia/Bangkok")  # noqa: E731


def exchange(channel: str, model: str | None, seconds: float, **more: Any) -> Exchange:
    last = InboundMessage(
        tenant="shop", channel=channel, platform="line", event_id="1", user_id="line:U1", chat_id="U1",
        received_at=LATE.timestamp(),
    )  # fmt: skip
    event = MemoryEvent(
        event_type=EventType.INQUIRY, payload={"original_message": "?", "language": "th"}, importance_score=0.5,
        event_id="1",
    )  # fmt: skip
    said: Any = [{"role": "user", "message": "?"}, {"role": "bot", "message": "!"} | more]
    return Exchange(
        id="1", ref=ConversationRef("shop", "line:U1"), channel=channel, words="?", now=LATE, said=said, event=event,
        session=ShortTermMemory(tenant_id="shop", user_id="line:U1", session_id="s"), answer=Answer("!", model=model),
        last=last, sent_at=LATE + timedelta(seconds=seconds),
    )  # fmt: skip


async def test_a_day_is_the_shops_own_and_channels_are_told_apart(redis_url: str) -> None:
    tally = Tally(BANGKOK, lambda: LATE)
    await tally.after(exchange("line-main", "a/model", 1.5))
    await tally.after(exchange("line-main", None, 0.1))
    await tally.after(exchange("telegram-main", None, 4, metadata={"by": "staff"}))
    tally.used("shop", 120, 2_000_000)
    async with Redis.from_url(redis_url) as client:
        pipe: Any = client.pipeline(transaction=False)
        tally.into(pipe)
        await pipe.execute()
        before, day = await days(client, "shop", [date(2026, 11, 27), date(2026, 11, 28)])
        (line,) = await days(client, "shop", [date(2026, 11, 28)], "line-main")
    assert before.messages == 0
    assert (day.messages, day.by_model, day.by_shop, day.by_staff) == (3, 1, 1, 1)
    assert (day.tokens, day.dollars, dict(day.types), dict(day.bands)) == (120, 0.002, {"INQUIRY": 3}, {"moderate": 3})
    assert (line.messages, line.by_staff, dict(line.languages), sum(line.took)) == (2, 0, {"th": 2}, 2)


@settings(deadline=None)
@given(st.integers(1_577_836_800, 2_208_988_800), st.timezone_keys())
def test_a_day_begins_at_the_shops_midnight(seconds: int, zone: str) -> None:
    now = datetime.fromtimestamp(seconds, UTC)
    tally = Tally(lambda tenant: SimpleNamespace(timezone=zone), lambda: now)  # type: ignore[arg-type, return-value]
    tally.used("shop", 1, 0)
    assert list(tally._counts) == [f"cc:tally:shop:{now.astimezone(ZoneInfo(zone)):%Y-%m-%d}"]


async def test_what_could_not_be_written_is_written_the_next_time(redis_url: str) -> None:
    tally = Tally(BANGKOK, lambda: LATE)
    await tally.after(exchange("line-main", None, 1))
    async with Redis.from_url(redis_url) as client:
        lost: Any = client.pipeline(transaction=False)
        tally.into(lost)()
        await tally.after(exchange("line-main", None, 1))
        pipe: Any = client.pipeline(transaction=False)
        tally.into(pipe)
        await pipe.execute()
        (day,) = await days(client, "shop", [date(2026, 11, 28)])
    assert day.messages == 2


def test_half_of_the_answers_lie_within_the_middle_of_their_step() -> None:
    took = [0] * (len(STEPS) + 1)
    assert within(took, 0.5) is None
    took[3] = 10  # of two to three seconds
    assert within(took, 0.5) == 2.5
    took[-1] = 90
    assert within(took, 0.99) == float(STEPS[-1])
    assert together([]).messages == 0
