"""Messages that were changed or taken back, in this process and over a real server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory import MemoryConfig, MemoryManager
from memory.keys import ConversationRef
from memory.models import Message
from processors import EventProcessor
from processors.models import EventType, MemoryEvent

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
REF = ConversationRef("store_001", "line:U1")
GROUP = ConversationRef("store_001", "line:group:C1")
SECRET = "ฉันแพ้กุ้ง เบอร์ 0812345678"


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["in process", "redis"])
async def manager(
    request: pytest.FixtureRequest, tmp_path: Path, redis_url: str, clock: Clock
) -> AsyncIterator[MemoryManager]:
    config = MemoryConfig(
        redis_url=None if request.param == "in process" else redis_url,
        lm_base_path=tmp_path / "longterm",
        transcripts_path=tmp_path / "transcripts",
        importance_threshold=0.0,
    )
    manager = MemoryManager(config, processor=EventProcessor(), clock=clock)
    yield manager
    await manager.close()


async def says(manager: MemoryManager, number: int, text: str, ref: ConversationRef = REF, **metadata: str) -> None:
    """A message, as the gateway keeps it: session, transcript, event."""
    given = {"message_id": f"ch:e{number}", "platform_id": f"p{number}", **metadata}
    await manager.add_message_to_context(ref.tenant, ref.user, text, "user", given)


def everything_under(folder: Path) -> str:
    """All that is on disk, as text."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return "\n".join(json.dumps(path.read_text("utf-8"), ensure_ascii=False) for path in files)


def texts(lines: list[Message]) -> list[str]:
    return [line["message"] for line in lines]


async def test_a_message_is_found_by_the_platforms_id(manager: MemoryManager) -> None:
    await says(manager, 1, "hello there")
    found = await manager.said(REF, "p1")
    assert found is not None
    assert found["message"] == "hello there"
    assert await manager.said(REF, "p2") is None
    assert await manager.said(REF._replace(user="line:U2"), "p1") is None


async def test_a_message_is_found_in_the_transcript_when_its_session_is_over(manager: MemoryManager) -> None:
    await says(manager, 1, "hello there")
    await manager.sessions.delete(REF)
    found = await manager.said(REF, "p1")
    assert found is not None
    assert found["message"] == "hello there"


async def test_what_was_taken_back_stands_nowhere(manager: MemoryManager, tmp_path: Path) -> None:
    await says(manager, 1, "I would like to book a table for 2 tomorrow")
    await says(manager, 2, SECRET)
    known = await manager.longterm.load(*REF[:2])
    assert known is not None
    assert known.attributes["phone"] == "0812345678"
    assert "0812345678" in everything_under(tmp_path)

    taken = await manager.retract(REF, "p2")
    assert taken is not None
    assert taken["message"] == SECRET
    assert "0812345678" not in everything_under(tmp_path)
    assert "กุ้ง" not in everything_under(tmp_path)
    session = await manager.sessions.load(REF)
    assert session is not None
    assert "0812345678" not in session.model_dump_json()
    assert texts(session.history) == ["I would like to book a table for 2 tomorrow"]
    known = await manager.longterm.load(*REF[:2])
    assert known is not None
    assert [event.event_id for event in known.events] == ["ch:e1"]
    assert {"phone", "allergies"} & set(known.attributes) == set()


async def test_taken_back_again_it_is_not_there(manager: MemoryManager) -> None:
    await says(manager, 1, SECRET)
    assert await manager.retract(REF, "p1") is not None
    assert await manager.retract(REF, "p1") is None


async def test_a_late_repeat_does_not_bring_it_back(manager: MemoryManager) -> None:
    await says(manager, 1, SECRET)
    await manager.retract(REF, "p1")
    await says(manager, 1, SECRET)
    session = await manager.sessions.load(REF)
    assert session is not None
    assert session.history == []


async def test_what_was_told_before_comes_back_when_its_replacement_is_taken_back(manager: MemoryManager) -> None:
    await says(manager, 1, "my phone is 0811111111")
    await says(manager, 2, "my phone is 0822222222")
    await manager.retract(REF, "p2")
    known = await manager.longterm.load(*REF[:2])
    assert known is not None
    assert known.attributes["phone"] == "0811111111"


async def test_the_summary_of_a_session_that_is_over_goes_with_it(
    manager: MemoryManager, clock: Clock, tmp_path: Path
) -> None:
    await says(manager, 1, SECRET)
    await says(manager, 2, "thank you for noting that down")
    clock.now += timedelta(hours=1)
    await says(manager, 3, "hello again")  # the first session's gist quotes its first message
    known = await manager.longterm.load(*REF[:2])
    assert known is not None
    assert "0812345678" in known.history_summary
    await manager.retract(REF, "p1")
    assert "0812345678" not in everything_under(tmp_path)
    session = await manager.sessions.load(REF)
    assert session is not None
    assert "0812345678" not in session.model_dump_json()


