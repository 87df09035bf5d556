"""What programs and visitors say to the bot, and all else that has no test of its own, against its own description:
whatever is sent, the answer is one that OpenAPI names."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import requests
from hypothesis import HealthCheck, given, settings

from tests.acceptance.test_openapi import CHECKS
from tests.acceptance.test_openapi import ours as over_memory
from tests.story.test_chat_api import FAQ, KEY, post, web_house, web_shop

ENDLESS = ("/chat/{conversation_id}/events", "/api/v1/live")


def ours(schema: dict[str, Any]) -> dict[str, Any]:
    """All that ends and is not looked at elsewhere, asked with a tenant's own key; `/web` of its own shop."""
    elsewhere = over_memory(schema)["paths"].keys() | set(ENDLESS)
    return {**schema, "paths": {path: own(item) for path, item in schema["paths"].items() if path not in elsewhere}}


def own(item: dict[str, Any]) -> dict[str, Any]:
    made = {}
    for method, operation in item.items():
        kept = [one for one in operation.get("parameters", ()) if (one["name"], one["in"]) != ("tenant", "query")]
        for one in kept:
            if (one["name"], one["in"]) == ("tenant", "path"):
                one["schema"] = {"type": "string", "enum": ["shop"]}
        made[method] = {**operation, "parameters": kept}
    return made


async def whatever(folder: Path, url: str, schema: dict[str, Any], token: str) -> str:
    """What was found; "" where nothing was."""
    described = folder / "openapi.json"
    described.write_text(json.dumps(schema), encoding="utf-8")
    run = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "run", str(described), "--url", url, "--seed", "1"),
        *("-H", f"Authorization: Bearer {token}", "--checks", CHECKS, "--phases", "examples,coverage,fuzzing"),
        *("-n", "3", "--generation-database", "none", "--no-color", "--warnings", "off"),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await run.communicate()
    return told.decode() if run.returncode else ""


def endless(schema: dict[str, Any], path: str, url: str, token: str) -> set[int]:
    """Each answer is read to its first byte; the statuses that came."""
    import schemathesis  # seconds of loading: no other test's worker needs it

    statuses: set[int] = set()
    described = {**schema, "paths": {path: own(schema["paths"][path])}}
    known = described["paths"][path]["get"]["responses"]

    @settings(max_examples=20, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(case=schemathesis.openapi.from_dict(described)[path]["GET"].as_strategy())
    def look(case: schemathesis.Case) -> None:
        asked = case.as_transport_kwargs(base_url=url, headers={"Authorization": f"Bearer {token}"})
        with requests.request(**asked, stream=True, timeout=60) as answer:
            statuses.add(answer.status_code)
            assert str(answer.status_code) in known
            assert answer.headers["Content-Type"].partition(";")[0] in known[str(answer.status_code)]["content"]
            if answer.status_code == 200:
                assert next(answer.iter_content(1)) == b":"

    look()
    return statuses


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")  # schemathesis uses of `random`
async def test_whatever_is_said_the_answer_is_one_that_openapi_names(tmp_path: Path, redis_url: str) -> None:
    tenants = {"shop": web_shop(faq=FAQ, behaviour={"debounce_ms": 0, "rate_limit_per_minute": 0})}
    async with web_house(tmp_path, redis_url, tenants=tenants) as home:
        await post(home, {"message": "hello", "conversation_id": "c", "user": "ann"})
        async with aiohttp.ClientSession() as http, http.get(f"{home.url}/openapi.json") as answer:
            schema = await answer.json()
        asked = ours(schema)
        assert await whatever(tmp_path, home.url, asked, KEY) == ""
        _, visitor = await post(home, None, None, "/web/shop/visitor")
        of_visitors = {path: item for path, item in asked["paths"].items() if path.startswith("/web/")}
        assert await whatever(tmp_path, home.url, {**asked, "paths": of_visitors}, visitor["token"]) == ""
        statuses = [await asyncio.to_thread(endless, schema, path, home.url, KEY) for path in ENDLESS]
        assert statuses[1] >= {200, 422}
    assert {"/chat", "/healthz", "/api/v1/tenants", "/web/{tenant}/pictures"} <= asked["paths"].keys()
