"""Vectors and speech keep to a shop's limits, and stand in what it spent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from redis.asyncio import Redis

from config.tenants import Tenant
from gateway.budgets import Budgets
from gateway.metered import MeteredEmbeddings, MeteredHearing
from processors.embeddings import RemoteEmbeddings
from processors.llm import Access, LLMUnavailable, Usage
from processors.prices import Prices, read

TEXT = "x" * 297  # taken for 100 tokens


@asynccontextmanager
async def endpoint(usage: dict[str, Any] | None) -> AsyncIterator[tuple[str, list[str]]]:
    """Gives vectors and words, and says that it took `usage`."""
    asked: list[str] = []
    told = {"usage": usage} if usage else {}

    async def answer(request: web.Request) -> web.Response:
        await request.read()
        asked.append(request.path)
        if request.path.endswith("/embeddings"):
            return web.json_response({"data": [{"index": 0, "embedding": [0.0, 1.0]}], **told})
        return web.json_response({"text": "two lattes", **told})

    application = web.Application()
    application.router.add_post("/{any:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", asked
    finally:
        await runner.cleanup()


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url) as client:
        yield client


def limited(client: Redis, **limits: float) -> tuple[Budgets, Tenant]:
    web_chat = {"web": {"platform": "web"}}
    tenant = Tenant.model_validate({"id": "shop", "name": "Shop", "channels": web_chat, "llm": limits})
    return Budgets(client, {"shop": tenant}.get, Prices()), tenant


class Spent:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, int]] = []

    def __call__(self, access: Access, model: str, usage: Usage) -> None:
        self.calls.append((access.purpose, model, usage.prompt_tokens))


async def test_vectors_are_asked_for_as_long_as_the_limit_lasts(client: Redis) -> None:
    pytest.importorskip("numpy")
    model = "openai/text-embedding-3-small"
    async with endpoint({"prompt_tokens": 80, "total_tokens": 80}) as (url, asked):
        budgets, tenant = limited(client, daily_tokens=200)
        spent = Spent()
        remote = RemoteEmbeddings(Access("key", url), model)
        account = Access("key", url, model, tenant="shop", purpose="embed")
        embeddings = MeteredEmbeddings(remote, account, budgets, spent)
        assert (await embeddings.encode([TEXT])).tolist() == [[0.0, 1.0]]
        await budgets.close()
        standing = await budgets.of(tenant)
        assert standing is not None
        assert (standing.day_tokens, standing.day_usd) == (80, pytest.approx(80 * 0.02e-6))
        await embeddings.encode([TEXT])
        await budgets.close()
        with pytest.raises(LLMUnavailable, match="limit of the day"):
            await embeddings.encode([TEXT])  # 160 are spent, and this takes a hundred
        await remote.close()
    assert (asked, spent.calls) == (["/v1/embeddings"] * 2, [("embed", model, 80)] * 2)


@pytest.mark.parametrize(
    ("usage", "seconds"), [({"type": "duration", "seconds": 30}, 30.0), (None, 40.0), ({"cost": 0.01}, None)]
)
async def test_a_recording_is_paid_by_the_minute(
    client: Redis, usage: dict[str, Any] | None, seconds: float | None
) -> None:
    data = b"\0" * 80_000  # taken for 40 seconds
    async with endpoint(usage) as (url, asked):
        budgets, tenant = limited(client, daily_budget_usd=0.012)
        hearing = MeteredHearing(budgets, None)
        access = Access("key", url, tenant="shop")
        assert await hearing.words(data, "ogg", "openai/whisper-1", access) == "two lattes"
        await budgets.close()
        standing = await budgets.of(tenant)
        assert standing is not None
        assert standing.day_usd == pytest.approx(0.006 * seconds / 60 if seconds is not None else 0.01)
        for _ in range(3):
            last = await hearing.words(data, "ogg", "openai/whisper-1", access)
            await budgets.close()
        assert last is None  # the limit is reached: it is kept, and not understood
        await hearing.close()
    assert 1 <= len(asked) <= 3


async def test_what_failed_costs_nothing(client: Redis) -> None:
    budgets, tenant = limited(client, daily_tokens=10_000)
    hearing = MeteredHearing(budgets, None)
    assert (
        await hearing.words(b"\0" * 80_000, "ogg", "m", Access("key", "http://127.0.0.1:9/v1", tenant="shop")) is None
    )
    await budgets.close()
    await hearing.close()
    standing = await budgets.of(tenant)
    assert standing is not None
    assert standing.day_tokens == 0


def test_a_price_is_by_tokens_or_by_the_minute() -> None:
    assert read("own/ear: {minute: 0.006}")["own/ear"].of(0, 0, seconds=90) == pytest.approx(0.009)
    with pytest.raises(ValueError, match="minute"):
        read("own/ear: {minute: 0.006, input: 1}")
