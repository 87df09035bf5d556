"""Of somebody of whom much is known a turn reads and makes little; and what it is found by is derived, and goes along
with what it comes from."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import random
from datetime import UTC, datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import orjson
import pytest
from msgspec import structs

from config.vault import Vault, key_id, key_of
from memory import MemoryConfig, MemoryManager, context, facts, history, keys, retention, search
from memory.canonical import resolved_with_shared
from memory.long_term import events
from memory.long_term.additions import Addition, decided
from memory.long_term.document import copy, dump, dump_once_read, empty, extend, grown, parse, plain, view, with_changes
from memory.long_term.event import Event
from memory.long_term.json_files import JsonFiles
from memory.long_term.many import Many
from memory.models import Changes, LongTermMemory
from memory.recall import finder, ranking
from memory.recall.entry import Entry, Hit
from memory.recall.finder import Finder
from memory.recall.ranking import Ranking
from memory.recall.word_files import WordFiles
from memory.renewal import Outcome, Renewal
from memory.retention import Retention
from processors.models import EventType, Language, MemoryEvent

NOW = datetime.now(UTC).replace(microsecond=0)
TENANT, USER = "shop", "line:U1"
QUESTIONS = ("latte on Tuesday", "แพ้กุ้งไหม", "ข้าว", "birthday tabel", "coffee ส่งของวันพุธ", "nothing of it")
_WORDS = ("coffee", "latte", "แพ้กุ้ง", "ส่งของวันพุธ", "birthday", "ข้าว", "table", "Tuesday", "allergic", "นมโอ๊ต")


def event(number: int, said: str | None = None, at: datetime | None = None) -> MemoryEvent:
    luck = random.Random(number)
    return MemoryEvent(
        event_type=EventType.REQUEST,
        payload={"original_message": said or " ".join(luck.choices(_WORDS, k=luck.randint(1, 5))), "deep": {"a": [1]}},
        importance_score=luck.randrange(101) / 100,
        timestamp=at or NOW - timedelta(minutes=20 * luck.randrange(1500)),
        event_id=f"e{number}",
    )


def said(number: int) -> MemoryEvent:
    """In the order of their times, all about coffee."""
    return event(number, f"{'latte' if number % 3 else 'ข้าว'} coffee {number}", NOW - timedelta(minutes=5000 - number))


def written(base: Path, known: list[MemoryEvent], **more: Any) -> Path:
    path = keys.longterm_file(base / "longterm", TENANT, USER)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(dump(empty(TENANT, USER) | {"events": [plain(one) for one in known]} | more, readable=True))
    return path


def managing(base: Path, **more: Any) -> MemoryManager:
    return MemoryManager(MemoryConfig(lm_base_path=base / "longterm", **more))


def unread(known: list[MemoryEvent]) -> list[Event]:
    found = events.read(orjson.dumps([plain(one) for one in known]))
    assert found is not None
    return found


def told(hit: Hit) -> tuple[str, str, str, float]:
    return hit.id, hit.kind, hit.text, hit.score


async def loaded(base: Path) -> LongTermMemory:
    memory = await JsonFiles(base / "longterm").load(TENANT, USER)
    assert memory is not None
    return memory


def words_file(base: Path) -> Path:
    return Path(keys.words_file(base / "index", TENANT, USER))


async def kept_words(base: Path) -> Path:
    """Once somebody had time to write them."""
    async with asyncio.timeout(20):
        while not words_file(base).exists():
            await asyncio.sleep(0.01)
    return words_file(base)


class TestUnread:
    async def test_the_events_are_those_of_the_file(self, tmp_path: Path) -> None:
        known = [event(number) for number in range(300)]
        written(tmp_path, known, strange={"kept": True})
        memory = await loaded(tmp_path)
        assert events.count(memory) == 300
        knows = events.knows(memory)
        assert all(knows(one.event_id) for one in known)
        assert not any(map(knows, ("e300", "e", "", None)))
        assert [one.event_id for one in events.newest(memory, 3)] == [one.event_id for one in known[-3:]]
        best = sorted((one for one in known if one.importance_score >= 0.7), key=lambda one: one.timestamp)[-5:]
        assert context.build(None, memory)["important_events"] == [plain(one) for one in best]
        assert events.told(memory) is not None  # none of that made them all
        assert memory.model_copy(update={"history_summary": "x"}).events == known
        plainly = LongTermMemory(
            tenant_id=TENANT, user_id=USER, events=known, strange={"kept": True},  # type: ignore[call-arg]
        )  # fmt: skip
        assert memory.model_dump(mode="json")["events"] == plainly.model_dump(mode="json")["events"]
        assert memory.events == known
        assert (await loaded(tmp_path)).model_extra == {"strange": {"kept": True}}

    @pytest.mark.parametrize("language", ["th", "en"])
    def test_they_are_summed_up_as_they_would_be_made(self, language: Language) -> None:
        evening = NOW.replace(hour=20)  # already the next day in Bangkok
        days = [evening - timedelta(days=3 * number) for number in range(40, 0, -1)]
        known = [
            event(number, f"{number} ราคาเท่าไหร่ open where" if number % 3 else None, at)
            for number, at in enumerate(days)
        ]
        known = [one.model_copy(update={"event_type": kind}) for one, kind in zip(known, itertools.cycle(EventType))]
        told = [
            structs.replace(one, timestamp=one.timestamp.astimezone(ZoneInfo("Asia/Bangkok"))) for one in unread(known)
        ]
        for count in (0, 1, 7, 40):
            made = LongTermMemory(
                tenant_id=TENANT, user_id=USER, events=known[:count], history_summary="asked\nthe gist"
            )
            apart = events.with_events(made, told[:count])
            new = [event(100 + count, at=NOW)]
            assert history.with_events(apart, new, language) == history.with_events(made, new, language)

    async def test_it_equals_what_holds_the_same(self, tmp_path: Path) -> None:
        path = written(tmp_path, [event(1), event(2)])
        one, other = await loaded(tmp_path), await loaded(tmp_path)
        assert one == other
        assert one == view(parse(path.read_bytes()), TENANT, USER)
        assert view(parse(path.read_bytes()), TENANT, USER) == one
        other.events.clear()
        assert one != other
        assert dict(one)["events"] == [event(1), event(2)]

    @pytest.mark.parametrize(
        "strange",
        [
            {"event_type": "REQUEST", "payload": {}, "importance_score": 0.5, "timestamp": "2026-11-01T09:00:00"},
            {"event_type": "REQUEST", "payload": {}, "importance_score": "0.5", "timestamp": "2026-11-01T09:00:00Z"},
            {"event_type": "FROM_A_NEWER_VERSION", "payload": {}, "importance_score": 0.5},
            {"event_type": "REQUEST", "payload": [], "importance_score": 0.5, "timestamp": "2026-11-01T09:00:00Z"},
            "no event",
        ],
    )
    async def test_what_needs_a_closer_look_gets_it(self, tmp_path: Path, strange: Any) -> None:
        path = written(tmp_path, [event(1)])
        whole = orjson.loads(path.read_bytes())
        path.write_bytes(orjson.dumps({**whole, "events": [*whole["events"], strange]}))
        memory = await loaded(tmp_path)
        assert memory.events == view(parse(path.read_bytes()), TENANT, USER).events
        assert memory.events[0] == event(1)

    async def test_a_broken_byte_in_one_is_a_broken_file(self, tmp_path: Path) -> None:
        path = written(tmp_path, [event(number, f"words {number}") for number in range(5)])
        path.write_bytes(path.read_bytes().replace(b"words 3", b"words\xff3"))
        memory = await loaded(tmp_path)
        assert [one.event_id for one in memory.events] == ["e0", "e1", "e2", "e3", "e4"]
        assert any(".corrupt-" in one.name for one in path.parent.iterdir())

    async def test_a_broken_byte_in_a_long_file_that_was_sound_is_seen(self, tmp_path: Path) -> None:
        path = written(tmp_path, [event(number, f"words {number} " + "ข้าว " * 500) for number in range(60)])
        store = JsonFiles(tmp_path / "longterm", cache_entries=0)
        for _ in range(2):
            memory = await store.load(TENANT, USER)
            assert memory is not None
            assert events.count(memory) == 60
        path.write_bytes(path.read_bytes().replace(b"words 3 ", b"words\xff3 "))
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert events.count(memory) == 60
        assert any(".corrupt-" in one.name for one in path.parent.iterdir())

    async def test_a_thousand_stay_the_newest_thousand(self, tmp_path: Path) -> None:
        known = [event(number) for number in range(1000)]
        written(tmp_path, known)
        store = JsonFiles(tmp_path / "longterm")
        for number in range(1000, 1004):
            await store.save_events(TENANT, USER, [event(number, at=NOW)])
        oldest = sorted(range(1000), key=lambda at: (known[at].timestamp, at))[:4]
        left = [one.event_id for at, one in enumerate(known) if at not in oldest]
        for one in (store, JsonFiles(tmp_path / "longterm")):
            memory = await one.load(TENANT, USER)
            assert memory is not None
            assert [one.event_id for one in memory.events] == [*left, "e1000", "e1001", "e1002", "e1003"]

    async def test_a_fold_keeps_what_is_held(self, tmp_path: Path) -> None:
        path = written(tmp_path, [event(one, at=NOW - timedelta(minutes=1000 - one)) for one in range(1000)])
        store, size = JsonFiles(tmp_path / "longterm"), path.stat().st_size
        memory = await store.load(TENANT, USER)
        number = 1000
        while path.stat().st_size == size:
            assert memory is not None
            before = events.told(memory)
            await store.change(TENANT, USER, lambda _: Changes(events=[event(number, "ข้าว " * 400, NOW)]))  # noqa: B023
            memory, number = await store.load(TENANT, USER), number + 1
        assert memory is not None
        assert isinstance(many := events.told(memory), Many)
        assert many.follows(before)
        assert memory == await JsonFiles(tmp_path / "longterm").load(TENANT, USER)

    async def test_what_is_read_from_a_file_is_byte_by_byte_what_was_kept_in_mind(self, tmp_path: Path) -> None:
        """Also where a text looks like JSON; what is on disk of their words holds for it by these bytes."""
        store = JsonFiles(tmp_path / "longterm")
        for number, said in enumerate(('{ "a" : [ 1 ,  2 ] }', 'two  blanks\n\t and a \\" quote', "ข้าว  ผัด")):
            await store.save_events(TENANT, USER, [event(number, said, NOW)])
        memory = await store.load(TENANT, USER)
        kept = events.told(memory) if memory else None
        await store.compact(TENANT, USER, NOW)
        assert b"\n  " in keys.longterm_file(tmp_path / "longterm", TENANT, USER).read_bytes()
        read = events.told(await loaded(tmp_path))
        assert kept
        assert read
        assert [bytes(memoryview(one.payload)) for one in read] == [bytes(memoryview(one.payload)) for one in kept]
        assert [one.mark for one in read] == [one.mark for one in kept]

    async def test_a_turn_makes_a_handful_of_them(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        written(tmp_path, [event(number) for number in range(1000)])
        manager, made, whole = managing(tmp_path), [0], Event.whole

        def counted(one: Event) -> MemoryEvent:
            made[0] += 1
            return whole(one)

        monkeypatch.setattr(Event, "whole", counted)
        _, *known = await resolved_with_shared(manager.longterm, TENANT, USER)
        seen = await manager.knowledge.seen_by(TENANT, USER, known=(known[0], known[1]))
        hits = await manager.knowledge.found(TENANT, USER, seen, "latte", NOW, around=True)
        context.build(None, seen.memory)
        await manager.saving.save(TENANT, USER, [event(1001, at=NOW)])
        assert len(hits) == 10
        assert made[0] <= 10
        await manager.close()


class TestWords:
    def test_what_was_kept_finds_the_same(self) -> None:
        known = [event(number) for number in range(400)]
        few = [Entry(f"f{number}", "fact", one, one, at=NOW) for number, one in enumerate(QUESTIONS)]
        once = Ranking()
        once.update(few, unread(known[:350]))
        once.update(few, unread(known[50:]))
        fresh = Ranking()
        fresh.update(few, unread(known[50:]))
        again = Ranking(kept=once.kept(once.of_owner(USER)))
        again.update(few, unread(known[50:]))
        for around in (True, False):
            for question in QUESTIONS:
                expected = fresh.find(question, 30, around=around, now=NOW)
                assert again.find(question, 30, around=around, now=NOW) == expected

    def test_many_are_found_like_any_others(self) -> None:
        known = [event(number) for number in range(200)]
        each = [one for event in known if (one := search.of_event(event, USER)) is not None]
        many = Ranking()
        many.update([], unread(known))
        for question in QUESTIONS:
            for keep in (lambda one: one.weight > 0.5, lambda one: True):
                hits, expected = (one.find(question, 20, keep=keep) for one in (many, Ranking(each)))
                assert [told(hit) for hit in hits] == [told(hit) for hit in expected]

    @pytest.mark.parametrize("begins", [3, 66])
    @pytest.mark.parametrize("seed", range(4))
    def test_what_is_shown_anyway_is_no_hit_and_is_taken_in_when_it_is_not(self, begins: int, seed: int) -> None:
        luck, number = random.Random(seed), begins
        kept = events.longer([], unread([said(n) for n in range(begins)]), NOW, Retention())
        held = Ranking()
        for _ in range(60):
            new, number = unread([said(n) for n in range(number, number + luck.randint(1, 2))]), number + 2
            kept = events.longer(kept, new, NOW, Retention(max_events=begins + 9))
            shown = {one.id for one in kept[len(kept) - luck.choice([0, 4, 10, 10, 10]) :]}
            if held.update([], kept, shown) and luck.random() < 0.2:
                held = Ranking(kept=held.kept(held.of_owner(USER)))
                held.update([], kept, shown)
            for around in (True, False):
                hits = held.find("coffee", 1000, around=around, now=NOW, shown=shown)
                found = [hit.id for hit in hits]
                assert len(found) == len(set(found))
                assert set(found) <= {one.id for one in kept} - shown
                assert around or set(found) == {one.id for one in kept} - shown
                assert all(hit.text.endswith(f"coffee {hit.id[1:]}") for hit in hits)
        assert {hit.id for hit in held.find("coffee", 1000)} >= {one.id for one in kept} - shown
        held.update([], kept)
        assert {hit.id for hit in held.find("coffee", 1000)} == {one.id for one in kept}

    def test_what_is_shown_takes_no_place_of_what_is_looked_at(self) -> None:
        """As where staff have talked with somebody for long: each line that is told fits better than what was said
        before."""
        days = [event(number, f"a latte {number}", NOW - timedelta(days=400 - number)) for number in range(9)]
        talk = [event(number, "latte latte", NOW - timedelta(minutes=100 - number)) for number in range(9, 60)]
        held = Ranking()
        held.update([], unread([*days, *talk]))
        shown = {one.event_id or "" for one in talk}
        hits = held.find("latte", 60, around=True, now=NOW, most=5, shown=shown)
        assert {hit.id for hit in hits} <= {one.event_id for one in days}
        assert len(hits) == 5

    def test_what_goes_between_the_many_and_the_few_stays_found(self) -> None:
        known = [event(number) for number in range(30)]
        few = [entry for one in known if (entry := search.of_event(one))]
        held = Ranking()
        for entries, many in ([], known), (few, []), ([], known), (few[:9], known[9:]), (few[20:], known[:20]):
            held.update(entries, unread(many))
            for question in QUESTIONS:
                expected = Ranking(few).find(question, 30, now=NOW)
                assert [told(hit) for hit in held.find(question, 30, now=NOW)] == [told(hit) for hit in expected]
            best = held.find("latte ข้าว coffee", 30, around=True, now=NOW, most=3)
            assert len([hit for hit in best if hit.id not in {one.id for one in entries}]) == min(3, len(many))

    def test_what_comes_while_it_is_shown_is_taken_in_together(self) -> None:
        kept = unread([said(n) for n in range(10)])
        held = Ranking()
        for count in range(10):
            held.update([], kept[:count], {one.id for one in kept})
        assert held.added == 0
        held.update([], kept, {one.id for one in kept[1:]})
        assert held.added == 10

    def test_of_the_many_the_best_are_found_and_of_the_few_all(self) -> None:
        many = unread([event(number) for number in range(20)])
        few = [Entry(f"f{number}", "fact", one, one, at=NOW) for number, one in enumerate(QUESTIONS)]
        held = Ranking()
        held.update(few, many)
        for question in QUESTIONS:
            every = held.find(question, 30, around=True, now=NOW)
            best = [hit.id for hit in every if hit.kind == "event"][:5]
            expected = [hit for hit in every if hit.kind == "fact" or hit.id in best]
            assert held.find(question, 30, around=True, now=NOW, most=5) == expected

    async def test_a_change_that_changes_nothing_takes_nothing_from_the_search(self, tmp_path: Path) -> None:
        written(tmp_path, [event(number) for number in range(30)])
        manager = managing(tmp_path)
        store = manager.longterm

        async def found() -> list[tuple[str, str, str, float]]:
            return [told(hit) for hit in await manager.search(TENANT, USER, "latte coffee", limit=30)]

        before = await found()
        assert before
        assert not await store.rewrite(TENANT, USER, lambda memory: memory)
        assert await found() == before
        await store.rewrite_both(TENANT, USER, "line:U2", lambda here, there: (here, there))
        assert await found() == before
        memory = await store.load(TENANT, USER)
        assert memory is not None
        assert events.told(memory) is not None  # nor has a turn to make them all from then on
        await manager.close()

    async def test_the_next_process_looks_no_word_up_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        known = unread([event(number) for number in range(150)])
        first = await self._found(tmp_path, known)
        looked: list[str] = []
        terms = ranking.terms

        def counted(text: str) -> Any:
            looked.append(text)
            return terms(text)

        monkeypatch.setattr(ranking, "terms", counted)
        assert await self._found(tmp_path, known) == first
        assert looked == []

    async def test_who_is_read_for_a_turn_brings_their_words_along(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        written(tmp_path, [said(number) for number in range(60)])
        first = managing(tmp_path)
        expected = await first.search(TENANT, USER, "latte 30")
        await first.close()
        loaded: list[str] = []
        load = WordFiles.load

        def counted(words: WordFiles, tenant: str, user: str) -> Any:
            loaded.append(user)
            return load(words, tenant, user)

        monkeypatch.setattr(WordFiles, "load", counted)
        second = managing(tmp_path)
        await resolved_with_shared(second.longterm, TENANT, USER)
        assert loaded == [USER]
        assert await second.search(TENANT, USER, "latte 30") == expected
        assert loaded == [USER]
        assert second.finder._ahead == {}
        third = managing(tmp_path)
        await resolved_with_shared(third.longterm, TENANT, USER)
        await third.forget(TENANT, USER)
        assert third.finder._ahead == {}
        await resolved_with_shared(third.longterm, TENANT, USER)
        assert third.finder._ahead == {}
        await second.close()
        await third.close()

    async def test_who_is_held_no_longer_leaves_the_words_that_were_not_kept_yet(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(finder, "_HELD", 1)
        known, held = unread([event(number) for number in range(62)]), Finder(tmp_path / "index")
        for some in (known[:50], known):
            await held.find(TENANT, USER, [], "latte", 10, many=some, now=NOW)
            await asyncio.to_thread(held._keeping.finish)
        kept = WordFiles(tmp_path / "index").load(TENANT, USER)
        assert kept is not None
        assert len(kept.ids) == 50
        await held.find(TENANT, "line:U2", [], "latte", 10, many=known[:3], now=NOW)
        await asyncio.to_thread(held._keeping.finish)
        kept = WordFiles(tmp_path / "index").load(TENANT, USER)
        assert kept is not None
        assert len(kept.ids) == 62
        await held.close()

    @pytest.mark.parametrize("broken", ["empty", "strange", "cut off", "with other topics"])
    async def test_a_file_that_is_none_is_made_anew(self, tmp_path: Path, broken: str) -> None:
        known = unread([event(number) for number in range(150)])
        first = await self._found(tmp_path, known)
        good = words_file(tmp_path).read_bytes()
        head, _, rest = good.partition(b"\n")
        spoiled = {
            "empty": b"",
            "strange": b"no words" * 20,
            "cut off": good[:-9],
            "with other topics": b"%s0\n" % head,
        }
        words_file(tmp_path).write_bytes(spoiled[broken] + (rest if broken == "with other topics" else b""))
        assert await self._found(tmp_path, known) == first
        assert words_file(tmp_path).read_bytes() == good

    async def test_whatever_bit_of_it_turned_over_it_is_made_anew(self, tmp_path: Path) -> None:
        known = unread([event(number) for number in range(150)])
        first = await self._found(tmp_path, known)
        good, luck = words_file(tmp_path).read_bytes(), random.Random(3)
        for place in range(0, len(good), len(good) // 60):
            spoiled = bytearray(good)
            spoiled[place] ^= 1 << luck.randrange(8)
            words_file(tmp_path).write_bytes(spoiled)
            assert WordFiles(tmp_path / "index").load(TENANT, USER) is None
            assert await self._found(tmp_path, known) == first
        words_file(tmp_path).write_bytes(b"%s%s" % (good[:-20], good[:20]))
        assert await self._found(tmp_path, known) == first

    def test_what_comes_while_it_is_written_is_not_half_in_it(self) -> None:
        known = unread([event(number) for number in range(150)])
        first, later = Ranking(), unread([event(900 + number, "zebra latte zebra xylophone") for number in range(3)])
        first.update([], known)
        kept = first.kept(first.of_owner(USER))
        first.update([], [*known, *later])  # before a thread has put it into bytes
        again = Ranking(kept=msgspec.msgpack.decode(msgspec.msgpack.encode(kept), type=ranking.Kept))
        for some in (known, [*known, *later]):
            again.update([], some)
            fresh = Ranking()
            fresh.update([], some)
            for question in (*QUESTIONS, "zebr latt"):
                hits, expected = (one.find(question, 20, around=True, now=NOW) for one in (again, fresh))
                assert [told(hit) for hit in hits] == [told(hit) for hit in expected]

    async def test_two_that_write_at_once_leave_one_whole_file(self, tmp_path: Path) -> None:
        """As large as takes several writes."""
        files, made = WordFiles(tmp_path / "index"), []
        for mark in ("a", "b"):
            one = Ranking()
            one.update([], unread([event(number, f"{mark}{number} " * 60) for number in range(1500)]))
            made.append(one.kept(one.of_owner(USER)))
        for _ in range(5):
            await asyncio.gather(*(asyncio.to_thread(files.save, TENANT, USER, one) for one in made))
            assert files.load(TENANT, USER) in made
            assert [one.name for one in (tmp_path / "index" / TENANT).iterdir()] == [words_file(tmp_path).name]

    async def test_a_disk_that_takes_no_more_is_left_as_it_was(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        known = unread([event(number) for number in range(150)])
        first = await self._found(tmp_path, known)
        good = words_file(tmp_path).read_bytes()

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "no space left")

        with monkeypatch.context() as broken:
            broken.setattr(os, "replace", full)
            more = [*known, *unread([event(500 + number) for number in range(12)])]
            assert await self._found(tmp_path, more)
        assert [one.read_bytes() for one in words_file(tmp_path).parent.iterdir()] == [good]
        assert await self._found(tmp_path, known) == first

    async def test_events_under_one_id_are_one_the_last(self, tmp_path: Path) -> None:
        """As somebody may leave them who copies an event by hand."""
        known = [event(number) for number in range(120)]
        twins = [event(7, "a zebra came"), event(7, "a giraffe came", NOW)]
        written(tmp_path, [*known[:7], *twins, *known[8:]])
        manager = managing(tmp_path)
        for number in range(3):
            assert [hit.id for hit in await manager.search(TENANT, USER, "giraffe")] == ["e7"]
            assert await manager.search(TENANT, USER, "zebra") == []
            await manager.longterm.save_events(TENANT, USER, [event(500 + number, at=NOW)])
        await manager.close()

    async def test_what_has_another_text_by_now_is_found_by_that(self, tmp_path: Path) -> None:
        known = [event(number) for number in range(150)]
        await self._found(tmp_path, unread(known))
        known[7] = event(7, "ขอจองห้องประชุม")
        hits = await self._found(tmp_path, unread(known), "ห้องประชุม")
        assert [hit.id for hit in hits] == ["e7"]

    async def test_of_few_nothing_is_kept(self, tmp_path: Path) -> None:
        await self._found(tmp_path, unread([event(number) for number in range(20)]))
        assert not (tmp_path / "index").exists()

    async def test_nothing_of_the_shop_or_the_session_is_kept_with_it(self, tmp_path: Path) -> None:
        known = unread([event(number) for number in range(150)])
        others = [Entry("s", "fact", "", "pistachio session"), Entry("t", "fact", "", "pistachio shop", owner="")]
        mine = Entry("m", "fact", "", "walnut", owner=USER)
        await self._found(tmp_path, known, entries=[*others, mine])
        raw = words_file(tmp_path).read_bytes()
        assert b"walnut" in raw
        assert b"pistachio" not in raw

    async def _found(
        self, base: Path, known: list[Event], question: str = "latte on Tuesday", entries: list[Entry] | None = None
    ) -> list[Hit]:
        finder = Finder(base / "index")
        try:
            return await finder.find(TENANT, USER, entries or [], question, 10, many=known, now=NOW)
        finally:
            await finder.close()


class TestGone:
    async def test_who_is_forgotten_leaves_no_words(self, tmp_path: Path) -> None:
        manager = await self._searched(tmp_path)
        beside = words_file(tmp_path).with_name(f"{words_file(tmp_path).name}.1.tmp")
        beside.write_bytes(b"cut off")
        await manager.forget(TENANT, USER)
        assert list(words_file(tmp_path).parent.iterdir()) == []
        await manager.close()

    async def test_whoever_was_at_work_on_them_leaves_none_behind(self, tmp_path: Path) -> None:
        manager = await self._searched(tmp_path)
        seen = await manager.knowledge.seen_by(TENANT, USER)
        await manager.forget(TENANT, USER)
        assert await manager.knowledge.found(TENANT, USER, seen, "latte", NOW)
        await manager.close()
        assert list(words_file(tmp_path).parent.iterdir()) == []

    async def test_what_was_taken_back_is_gone_from_them(self, tmp_path: Path) -> None:
        manager = await self._searched(tmp_path)
        told = await manager.remember(TENANT, USER, text="likes walnut cake")
        words_file(tmp_path).unlink()
        manager = managing(tmp_path)
        await manager.search(TENANT, USER, "latte")
        assert b"walnut" in (await kept_words(tmp_path)).read_bytes()
        assert await manager.curation.delete_facts(TENANT, [told.id]) == 1
        assert not words_file(tmp_path).exists()
        assert await manager.search(TENANT, USER, "walnut") == []
        await manager.close()

    async def test_of_who_stays_away_they_go_after_a_day(self, tmp_path: Path) -> None:
        manager = await self._searched(tmp_path)
        await manager.prune_all(TENANT)
        assert words_file(tmp_path).exists()
        long_ago = (datetime.now(UTC) - timedelta(hours=25)).timestamp()
        os.utime(words_file(tmp_path), (long_ago, long_ago))
        await manager.prune_all(TENANT, dry_run=True)
        assert words_file(tmp_path).exists()
        await manager.prune_all(TENANT)
        assert not words_file(tmp_path).exists()
        await manager.close()

    async def _searched(self, base: Path) -> MemoryManager:
        written(base, [event(number) for number in range(150)])
        manager = managing(base)
        assert await manager.search(TENANT, USER, "latte")
        await kept_words(base)
        return manager


@pytest.mark.skipif(find_spec("cryptography") is None, reason="needs the extra `encryption`")
class TestSealed:
    FIRST, SECOND = bytes([1]) * 32, bytes([2]) * 32

    async def test_they_are_sealed_like_the_rest_and_go_with_their_key(self, tmp_path: Path) -> None:
        known = unread([event(number, f"walnut {number}") for number in range(150)])
        found = await self._found(tmp_path, Vault([self.FIRST]), known)
        raw = words_file(tmp_path).read_bytes()
        assert key_of(raw) == key_id(self.FIRST)
        assert b"walnut" not in raw
        assert await self._found(tmp_path, Vault([self.FIRST]), known) == found
        WordFiles(tmp_path / "index", Vault([self.FIRST])).renew(TENANT)
        assert words_file(tmp_path).exists()
        assert Renewal(tmp_path, Vault([self.SECOND, self.FIRST])).sealed_with({key_id(self.FIRST)}) == words_file(
            tmp_path
        )
        Renewal(tmp_path, Vault([self.SECOND, self.FIRST])).renew(TENANT, Outcome())
        assert not words_file(tmp_path).exists()

    async def test_without_the_key_they_are_made_anew(self, tmp_path: Path) -> None:
        known = unread([event(number) for number in range(150)])
        found = await self._found(tmp_path, Vault([self.FIRST]), known)
        assert await self._found(tmp_path, Vault([self.SECOND]), known) == found
        assert key_of(words_file(tmp_path).read_bytes()) == key_id(self.SECOND)

    async def _found(self, base: Path, vault: Vault, known: list[Event]) -> list[Hit]:
        finder = Finder(base / "index", vault=vault)
        try:
            return await finder.find(TENANT, USER, [], "latte walnut", 10, many=known, now=NOW)
        finally:
            await finder.close()


@pytest.mark.parametrize("unread_events", [True, False])
def test_a_copy_is_what_pydantic_makes_of_it(unread_events: bool) -> None:
    known = view(empty(TENANT, USER) | {"newer": {"a": [1]}}, TENANT, USER)
    if unread_events:
        known = events.with_events(known, unread([event(1), event(2)]))
    fields = {"history_summary": "x", "facts": []}
    out, theirs = events.copied(known, fields), known.model_copy(update=fields)
    assert out == theirs
    assert type(out) is type(theirs)
    assert (out.__dict__, out.model_fields_set) == (theirs.__dict__, theirs.model_fields_set)
    assert (out.__pydantic_extra__, out.__pydantic_private__) == (
        theirs.__pydantic_extra__,
        theirs.__pydantic_private__,
    )
    for one in (out.__dict__, out.model_fields_set, out.__pydantic_extra__):
        assert all(one is not other for other in (known.__dict__, known.model_fields_set, known.__pydantic_extra__))


@pytest.mark.parametrize("seed", range(12))
def test_a_summary_that_is_counted_on_is_the_one_that_counts_all_of_them(seed: int) -> None:
    luck, numbers = random.Random(seed), itertools.count(1)

    def some() -> list[MemoryEvent]:
        made = [event(next(numbers)) for _ in range(luck.choice((1, 1, 1, 2)))]
        kinds = [luck.choice(list(EventType)) for _ in made]
        said = luck.choice(("ราคาเท่าไหร่", "how much, and when do you open", "two lattes", "มีของไหม"))
        return [
            one.model_copy(update={"event_type": kind, "payload": {"original_message": f"{said} {one.event_id}"}})
            for one, kind in zip(made, kinds, strict=True)
        ]

    def longer(known: LongTermMemory, new: list[MemoryEvent], most: int = 1000) -> LongTermMemory:
        rules = Retention(max_events=most, days=0)
        return extend(known, [{"events": [plain(one) for one in new]}], NOW, rules)

    known = events.with_events(view(empty(TENANT, USER), TENANT, USER), unread(some()))
    for _ in range(60):
        held, new = copy(known), some()
        language: Language = luck.choice(("th", "en"))
        all_of_them = view(empty(TENANT, USER) | {"events": [plain(one) for one in held.events]}, TENANT, USER)
        assert history.with_events(copy(known), new, language) == history.with_events(all_of_them, new, language)
        match luck.randrange(8):
            case 0:  # it could not be written
                continue
            case 1:  # nor this, and another process wrote meanwhile
                known = longer(known, some())
            case 2:  # some are too many
                known = longer(known, new, most=luck.randrange(2, 12))
            case 3:  # another process wrote it, and took it for something else
                other = luck.choice(list(EventType))
                known = longer(known, [one.model_copy(update={"event_type": other}) for one in new])
            case _:
                known = longer(known, new)


@pytest.mark.parametrize("seed", range(30))
def test_events_grow_as_if_all_of_them_were_looked_at(seed: int) -> None:
    """Whatever comes in whatever order, once or again, with or without an id."""
    luck = random.Random(seed)
    rules = Retention(max_events=luck.choice([0, 5, 12, 1000]), days=luck.choice([0, 2, 365]))
    known: list[Event] = []
    kept: Any = known
    for number in range(40):
        minutes = number * 60 if luck.random() < 0.8 else luck.randrange(2400)
        new = unread([event(number - luck.choice([0, 0, 0, 1, 7]), at=NOW - timedelta(minutes=4000 - minutes))])
        if luck.random() < 0.1:
            new = [structs.replace(one, event_id=None) for one in new]
        now = NOW + timedelta(minutes=luck.choice([0, 0, 0, 30]))
        assert events.knows(memory_of(kept))(new[0].event_id) is any(
            one.event_id == new[0].event_id is not None for one in known
        )
        there = {one.event_id for one in known} - {None}
        known = retention.keep(
            [*known, *(one for one in new if one.event_id not in there)], lambda one: one.timestamp, now, rules
        )
        kept = events.longer(kept, new, now, rules)
        assert list(kept) == known


def memory_of(told: Any) -> LongTermMemory:
    return events.with_events(LongTermMemory(tenant_id=TENANT, user_id=USER), told)


@pytest.mark.parametrize(
    "value", ["พูด", "lone \ud800", float("inf"), 2**70, 1e16, {"a": [None, -0.0, {"b": "x"}]}, NOW]
)
def test_a_line_is_written_as_it_is_read_and_taken_in_as_it_is_written(value: Any) -> None:
    line: dict[str, Any] = {
        "at": "2026-01-01T00:00:00Z",
        "user_id": USER,
        "history_summary": "so far",
        "events": [plain(said(1))],
    }
    line["events"][0]["payload"] = {"original_message": "coffee", "found": value}
    raw = dump_once_read(line)
    assert raw == dump(orjson.loads(dump(line)))
    for memory in (memory_of([]), memory_of(unread([said(0)])), LongTermMemory(tenant_id=TENANT, user_id=USER)):
        after, expected = grown(memory, raw, NOW, Retention()), extend(memory, [orjson.loads(raw)], NOW, Retention())
        assert after == expected
        assert events.told(after) == events.told(expected)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"event_id": None},
        {"event_id": "lone \ud800"},
        {"event_id": "e0"},  # is known
        {"timestamp": NOW.replace(microsecond=987_654)},
        {"timestamp": NOW.replace(year=1)},
        {"timestamp": NOW.astimezone(timezone(timedelta(hours=7)))},
        {"importance_score": 1},
        *(
            {"payload": {"original_message": "coffee", "found": value}}
            for value in ("พูด", "lone \ud800", float("inf"), 2**70, 1e16, [None, -0.0, {"b": "x"}], NOW, {1: 2})
        ),
    ],
)
def test_an_event_and_its_summary_are_written_and_taken_in_as_any_changes_are(changed: dict[str, Any]) -> None:
    event = said(1).model_copy(update=changed)
    line: dict[str, Any] = {"at": "2026-01-01T00:00:00Z", "user_id": USER}
    told = [facts.from_attributes([], {"likes": value}, NOW, "m1") for value in ("tea", 2**70, {"a": [None, 1.5]})]
    for summary, heard in ((None, ()), ("so far", ()), ("lone \ud800", ()), *(("so far", one) for one in told)):
        changes = Changes(events=[event], history_summary=summary, facts=heard)

        def decide(_: LongTermMemory, changes: Changes = changes) -> Changes:
            return changes

        for known in ([], unread([said(0)])):
            memory = memory_of(known)
            (raw,), after = decided(memory, [Addition(line, decide=decide)], NOW, Retention())
            expected = grown(memory, raw, NOW, Retention())
            assert raw == dump_once_read(with_changes(line, changes))
            assert events.told(after) == events.told(expected)
            assert after == expected
