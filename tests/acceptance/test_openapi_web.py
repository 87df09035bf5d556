"""What programs say to the bot, against its own description: whatever is sent, the answer is one that OpenAPI names."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.acceptance.test_openapi import CHECKS
from tests.story.test_chat_api import FAQ, KEY, post, web_house, web_shop

# Those that go on for ever are left out.
OURS = ("/chat", "/api/memories", "/api/v1/checkpoints", "/v1/", "/web/{tenant}/visitor")
ENDLESS = ("/chat/{conversation_id}/events",)


def ours(schema: dict[str, Any]) -> dict[str, Any]:
    paths = {path: item for path, item in schema["paths"].items() if path.startswith(OURS) and path not in ENDLESS}
    for item in paths.values():
        for operation in item.values():
            kept = [one for one in operation.get("parameters", ()) if (one["name"], one["in"]) != ("tenant", "query")]
            operation["parameters"] = kept
    return {**schema, "paths": paths}


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_whatever_is_said_the_answer_is_one_that_openapi_names(tmp_path: Path, redis_url: str) -> None:
    tenants = {"shop": web_shop(faq=FAQ, behaviour={"debounce_ms": 0, "rate_limit_per_minute": 0})}
    async with web_house(tmp_path, redis_url, tenants=tenants) as home:
        await post(home, {"message": "hello", "conversation_id": "c", "user": "ann"})
        async with aiohttp.ClientSession() as http, http.get(f"{home.url}/openapi.json") as answer:
            schema = ours(await answer.json())
        described = tmp_path / "openapi.json"
        described.write_text(json.dumps(schema), encoding="utf-8")
        run = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "schemathesis.cli", "run", str(described), "--url", home.url, "--seed", "1"),
            *("-H", f"Authorization: Bearer {KEY}", "--checks", CHECKS, "--phases", "examples,coverage,fuzzing"),
            *("-n", "3", "--generation-database", "none", "--no-color", "--warnings", "off"),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        told, _ = await run.communicate()
    assert sorted(schema["paths"]) == [
        "/api/memories",
        "/api/memories/single",
        "/api/memories/{conversationId}",
        "/api/v1/checkpoints",
        "/api/v1/checkpoints/batch-delete",
        "/api/v1/checkpoints/{checkpoint_id}",
        "/api/v1/checkpoints/{checkpoint_id}/resume",
        "/api/v1/checkpoints/{checkpoint_id}/rollback",
        "/chat",
        "/v1/chat/completions",
        "/v1/models",
        "/web/{tenant}/visitor",
    ]
    assert (run.returncode, told.decode() if run.returncode else "") == (0, "")
