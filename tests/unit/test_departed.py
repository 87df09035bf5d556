"""Which tenants are gone for good."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway.departed import GRACE, Departed

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def data_of(folder: Path, *tenants: str) -> Departed:
    for tenant in tenants:
        (folder / "transcripts" / tenant).mkdir(parents=True)
    return Departed(folder)


def test_a_tenant_without_a_file_for_a_week_is_gone(tmp_path: Path) -> None:
    departed = data_of(tmp_path, "old", "shop")
    assert departed.for_good({"shop"}, NOW) == []
    assert departed.for_good({"shop"}, NOW + GRACE - timedelta(seconds=1)) == []
    assert departed.for_good({"shop"}, NOW + GRACE) == ["old"]
    assert Departed(tmp_path).for_good({"shop"}, NOW + GRACE) == ["old"]  # another process knows it too


def test_a_file_that_comes_back_begins_anew(tmp_path: Path) -> None:
    departed = data_of(tmp_path, "old", "shop")
    departed.for_good({"shop"}, NOW)
    departed.for_good({"shop", "old"}, NOW + timedelta(days=3))
    assert departed.for_good({"shop"}, NOW + GRACE) == []
    assert departed.for_good({"shop"}, NOW + 2 * GRACE) == ["old"]


def test_without_any_file_nobody_counts_as_gone(tmp_path: Path) -> None:
    departed = data_of(tmp_path, "old", "shop")
    departed.for_good({"shop"}, NOW)
    assert departed.for_good(set(), NOW + GRACE) == []


def test_what_is_no_tenants_folder_is_left_alone(tmp_path: Path) -> None:
    departed = data_of(tmp_path, "old", "lost+found")
    (tmp_path / "transcripts" / "file").touch()
    departed.for_good({"shop"}, NOW)
    assert departed.for_good({"shop"}, NOW + GRACE) == ["old"]
