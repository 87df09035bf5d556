"""A shop's limits of money and tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from config.tenants import Tenant
from gateway.budgets import Budgeted, Budgets
from gateway.texts import text
from processors.llm import (
    Access,
    ChatRequest,
    Completion,
    LLMError,
    LLMOverBudget,
    LLMUnavailable,
    Usage,
)
from processors.prices import Prices
from tests.house import LLM_KEY, TELEGRAM_SECRET, House, house, shop

STAFF = -100123
ASKED = ChatRequest(
    [{"role": "user", "content": "x" * 285}],  # taken for 100 tokens
    Access("key", model="openai/gpt-4o", tenant="shop"),
    max_tokens=100,
)
GUESS = 100 * 2.5e-6 + 100 * 10e-6  # dollars


class Model:
    """Takes what it is told to take, once it is let go."""

    def __init__(self, *, usage: Usage | None = None, error: LLMError | None = None) -> None:
        self.usage, self.error = usage, error
        self.calls = 0
        self.go = asyncio.Event()

    async def complete(self, request: ChatRequest) -> Completion:
        self.calls += 1
        await self.go.wait()
        if self.usage is not None:
            assert request.access.on_usage is not None
            request.access.on_usage(request.access.model, self.usage)
        if self.error is not None:
            raise self.error
        return Completion("hello", request.access.model)

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        yield "hel"
        yield await self.complete(request)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 31, 16, 30, tzinfo=UTC)  # 23:30 in Bangkok

    def __call__(self) -> datetime:
        return self.now


class Many:
    """Several workers over one Redis."""

    def __init__(self, client: Redis, clock: Clock, limits: dict[str, Any]) -> None:
        self.tenant = Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {}, "llm": limits})
        self.told: list[tuple[str, str]] = []
        self.budgets = [Budgets(client, {"shop": self.tenant}.get, Prices(), clock) for _ in range(3)]
        for one in self.budgets:
            one.told = self._tell

    async def _tell(self, tenant: Tenant, span: str, period: str) -> None:
        self.told.append((span, period))

    async def ask(self, model: Model, count: int) -> list[str]:
        """`answered` or the error's name of each of that many calls at once, over all workers."""
        asking = [asyncio.create_task(Budgeted(model, self.budgets[n % 3]).complete(ASKED)) for n in range(count)]
        while sum(task.done() for task in asking) + model.calls < count:
            await asyncio.sleep(0.001)
        model.go.set()
        done = await asyncio.gather(*asking, return_exceptions=True)
        for one in self.budgets:
            await one.close()
        return ["answered" if isinstance(one, Completion) else type(one).__name__ for one in done]

    async def standing(self) -> tuple[float, float, int, int]:
        found = await self.budgets[0].of(self.tenant)
        assert found is not None
        return round(found.day_usd, 6), round(found.month_usd, 6), found.day_tokens, found.month_tokens


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Redis]:
    made = Redis.from_url(redis_url)
    yield made
    await made.aclose()


async def test_calls_under_way_count_over_all_workers(client: Redis) -> None:
    many = Many(client, Clock(), {"api_key": "key", "daily_budget_usd": 5.5 * GUESS})
    said = await many.ask(Model(usage=Usage(10, 10, cost=0.0001)), 20)
    assert sorted(said) == ["LLMOverBudget"] * 15 + ["answered"] * 5
    assert await many.standing() == (0.0005, 0.0005, 100, 100)
    assert set(many.told) == {("day", "2026-03-31")}
    # What they really took was less than what was set aside.
    assert (await many.ask(Model(usage=Usage(10, 10, cost=0.0001)), 1)) == ["answered"]


