"""What the HTTP side keeps on disk: whole, in order, and never held by nobody."""

from __future__ import annotations

import asyncio
import os
import resource
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import InboxUnavailable
from gateway.fallback import SpoolingInbox
from gateway.inbox import away
from gateway.inbox.away import LOOK_EVERY, SafeInbox
from gateway.inbox.base import Policy
from gateway.inbox.last_puts import LastPuts, Noted
from gateway.inbox.redis import RedisInbox
from gateway.inbox.spool import BEGUN, Entry, Spool
from gateway.messages import InboundMessage
from memory.keys import ConversationRef


def message(event: str, user: str = "line:a", text: str = "hello", sent_at: float | None = None) -> InboundMessage:
    return InboundMessage(
        tenant="shop", channel="line-main", platform="line", event_id=event, user_id=user, chat_id=user, text=text,
        sent_at=time.time() if sent_at is None else sent_at, received_at=1.0,
    )  # fmt: skip


def kept(spool: Spool, *events: str) -> list[Entry]:
    return [entry for entry in spool.add([(message(event), Policy()) for event in events]) if entry is not None]


def texts(entries: list[Entry]) -> list[str]:
    return [entry.spooled.message.event_id for entry in entries]


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """As on a disk with no more room: the system takes a part of a write, and refuses the next one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_whether_more_would_be_kept_is_tried_and_leaves_nothing_behind(tmp_path: Path) -> None:
    assert Spool(tmp_path / "spool").takes()
    with no_file_over(100):
        assert not Spool(tmp_path / "spool").takes()
    assert list((tmp_path / "spool").iterdir()) == []
    (tmp_path / "file").touch()
    assert not Spool(tmp_path / "file").takes()
    full = Spool(tmp_path / "full", most=1)
    kept(full, "1")
    assert not full.takes()


def test_a_message_that_the_disk_takes_a_part_of_is_not_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with no_file_over(100), pytest.raises(InboxUnavailable):
        kept(spool, "1")
    assert list(tmp_path.iterdir()) == []
    for entry in kept(spool, "1"):  # the platform sends it again
        entry.release()
    assert texts(spool.free()) == ["1"]


def test_a_full_disk_leaves_a_message_as_it_was_when_its_answer_begins(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    [entry] = kept(spool, "1")
    with no_file_over(entry.path.stat().st_size + 3), pytest.raises(OSError, match="too large"):
        entry.mark_begun(b"{}")
    entry.release()
    [again] = spool.free()
    assert (texts([again]), again.spooled.message.extra) == (["1"], {})


def test_whoever_is_killed_as_an_answer_begins_leaves_the_message_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path / "spool")
    [entry] = spool.add([(message("one", text="long " * 3000), Policy())])
    assert entry is not None
    write = os.pwrite

    class Killed(BaseException):
        pass

    def torn(file: int, data: bytes, at: int) -> int:
        write(file, data[:-20], at)
        raise Killed

    monkeypatch.setattr(os, "pwrite", torn)
    with pytest.raises(Killed):
        entry.mark_begun(b"{}")
    entry.release()
    [found] = spool.free()
    assert (found.spooled, found.path) == (entry.spooled, entry.path)
    found.release()


def test_an_answer_that_begins_leaves_the_message_in_the_same_hand(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    [entry] = spool.add([(message("one"), Policy())])
    assert entry is not None
    entry.mark_begun(b"{}")
    assert spool.free() == []
    assert [one.name for one in (tmp_path / "spool").iterdir()] == [entry.path.name]
    entry.release()
    [found] = spool.free()
    assert found.spooled.message.extra[BEGUN] == "{}"
    found.release()


def test_the_same_delivery_twice_at_once_is_kept_once_and_whole(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            taken = list(pool.map(lambda _, number=number: kept(spool, str(number)), range(8)))
            assert [len(one) for one in taken].count(1) == 1
            for entries in taken:
                for entry in entries:
                    entry.release()
    assert sorted(texts(spool.free())) == sorted(map(str, range(20)))


def test_what_comes_after_a_message_in_somebodys_hand_waits_for_it(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    first, second = kept(spool, "1", "2")
    second.release()
    assert spool.free() == []
    first.release()
    assert texts(spool.free()) == ["1", "2"]


def test_what_comes_after_a_message_that_is_just_being_written_anew_waits_for_it(tmp_path: Path) -> None:
    """As `mark_begun` does, for whoever reads in the middle of that."""
    spool = Spool(tmp_path)
    first, second = kept(spool, "1", "2")
    first.path.write_bytes(first.path.read_bytes()[:-9])
    assert spool.earlier(second)
    second.release()
    assert spool.free() == []
    assert first.path.exists()


def test_a_look_that_missed_a_message_gives_out_nothing_of_its_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder of many files is read in parts: one that is added meanwhile may be missed, and a later one met."""
    spool, look = Spool(tmp_path), Path.glob
    for entry in (*kept(spool, "1", "2"), *spool.add([(message("3", user="line:b"), Policy())])):
        assert entry is not None
        entry.release()
    missed = [one for one in tmp_path.glob("*-*") if b'"1"' in one.read_bytes()]

    def part(folder: Path, pattern: str) -> list[Path]:
        monkeypatch.undo()
        return [one for one in look(folder, pattern) if one not in missed]

    monkeypatch.setattr(Path, "glob", part)
    found = spool.free()
    assert texts(found) == ["3"]
    assert texts(spool.free()) == ["1", "2"]  # none of them stayed locked


