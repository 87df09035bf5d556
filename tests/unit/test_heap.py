"""What a process loaded at its start is never looked through again; what comes later is collected."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

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
