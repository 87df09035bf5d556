"""The memory over MCP, as other programs use it: the SDK's own client, real processes, both transports."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.house import shop

ADMIN, OWN = "admin-test-key", "shop-test-key"
HER = "line:U1"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "config" / "tenants"
    folder.mkdir(parents=True)
    own = f"sha256:{hashlib.sha256(OWN.encode()).hexdigest()}"
    other = shop("Other")
    other["channels"] = {"web": {"platform": "web"}}
    for name, content in (("shop", shop(api_keys=[own])), ("other", other)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    given = {"DATA_DIR": str(tmp_path / "data"), "CONFIG_DIR": str(tmp_path / "config"), "ADMIN_API_KEY": ADMIN}
    return {**os.environ, **given, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture
async def url(env: dict[str, str]) -> AsyncIterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "gateway", "mcp", "--http", "--port", str(port)], env=env)
    address = f"http://127.0.0.1:{port}/mcp"
    try:
        async with asyncio.timeout(60), httpx2.AsyncClient() as client:
            while True:
                try:
                    assert (await client.post(address)).status_code == 401
                    break
                except httpx2.TransportError:
                    assert server.poll() is None
                    await asyncio.sleep(0.1)
        yield address
    finally:
        server.terminate()
        assert server.wait(20) == 0


def said(result: Any) -> str:
    return str(result.content[0].text)


async def as_seed_001_has_it(client: Client) -> None:
    listed = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    assert sorted(listed) == ["identify_user", "recall", "remember"]
    assert listed["remember"]["required"] == ["user", "key", "value"]

    async def call(name: str, **arguments: Any) -> str:
        return said(await client.call_tool(name, arguments))

    assert await call("remember", user=HER, key="favourite color", value="blue") == (
        "Remembered: favourite color = blue (created)"
    )
    assert await call("remember", user=HER, key="favourite_color", value="green", overwrite=False) == (
        "Already known: favourite color = blue (kept)"
    )
    assert await call("recall", user=HER, key="favourite-color") == "favourite color = blue"
    assert await call("recall", user=HER, query="color") == "favourite color = blue"
    assert await call("recall", user=HER) == "favourite color = blue"
    assert await call("recall", user="line:U2") == "Nothing is known about this user."
    who = await client.call_tool("identify_user", {"channel": "line", "user_id": "U1", "display_name": "Ploy"})
    assert who.structured_content is not None
    assert who.structured_content["user"]["canonical_id"] == HER
    assert who.structured_content["user_context"] == f"User: Ploy ({HER})\n- favourite color = blue"
    for name, arguments in (
        ("recall", {"key": "x"}),  # of nobody
        ("recall", {"user": HER, "tenant": "other"}),
        ("remember", {"user": HER, "key": "x", "value": "y", "scope": "global"}),
        ("identify_user", {"tenant": "other", "user": HER}),
        ("forget", {"user": HER}),
        ("identify_user", {"channel": "fax", "user_id": "U1"}),
        ("identify_user", {"user": HER, "display_name": 5}),
        ("identify_user", {"user": HER, "channel": "line"}),
        ("recall", {"user": HER, "min_confidence": 2}),
    ):
        failed = await client.call_tool(name, arguments)
        assert failed.is_error
        assert said(failed).startswith("error: ")
    strange = said(await client.call_tool("recall", {"user": HER, "text": "colour"}))
    assert strange.startswith("error: recall has no 'text', but ")
    assert "query" in strange


def stdio(env: dict[str, str], key: str, *more: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "gateway", "mcp", *more], env={**env, "CHAT_CHAT_API_KEY": key}
    )


@asynccontextmanager
async def http(url: str, key: str, tenant: str | None = None) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"} | ({"X-Tenant": tenant} if tenant else {})
    async with AsyncExitStack() as stack:
        own = await stack.enter_async_context(httpx2.AsyncClient(headers=headers))
        yield await stack.enter_async_context(Client(streamable_http_client(url, http_client=own)))


async def test_on_stdio_a_shops_key_opens_its_memory(env: dict[str, str]) -> None:
    async with Client(stdio(env, OWN)) as client:
        await as_seed_001_has_it(client)


async def test_over_http_each_key_opens_its_own_tenant_and_no_others_users_are_seen(url: str) -> None:
    async with http(url, OWN) as client:
        await as_seed_001_has_it(client)
    async with http(url, ADMIN, "other") as client:
        assert said(await client.call_tool("recall", {"user": HER})) == "Nothing is known about this user."
        await client.call_tool("remember", {"user": HER, "key": "size", "value": "M"})
    async with http(url, ADMIN, "shop") as client:
        assert said(await client.call_tool("recall", {"user": HER})) == "favourite color = blue"
    async with http(url, OWN) as client:
        assert "M" not in said(await client.call_tool("recall", {"user": HER}))


@pytest.mark.parametrize(
    ("key", "tenant", "status"),
    [("wrong", None, 401), (ADMIN, None, 422), (ADMIN, "nobody", 404), (OWN, "other", 404)],
)
async def test_over_http_a_wrong_key_gets_nowhere(url: str, key: str, tenant: str | None, status: int) -> None:
    headers = {"Authorization": f"Bearer {key}"} | ({"X-Tenant": tenant} if tenant else {})
    async with httpx2.AsyncClient(headers=headers) as client:
        assert (await client.get(url)).status_code == status


@pytest.mark.parametrize(
    ("key", "more", "why"),
    [
        ("wrong", (), "A valid key is needed"),
        (ADMIN, (), "--tenant"),
        (OWN, ("--tenant", "other"), "There is no such tenant"),
    ],
)
def test_on_stdio_a_wrong_key_ends_it_with_one_line(
    env: dict[str, str], key: str, more: tuple[str, ...], why: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "mcp", *more],
        env={**env, "CHAT_CHAT_API_KEY": key},
        capture_output=True,
        text=True,
        input="",
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


async def test_two_shops_in_one_call_are_refused(url: str) -> None:
    named = [("Authorization", f"Bearer {ADMIN}"), ("X-Tenant", "shop"), ("X-Tenant", "other")]
    async with httpx2.AsyncClient() as client:
        answer = await client.post(url, headers=named, json={})
    assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (422, "X-Tenant")
