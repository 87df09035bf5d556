"""What a tenant's messages cost is counted by the worker and told by the HTTP side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp

from tests.house import ADMIN_KEY, LLM_KEY, House, house

ANN = "U" + "a" * 32


async def get(home: House, path: str) -> Any:
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with aiohttp.ClientSession() as http, http.get(f"{home.url}{path}", headers=headers) as response:
        return await response.text() if path == "/metrics" else await response.json()


async def test_calls_tokens_and_dollars_of_a_message_are_told(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:

        async def page() -> str:
            return str(await get(home, "/metrics"))

        await home.line_says(ANN, "do you have the blue one in a size for a tall person?")
        told = await home.until(page, lambda text: 'understood_total{tenant="shop",way="llm"} 1.0' in text)
        assert 'chatchat_llm_calls_total{purpose="answer",tenant="shop"} 1.0' in told.replace(
            'tenant="shop",purpose="answer"', 'purpose="answer",tenant="shop"'
        )
        [row] = (await get(home, "/api/v1/tenants"))["items"]
        assert row["llm"]["calls"] == {"answer": 1, "classify": 1}
        assert row["llm"]["understood"] == {"llm": 1}
        assert row["llm"]["a_message"]["calls"] == 2.0
        assert row["llm"]["a_message"]["tokens"] > 0
        await home.quiet()
