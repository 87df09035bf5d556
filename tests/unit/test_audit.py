"""The audit log: who did what with whose data, without the data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway.audit import KEPT_FOR, AuditLog

NOW = datetime(2026, 11, 28, 9, 0, tzinfo=UTC)
ANN = "telegram:4242424242"


def test_a_line_names_nobody_and_is_found_by_who_knows_the_id(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.note("shop", NOW, "key:abc", "read", "GET /api/v1/memory", user=ANN)
    log.note("shop", NOW + timedelta(days=40), "admin", "delete", "memory forget", user=ANN)
    log.note("shop", NOW, "admin", "export", "GET /memories/{tenant}/export")
    log.note("other", NOW, "admin", "read", "x", user=ANN)
    files = [one for one in (tmp_path / "audit").rglob("*") if one.is_file()]
    assert [one for one in files if b"4242424242" in one.read_bytes()] == []
    assert {one.stat().st_mode & 0o077 for one in files} == {0}
    assert [one.did for one in AuditLog(tmp_path).of("shop", ANN)] == ["delete", "read"]
    assert [one.did for one in log.of("shop")] == ["delete", "export", "read"]
    assert [one.did for one in log.of("shop", ANN, NOW + timedelta(days=1))] == ["delete"]
    assert [one.whose for one in log.of("shop") if one.did == "export"] == [""]


def test_a_line_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.note("shop", NOW, "admin", "read", "x")
    with (tmp_path / "audit" / "shop" / "2026-11.jsonl").open("ab") as file:
        file.write(b"{half\n")
    log.note("shop", NOW, "admin", "change", "x")
    assert [one.did for one in log.of("shop")] == ["change", "read"]


def test_a_disk_that_takes_nothing_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("in the way")
    AuditLog(tmp_path).note("shop", NOW, "admin", "read", "x")


def test_what_is_older_than_it_is_kept_goes_by_whole_months(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    log.note("shop", NOW, "admin", "read", "old")
    log.note("shop", NOW + KEPT_FOR, "admin", "read", "new")
    assert log.prune("shop", NOW + KEPT_FOR + timedelta(days=31)) == 1
    assert [one.by for one in log.of("shop")] == ["new"]
