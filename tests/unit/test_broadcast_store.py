"""The file of a shop's broadcasts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from gateway.broadcasts.store import Broadcast, BroadcastStore, New
from gateway.staff_desk import Customer

NOW = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)


def test_what_is_done_to_a_shops_broadcasts_shows_in_its_mark_and_in_no_others(tmp_path: Path) -> None:
    store = BroadcastStore(tmp_path)
    assert store.marks() == {}
    row = Broadcast("tea", "once", "running", "", "2026-03-02T03:00:00Z", "", "staff", "{}", False, {})
    ann = Customer(channel="line-main", platform="line", user_id="line:U1", chat_id="U1")
    for tenant in ("one", "two"):
        store.add(tenant, row, [New("line:U1", frozenset({"line:U1"}), ann, "en", 0.0)])
    seen = [store.marks()]
    store.take("one", "tea", "line-main", 5, NOW.timestamp())
    seen.append(store.marks())
    store.settle("one", store.under_way("one")[0], "sent")
    seen.append(store.marks())
    store.done("one", "tea", NOW)
    seen.append(store.marks())
    assert [set(marks) for marks in seen] == [{"one", "two"}] * 4
    assert len({marks["one"] for marks in seen}) == 4
    assert len({marks["two"] for marks in seen}) == 1
    assert store.running("one") == store.under_way("one") == []  # a look alone changes nothing
    assert store.marks() == seen[-1]
