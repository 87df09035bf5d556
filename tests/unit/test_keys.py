"""Keys of a shop's own and whom its staff blocked: kept in small files that every process follows."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from config.tenants import Tenant
from gateway.cli import cli
from gateway.key_ring import KeyRing
from gateway.routes.auth import Keys
from memory.lists import FileLists

NOW = datetime(2026, 11, 28, tzinfo=UTC)


def tenant(name: str) -> Tenant:
    return Tenant.model_validate({"id": name, "name": name, "channels": {}})


def test_a_key_is_kept_as_its_hash_in_a_file_that_its_owner_alone_reads(tmp_path: Path) -> None:
    made, key = KeyRing(FileLists(tmp_path)).make("b", "", NOW)
    kept = tmp_path / "keys" / "b.json"
    assert made.hash in kept.read_text()
    assert (key in kept.read_text(), kept.stat().st_mode & 0o777) == (False, 0o600)


def test_a_file_that_was_broken_by_hand_opens_nothing_and_stops_nobody(tmp_path: Path) -> None:
    ring = KeyRing(FileLists(tmp_path))
    _, key = ring.make("a", "", NOW)
    for content in ("{", "[1, {}]", '{"a": 1}'):
        (tmp_path / "keys" / "new").write_text(content)
        os.replace(tmp_path / "keys" / "new", tmp_path / "keys" / "a.json")
        assert ring.of("a") == []
        assert Keys("admin", lambda: [tenant("a")], ring).whose(key) is None


def test_the_command_makes_lists_and_revokes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "config" / "tenants"
    folder.mkdir(parents=True)
    (folder / "shop.yaml").write_text("name: Shop\nchannels: {}\n")
    monkeypatch.chdir(tmp_path)
    for name, value in {"DATA_DIR": "data", "CONFIG_DIR": "config"}.items():
        monkeypatch.setenv(name, value)
    run = CliRunner()
    key = run.invoke(cli, ["keys", "new", "--tenant", "shop", "--name", "till"]).output.strip()
    listed = run.invoke(cli, ["keys", "list", "--tenant", "shop"]).output
    assert Keys("admin", lambda: [tenant("shop")], KeyRing(FileLists(tmp_path / "data"))).whose(key) == "shop"
    assert "till" in listed
    assert key not in listed
    assert run.invoke(cli, ["keys", "new", "--tenant", "nobody"]).exit_code == 1
    assert run.invoke(cli, ["keys", "revoke", "--tenant", "shop", listed.split()[0]]).exit_code == 0
    assert run.invoke(cli, ["keys", "revoke", "--tenant", "shop", listed.split()[0]]).exit_code == 1
