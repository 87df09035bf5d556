"""What a turn saves is decided before the person's lock is there: with what comes of it, it is as if it were decided
under it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.canonical import change_theirs
from memory.errors import LongTermUnavailable
from memory.long_term import forgotten
from memory.long_term.additions import deciding
from memory.long_term.files import Files
from memory.long_term.json_files import JsonFiles
from memory.models import Changes, LongTermMemory
from memory.person import new as new_person
from memory.remember import Remember, _learned
from memory.retention import Retention
from memory.unhurried import Unhurried
from processors.models import EventType, MemoryEvent

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
TENANT, USER = "t", "u"
SAID = ("แพ้กุ้งค่ะ", "my shoe size is 38", "how much is it?", "I like tea", "I hate tea", "ส่งของหน่อย")


def event(number: int) -> MemoryEvent:
    said = SAID[number % len(SAID)]
    return MemoryEvent(
        event_type=list(EventType)[number % len(EventType)],
        payload={"original_message": f"{said} {number}", "language": "en", "allergies": ["nuts"] * (number % 5 == 0)},
        importance_score=0.8,
        timestamp=NOW + timedelta(minutes=number),
        event_id=f"e{number}",
    )


@pytest.fixture(autouse=True)
def told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a folder of marks that is just made nobody says for two seconds that it holds none."""
    monkeypatch.setattr(forgotten, "_RACY", 0)


@pytest.fixture(autouse=True)
def folded_when_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal is folded in when somebody has time for it, which is another time for each worker."""
    monkeypatch.setattr(Unhurried, "add", lambda *_: None)


def on(base: Path) -> JsonFiles:
    return JsonFiles(base, clock=lambda: NOW, retention=Retention(max_events=70))


class Worker:
    """One process' files; with `ahead` False it decides under the lock alone."""

    def __init__(self, base: Path, ahead: bool) -> None:
        self.store = on(base)
        self._ahead = ahead

    @property
    def files(self) -> Files:
        return self.store._files

    def save(self, number: int, between: Callable[[], object] = lambda: None, *, ends: bool = False) -> bool:
        """`between`: what others do before it has the lock. `ends`: the process is killed before that. Whether it was
        decided ahead."""

        def learned(memory: LongTermMemory) -> Changes:
            at = self.files.forgotten_at(TENANT, USER)
            return Changes() if at is not None and at > NOW - timedelta(1) else _learned(memory, [event(number)], ())

        additions = [deciding(USER, NOW, learned, ahead=True)]
        decision = self.files.ahead(TENANT, USER, additions) if self._ahead else None
        between()
        if not ends:
            self.files.append(TENANT, USER, additions, decision)
        return decision is not None

    def rewrite(self) -> None:
        self.files.rewrite(TENANT, USER, lambda memory: memory.model_copy(update={"events": memory.events[1:]}))

    def forget(self, *, marked: bool = False) -> None:
        if marked:
            self.files.mark_forgotten(TENANT, USER)
        self.files.forget(TENANT, USER)

    def known(self) -> tuple[LongTermMemory | None, object]:
        return self.files.load(TENANT, USER), self.files.document(TENANT, USER)


def met(me: Worker) -> None:
    """Until there is nothing any more that it would have to look at in a thread."""
    for number in (-1, 0):
        me.save(number)


_Step = tuple[str, int, str, int]
_between = st.sampled_from(["", "", "", "save", "compact", "rewrite", "forget"])
_steps = st.tuples(st.sampled_from(["save"] * 6 + ["ends", "compact"]), st.integers(0, 1), _between, st.integers(1, 4))


def _done(workers: list[Worker], steps: list[_Step], begin: int) -> None:
    number = begin
    for kind, who, between, times in steps:
        me, other = workers[who], workers[1 - who]
        for _ in range(times):
            number += 1
            meanwhile: dict[str, Callable[[], object]] = {
                "": lambda: None,
                "save": partial(other.save, 1000 + number),
                "compact": partial(other.files.compact, TENANT, USER, NOW),
                "rewrite": other.rewrite,
                "forget": other.forget,
            }
            if kind == "compact":
                me.files.compact(TENANT, USER, NOW)
            else:
                me.save(number, meanwhile[between], ends=kind == "ends")


@settings(deadline=None, max_examples=60)
@given(st.sampled_from([0, 3, 60, 68]), st.lists(_steps, max_size=12))
def test_two_workers_write_what_they_would_have_decided_under_the_lock(
    tmp_path_factory: pytest.TempPathFactory, begin: int, steps: list[_Step]
) -> None:
    told = []
    for ahead in (True, False):
        base = tmp_path_factory.mktemp("longterm")
        workers = [Worker(base, ahead) for _ in range(2)]
        for number in range(begin):
            workers[number % 2].save(number + 500)
        _done(workers, steps, begin)
        told.append([one.known() for one in (*workers, Worker(base, ahead))])
    assert told[0] == told[1]


def test_who_is_known_is_decided_of_ahead_and_once(tmp_path: Path) -> None:
    me = Worker(tmp_path, True)
    # The first makes the folder of marks, the second looks into it.
    assert [me.save(number) for number in range(4)] == [False, False, True, True]
    memory = me.known()[0]
    assert memory is not None
    assert [one.event_id for one in memory.events] == ["e0", "e1", "e2", "e3"]


