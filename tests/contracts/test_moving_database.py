"""A shop moves between installations that keep long-term memory in a database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from config.settings import Settings
from config.tenants import Tenants
from gateway.assembly import memory_of
from gateway.cli import Failed
from gateway.moving.commands import arrive, export
from tests import postgres
from tests.unit.test_moving import no_bar


async def test_a_shop_goes_from_a_database_into_files_and_back(socket_folder: Path, tmp_path: Path) -> None:
    for name in ("old", "new"):
        folder = tmp_path / name / "config" / "tenants"
        folder.mkdir(parents=True)
    (tmp_path / "old" / "config" / "tenants" / "shop.yaml").write_text("name: Shop\nchannels: {}\n")
    with postgres.emptied(socket_folder) as url:
        old = Settings(config_dir=tmp_path / "old" / "config", data_dir=tmp_path / "old" / "data", longterm_url=url)
        files = Settings(config_dir=tmp_path / "new" / "config", data_dir=tmp_path / "new" / "data")
        memory = memory_of(old, Tenants(old), None)
        await memory.add_message_to_context("shop", "line:U1", "แพ้ถั่วค่ะ", role="user")
        await memory.remember("shop", "line:U1", text="likes lattes", key="drink", value="latte")
        await memory.close()
        archive = tmp_path / "shop.tar.gz"
        lines = await export(old, "shop", archive, no_bar)
        assert lines[0].startswith(f"wrote {archive}: 1 person, 1 transcript, 1 other file")

        _, whole = await arrive(files, archive, None, False, no_bar)
        assert whole
        assert await known(files, "shop") == {"allergies": ["ถั่ว"], "drink": "latte"}

        with pytest.raises(Failed, match="there is something of shop here already"):
            await arrive(old, archive, None, False, no_bar)
        back = replace(old, config_dir=tmp_path / "third" / "config", data_dir=tmp_path / "third" / "data")
        lines, whole = await arrive(back, archive, "store", False, no_bar)
        assert whole
        assert await known(back, "store") == {"allergies": ["ถั่ว"], "drink": "latte"}
        assert await said(back, "store") == ["แพ้ถั่วค่ะ"]
        assert not (tmp_path / "third" / "data" / "longterm").exists()


async def known(settings: Settings, tenant: str) -> dict[str, object]:
    memory = memory_of(settings, Tenants(settings), None)
    try:
        found = await memory.longterm.load(tenant, "line:U1")
        return {fact.key: fact.value for fact in found.facts if fact.key in ("allergies", "drink")} if found else {}
    finally:
        await memory.close()


async def said(settings: Settings, tenant: str) -> list[str]:
    memory = memory_of(settings, Tenants(settings), None)
    try:
        return [line["message"] for line in await memory.transcripts.everything(tenant, "line:U1")]
    finally:
        await memory.close()