def test_a_message_with_a_begun_answer_says_so_to_who_takes_it_over(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    [entry] = kept(spool, "1")
    for calls in (b"the first call", b"the first call, then the second", b"the third"):
        entry.mark_begun(calls)
        entry.release()
        [entry] = spool.free()
        assert entry.spooled.message.extra == {BEGUN: calls.decode()}


async def test_a_turn_stopped_while_it_ends_leaves_no_lock_behind(tmp_path: Path) -> None:
    spool, inbox = Spool(tmp_path), SpoolingInbox()
    [entry] = kept(spool, "1")
    await inbox.take(entry)
    [claim] = (await inbox.claim(1)).claims
    ending = asyncio.create_task(inbox.finish(claim, None))
    await asyncio.sleep(0)  # it waits for the disk now
    ending.cancel()
    await asyncio.gather(ending, return_exceptions=True)
    async with asyncio.timeout(60):
        while not (found := spool.free()):
            await asyncio.sleep(0.01)
    assert [one.answered for one in found] == [True]


async def test_what_could_not_be_answered_here_is_left_to_the_workers(tmp_path: Path) -> None:
    spool, inbox = Spool(tmp_path), SpoolingInbox()
    [entry] = kept(spool, "1")
    await inbox.take(entry)
    [claim] = (await inbox.claim(1)).claims
    await inbox.finish(claim, None, dead="refused")
    [again] = spool.free()
    await inbox.take(again)
    assert texts(spool.free()) == ["1"]


async def test_what_waits_for_the_customer_does_not_keep_what_they_say_next_from_coming_home(tmp_path: Path) -> None:
    spool, inbox = Spool(tmp_path), SpoolingInbox()
    first, second = kept(spool, "1", "2")
    second.release()
    await inbox.take(first)
    [claim] = (await inbox.claim(1)).claims
    assert await inbox.park(claim, b"the answer", 86_400.0)
    again, _ = found = spool.free()
    assert texts(found) == ["1", "2"]
    assert again.spooled.message.extra == {BEGUN: "the answer"}  # it is not thought of anew
    await inbox.take(again)
    assert (await inbox.claim(1)).claims == ()


def test_whether_something_was_put_lately_is_known_to_every_process_and_counts_by_the_last_contact(
    tmp_path: Path,
) -> None:
    now = 1000.0
    mine, other = (LastPuts(tmp_path / "recent", clock=lambda: now) for _ in range(2))
    mine.note(["sm:shop:a"])
    now = 1030.0
    other.note_contact()
    now = 9000.0  # the inbox has been away since
    assert [other.recent("sm:shop:a", 60), other.recent("sm:shop:a", 30), other.recent("sm:shop:b", 60)] == [
        *(True, False, False)
    ]


def test_what_was_put_after_a_message_was_written_may_be_that_message(tmp_path: Path) -> None:
    now = 1000.0
    puts = LastPuts(tmp_path / "recent", clock=lambda: now)
    puts.note(["sm:shop:a"])
    now = 9000.0
    puts.note_contact()
    assert [puts.recent("sm:shop:a", 60, written_at) for written_at in (900.0, 1050.0, 1070.0, 9000.0)] == [
        *(True, True, False, False)
    ]


def test_a_put_that_was_certainly_refused_leaves_no_trace(tmp_path: Path) -> None:
    puts = LastPuts(tmp_path / "recent")
    puts.take_back(puts.note(["sm:shop:a", "sm:shop:a"]))
    assert not puts.recent("sm:shop:a", 60)


def test_what_another_process_put_meanwhile_is_not_taken_back_with_what_was_refused(tmp_path: Path) -> None:
    now = [1000.0]
    ours, others = (LastPuts(tmp_path / "recent", lambda: now[0]) for _ in range(2))
    noted = ours.note(["sm:shop:a"])
    now[0] += 0.5
    others.note(["sm:shop:a"])
    ours.take_back(noted)
    others.note_contact()
    assert ours.recent("sm:shop:a", 60)


class Remote(RedisInbox):
    """Answers as the test says, and remembers what it was given."""

    def __init__(self) -> None:
        self.fails: list[Exception] = []
        self.events: list[str] = []
        self.waiting: list[str] | None = []
        self.looks = 0

    async def pending(self, most: int) -> list[str] | None:
        if self.fails:
            raise self.fails.pop(0)
        self.looks += 1
        return self.waiting

    async def put(self, messages: object) -> list[bool]:
        if self.fails:
            raise self.fails.pop(0)
        found = [one.event_id for one, _ in messages]  # type: ignore[attr-defined]
        self.events += found
        return [True] * len(found)

    async def ping(self) -> None:
        return None

    async def mark_seen(self, conversation: str, event: str) -> None:
        self.events.append(f"seen {event}")


async def nothing(_: Entry | ConversationRef) -> None:
    return None


async def test_a_message_does_not_overtake_what_the_spool_holds_of_its_conversation(tmp_path: Path) -> None:
    remote, spool = Remote(), Spool(tmp_path)
    safe = SafeInbox(remote, spool, nothing, nothing)
    [held] = kept(spool, "1")  # another process has it in hand
    assert await safe.put([(message("2"), Policy())]) == [True]
    assert await safe.put([(message("3", user="line:b"), Policy())]) == [True]
    assert remote.events == ["3"]
    stop = asyncio.Event()
    watching = asyncio.create_task(safe.watch(stop))
    held.mark_answered()
    held.release()
    async with asyncio.timeout(60):
        while spool.count():
            await asyncio.sleep(0.01)
    stop.set()
    await watching
    assert remote.events == ["3", "seen line-main:1", "2"]


async def soon(safe: SafeInbox, event: str, user: str = "line:a") -> object:
    """What a caller who does not wait is told."""
    told: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    assert safe.put_soon([(message(event, user=user), Policy())], told.set_result) is True
    return await told


async def test_who_does_not_wait_for_a_put_is_told_the_same(tmp_path: Path) -> None:
    remote, spool = Remote(), Spool(tmp_path)
    safe = SafeInbox(remote, spool, nothing, nothing)
    assert await asyncio.gather(soon(safe, "0"), soon(safe, "1", "line:b")) == [[True], [True]]
    await asyncio.sleep(2 * LOOK_EVERY)
    [held] = kept(spool, "2")  # another process has it in hand
    assert [await soon(safe, "3"), await soon(safe, "4", "line:b")] == [[True], [True]]
    assert remote.events == ["0", "1", "4"]  # the third must not overtake the second
    held.remove()
    for entry in spool.free():
        entry.remove()
    remote.fails = [InboxUnavailable("cut off", ambiguous=True)]
    assert await soon(safe, "5") == [True]
    assert [entry.spooled.doubtful for entry in spool.free()] == [True]
    told: list[object] = []
    assert safe.put_soon([(message("6"), Policy())], told.append) is False  # it is away by now: nothing was begun
    assert told == []


@pytest.mark.parametrize("says", [None, InboxUnavailable("cut off", ambiguous=True)], ids=["ended", "failed"])
async def test_a_put_that_took_too_long_leaves_nothing_behind_for_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: Exception | None
) -> None:
    """All puts for which nobody waits are made by one task; what a connection makes of being ended is its own."""
    monkeypatch.setattr(away, "PATIENCE", 0.05)

    class Hanging(Remote):
        def __init__(self) -> None:
            super().__init__()
            self.wanted_to_end: list[int] = []

        async def put(self, messages: object) -> list[bool]:
            task = asyncio.current_task()
            assert task is not None
            self.wanted_to_end.append(task.cancelling())
            if len(self.wanted_to_end) == 2:
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    if says is not None:
                        raise says from None
                    raise
            return await super().put(messages)

    remote, spool = Hanging(), Spool(tmp_path)
    safe = SafeInbox(remote, spool, nothing, nothing)
    assert [await soon(safe, "1"), await soon(safe, "2")] == [[True], [True]]
    [held] = spool.free()
    assert (held.spooled.message.event_id, held.spooled.doubtful) == ("2", True)
    held.remove()
    safe.away = False
    assert await soon(safe, "3") == [True]
    assert (remote.events, remote.wanted_to_end) == (["1", "3"], [0, 0, 0])


