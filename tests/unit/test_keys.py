"""Keys of a shop's own and whom its staff blocked: kept in small files that every process follows."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

from config.tenants import Tenant
from gateway.blocked import Blocked
from gateway.cli import cli
from gateway.key_ring import MOST, KeyRing
from gateway.routes.auth import ADMIN_OPENS, Keys, name_of

NOW = datetime(2026, 11, 28, tzinfo=UTC)


def tenant(name: str) -> Tenant:
    return Tenant.model_validate({"id": name, "name": name, "channels": {}})


def test_a_key_opens_its_tenant_until_it_is_revoked_also_in_another_process(tmp_path: Path) -> None:
    here, there = KeyRing(tmp_path), KeyRing(tmp_path)
    keys = Keys("the admin key", lambda: [tenant("a"), tenant("b")], there)
    made, key = here.make("b", "the  counter", NOW)
    assert (keys.whose(key), keys.whose("the admin key"), keys.whose(key + "x")) == ("b", ADMIN_OPENS, None)
    assert (keys.holds("b", name_of(key)), keys.holds("a", name_of(key))) == (True, False)
    assert (made.name, made.hash) == ("the counter", sha256(key.encode()).hexdigest())
    kept = tmp_path / "keys" / "b.json"
    assert (key in kept.read_text(), kept.stat().st_mode & 0o777) == (False, 0o600)
    assert [here.revoke("b", made.id), here.revoke("b", made.id)] == [True, False]
    assert (keys.whose(key), keys.holds("b", name_of(key))) == (None, False)


def test_a_file_that_was_broken_by_hand_opens_nothing_and_stops_nobody(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    _, key = ring.make("a", "", NOW)
    for content in ("{", "[1, {}]", '{"a": 1}'):
        (tmp_path / "keys" / "new").write_text(content)
        os.replace(tmp_path / "keys" / "new", tmp_path / "keys" / "a.json")
        assert ring.of("a") == []
        assert Keys("admin", lambda: [tenant("a")], ring).whose(key) is None


def test_a_tenant_has_so_many_keys_and_no_more(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path)
    for _ in range(MOST):
        ring.make("a", "", NOW)
    with pytest.raises(ValueError, match="revoke one first"):
        ring.make("a", "", NOW)


def test_who_is_blocked_is_so_in_every_process_and_for_one_tenant(tmp_path: Path) -> None:
    here, there = Blocked(tmp_path), Blocked(tmp_path)
    here.block("a", ["line:U1", "telegram:2"])
    here.block("a", ["line:U1"])
    assert (there.of("a"), there.of("b")) == ({"line:U1", "telegram:2"}, frozenset())
    there.unblock("a", ["line:U1"])
    assert here.of("a") == {"telegram:2"}


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
    assert Keys("admin", lambda: [tenant("shop")], KeyRing(tmp_path / "data")).whose(key) == "shop"
    assert "till" in listed
    assert key not in listed
    assert run.invoke(cli, ["keys", "new", "--tenant", "nobody"]).exit_code == 1
    assert run.invoke(cli, ["keys", "revoke", "--tenant", "shop", listed.split()[0]]).exit_code == 0
    assert run.invoke(cli, ["keys", "revoke", "--tenant", "shop", listed.split()[0]]).exit_code == 1
