"""What an operator changes in the files by hand reaches the lists."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory import MemoryConfig, MemoryManager
from memory.listing import Wanted

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
async def test_reindex_and_cleanup_take_in_what_was_changed_by_hand(tmp_path: Path, redis_url: str) -> None:
    manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "data" / "longterm"))
    folder = tmp_path / "data" / "longterm" / "shop"
    (tmp_path / "config" / "tenants").mkdir(parents=True)
    (tmp_path / "config" / "tenants" / "shop.yaml").write_text("name: Shop\nchannels: {web: {platform: web}}\n")

    async def keys() -> list[str]:
        page = await manager.catalog.page("shop", "facts", Wanted())
        return sorted(one["key"] for one in page.records)

    def by_hand(user: str, **attributes: str) -> None:
        (folder / f"{user}.json").write_text(json.dumps({"attributes": attributes}))

    def run(*words: str) -> str:
        env = os.environ | {
            "DATA_DIR": str(tmp_path / "data"), "CONFIG_DIR": str(tmp_path / "config"), "REDIS_URL": redis_url,
        }  # fmt: skip
        command = [sys.executable, "-m", "gateway", *words]
        done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        assert set(done.stderr.splitlines()) <= {"shop", "shop, by meaning"}  # the bars' names
        return done.stdout

    await manager.remember("shop", "line:U1", key="size", value="M")
    assert await keys() == ["size"]
    by_hand("line:U1", colour="red")
    by_hand("line:U2", city="Trang")
    assert await keys() == ["size"]  # a question alone looks at nobody's file
    assert run("memory", "reindex", "--tenant", "shop") == "shop: 2 taken in\n"
    assert await keys() == ["city", "colour"]
    by_hand("line:U2", city="Trang", pet="cat")
    (folder / "line:U1.json").unlink()
    run("cleanup")
    assert await keys() == ["city", "pet"]
    await manager.close()
