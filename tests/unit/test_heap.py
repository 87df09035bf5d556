"""What a process loaded at its start is never looked through again; what comes later is collected; large pages lie
under all of it where the kernel gives them."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway import heap


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)
    gc.enable()


class Ring:
    def __init__(self) -> None:
        self.me = self


def test_nothing_is_collected_while_it_loads() -> None:
    heap.loading()
    assert not gc.isenabled()


def test_what_is_there_by_then_stays_out_of_every_collection_and_what_comes_is_collected() -> None:
    heap.loading()
    heap.loaded()
    assert gc.isenabled()
    assert gc.get_freeze_count() > len(gc.get_objects())
    gone = weakref.ref(Ring())
    for _ in range(2 * heap.YOUNG):  # rings that nothing else holds
        Ring()
    assert gone() is None


def _large_kb() -> int:
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages:"))


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone is asked")
def test_what_is_held_gets_large_pages_where_the_kernel_gives_them() -> None:
    setting = Path(heap.SETTING)
    if not setting.exists() or "[madvise]" not in setting.read_text():
        pytest.skip("this kernel's setting is another")
    held = bytearray(b"x") * (8 * heap.LARGE)
    before = _large_kb()
    heap.join_pages()
    assert _large_kb() - before >= 6 * heap.LARGE // 1024
    assert held == b"x" * len(held)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone is asked")
@pytest.mark.parametrize("setting", ["always madvise [never]\n", None], ids=["never", "no such kernel"])
def test_where_the_system_wants_no_large_pages_none_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str | None
) -> None:
    if setting is not None:
        (tmp_path / "enabled").write_text(setting)
    monkeypatch.setattr(heap, "SETTING", str(tmp_path / "enabled"))
    held = bytearray(b"x") * (8 * heap.LARGE)
    before = _large_kb()
    heap.join_pages()
    assert _large_kb() - before < 2 * heap.LARGE // 1024
    del held


def test_stacks_files_and_code_are_left_as_they_are() -> None:
    large = heap.LARGE
    maps = f"""\
{2 * large:x}-{4 * large:x} r-xp 00000000 08:01 77 /usr/bin/python
{4 * large:x}-{6 * large:x} rw-p 00000000 08:01 77 /usr/bin/python
{8 * large + 4096:x}-{11 * large:x} rw-p 00000000 00:00 0 [heap]
{20 * large - 4096:x}-{20 * large:x} ---p 00000000 00:00 0
{20 * large:x}-{24 * large:x} rw-p 00000000 00:00 0
{24 * large:x}-{26 * large + 4096:x} rw-p 00000000 00:00 0
{30 * large + 4096:x}-{31 * large:x} rw-p 00000000 00:00 0
{40 * large:x}-{44 * large:x} rw-p 00000000 00:00 0 [stack]
{50 * large:x}-{52 * large:x} rw-s 00000000 00:01 9 /dev/zero (deleted)
"""
    found = [(begin // large, end // large) for begin, end in heap._heaps(maps.splitlines())]
    assert found == [(9, 11), (24, 26)]