async def test_each_limit_holds_in_the_shops_own_day_and_month(client: Redis) -> None:
    clock = Clock()
    many = Many(client, clock, {"api_key": "key", "daily_tokens": 250, "monthly_tokens": 450})
    used = Usage(100, 100)
    for expected, told in (("answered", 0), ("LLMOverBudget", 1), ("LLMOverBudget", 1)):
        assert await many.ask(Model(usage=used), 1) == [expected]
        assert len(many.told) == told
    clock.now += timedelta(hours=1)  # the first of April in Bangkok
    assert await many.ask(Model(usage=used), 1) == ["answered"]
    clock.now += timedelta(days=1)
    assert await many.ask(Model(usage=used), 1) == ["answered"]
    clock.now += timedelta(days=1)
    assert await many.ask(Model(usage=used), 1) == ["LLMOverBudget"]
    assert many.told == [("day", "2026-03-31"), ("month", "2026-04")]
    assert await many.standing() == (0.0, 2 * GUESS, 0, 400)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        (Model(error=LLMUnavailable("503")), 0),  # nothing came
        (Model(usage=Usage(0, 0)), 200),  # nobody says what it took: the guess stands
        (Model(usage=Usage(7, 5), error=LLMUnavailable("no use")), 12),  # paid for all the same
    ],
)
async def test_what_a_call_took_is_settled(client: Redis, model: Model, tokens: int) -> None:
    many = Many(client, Clock(), {"api_key": "key", "monthly_budget_usd": 1.0})
    await many.ask(model, 1)
    assert (await many.standing())[3] == tokens


async def test_a_stream_that_is_left_is_counted_as_it_was_guessed(client: Redis) -> None:
    many = Many(client, Clock(), {"api_key": "key", "monthly_budget_usd": 1.0})
    pieces = Budgeted(Model(), many.budgets[0]).stream(ASKED)
    assert await anext(pieces) == "hel"  # type: ignore[call-overload]
    await pieces.aclose()  # type: ignore[attr-defined]
    await many.budgets[0].close()
    assert await many.standing() == (GUESS, GUESS, 200, 200)


async def test_a_limit_of_nothing_asks_nobody_and_without_redis_who_has_limits_is_not_asked_for() -> None:
    tenants = {
        name: Tenant.model_validate({"id": name, "name": "Shop", "channels": {}, "llm": llm})
        for name, llm in (("shop", {"api_key": "key", "daily_tokens": 0}), ("free", {"api_key": "key"}))
    }
    model = Model()
    model.go.set()
    asked = Budgeted(model, Budgets(None, tenants.get, Prices()))
    with pytest.raises(LLMUnavailable):
        await asked.complete(ASKED)
    free = ChatRequest([], Access("key", tenant="free"))
    assert (await asked.complete(free)).text == "hello"
    assert model.calls == 1


async def test_at_its_limit_a_shop_answers_by_itself_and_staff_hear_of_it_once(tmp_path: Path, redis_url: str) -> None:
    async def says(home: House, words: str) -> str:
        update = home.telegram.text_update(55, words)
        assert await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET) == 200
        await home.quiet()
        return home.telegram_shows(55)[-1]

    tenant = shop(
        staff={"channel": "telegram-main", "chat": str(STAFF)},
        faq=[{"questions": "Do you have wifi?", "answer": "Yes, ask at the counter."}],
        llm={"daily_tokens": 0},
        understanding={"policy": "never"},
        language="en",
    )
    async with house(tmp_path, redis_url, {"shop": tenant}, llm_key=LLM_KEY) as home:
        first = await says(home, "which of your cakes keeps for a week?")
        assert await says(home, "Do you have wifi?") == "Yes, ask at the counter."
        await says(home, "and which tea goes with the cake?")
        assert first != ""
        assert home.llm.requests == []
        assert home.telegram_shows(STAFF).count(text("budget_day", "en")) == 1


async def test_an_answer_is_no_longer_than_the_agent_allows(tmp_path: Path, redis_url: str) -> None:
    tenant = shop(agents={"default": {"max_answer_tokens": 77}}, understanding={"policy": "never"})
    async with house(tmp_path, redis_url, {"shop": tenant}, llm_key=LLM_KEY) as home:
        await home.telegram_says(55, "which of your cakes keeps for a week?")
        await home.quiet()
        assert [body["max_tokens"] for body in home.llm.requests] == [77]


def test_errors_of_the_budget_are_the_models() -> None:
    assert issubclass(LLMOverBudget, LLMError)
