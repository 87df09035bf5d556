"""Work in no hurry: one piece after the other, with pauses, and gone at once for who wants it gone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory import keys
from memory.long_term import files
from memory.long_term.json_files import JsonFiles
from memory.unhurried import Unhurried
from processors.models import EventType, MemoryEvent

WITHIN = 20.0


def event(number: int) -> MemoryEvent:
    return MemoryEvent(
        event_type=EventType.REQUEST,
        payload={"original_message": f"ข้าวมันไก่ {number} " * 20},
        importance_score=0.5,
        timestamp=datetime(2026, 3, 1, 9, 0, tzinfo=UTC) + timedelta(minutes=number),
        event_id=f"e{number}",
    )


def journal(base: Path) -> Path:
    folder, name = keys.longterm_place(str(base), "shop", "line:U1")
    return Path(folder) / f"{name}.journal"


def length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN):
        while not true():
            await asyncio.sleep(0.01)


async def test_a_long_journal_is_folded_in_when_there_is_time(tmp_path: Path) -> None:
    store = JsonFiles(tmp_path)
    for number in range(60):
        await store.save_events("shop", "line:U1", [event(number)])
        if number == 1:
            assert journal(tmp_path).exists()
    # What came after the fold may stand in a new one, which is short.
    await until(lambda: not store._files._folding and length(journal(tmp_path)) <= files.JOURNAL_BYTES)
    assert length(journal(tmp_path).with_suffix(".json")) > files.JOURNAL_BYTES
    known = await store.load("shop", "line:U1")
    assert known is not None
    assert [one.event_id for one in known.events] == [f"e{number}" for number in range(60)]
    await store.close()


async def test_where_nobody_has_time_a_very_long_one_is_folded_in_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Unhurried, "add", lambda *_: None)
    monkeypatch.setattr(files, "JOURNAL_BYTES", 4096)
    store, longest = JsonFiles(tmp_path), 0
    for number in range(40):
        await store.save_events("shop", "line:U1", [event(number)])
        with suppress(FileNotFoundError):
            longest = max(longest, journal(tmp_path).stat().st_size)
    assert 4096 < longest <= 4 * 4096
    await store.close()


async def test_whoever_is_forgotten_before_there_is_time_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[tuple[str, str], Callable[[], object]]] = []
    monkeypatch.setattr(Unhurried, "add", lambda self, key, work: begun.append((key, work)))
    monkeypatch.setattr(files, "JOURNAL_BYTES", 500)
    store = JsonFiles(tmp_path)
    for number in range(2):
        await store.save_events("shop", "line:U1", [event(number)])
    ((key, work),) = begun
    assert key == ("shop", "line:U1")
    await store.forget("shop", "line:U1")
    work()
    assert await store.load("shop", "line:U1") is None
    assert not [one for one in journal(tmp_path).parent.iterdir() if one.name.startswith("line")]
    await store.close()


def test_everything_is_done_one_after_the_other_in_its_order() -> None:
    lane, done, ended = Unhurried("a test"), list[str](), threading.Event()
    at_work, most = [0], [0]

    def work(name: str) -> Callable[[], None]:
        def run() -> None:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
            done.append(name)
            at_work[0] -= 1
            if name == "last":
                ended.set()

        return run

    for name in ("first", "second", "last"):
        lane.add(("shop", name), work(name))
    assert ended.wait(WITHIN)
    assert done == ["first", "second", "last"]
    assert most == [1]


def test_what_comes_under_a_key_takes_the_place_of_what_waits_there() -> None:
    lane, done, ended, held = Unhurried("a test"), list[str](), threading.Event(), threading.Event()
    lane.add(("shop", "held"), lambda: held.wait(WITHIN))
    lane.add(("shop", "ann"), lambda: done.append("old"))
    lane.add(("shop", "ann"), lambda: done.append("new"))
    lane.add(("shop", "last"), ended.set)
    held.set()
    assert ended.wait(WITHIN)
    assert done == ["new"]


def test_one_that_fails_holds_up_nobody() -> None:
    lane, ended = Unhurried("a test"), threading.Event()

    def fails() -> None:
        raise ValueError("the words of a customer")

    lane.add(("shop", "ann"), fails)
    lane.add(("shop", "ben"), ended.set)
    assert ended.wait(WITHIN)


def test_dropped_is_neither_waiting_nor_in_hand_and_others_go_on() -> None:
    lane, done = Unhurried("a test"), list[str]()
    begun, go_on, ended, dropped = (threading.Event() for _ in range(4))

    def in_hand() -> None:
        begun.set()
        go_on.wait(WITHIN)
        done.append("in hand")

    def drop() -> None:
        lane.drop(lambda key: key[1] == "ann")
        dropped.set()

    lane.add(("shop", "ann"), in_hand)
    assert begun.wait(WITHIN)
    lane.add(("shop", "ann"), lambda: done.append("waiting"))
    lane.add(("shop", "ben"), lambda: (done.append("ben"), ended.set()))
    threading.Thread(target=drop).start()
    assert not dropped.wait(0.05)  # it waits for what is in hand
    go_on.set()
    assert dropped.wait(WITHIN)
    assert done[0] == "in hand"
    assert ended.wait(WITHIN)
    assert done == ["in hand", "ben"]


def test_it_begins_again_after_it_had_nothing_to_do() -> None:
    lane = Unhurried("a test")
    for _ in range(3):
        ended = threading.Event()
        lane.add(("shop", "ann"), ended.set)
        assert ended.wait(WITHIN)


def test_who_wants_it_finished_waits_for_no_pause() -> None:
    lane, done = Unhurried("a test"), list[str]()
    lane.add(("shop", "slow"), lambda: done.append("slow") or time.sleep(0.2))  # behind which it rests for longer
    lane.add(("shop", "ann"), lambda: done.append("ann"))
    lane.finish()
    assert done == ["slow", "ann"]
    lane.finish()  # of nothing
