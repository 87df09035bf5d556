"""A shop's files: followed, found, and never stopped by one that is wrong."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory import MemoryConfig, MemoryManager
from memory.library import library as shelves
from memory.library.library import FileState, Library, sure
from memory.library.sureness import told_of
from memory.recall.finder import Finder
from processors.documents.parts import Passage

OLD = 1_700_000_000


def write(folder: Path, name: str, text: str, *, age: int = 0, tenant: str = "shop") -> Path:
    """A file that changed long ago; `age` tells versions apart."""
    path = folder / "knowledge" / tenant / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (OLD + age, OLD + age))
    return path


def opened(folder: Path) -> Library:
    return Library(folder / "knowledge", folder / "index", Finder())


@pytest.fixture(autouse=True)
def _looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(shelves, "_PATIENCE", 60.0)
    monkeypatch.setattr(shelves, "_FIRST_PATIENCE", 60.0)


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    made = opened(tmp_path)
    yield made
    await made.close()


async def texts(library: Library, question: str, tenant: str = "shop") -> list[str]:
    return [one.passage.text for one in await library.find(tenant, question)]


async def test_what_comes_changes_and_goes_is_seen_without_a_restart(tmp_path: Path, library: Library) -> None:
    assert await texts(library, "warranty") == []
    write(tmp_path, "terms.md", "# Terms\n\n## Warranty\n\nTwo years")
    assert await texts(library, "warranty") == ["Two years"]
    write(tmp_path, "terms.md", "# Terms\n\n## Warranty\n\nThree years", age=1)
    assert await texts(library, "warranty") == ["Three years"]
    (tmp_path / "knowledge" / "shop" / "terms.md").unlink()
    assert (await texts(library, "warranty"), await library.files("shop")) == ([], [])


async def test_whoever_asks_first_waits_for_the_first_reading_and_nobody_for_later_ones(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, plain = threading.Event(), shelves.read

    def slowly(path: Path) -> list[Passage]:
        go_on.wait(30)
        return plain(path)

    monkeypatch.setattr(shelves, "read", slowly)
    monkeypatch.setattr(shelves, "_PATIENCE", 0.05)
    write(tmp_path, "terms.md", "# Terms\n\n## Warranty\n\nTwo years")
    asked = asyncio.gather(texts(library, "warranty"), texts(library, "warranty"))
    await asyncio.wait({asked}, timeout=0.3)
    assert not asked.done()
    assert await texts(library, "warranty", "another") == []  # without files there is nothing to wait for
    go_on.set()
    assert await asked == [["Two years"], ["Two years"]]
    go_on.clear()
    write(tmp_path, "terms.md", "# Terms\n\n## Warranty\n\nThree years", age=1)
    assert await texts(library, "warranty") == ["Two years"]
    go_on.set()
    await library.close()
    assert await texts(library, "warranty") == ["Three years"]


async def test_the_wait_for_the_first_reading_ends(
    tmp_path: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(shelves, "read", lambda path: go_on.wait(30) and [])
    monkeypatch.setattr(shelves, "_FIRST_PATIENCE", 0.05)
    write(tmp_path, "terms.md", "# Terms\n\n## Warranty\n\nTwo years")
    assert await texts(library, "warranty") == []
    assert not go_on.is_set()
    go_on.set()


async def test_only_what_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    read = shelves.read

    def noted(path: Path) -> list[shelves.Passage]:
        seen.append(path.name)
        return read(path)

    monkeypatch.setattr(shelves, "read", noted)
    write(tmp_path, "a.txt", "apples")
    write(tmp_path, "b.txt", "bananas")
    for one in (opened(tmp_path), opened(tmp_path)):  # another process finds what the first one read
        await one.find("shop", "apples")
    assert seen == ["a.txt", "b.txt"]
    write(tmp_path, "b.txt", "bread", age=1)
    third = opened(tmp_path)
    assert (await texts(third, "bread"), seen) == (["bread"], ["a.txt", "b.txt", "b.txt"])


async def test_a_file_that_is_being_written_waits_and_its_last_version_stays(tmp_path: Path, library: Library) -> None:
    path = write(tmp_path, "a.txt", "whole")
    assert await texts(library, "whole") == ["whole"]
    path.write_text("hal", encoding="utf-8")
    assert await texts(library, "whole") == ["whole"]
    assert await library.files("shop") == [FileState("a.txt", 1, waits=True)]
    os.utime(path, (OLD + 5, OLD + 5))
    assert await texts(library, "hal") == ["hal"]


async def test_a_wrong_file_stops_no_other_and_its_last_good_version_serves(tmp_path: Path, library: Library) -> None:
    write(tmp_path, "good.txt", "open at nine")
    write(tmp_path, "price.csv", "item,price\nlatte,70")
    write(tmp_path, "scan.pdf", "no pdf")
    assert await texts(library, "latte") == ["item: latte · price: 70"]
    write(tmp_path, "price.csv", 'item,price\n"latte', age=1)
    assert await texts(library, "latte") == ["item: latte · price: 70"]
    assert await texts(library, "open") == ["open at nine"]
    states = {one.name: (one.passages, one.error) for one in await library.files("shop")}
    assert states == {
        "good.txt": (1, ""),
        "price.csv": (1, "is no table: unexpected end of data"),
        "scan.pdf": (0, "is no PDF that can be read"),
    }


async def test_a_tenant_finds_its_own_files_alone(tmp_path: Path, library: Library) -> None:
    write(tmp_path, "a.txt", "secret recipe")
    write(tmp_path, "b.txt", "other recipe", tenant="other")
    assert (await texts(library, "recipe"), await texts(library, "recipe", "other")) == (
        ["secret recipe"],
        ["other recipe"],
    )


async def test_a_broken_index_is_made_anew(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "open at nine")
    first = opened(tmp_path)
    assert await texts(first, "nine") == ["open at nine"]
    for one in (tmp_path / "index").glob("shop.knowledge.sqlite*"):
        one.write_bytes(b"no database at all" * 500)
    second = opened(tmp_path)
    assert await texts(second, "nine") == ["open at nine"]


async def test_the_watch_takes_changes_in_by_itself(tmp_path: Path, library: Library) -> None:
    stop = asyncio.Event()
    watching = asyncio.create_task(library.watch(lambda: ["shop"], stop))
    write(tmp_path, "a.txt", "open at nine")
    try:
        async with asyncio.timeout(60):
            while not (tmp_path / "index" / "shop.knowledge.sqlite").exists():
                await asyncio.sleep(0.01)
    finally:
        stop.set()
        await watching
    assert await texts(library, "nine") == ["open at nine"]


async def test_the_one_search_finds_files_beside_what_is_known_of_the_person(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "# Beans\n\nWe roast on Tuesdays")
    config = MemoryConfig(
        lm_base_path=tmp_path / "longterm", knowledge_path=tmp_path / "knowledge", embeddings="none"
    )  # fmt: skip
    manager = MemoryManager(config)
    try:
        await manager.remember("shop", "line:U1", "I like a dark roast")
        hits = await manager.search("shop", "line:U1", "roast")
        assert sorted((hit.kind, hit.text) for hit in hits) == [
            ("fact", "I like a dark roast"),
            ("knowledge", "We roast on Tuesdays"),
        ]
        only = await manager.search("shop", "line:U1", "roast", kinds=["facts"])
        assert [hit.kind for hit in only] == ["fact"]
        told = await manager.recall("shop", "line:U1", query="roast", memory_type="knowledge")
        assert told == "We roast on Tuesdays"
    finally:
        await manager.close()


@pytest.mark.parametrize(
    ("question", "passage", "score"),
    [
        ("how much is the yirgacheffe?", "item: Yirgacheffe drip · price: 140 baht", 1.0),
        ("how much is the yirgacheffe?", "Yirgacheffe is floral", 0.0),
        ("how much is the matcha?", "item: Latte · price: 75 baht", 0.0),
        ("บราวนี่มีถั่วไหมคะ", "item: บราวนี่ · price: 55 บาท · note: มีถั่ววอลนัท", 1.0),
        ("บราวนี่ส่งฟรี", "item: บราวนี่ · price: 55 บาท", 7 / 13),
        ("ใช้เวลากี่วัน", "ส่งถึงภายใน 3 วัน", 0.0),
        ("ร้านอยู่ที่ไหน", "อยู่ติดสถานี", 1.0),
        ("is it?", "it is", 0.0),
        ("", "anything", 0.0),
    ],
)
def test_how_much_of_what_is_asked_a_passage_tells(question: str, passage: str, score: float) -> None:
    assert told_of(question, passage) == pytest.approx(score)


async def test_how_sure_a_passage_is_depends_on_no_other(tmp_path: Path, library: Library) -> None:
    few, many = "item,price\nYirgacheffe,140 baht\n", "".join(f"Cake {n},{n} baht\n" for n in range(1, 300))
    for age, text in enumerate((few, few + many)):
        write(tmp_path, "prices.csv", text, age=age)
        told = sure(await library.find("shop", "how much is the yirgacheffe?"))
        assert told is not None
        assert (told.passage.text, told.score) == ("item: Yirgacheffe · price: 140 baht", 1.0)
        assert sure(await library.find("shop", "how much is the mocha?")) is None


async def test_a_follow_up_is_sure_by_its_own_words_too(tmp_path: Path, library: Library) -> None:
    write(tmp_path, "prices.csv", "item,price\nLatte,75 baht\nMocha,80 baht\n")
    told = sure(await library.find("shop", "latte mocha", said="and the mocha?"))
    assert told is not None
    assert told.passage.text == "item: Mocha · price: 80 baht"
    assert sure(await library.find("shop", "latte oat milk", said="and with oat milk?")) is None
