from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory.errors import LongTermUnavailable
from memory.keys import ConversationRef
from memory.models import Message, fresh_start
from memory.transcripts import TranscriptFiles

NOW = datetime(2026, 3, 1, 0, 0, tzinfo=UTC)
REF = ConversationRef("store_001", "line:U1")
SIDE = REF._replace(agent="sales", conversation="c2")


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def transcripts(tmp_path: Path, clock: Clock) -> TranscriptFiles:
    return TranscriptFiles(tmp_path / "transcripts", clock=clock)


def said(text: str, message_id: str | None = None) -> Message:
    message: Message = {"role": "user", "message": text}
    if message_id:
        message["message_id"] = message_id
    return message


async def texts(transcripts: TranscriptFiles, limit: int = 100, ref: ConversationRef = REF) -> list[str]:
    return [message["message"] for message in await transcripts.tail(ref, limit)]


def file_of(tmp_path: Path, month: str = "2026-03") -> Path:
    return tmp_path / "transcripts" / "store_001" / "line:U1" / f"{month}.jsonl"


def inside(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_nothing_said_is_an_empty_tail_and_leaves_no_trace(transcripts: TranscriptFiles, tmp_path: Path) -> None:
    assert await transcripts.tail(REF, 10) == []
    assert await transcripts.tenants() == []
    assert inside(tmp_path) == []


async def test_a_fresh_start_hides_what_its_own_conversation_said_before(
    transcripts: TranscriptFiles, tmp_path: Path
) -> None:
    await transcripts.append(REF, [said("before")])
    await transcripts.append(SIDE, [said("elsewhere")])
    await transcripts.append(REF, [fresh_start("r1")])
    assert (await texts(transcripts), await texts(transcripts, ref=SIDE)) == ([], ["elsewhere"])
    await transcripts.append(REF, [said("after")])
    assert await texts(transcripts) == ["after"]
    assert file_of(tmp_path).read_text("utf-8").count("before") == 1  # it is kept all the same


async def test_a_metadata_that_is_no_object_is_no_fresh_start(transcripts: TranscriptFiles, tmp_path: Path) -> None:
    await transcripts.append(REF, [said("one")])
    with file_of(tmp_path).open("a", encoding="utf-8") as file:
        file.write('{"agent":"default","conversation":"main","role":"user","message":"odd","metadata":[1]}\n')
    assert await texts(transcripts) == ["one", "odd"]


async def test_the_tail_is_the_newest_messages_oldest_first(transcripts: TranscriptFiles) -> None:
    await transcripts.append(REF, [said("สวัสดี"), said("two")])
    await transcripts.append(REF, [said("three")])
    assert [await texts(transcripts), await texts(transcripts, 2), await texts(transcripts, 0)] == [
        ["สวัสดี", "two", "three"],
        ["two", "three"],
        [],
    ]


async def test_a_message_comes_back_with_all_that_it_had(transcripts: TranscriptFiles) -> None:
    message: Message = {
        "role": "bot",
        "message": "hi\n\u2028there",
        "message_id": "m1",
        "timestamp": "2026-03-01T00:00:00Z",
        "metadata": {"platform": "line"},
    }
    await transcripts.append(REF, [message])
    assert await transcripts.tail(REF, 1) == [message]


async def test_each_conversation_has_its_own_tail(transcripts: TranscriptFiles) -> None:
    for n in range(5):
        await transcripts.append(REF, [said(f"main {n}")])
        await transcripts.append(SIDE, [said(f"side {n}")])
    assert await texts(transcripts, 2) == ["main 3", "main 4"]
    assert await texts(transcripts, 2, SIDE) == ["side 3", "side 4"]
    assert await texts(transcripts, 2, REF._replace(user="line:U2")) == []


async def test_a_message_written_twice_is_read_once_in_its_first_place(transcripts: TranscriptFiles) -> None:
    await transcripts.append(REF, [said("a", "1"), said("b", "2"), said("c")])
    await transcripts.append(REF, [said("a", "1"), said("d", "3"), said("b", "2")])
    assert await texts(transcripts) == ["a", "b", "c", "d"]


async def test_a_message_written_again_is_told_once_to_whoever_reads_everything(transcripts: TranscriptFiles) -> None:
    await transcripts.append(REF, [said("a", "1"), said("b", "2"), said("c"), said("c")])
    await transcripts.append(SIDE, [said("a aside", "1")])
    await transcripts.append(REF, [said("a", "1"), said("b", "2"), said("d", "3")])
    told = [line["message"] for line in await transcripts.everything(REF.tenant, REF.user)]
    assert told == ["a", "b", "c", "c", "a aside", "d"]


async def test_the_tail_goes_on_into_earlier_months_and_long_lines(transcripts: TranscriptFiles, clock: Clock) -> None:
    expected = []
    for month in range(3):
        clock.now = NOW + timedelta(days=31 * month)
        for n in range(4):
            expected.append(f"{month}.{n} " + "ก" * 30_000)
            await transcripts.append(REF, [said(expected[-1])])
    assert await texts(transcripts) == expected
    assert await texts(transcripts, 6) == expected[-6:]


async def test_a_line_cut_short_spoils_no_other(transcripts: TranscriptFiles, tmp_path: Path) -> None:
    await transcripts.append(REF, [said("one")])
    with file_of(tmp_path).open("ab") as file:
        file.write(b'{"agent":"default","conversation":"main","role":"us')
    assert await texts(transcripts) == ["one"]
    await transcripts.append(REF, [said("two")])
    with file_of(tmp_path).open("ab") as file:
        file.write(b"\x00\xff\n[]\n{}\n")
    await transcripts.append(REF, [said("three")])
    assert await texts(transcripts) == ["one", "two", "three"]


async def test_a_line_of_an_odd_shape_spoils_no_other(transcripts: TranscriptFiles, tmp_path: Path) -> None:
    await transcripts.append(REF, [said("one", "a")])
    place = '"agent": "default", "conversation": "main"'
    with file_of(tmp_path).open("a") as file:
        file.write(f'{{"role": "user", "message": "odd", "message_id": ["7"], {place}}}\n')
        file.write(f'{{"role": "user", "message": "two", "message_id": "7", "metadata": [7], {place}}}\n')
    assert await texts(transcripts) == ["one", "two"]
    assert await transcripts.find(REF, "7") is None


async def test_a_lone_surrogate_is_written_as_a_replacement(transcripts: TranscriptFiles) -> None:
    await transcripts.append(REF, [said("a\ud800b")])
    assert await texts(transcripts) == ["a�b"]


async def test_many_writers_at_once_lose_nothing(transcripts: TranscriptFiles) -> None:
    await asyncio.gather(*(transcripts.append(REF, [said(str(n), str(n))]) for n in range(200)))
    assert sorted(await texts(transcripts, 500), key=int) == [str(n) for n in range(200)]


async def test_pruning_removes_what_is_older_and_nothing_else(
    transcripts: TranscriptFiles, clock: Clock, tmp_path: Path
) -> None:
    for days in (-40, -10, -9, 0):
        clock.now = NOW + timedelta(days=days)
        await transcripts.append(REF, [said(f"{days}")])
    await transcripts.append(REF._replace(tenant="store_002"), [said("elsewhere")])
    assert await transcripts.prune("store_001", NOW - timedelta(days=9)) == 2
    assert await texts(transcripts) == ["-9", "0"]
    assert await transcripts.prune("store_001", NOW + timedelta(days=400)) == 2
    assert not file_of(tmp_path).parent.exists()
    assert await texts(transcripts, ref=REF._replace(tenant="store_002")) == ["elsewhere"]
    assert await transcripts.tenants() == ["store_001", "store_002"]


async def test_forget_removes_that_person_alone_and_counts(transcripts: TranscriptFiles) -> None:
    other = REF._replace(user="line:U10")
    await transcripts.append(REF, [said("a"), said("b")])
    await transcripts.append(SIDE, [said("c")])
    await transcripts.append(other, [said("d")])
    assert await transcripts.forget("store_001", "line:U1") == 3
    assert [await texts(transcripts), await texts(transcripts, ref=SIDE)] == [[], []]
    assert await texts(transcripts, ref=other) == ["d"]
    assert await transcripts.forget("store_001", "line:U1") == 0


async def test_a_disk_that_can_not_be_written_is_one_clear_error(transcripts: TranscriptFiles, tmp_path: Path) -> None:
    (tmp_path / "transcripts").write_bytes(b"")
    with pytest.raises(LongTermUnavailable, match="can't be written"):
        await transcripts.append(REF, [said("a")])