def test_what_another_worker_wrote_meanwhile_is_neither_lost_nor_doubled(tmp_path: Path) -> None:
    me, other = Worker(tmp_path, True), Worker(tmp_path, True)
    met(me)
    assert me.save(1, lambda: [other.save(2), other.save(1)])
    for one in (me, other, Worker(tmp_path, True)):
        memory = one.known()[0]
        assert memory is not None
        assert [was.event_id for was in memory.events] == ["e-1", "e0", "e2", "e1"]


def test_of_who_is_forgotten_meanwhile_nothing_is_kept(tmp_path: Path) -> None:
    me, other = Worker(tmp_path, True), Worker(tmp_path, True)
    met(me)
    assert me.save(1, partial(other.forget, marked=True))
    assert me.known() == (None, None)


def test_a_process_that_ends_before_it_writes_leaves_nothing(tmp_path: Path) -> None:
    me = Worker(tmp_path, True)
    met(me)
    before = Worker(tmp_path, True).known()
    assert me.save(1, ends=True)
    assert Worker(tmp_path, True).known() == me.known() == before


async def test_a_turns_save_of_who_is_known_leaves_the_thread_nothing_to_decide(tmp_path: Path) -> None:
    store, asked = on(tmp_path), []
    remembers, at = Remember(store), store.forgotten_at

    def forgotten_at(tenant: str, user: str) -> datetime | None:
        asked.append(threading.current_thread() is threading.main_thread())
        return at(tenant, user)

    store.forgotten_at = forgotten_at  # type: ignore[method-assign]
    for number in range(3):
        assert await remembers.save(TENANT, USER, [event(number)])
    assert asked == [False, False, True]
    await store.close()


async def test_a_line_that_another_left_half_written_spoils_none_of_ours(tmp_path: Path) -> None:
    store = on(tmp_path)
    for number in range(4):
        assert await Remember(store).save(TENANT, USER, [event(number)])
    with next(tmp_path.rglob("*.journal")).open("ab") as journal:
        journal.write(b'{"at":"2026-03')
    for number in range(4, 6):
        assert await Remember(store).save(TENANT, USER, [event(number)])
    memory = await on(tmp_path).load(TENANT, USER)
    assert memory is not None
    assert [one.event_id for one in memory.events] == [f"e{number}" for number in range(6)]
    await store.close()


async def test_many_that_waited_for_the_disk_are_left_to_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = on(tmp_path)
    remembers, ahead = Remember(store), []
    append = store._files.append

    def seen(*args: Any) -> None:
        ahead.append(args[-1] is not None)
        append(*args)

    monkeypatch.setattr(store._files, "append", seen)
    for number in range(3):
        await remembers.save(TENANT, USER, [event(number)])

    async def full(*args: object, **more: object) -> None:
        raise LongTermUnavailable("full")

    with monkeypatch.context() as patched:
        patched.setattr(store, "change", full)
        assert not await remembers.save(TENANT, USER, [event(3)])
    for number in (4, 5):
        assert await remembers.save(TENANT, USER, [event(number)])
    assert ahead == [False, False, True, False, True]
    memory = await store.load(TENANT, USER)
    assert memory is not None
    assert [one.event_id for one in memory.events] == [f"e{number}" for number in range(6)]
    await store.close()


async def test_what_fails_ahead_is_told_to_who_asked_and_holds_up_nobody(tmp_path: Path) -> None:
    store = on(tmp_path)
    await Remember(store).save(TENANT, USER, [event(0)])

    def fails(memory: LongTermMemory) -> Changes:
        raise ValueError("nothing to remember")

    for _ in range(2):
        with pytest.raises(ValueError, match="nothing to remember"):
            await store.change(TENANT, USER, fails, ahead=True)
    async with asyncio.timeout(5):
        assert await Remember(store).save(TENANT, USER, [event(1)])
    memory = await store.load(TENANT, USER)
    assert memory is not None
    assert len(memory.events) == 2
    await store.close()


async def test_ids_that_part_meanwhile_keep_what_is_theirs(tmp_path: Path) -> None:
    """Decided ahead it would have gone to whom the id was merged into."""
    store, other = on(tmp_path), on(tmp_path)
    merged = new_person(USER, NOW).with_(merged_into="another")
    await store.change(TENANT, USER, lambda _: Changes(person=merged))
    await store.load(TENANT, USER)
    parted, before = [merged.with_(merged_into=None)], store._files.append

    def append(*args: object) -> None:
        if parted:
            person = parted.pop()
            other._files.append(TENANT, USER, [deciding(USER, NOW, lambda _: Changes(person=person))])
        before(*args)  # type: ignore[arg-type]

    store._files.append = append  # type: ignore[method-assign, assignment]
    await change_theirs(store, TENANT, USER, lambda _: Changes(events=[event(1)]), ahead=True)
    assert await other.load(TENANT, "another") is None
    memory = await other.load(TENANT, USER)
    assert memory is not None
    assert [one.event_id for one in memory.events] == ["e1"]
    for one in (store, other):
        await one.close()
