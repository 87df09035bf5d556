"""Whether files stand as they did."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from config.stamps import Still, changed, stamp_of

CHANGES: dict[str, Callable[[Path], object]] = {
    "one is written": lambda root: (root / "tenants/shop-7.yaml").write_text("name: 8\n"),
    "one of the same size is put in its place": lambda root: (root / "other").replace(root / "tenants/shop-7.yaml"),
    "one goes": lambda root: (root / "tenants/shop-7.yaml").unlink(),
    "one comes": lambda root: (root / "tenants/new.yaml").write_text("name: new\n"),
    "the folder goes": lambda root: (root / "tenants").rename(root / "gone"),
    "a link leads elsewhere": lambda root: (root / "target").write_text("name: elsewhere\n"),
    "a link comes to lead somewhere": lambda root: (root / "nowhere").write_text("name: somewhere\n"),
    "one of a few in another folder is written": lambda root: (root / "secrets/token").write_text("b"),
    "one that was missing there comes": lambda root: (root / "secrets/missing").write_text("c"),
    "one of many missing comes": lambda root: (root / "to be").rename(root / "taught"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_changes_is_seen(tmp_path: Path, change: Callable[[Path], object]) -> None:
    for name in ("tenants", "secrets", "to be"):
        (tmp_path / name).mkdir()
    (tmp_path / "to be/shop-3.json").touch()
    paths = [tmp_path / "tenants" / f"shop-{n}.yaml" for n in range(20)]
    for path in paths:
        path.write_text(f"name: {path.stem}\n")
    (tmp_path / "other").write_text("name: shop-8\n")
    (tmp_path / "target").write_text("name: target\n")
    for name in ("target", "nowhere"):
        os.symlink(tmp_path / name, tmp_path / "tenants" / f"to-{name}.yaml")
    (tmp_path / "secrets/token").write_text("a")
    paths += [tmp_path / "secrets/token", tmp_path / "secrets/missing"]
    paths += [tmp_path / "taught" / f"shop-{n}.json" for n in range(20)]
    still = Still(tmp_path / "tenants", paths)
    (tmp_path / "secrets/beside").write_text("nobody asked")
    assert still.so()
    change(tmp_path)
    assert not still.so()
    assert Still(tmp_path / "tenants", paths).so()


def test_a_file_from_tomorrow_is_read_once_and_not_at_each_look(tmp_path: Path) -> None:
    """As a copy has it that keeps the time of a machine whose clock is ahead."""
    path = tmp_path / "shop.yaml"
    path.write_text("name: shop\n")
    now = time.time()
    os.utime(path, (now + 86_400, now + 86_400))
    stamps = {path: stamp_of(path)}
    assert changed(stamps, time.time())  # it may have changed again in the same moment
    assert not changed(stamps, now + 5)
    os.utime(path, (now - 86_400, now - 86_400))
    assert changed(stamps, now + 5)
