"""A mistyped shop or person: "nothing found" says that there is no such shop, and how a person's id is written."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from config.settings import Settings
from gateway import dead_letter_commands, key_commands, memory_commands, task_commands
from gateway.cli import Failed
from gateway.cli.audit import audit
from gateway.memory_commands import Progress

THERE_IS_NONE = "; there is no tenant file shpo.yaml: `chat-chat tenants list` shows which there are"


@pytest.fixture
def settings(tmp_path: Path, redis_url: str) -> Settings:
    (tmp_path / "tenants").mkdir()
    (tmp_path / "tenants" / "shop.yaml").write_text("name: Shop\nchannels: {web: {platform: web}}\n")
    return Settings(config_dir=tmp_path, data_dir=tmp_path / "data", redis_url=redis_url, embeddings="none")


@pytest.mark.parametrize(("tenant", "more"), [("shop", ""), ("shpo", THERE_IS_NONE)])
async def test_nothing_found_says_when_there_is_no_such_tenant(settings: Settings, tenant: str, more: str) -> None:
    assert await memory_commands.search(settings, tenant, "line:U1", "tea", 5) == [f"nothing found{more}"]
    assert await task_commands.listed(settings, tenant) == [f"nobody waits for an answer{more}"]
    assert await dead_letter_commands.list_letters(settings, tenant) == [f"no dead letters{more}"]
    assert key_commands.listed(settings, tenant) == [f"none made here{more}"]
    *counts, told = await memory_commands.forget(settings, tenant, "line:U1")
    assert "sessions: 0" in counts
    assert told == f"nothing is known of line:U1 at {tenant}{more}"


async def test_no_index_is_made_of_a_mistyped_tenant(settings: Settings) -> None:
    def progress(what: str) -> Progress:
        return contextlib.nullcontext(lambda done, of: None)

    assert await memory_commands.reindex(settings, "shop", progress) == ["shop: 0 taken in"]
    with pytest.raises(Failed) as told:
        await memory_commands.reindex(settings, "shpo", progress)
    assert told.value.message == f"nothing is kept of shpo{THERE_IS_NONE}"
    assert [one.name for one in (settings.data_dir / "index").glob("*.sqlite")] == ["shop.sqlite"]


def test_an_audit_of_nobody_says_so(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONFIG_DIR", str(settings.config_dir))
    monkeypatch.setenv("DATA_DIR", str(settings.data_dir))
    told = CliRunner().invoke(audit, ["--tenant", "shpo"])
    assert told.output == f"nothing is recorded{THERE_IS_NONE}\n"


async def test_a_name_that_is_no_id_is_told_how_ids_are_written(settings: Settings) -> None:
    for call in (memory_commands.show, memory_commands.export):
        with pytest.raises(Failed) as told:
            await call(settings, "shop", "me")
        ids = "an id names its channel: terminal:me, web:me, line:U…"
        assert told.value.message == f"nothing is known of me at shop; {ids}"
        with pytest.raises(Failed) as told:
            await call(settings, "shop", "line:U1")
        assert told.value.message == "nothing is known of line:U1 at shop"
