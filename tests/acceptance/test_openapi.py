"""The API over memory against its own description: what OpenAPI promises is what comes, whatever is sent."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.api_side import SHOP_KEY, api_side

OURS = ("memory", "facts", "episodes", "procedures", "memory-users", "events")
CHECKS = "not_a_server_error,content_type_conformance,response_schema_conformance,status_code_conformance"


def ours(schema: dict[str, Any]) -> dict[str, Any]:
    """The routes over memory, asked with a tenant's own key: no `?tenant=`."""
    paths = {
        path: item for path, item in schema["paths"].items() if path.removeprefix("/api/v1/").split("/")[0] in OURS
    }
    for item in paths.values():
        for operation in item.values():
            operation["parameters"] = [one for one in operation.get("parameters", ()) if one["name"] != "tenant"]
    return {**schema, "paths": paths}


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_whatever_is_sent_the_answer_is_one_that_openapi_names(tmp_path: Path, redis_url: str) -> None:
    async with api_side(tmp_path, redis_url) as api:
        for user in ("line:U1", "telegram:2"):
            for number in range(3):
                await api.manager.remember("shop", user, key=f"k{number}", value=[number], type="preference")
        async with api.http.get(f"{api.url}/openapi.json") as answer:
            schema = ours(await answer.json())
        assert len(schema["paths"]) == 15
        described = tmp_path / "openapi.json"
        described.write_text(json.dumps(schema), encoding="utf-8")
        run = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "schemathesis.cli", "run", str(described), "--url", api.url, "--seed", "1"),
            *("-H", f"Authorization: Bearer {SHOP_KEY}", "--checks", CHECKS, "--phases", "examples,coverage,fuzzing"),
            *("-n", "3", "--generation-database", "none", "--no-color", "--warnings", "off"),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        told, _ = await run.communicate()
        assert (run.returncode, told.decode() if run.returncode else "") == (0, "")
