"""What the start says of who answers: the environment's model, a tenant's own, or FAQ and rules."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from config.settings import Settings
from config.tenants import Tenants
from gateway import doctor
from gateway.processes import _who_answers

WEB = "channels: {web: {platform: web}}\n"
KEYLESS = "name: A\n" + WEB
OWN = "name: B\nllm: {api_key: sk-own}\nagents: {default: {model: own/model}}\n" + WEB
ELSEWHERE = "name: C\nllm: {base_url: 'http://127.0.0.1:1/v1'}\n" + WEB
NONE = "no LLM key: FAQ and rules answer"
BRINGS = "OPENROUTER_API_KEY, or a tenant's own llm.api_key, brings the model in"


def given(tmp_path: Path, key: str | None, *files: str) -> tuple[Settings, Tenants]:
    (tmp_path / "tenants").mkdir()
    for name, text in zip("abc", files, strict=False):
        (tmp_path / "tenants" / f"{name}.yaml").write_text(text)
    settings = Settings(config_dir=tmp_path, data_dir=tmp_path, openrouter_api_key=key, openrouter_model="env/model")
    tenants = Tenants(settings)
    tenants.load()
    return settings, tenants


@pytest.mark.parametrize(
    ("key", "files", "told"),
    [
        (None, (), NONE),
        (None, (KEYLESS,), NONE),
        ("sk", (), "env/model"),
        ("sk", (KEYLESS,), "env/model"),
        (None, (OWN,), "own/model"),
        (None, (KEYLESS, OWN), "own/model for 1 of them, FAQ and rules for the others"),
        ("sk", (KEYLESS, OWN), "env/model, own/model"),
        ("sk", (KEYLESS, ELSEWHERE), "env/model for 1 of them, FAQ and rules for the others"),
    ],
)
def test_the_greeting_counts_the_keys_that_tenants_bring(
    tmp_path: Path, key: str | None, files: tuple[str, ...], told: str
) -> None:
    assert _who_answers(*given(tmp_path, key, *files)) == told


@pytest.mark.parametrize(
    ("key", "files", "told"),
    [
        (None, (), [f"no LLM key: FAQ and rules answer; {BRINGS}"]),
        (None, (OWN,), []),
        (None, (KEYLESS, OWN), [f"no LLM key for a: FAQ and rules answer; {BRINGS}"]),
        (
            "sk",
            (KEYLESS, ELSEWHERE),
            ["no LLM key for b: FAQ and rules answer; llm.api_key in the tenant's file brings the model in"],
        ),
    ],
)
async def test_doctor_names_the_tenants_that_have_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str | None, files: tuple[str, ...], told: list[str]
) -> None:
    async def unreachable(*_: object) -> None:
        return None

    monkeypatch.setattr(doctor, "_status", unreachable)
    settings, tenants = given(tmp_path, key, *files)
    async with aiohttp.ClientSession() as http:
        found = [str(one) async for one in doctor._models(settings, tenants, http)]
    assert [one.removeprefix("ok     ") for one in found if "no LLM key" in one] == told
    remedies = [one.rpartition(": ")[2] for one in found if "llm.api_key of tenant" in one]
    assert remedies == ["check llm.base_url in the tenant's file and the network"] * (OWN in files)
