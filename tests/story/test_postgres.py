"""A whole house whose long-term memory is PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from gateway import doctor, memory_commands
from memory.postgres.migrate import migrate
from tests import postgres
from tests.house import ADMIN_KEY, house

pytestmark = pytest.mark.slow
USER = "line:U" + "a" * 32


async def test_a_customer_is_known_again_and_forgotten(socket_folder: Path, tmp_path: Path, redis_url: str) -> None:
    with postgres.emptied(socket_folder) as url:
        async with house(tmp_path, redis_url, longterm_url=url) as home, aiohttp.ClientSession() as http:
            http.headers["Authorization"] = f"Bearer {ADMIN_KEY}"
            asked = f"{home.url}/api/v1/facts?tenant=shop"

            async def facts() -> list[str]:
                async with http.get(asked) as answer:
                    return sorted(one["key"] for one in (await answer.json())["items"])

            await home.line_says("U" + "a" * 32, "My name is Ploy and I am allergic to shrimp. My order is late!")
            assert "name" in await home.until(facts, lambda found: "allergies" in found)
            await home.quiet()
            found = await memory_commands.search(home.settings, "shop", USER, "shrimp", 5)
            assert any("shrimp" in line for line in found)
            shown = await memory_commands.show(home.settings, "shop", USER)
            assert any("Ploy" in line for line in shown)
            assert not (tmp_path / "data" / "longterm").exists()
            findings = [str(one) for one in await doctor.examine(home.settings) if "PostgreSQL" in one.what]
            assert findings == ["ok     PostgreSQL at LONGTERM_URL answers and has the tables of this version"]
            receipt = await memory_commands.forget(home.settings, "shop", USER)
            assert "longterm_files: 1" in receipt
            assert await facts() == []


async def test_while_the_database_is_away_customers_are_answered_and_nothing_is_lost(
    tmp_path: Path, redis_url: str
) -> None:
    """It is away when the house begins, comes, and goes again."""
    user = "U" + "a" * 32
    with postgres.place() as folder:
        url = postgres.url_of(folder)
        async with house(tmp_path, redis_url, longterm_url=url) as home, aiohttp.ClientSession() as http:
            http.headers["Authorization"] = f"Bearer {ADMIN_KEY}"

            async def said(text: str) -> None:
                before = len(home.line_shows(user))
                assert await home.line_says(user, text) == 200

                async def shown() -> int:
                    return len(home.line_shows(user))

                await home.until(shown, lambda number: number > before, patience=60)
                await home.quiet(60)

            async def kept() -> list[str]:
                async with http.get(f"{home.url}/api/v1/events?tenant=shop") as answer:
                    found = (await answer.json()).get("items", ())
                return sorted(one["payload"]["original_message"] for one in found)

            await said("My order 1 is late!")
            with postgres.started(folder):
                migrate(url)
                await said("My order 2 is late!")
                two = [f"My order {number} is late!" for number in (1, 2)]
                await home.until(kept, lambda found: found == two, patience=60)
            await said("My order 3 is late!")
            with postgres.started(folder):
                await said("My order 4 is late!")
                all_of_them = [f"My order {number} is late!" for number in (1, 2, 3, 4)]
                await home.until(kept, lambda found: found == all_of_them, patience=60)
