"""Vectors asked of an OpenAI-compatible endpoint, against a real server; and which a tenant gets."""

from __future__ import annotations

import base64
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from config.settings import Settings
from config.tenants import Tenants
from gateway.meanings import Meanings
from processors.embeddings import RemoteEmbeddings, make
from processors.llm import Access, LLMUnavailable

np = pytest.importorskip("numpy")


class Endpoint:
    """Speaks `/embeddings`; a text's vector is its length and one."""

    def __init__(self) -> None:
        self.asked: list[tuple[str | None, dict[str, Any]]] = []
        self.status = 200
        self.encoded = False
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.asked.append((request.headers.get("Authorization"), body))
        rows = [[float(len(text)), 1.0] for text in body["input"]]
        data = [
            {"index": at, "embedding": base64.b64encode(struct.pack("<2f", *row)).decode() if self.encoded else row}
            for at, row in enumerate(rows)
        ]
        return web.json_response({"data": data[::-1]}, status=self.status)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    endpoint = Endpoint()
    app = web.Application()
    app.router.add_post("/v1/embeddings", endpoint.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    endpoint.url = f"http://{host}:{port}/v1"
    yield endpoint
    await runner.cleanup()


@pytest.mark.parametrize("encoded", [False, True])
async def test_each_text_gets_its_own_vector_of_unit_length(endpoint: Endpoint, encoded: bool) -> None:
    endpoint.encoded = encoded
    embeddings = RemoteEmbeddings(Access("secret", endpoint.url), "some/model")
    found = await embeddings.encode(["a", "abc"])
    assert np.allclose(found, [[0.7071, 0.7071], [0.9487, 0.3162]], atol=1e-3)
    assert endpoint.asked == [("Bearer secret", {"model": "some/model", "input": ["a", "abc"]})]
    await embeddings.close()


async def test_a_long_list_is_asked_for_in_parts(endpoint: Endpoint) -> None:
    embeddings = RemoteEmbeddings(Access(None, endpoint.url), "m")
    assert (await embeddings.encode(["x"] * 130)).shape == (130, 2)
    assert [len(body["input"]) for _, body in endpoint.asked] == [64, 64, 2]
    await embeddings.close()


async def test_an_endpoint_that_fails_is_unavailable(endpoint: Endpoint) -> None:
    endpoint.status = 500
    embeddings = RemoteEmbeddings(Access(None, endpoint.url), "m")
    with pytest.raises(LLMUnavailable):
        await embeddings.encode(["a"])
    await embeddings.close()
    nobody = RemoteEmbeddings(Access(None, "http://127.0.0.1:9"), "m")
    with pytest.raises(LLMUnavailable):
        await nobody.encode(["a"], question=True)
    await nobody.close()


def test_what_is_switched_off_or_not_installed_is_none() -> None:
    assert make("none", Access("key")) is None


def test_a_tenants_key_goes_to_its_own_endpoint_alone(tmp_path: Path) -> None:
    folder = tmp_path / "tenants"
    folder.mkdir()
    (folder / "shop.yaml").write_text(
        "name: Shop\nchannels: {}\nllm: {base_url: 'https://llm.example.com/v1', api_key: ${OWN}}\n"
        "memory: {embeddings: some/model}\n",
        encoding="utf-8",
    )
    given = {"OWN": "own-key", "OPENROUTER_API_KEY": "env-key", "CONFIG_DIR": str(tmp_path)}
    tenants = Tenants(settings := Settings.from_env(given, dotenv=None))
    tenants.load()
    first = Meanings(settings, tenants).of("shop")
    assert first is not None
    assert first.name == "some/model@https://llm.example.com/v1"
    elsewhere = Settings.from_env({**given, "EMBEDDINGS_BASE_URL": "https://vectors.example.com"}, dotenv=None)
    second = Meanings(elsewhere, tenants).of("shop")
    assert isinstance(second, RemoteEmbeddings)
    assert second.name == "some/model@https://vectors.example.com"
    assert second._access.api_key is None
