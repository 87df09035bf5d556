"""What pruning put away: readable whatever else stands in the file, and gone with its person."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memory import MemoryConfig, MemoryManager
from memory.archive import Archive

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
SHOP, HER = "store_001", "line:U1"
ODD = [b"{", b"5", b'{"at": "2026-03-01T09:00:00.000Z"}', b'{"fact": {"id": ["x"]}, "at": 7}', b"\xff"]


async def put_away(folder: Path) -> Archive:
    manager = MemoryManager(MemoryConfig(lm_base_path=folder / "longterm"), clock=lambda: NOW)
    fact = await manager.remember(SHOP, HER, text="likes jasmine")
    archive = Archive(folder / "archive")
    await archive.add(SHOP, HER, [fact], NOW)
    return archive


@pytest.mark.parametrize("line", ODD)
async def test_a_line_that_holds_no_fact_spoils_no_other(tmp_path: Path, line: bytes) -> None:
    archive = await put_away(tmp_path)
    with (tmp_path / "archive" / SHOP / f"{HER}.jsonl").open("ab") as file:
        file.write(line + b"\n")
    assert [fact.text for fact in await archive.load(SHOP, HER)] == ["likes jasmine"]
    await archive.expire(SHOP, NOW)
    assert await archive.forget(SHOP, HER) == 1


async def test_what_a_crash_left_half_written_goes_with_its_person(tmp_path: Path) -> None:
    archive = await put_away(tmp_path)
    folder = tmp_path / "archive" / SHOP
    (folder / f"{HER}.tmp").write_bytes(b"likes jas")
    (folder / f"{HER}.jsonl").unlink()
    await archive.forget(SHOP, HER)
    assert [one.name for one in folder.iterdir() if one.is_file()] == []