async def test_taken_back_from_a_session_that_is_over_but_not_yet_told(
    manager: MemoryManager, clock: Clock, tmp_path: Path
) -> None:
    await says(manager, 1, SECRET)
    await says(manager, 2, "thank you for noting that down")
    clock.now += timedelta(hours=1)
    await manager.retract(REF, "p1")
    await manager.cleanup_expired_sessions()
    assert "0812345678" not in everything_under(tmp_path)


async def test_in_a_group_it_goes_from_its_writers_memory(manager: MemoryManager, tmp_path: Path) -> None:
    metadata = {"platform_id": "p1", "sender": "line:U7"}
    line: Message = {"role": "user", "message": SECRET, "message_id": "ch:e1", "metadata": dict(metadata)}
    await manager.transcripts.append(GROUP, [line])
    event = MemoryEvent(
        event_type=EventType.INFORMATION,
        payload={"original_message": SECRET, "language": "th", "phones": ["0812345678"]},
        importance_score=0.8,
        event_id="ch:e1",
    )
    await manager.saving.save("store_001", "line:U7", [event])
    assert await manager.retract(GROUP, "p1") is not None
    assert "0812345678" not in everything_under(tmp_path)


async def test_an_event_of_several_messages_goes_as_a_whole(manager: MemoryManager, tmp_path: Path) -> None:
    await says(manager, 2, SECRET)
    event = MemoryEvent(
        event_type=EventType.INFORMATION,
        payload={"original_message": f"a\n{SECRET}", "language": "th", "sources": ["ch:e1", "ch:e2"]},
        importance_score=0.8,
        event_id="ch:e1",
    )
    await manager.saving.save(*REF[:2], [event])
    await manager.retract(REF, "p2")
    assert "0812345678" not in everything_under(tmp_path)


async def test_a_changed_message_keeps_both_texts(manager: MemoryManager) -> None:
    await says(manager, 1, "2 lattes please, my phone is 0811111111")
    meant = MemoryEvent(
        event_type=EventType.TRANSACTION,
        payload={"original_message": "3 lattes please", "language": "en"},
        importance_score=0.9,
        timestamp=START,
        event_id="ch:e1",
    )
    for _ in range(2):  # a turn may be tried twice
        await manager.correct(REF, "p1", "3 lattes please", meant)
    edited = [{"message": "2 lattes please, my phone is 0811111111", "until": "2026-03-01T09:00:00Z"}]
    session = await manager.sessions.load(REF)
    assert session is not None
    for lines in (session.history, await manager.transcripts.tail(REF, 10)):
        assert texts(lines) == ["3 lattes please"]
        assert lines[0]["metadata"]["edited"] == edited
    known = await manager.longterm.load(*REF[:2])
    assert known is not None
    assert [event.payload["original_message"] for event in known.events] == ["3 lattes please"]
    assert "phone" not in known.attributes


async def test_a_message_that_nobody_knows_is_neither_changed_nor_taken_back(
    manager: MemoryManager, tmp_path: Path
) -> None:
    await says(manager, 1, "hello there")
    before = everything_under(tmp_path)
    assert await manager.correct(REF, "p9", "other") is None
    assert await manager.retract(REF, "p9") is None
    assert everything_under(tmp_path) == before


async def test_what_others_said_stays_as_it_is(manager: MemoryManager) -> None:
    other = ConversationRef("store_001", "line:U2")
    for ref in (REF, other):
        await says(manager, 1, "the very same words", ref)
    await manager.retract(REF, "p1")
    assert texts(await manager.transcripts.tail(other, 10)) == ["the very same words"]
    assert await manager.transcripts.tail(REF, 10) == []


async def test_what_the_bot_repeated_of_it_goes_from_a_session_that_has_ended(
    manager: MemoryManager, clock: Clock, tmp_path: Path
) -> None:
    await says(manager, 1, SECRET)
    repeated = "We call 0812345678, without กุ้ง."
    named = {"message_id": "re:ch:e1", "platform_ids": ["b1"]}
    await manager.add_message_to_context(*REF[:2], repeated, "bot", named)
    clock.now += timedelta(hours=1)
    assert await manager.cleanup_expired_sessions() == 1
    assert repeated in everything_under(tmp_path)
    assert await manager.retract(REF, "p1") is not None
    assert "0812345678" not in everything_under(tmp_path)
    assert "กุ้ง" not in everything_under(tmp_path)
    assert [line["message"] for line in await manager.transcripts.everything(*REF[:2])] == ["We call …, without …."]