class Slow(Spool):
    """A disk that takes its time for the first message."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def add(self, messages: Any, **given: Any) -> list[Entry | None]:
        if messages[0][0].event_id == "1":
            self.begun.set()
            self.goes_on.wait(60)
        return super().add(messages, **given)


@pytest.mark.parametrize("steps", range(4))
async def test_who_is_cancelled_while_the_disk_takes_a_message_leaves_no_lock_behind(
    tmp_path: Path, steps: int
) -> None:
    async def let_go(entry: Entry) -> None:
        entry.release()

    spool = Slow(tmp_path)
    safe = SafeInbox(Remote(), spool, let_go, nothing)
    safe.away = True
    putting = asyncio.create_task(safe.put([(message("1"), Policy())]))
    await asyncio.to_thread(spool.begun.wait, 60)
    if steps == 0:
        putting.cancel()
    spool.goes_on.set()
    for _ in range(steps):
        await asyncio.sleep(0.001)
    putting.cancel()
    await asyncio.gather(putting, return_exceptions=True)
    safe.away = False
    async with asyncio.timeout(60):
        while not (found := spool.free()):
            await asyncio.sleep(0.01)
    assert texts(found) == ["1"]


@pytest.mark.parametrize("back", [True, False])
@pytest.mark.parametrize("waits", [True, False])
async def test_what_is_on_its_way_to_the_disk_is_not_overtaken(tmp_path: Path, back: bool, waits: bool) -> None:
    remote, spool, taken = Remote(), Slow(tmp_path), []

    async def take(entry: Entry) -> None:
        taken.append(entry.spooled.message.event_id)
        entry.release()

    remote.fails = [InboxUnavailable("refused")]
    safe = SafeInbox(remote, spool, take, nothing)
    first = asyncio.ensure_future(soon(safe, "1"))
    await asyncio.to_thread(spool.begun.wait, 60)
    safe.away = not back
    later = safe.put([(message("2"), Policy())]) if waits or not back else soon(safe, "2")
    second = asyncio.ensure_future(later)
    assert await safe.put([(message("3", user="line:b"), Policy())]) == [True]  # nobody else waits for it
    await asyncio.sleep(0.1)
    spool.goes_on.set()
    assert [await first, await second] == [[True], [True]]
    assert remote.events == (["3"] if back else [])
    assert taken == ([] if back else ["3", "1"])  # the second waits for the first one's answer
    assert [one for one in texts(spool.free()) if one != "3"] == ["1", "2"]
    assert not safe._writing


async def test_thousands_that_wait_hold_up_nobody_while_they_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int | str] = []

    class Watched(LastPuts):
        def note(self, conversations: Sequence[str]) -> list[Noted]:
            steps.append(len(conversations))
            asyncio.get_running_loop().call_soon(steps.append, "others")
            return super().note(conversations)

        def note_contact(self) -> None:
            steps.append("heard of")
            super().note_contact()

    monkeypatch.setattr(away, "LastPuts", Watched)
    remote, stop = Remote(), asyncio.Event()
    remote.waiting = [f"sm:shop:line:{number}" for number in range(1100)]
    safe = SafeInbox(remote, Spool(tmp_path), nothing, nothing)
    watching = asyncio.create_task(safe.watch(stop))
    async with asyncio.timeout(60):
        while "heard of" not in steps:
            await asyncio.sleep(0.01)
    stop.set()
    await watching
    assert steps == [*(250, "others") * 4, 100, "others", "heard of"]
    assert all(safe._puts.recent(name, 60) for name in remote.waiting)


async def test_what_is_under_way_to_the_inbox_is_not_overtaken_when_that_is_found_to_be_away(tmp_path: Path) -> None:
    class Hanging(Remote):
        async def put(self, messages: object) -> list[bool]:
            await goes_on.wait()
            raise InboxUnavailable("no answer", ambiguous=True)

        async def pending(self, most: int) -> list[str] | None:
            self.looks += 1
            raise InboxUnavailable("no answer")

    goes_on, stop, remote, spool = asyncio.Event(), asyncio.Event(), Hanging(), Spool(tmp_path)
    safe = SafeInbox(remote, spool, nothing, nothing)
    first = asyncio.ensure_future(soon(safe, "1"))
    watching = asyncio.create_task(safe.watch(stop))
    async with asyncio.timeout(60):
        while not remote.looks:
            await asyncio.sleep(0.01)
        second = asyncio.ensure_future(safe.put([(message("2"), Policy())]))
        await asyncio.sleep(0.05)
        stop.set()
        goes_on.set()
        assert [await first, await second] == [[True], [True]]
        await watching
    assert safe.away
    assert texts(spool.free()) == ["1", "2"]


async def test_a_clock_that_is_set_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def take(entry: Entry) -> None:
        entry.release()

    now, spool = time.time_ns(), Spool(tmp_path)
    safe = SafeInbox(Remote(), spool, take, nothing)
    safe.away = True
    for event, at in ("1", now), ("2", now - 10**9), ("3", now - 10**9):
        monkeypatch.setattr("gateway.inbox.away.time.time_ns", lambda at=at: at)
        assert await safe.put([(message(event), Policy())]) == [True]
    assert texts(spool.free()) == ["1", "2", "3"]


async def test_a_webhook_of_thousands_goes_in_parts_of_which_some_may_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.inbox.away.AT_ONCE", 2)

    class Halting(Remote):
        def __init__(self) -> None:
            super().__init__()
            self.sizes: list[int] = []

        async def put(self, messages: Any) -> list[bool]:
            self.sizes.append(len(messages))
            if len(self.sizes) == 4:
                self.fails = [InboxUnavailable("refused")]
            return await super().put(messages)

    remote, spool = Halting(), Spool(tmp_path)
    safe = SafeInbox(remote, spool, nothing, nothing)
    many = [(message(str(number), user=f"line:{number}"), Policy()) for number in range(3)]
    assert await safe.put(many) == [True] * 3
    assert remote.events == [str(number) for number in range(3)]
    assert remote.sizes == [2, 1]
    again = [(message(f"again {number}"), Policy()) for number in range(3)]
    assert await safe.put(again) == [True] * 3
    assert remote.events[3:] == [f"again {number}" for number in range(2)]
    assert {entry.spooled.doubtful for entry in spool.free()} == {True}  # those are there, whatever became of the last


async def test_a_message_that_may_stand_in_the_inbox_is_answered_by_no_process_from_here(tmp_path: Path) -> None:
    remote, spool, taken = Remote(), Spool(tmp_path), []

    async def take(entry: Entry) -> None:
        taken.append(entry.spooled.message.event_id)

    remote.fails = [InboxUnavailable("cut off", ambiguous=True)]
    safe = SafeInbox(remote, spool, take, nothing)
    assert await safe.put([(message("1"), Policy())]) == [True]
    assert await safe.put([(message("2", user="line:b"), Policy())]) == [True]
    assert taken == ["2"]
    [entry] = spool.free()  # the other one is in hand
    assert (entry.spooled.message.event_id, entry.spooled.doubtful) == ("1", True)


async def test_what_is_delivered_again_while_the_inbox_is_away_is_not_answered_again(tmp_path: Path) -> None:
    """That it was put and answered is known there alone."""
    remote, taken = Remote(), []

    async def take(entry: Entry) -> None:
        taken.append(entry.spooled.message.event_id)

    safe = SafeInbox(remote, Spool(tmp_path), take, nothing, recent=0.1)
    first = message("1")
    assert await safe.put([(first, Policy())]) == [True]
    await asyncio.sleep(0.3)  # longer than what was put counts as recent
    assert await safe.put([(message("2", user="line:b"), Policy())]) == [True]
    remote.fails = [InboxUnavailable("refused")]
    assert await safe.put([(first, Policy())]) == [True]
    assert await safe.put([(message("3", user="line:c"), Policy())]) == [True]
    assert taken == ["3"]


async def test_what_was_answered_from_here_is_not_answered_again_when_the_inbox_is_away_once_more(
    tmp_path: Path,
) -> None:
    remote, spool, taken, stop = Remote(), Spool(tmp_path), [], asyncio.Event()

    async def take(entry: Entry) -> None:
        taken.append(entry.spooled.message.event_id)
        entry.mark_answered()
        entry.release()

    safe = SafeInbox(remote, spool, take, nothing)
    safe.away = True
    first = message("1")
    assert await safe.put([(first, Policy())]) == [True]
    watching = asyncio.create_task(safe.watch(stop))
    async with asyncio.timeout(60):
        while spool.count():
            await asyncio.sleep(0.01)
    stop.set()
    await watching
    assert (remote.events, safe.away) == (["seen line-main:1"], False)
    safe.away = True
    assert await safe.put([(first, Policy()), (message("2", user="line:b"), Policy())]) == [True, True]
    assert taken == ["1", "2"]


@pytest.mark.parametrize(
    ("waiting", "answered"), [([], ["1", "2"]), (["sm:shop:line:a"], ["2"]), (None, [])], ids=["none", "one", "many"]
)
async def test_who_still_waits_in_the_inbox_is_not_answered_from_here_however_long_ago_that_began(
    tmp_path: Path, waiting: list[str] | None, answered: list[str]
) -> None:
    remote, taken = Remote(), []

    async def take(entry: Entry) -> None:
        taken.append(entry.spooled.message.event_id)

    safe = SafeInbox(remote, Spool(tmp_path), take, nothing, recent=0.2)
    people = [message("0", user=user) for user in ("line:a", "line:b")]
    assert await safe.put([(one, Policy()) for one in people]) == [True, True]
    await asyncio.sleep(0.3)  # longer than what was put counts as recent
    remote.waiting = waiting
    stop = asyncio.Event()
    watching = asyncio.create_task(safe.watch(stop))
    async with asyncio.timeout(60):
        while not remote.looks:
            await asyncio.sleep(0.01)
    stop.set()
    await watching
    remote.fails = [InboxUnavailable("refused")]
    assert await safe.put([(message("1"), Policy())]) == [True]
    assert await safe.put([(message("2", user="line:b"), Policy())]) == [True]
    assert taken == answered


async def test_what_no_try_of_this_process_came_to_an_end_with_is_left_to_the_workers(tmp_path: Path) -> None:
    spool, inbox = Spool(tmp_path), SpoolingInbox()
    [entry] = spool.add([(message("1"), Policy(max_attempts=1))])
    assert entry is not None
    await inbox.take(entry)
    for _ in range(4):
        [claim] = (await inbox.claim(1)).claims
        await inbox.fail(claim, 0)
    assert (await inbox.claim(1)).claims == ()
    assert texts(spool.free()) == ["1"]
    assert inbox.state.dead == []
