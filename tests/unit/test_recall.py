"""The one search: by words, by meaning, by what stands near, each part missing in turn."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory import MemoryConfig, MemoryManager
from memory.errors import LongTermUnavailable
from memory.keys import index_file
from memory.recall import lexical, vector_file
from memory.recall.entry import Entry, Hit
from memory.recall.finder import Finder
from memory.recall.ranking import Ranking
from memory.recall.speakers import Speakers
from memory.recall.terms import asked, asks, terms
from processors.llm import LLMUnavailable

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
RICE, NEWS = "ฉันชอบกินข้าวเช้าทุกวัน", "ชอบดูข่าวเช้าทุกวัน"


def entries(*texts: str, **fields: Any) -> list[Entry]:
    return [Entry(text, "fact", text, text, **fields) for text in texts]


def found(question: str, *texts: str, **how: Any) -> list[str]:
    return [hit.text for hit in Ranking(entries(*texts)).find(question, 10, **how)]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("ข้าว", RICE),
        ("ชา", "ขอชาเย็นสองแก้ว"),
        ("CAFÉ", "likes the café downstairs"),
        ("ＡＢＣ１２", "order abc12"),
        ("ห้อง ๑๒๐๕", "อยู่ห้อง 1205"),
        ("กาแฟ", "ชอบกา\u200bแฟเย็น"),
        ("เเมว", "เลี้ยงแมวส้ม"),
        ("local time", "local_time: 9"),
        ("deliveries", "delivery on Monday"),
        ("restaurnt", "the restaurant is noisy"),
        ("allergy", "แพ้กุ้งกับปู"),
        ("อาหารทะเล", "cannot eat shrimp"),
    ],
)
def test_a_text_is_found_however_its_words_are_written(question: str, text: str) -> None:
    assert found(question, text, "แก้วน้ำสีดำ", "something else") == [text]


def test_what_is_about_the_same_and_has_no_word_of_the_question_tells_less_than_half() -> None:
    ranking = Ranking(entries("เปลี่ยนไซส์ได้ภายในเจ็ดวัน", "something else"))
    (about,) = ranking.find("ภูเขาไฟฟูจิสูงเท่าไหร่", 1, around=True)
    (worded,) = ranking.find("เปลี่ยนไซส์ได้ไหม", 1, around=True)
    assert about.text == worded.text
    assert about.score < 0.5 < worded.score


def test_thai_that_only_looks_alike_is_not_found() -> None:
    assert found("ข้าว", RICE, NEWS) == [RICE]
    assert found("ข่าว", RICE, NEWS) == [NEWS]
    assert found("ปู", "ผ้าปูที่นอนหกฟุต", "แกงปูใส่ชะพลู") != []


def test_what_nobody_said_is_not_found() -> None:
    assert found("helicopter", RICE, NEWS, "order abc12") == []
    assert found("", RICE) == []
    assert Ranking().find("anything", 10) == []


def test_scores_never_rise_and_an_exact_text_has_one() -> None:
    hits = Ranking(entries("likes iced coffee", "likes coffee", "likes tea")).find("iced coffee", 10)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert (hits[0].text, hits[0].score) == ("likes iced coffee", 1.0)


def test_of_texts_that_fit_alike_the_weightier_and_the_newer_go_first() -> None:
    old = Entry("old", "event", "old", "size M please", at=NOW - timedelta(days=400))
    new = Entry("new", "event", "new", "size M please", at=NOW)
    sure = Entry("sure", "fact", "sure", "size M please", 1.0)
    guess = Entry("guess", "fact", "guess", "size M please", 0.2)
    assert [hit.id for hit in Ranking([old, new]).find("size", 2, now=NOW)] == ["new", "old"]
    assert [hit.id for hit in Ranking([guess, sure]).find("size", 2, now=NOW)] == ["sure", "guess"]


def test_what_stands_next_to_it_is_found_for_a_reader_alone() -> None:
    talk = [
        Entry("q", "event", "q", "where did you buy the lamp", at=NOW),
        Entry("a", "event", "a", "at a market in Rome", at=NOW + timedelta(minutes=1)),
        Entry("later", "event", "later", "good morning", at=NOW + timedelta(days=1)),
    ]
    assert [hit.id for hit in Ranking(talk).find("lamp", 5)] == ["q"]
    assert [hit.id for hit in Ranking(talk).find("lamp", 5, around=True)] == ["q", "a"]


@pytest.mark.parametrize("many", [False, True])
def test_who_asked_the_same_several_times_is_told_as_having_asked_it_last(many: bool) -> None:
    asked = [Entry(f"q{day}", "event", f"{day}", "what is a latte", at=NOW + timedelta(days=day)) for day in (9, 3, 20)]
    said = [
        *asked,
        Entry("oat", "event", "oat", "a latte with oat milk", at=NOW + timedelta(days=1)),
        Entry("two", "event", "two", "two of the latte", at=NOW + timedelta(days=30)),
    ]
    fact = Entry("f", "fact", "f", "what is a latte", at=NOW)
    ranking = Ranking()
    ranking.update([fact], sorted(said, key=lambda one: one.at or NOW)) if many else ranking.update([fact, *said])
    how: dict[str, Any] = {"around": True, "now": NOW + timedelta(days=40)}
    told = ranking.find("latte", 10, most=3, **how)
    assert sorted(hit.id for hit in told) == ["f", "oat", "q20", "two"]
    assert [hit.score for hit in told] == sorted((hit.score for hit in told), reverse=True)
    assert sorted(hit.id for hit in ranking.find("latte", 10, most=3, shown={"q3"}, **how)) == ["f", "oat", "two"]
    everything = sorted(hit.id for hit in ranking.find("latte", 10))  # who searches sees each
    assert everything == ["f", "oat", "q20", "q3", "q9", "two"]


def test_what_answers_a_question_is_found_with_it_and_fits_nearly_as_well() -> None:
    talk = [
        Entry("q", "event", "q", "do you drink oat milk?", at=NOW),
        Entry("a", "event", "a", "always, since March", at=NOW + timedelta(minutes=1)),
        Entry("later", "event", "later", "the milk jug is broken", at=NOW + timedelta(days=1)),
    ]
    first, second, third = Ranking(talk).find("oat milk", 5, around=True)
    assert ({first.id, second.id}, third.id) == ({"q", "a"}, "later")
    assert (first.score, second.score) == (0.8, 0.8)
    assert third.score > 0.5  # is not drawn down by what has no word of it


def test_a_talk_about_it_goes_before_a_word_in_passing() -> None:
    day = timedelta(days=1)
    talk = [
        Entry("passing", "event", "passing", "the garden", at=NOW),
        *(Entry(f"{n}", "event", f"{n}", "the garden", at=NOW - day + timedelta(minutes=n)) for n in range(4)),
    ]
    assert [hit.id for hit in Ranking(talk).find("garden", 5, around=True)][-1] == "passing"


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Is it red? 😀", True),
        ("What is that? (a picture: a red hat)", True),
        ("มีไซส์ M ไหมครับ 🙏", True),
        ("อยากได้สีไหนดีคะ", True),
        ("ช่างเข้ากี่โมง", True),
        ("Do you ship? I live in Rayong", False),
        ("อาทิตย์นี้ไปไหนมาไหนลำบาก", False),
        ("ชอบกาแฟ", False),
        ("", False),
    ],
)
def test_a_question_is_told_by_its_end(text: str, asked: bool) -> None:
    assert asks(text) is asked


def test_who_is_named_in_the_question_goes_before_others() -> None:
    talk = [
        Entry("1", "event", "1", "Ann: I went to Rome", by="Ann"),
        Entry("2", "event", "2", "Ben: I went to Rome", by="Ben"),
    ]
    assert [hit.id for hit in Ranking(talk).find("When did Ben go to Rome?", 2, around=True)] == ["2", "1"]


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("When did Ben go to Rome?", "Ben"),
        ("what did Ann and Ben say", ""),
        ("what did Smith order", ""),
        ("นกสั่งอะไร", "พี่นก"),
        ("อาหารของนกล่ะ", "พี่นก"),
        ("คุณเอจ่ายหรือยัง", "เอ"),
        ("ฝากถามน้องมะลิวัลย์หน่อย", "มะลิวัลย์ ใจดี"),
        ("เอาอะไรดี", ""),
        ("ซื้อนกมากี่ตัว", ""),
        ("โต๊ะไหน", ""),
    ],
)
def test_a_question_names_who_spoke(question: str, named: str) -> None:
    names = ["Ann Smith", "Ben", "Joe Smith", "พี่นก", "เอ", "มะลิวัลย์ ใจดี"]
    assert Speakers(names).named(terms(question)) == named


def test_a_ranking_follows_what_is_added_changed_and_removed() -> None:
    ranking = Ranking(entries("likes tea", "likes coffee"))
    changed = Entry("likes coffee", "fact", "now cocoa", "likes cocoa")
    ranking.update([*entries("likes tea", "has a dog"), changed])
    assert [hit.text for hit in ranking.find("dog", 5)] == ["has a dog"]
    assert [hit.text for hit in ranking.find("cocoa", 5)] == ["now cocoa"]
    ranking.update(entries("has a dog"))
    assert (ranking.find("tea", 5), ranking.find("cocoa", 5), len(ranking)) == ([], [], 1)
    for number in range(50):  # most of it is gone by then, and taken over anew
        ranking.update(entries(f"thing {number}"))
    assert [hit.text for hit in ranking.find("thing 49", 1)] == ["thing 49"]


@pytest.mark.parametrize(
    ("question", "runs"),
    [
        ("ลูกค้าชอบกินอะไรบ้าง", ("ชอบกิน",)),
        ("ทำงานแถวไหนคะ", ("ทำงาน",)),
        ("อะไร", ("อะไร",)),
        ("size ไหน", ()),
    ],
)
def test_what_any_question_has_is_not_looked_for(question: str, runs: tuple[str, ...]) -> None:
    assert asked(question).runs == runs


def test_topics_hide_inside_longer_words() -> None:
    assert "#pet" not in terms("ขอหมอนสองใบ").words
    assert "#milk" not in terms("ขนมปังหนึ่งห่อ").words


class ByLetters:
    """Vectors of four numbers that are told it; keeps what it was asked."""

    name, floor, trust, remote = "letters/1", 0.5, 0.6, False

    def __init__(self, known: dict[str, Sequence[float]], broken: bool = False) -> None:
        self.known = known
        self.broken = broken
        self.asked: list[str] = []

    async def encode(self, texts: Sequence[str], *, question: bool = False) -> Any:
        import numpy as np

        if self.broken:
            raise LLMUnavailable("no vectors now")
        self.asked += texts
        return np.array([self.known.get(text, (0, 0, 0, 1)) for text in texts], np.float32)

    async def close(self) -> None:
        self.known = {}


class TestByMeaning:
    @pytest.fixture(autouse=True)
    def needs_numpy(self) -> None:
        pytest.importorskip("numpy")

    async def test_what_means_the_same_is_found_without_a_shared_word(self, tmp_path: Path) -> None:
        letters = ByLetters({"occupation?": (1, 0, 0, 0), "teaches maths": (0.95, 0.31, 0, 0)})
        finder = Finder(tmp_path, lambda tenant: letters)
        known = entries("teaches maths", "likes tea", owner="u")
        assert [hit.text for hit in await finder.find("t", "u", known, "occupation?", 5)] == ["teaches maths"]

    async def test_a_vector_is_made_once_and_kept_for_the_next_process(self, tmp_path: Path) -> None:
        letters = ByLetters({})
        for _ in range(2):
            finder = Finder(tmp_path, lambda tenant: letters)
            await finder.find("t", "u", entries("one", "two", owner="u"), "q", 5)
            await finder.close()
        assert sorted(letters.asked) == ["one", "q", "q", "two"]

    async def test_another_model_makes_them_anew(self, tmp_path: Path) -> None:
        old, new = ByLetters({}), ByLetters({})
        new.name = "letters/2"
        for letters in (old, new):
            finder = Finder(tmp_path, lambda tenant, letters=letters: letters)  # type: ignore[misc]
            await finder.find("t", "u", entries("one", owner="u"), "q", 5)
        assert new.asked == ["q", "one"]

    async def test_without_vectors_now_words_still_find(self, tmp_path: Path) -> None:
        finder = Finder(tmp_path, lambda tenant: ByLetters({}, broken=True))
        assert [hit.text for hit in await finder.find("t", "u", entries(RICE, NEWS), "ข้าว", 5)] == [RICE]

    async def test_a_file_of_vectors_that_is_broken_is_made_anew(self, tmp_path: Path) -> None:
        index_file(tmp_path, "t", "vectors.sqlite").write_bytes(b"no database" * 100)
        letters = ByLetters({"occupation?": (1, 0, 0, 0), "teaches maths": (1, 0, 0, 0)})
        for _ in range(2):
            finder = Finder(tmp_path, lambda tenant: letters)
            hits = await finder.find("t", "u", entries("teaches maths", owner="u"), "occupation?", 5)
            assert [hit.text for hit in hits] == ["teaches maths"]
        assert index_file(tmp_path, "t", "vectors.sqlite").read_bytes().startswith(b"SQLite format 3")

    async def test_many_new_ones_are_made_behind_the_search(self, tmp_path: Path) -> None:
        letters = ByLetters({})
        finder = Finder(tmp_path, lambda tenant: letters)
        known = entries(*(f"thing {number}" for number in range(100)), owner="u")
        await finder.find("t", "u", known, "q", 5)
        assert len(letters.asked) == 1 + 16
        async with asyncio.timeout(60):
            while len(letters.asked) < 101:
                await asyncio.sleep(0.01)
        await finder.find("t", "u", known, "q", 5)
        assert sorted(letters.asked) == sorted(["q", *(one.text for one in known)])


class Everything(ByLetters):
    def of(self, tenant: str) -> ByLetters:
        return self


class TestForgetting:
    @pytest.fixture(autouse=True)
    def needs_numpy(self) -> None:
        pytest.importorskip("numpy")

    async def test_what_is_forgotten_is_gone_from_the_vectors_too(self, tmp_path: Path) -> None:
        manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"), embeddings=Everything({}))
        for user in ("line:U1", "line:U2"):
            await manager.remember("shop", user, text="likes tea")
            await manager.search("shop", user, "tea")
        assert sorted(await manager.finder.owners("shop")) == ["line:U1", "line:U2"]
        assert (await manager.forget("shop", "line:U1"))["vectors"] == 1
        assert await manager.finder.owners("shop") == ["line:U2"]
        assert await manager.search("shop", "line:U1", "tea") == []
        await manager.close()

    async def test_whoever_was_at_work_on_them_leaves_no_vector_behind(self, tmp_path: Path) -> None:
        """Those of somebody of whom much is known are made behind the search, which takes seconds."""
        letters, going = Everything({}), asyncio.Event()
        manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"), embeddings=letters)
        for number in range(20):
            await manager.remember("shop", "line:U1", text=f"likes tea {number}", key=f"tea {number}")
        encode = letters.encode

        async def slow(texts: Sequence[str], *, question: bool = False) -> Any:
            if not question and len(texts) < 16:
                await going.wait()
            return await encode(texts, question=question)

        letters.encode = slow  # type: ignore[method-assign]
        await manager.search("shop", "line:U1", "tea")
        assert await manager.finder.owners("shop") == ["line:U1"]
        await manager.forget("shop", "line:U1")
        going.set()
        await asyncio.gather(*manager.finder._later)
        assert len(letters.asked) == 1 + 20
        assert await manager.finder.owners("shop") == []
        await manager.close()

    async def test_who_is_to_be_forgotten_while_the_vectors_are_in_use_is_to_be_asked_for_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(vector_file, "_PATIENCE", 0.01)
        manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"), embeddings=Everything({}))
        await manager.remember("shop", "line:U1", text="likes tea")
        await manager.search("shop", "line:U1", "tea")
        with closing(sqlite3.connect(index_file(tmp_path / "index", "shop", "vectors.sqlite"))) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LongTermUnavailable):
                await manager.forget("shop", "line:U1")
        assert (await manager.forget("shop", "line:U1"))["vectors"] == 1
        assert await manager.finder.owners("shop") == []
        await manager.close()

    async def test_reindex_makes_what_is_missing_and_drops_what_nobody_has(self, tmp_path: Path) -> None:
        letters = Everything({})
        manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"), embeddings=letters)
        await manager.remember("shop", "line:U1", text="likes tea")
        await manager.remember("shop", "line:U1", text="opens at nine", scope="global")
        steps: list[tuple[int, int]] = []
        progress = lambda done, of: steps.append((done, of))  # noqa: E731
        assert await manager.knowledge.reindex("shop", progress=progress) == 2
        assert steps == [(1, 2), (2, 2)]
        assert await manager.knowledge.reindex("shop") == 0
        await manager.longterm.forget("shop", "line:U1")
        assert await manager.knowledge.reindex("shop") == 0
        assert await manager.finder.owners("shop") == [""]
        assert await manager.knowledge.reindex("shop", anew=True) == 1
        await manager.close()

    async def test_nobody_elses_and_no_other_tenants_is_found_by_meaning(self, tmp_path: Path) -> None:
        letters = Everything({"occupation?": (1, 0, 0, 0), "teaches maths": (1, 0, 0, 0)})
        manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"), embeddings=letters)
        await manager.remember("shop", "line:U1", text="teaches maths")
        assert len(await manager.search("shop", "line:U1", "occupation?")) == 1
        assert await manager.search("shop", "line:U10", "occupation?") == []
        assert await manager.search("other", "line:U1", "occupation?") == []
        await manager.close()


def test_among_many_the_same_is_found_as_among_few(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    words = ["coffee", "latte", "แพ้กุ้ง", "ส่งของวันพุธ", "birthday", "ข้าว", "table", "Tuesday", "allergic", "นมโอ๊ต"]
    entries = [
        Entry(f"e{n}", "fact" if n % 7 else "event", "", " ".join(rng.choices(words, k=rng.randint(1, 5))))
        for n in range(1200)
    ]
    gone = entries[40:90]
    questions = ["latte on Tuesday", "แพ้กุ้งไหม", "ข้าว", "birthday tabel", "coffee ส่งของวันพุธ", "nothing of it"]

    def found(around: bool) -> list[list[Hit]]:
        ranking = Ranking(entries)
        ranking.update([one for one in entries if one not in gone])
        only = {False: lambda one: one.kind == "event", True: lambda one: True}[around]
        return [ranking.find(question, 20, keep=only, around=around) for question in questions]

    few = found(False), found(True)
    monkeypatch.setattr(lexical, "_VAST", 1)
    assert (found(False), found(True)) == few
    monkeypatch.setattr(lexical, "numpy", lambda: None)
    assert (found(False), found(True)) == few
