from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory import remember
from memory.errors import LongTermUnavailable
from memory.long_term.json_files import JsonFiles
from memory.remember import Remember
from processors.models import EventType, MemoryEvent

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class Disk(JsonFiles):
    """Long-term memory on a disk that can be full, or slow."""

    full = False
    slow: asyncio.Event | None = None

    async def change(self, *args: Any, **more: Any) -> None:
        if self.slow is not None:
            await self.slow.wait()
        if self.full:
            raise LongTermUnavailable("full")
        await super().change(*args, **more)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path, clock=lambda: NOW)


def event(number: int, **payload: Any) -> MemoryEvent:
    return MemoryEvent(
        event_type=EventType.REQUEST,
        payload={"original_message": f"{number}", "language": "en", **payload},
        importance_score=0.8,
        timestamp=NOW,
        event_id=f"e{number}",
    )


async def ids(disk: Disk, user: str = "u") -> list[str | None]:
    memory = await disk.load("t", user)
    return [one.event_id for one in memory.events] if memory else []


async def test_events_bring_attributes_and_a_summary(disk: Disk) -> None:
    assert await Remember(disk).save("t", "u", [event(1, allergies=["nuts"]), event(2, allergies=["shrimp"])]) is True
    memory = await disk.load("t", "u")
    assert memory is not None
    assert memory.attributes == {"preferred_language": "en", "allergies": ["nuts", "shrimp"]}
    assert "2 requests" in memory.history_summary


async def test_a_name_is_kept_with_what_they_say_first_and_takes_no_other_ones_place(
    disk: Disk, tmp_path: Path
) -> None:
    remembers = Remember(disk)
    for number, name in enumerate(("  \u202e", "Ann\u200b Lee", "Bob")):
        await remembers.save("t", "telegram:7", [event(number)], name=name)
        memory = await disk.load("t", "telegram:7")
        assert memory is not None
        known = memory.person.display_name if memory.person else None
        assert known == (None if number == 0 else "Ann Lee")
    await remembers.save("t", "telegram:8", [event(9)], name="Cleo")
    assert sorted(path.name for path in (tmp_path / "t").glob("telegram*8*")) == ["telegram:8.json"]  # one write
    again = await JsonFiles(tmp_path).load("t", "telegram:8")
    assert again is not None
    assert again.person is not None
    assert (again.person.display_name, again.person.identities) == ("Cleo", {"telegram_id": "8"})


async def test_saving_the_same_event_again_changes_nothing(disk: Disk) -> None:
    remembers = Remember(disk)
    await remembers.save("t", "u", [event(1)])
    before = await disk.load("t", "u")
    assert await remembers.save("t", "u", [event(1)]) is True
    assert await disk.load("t", "u") == before


async def test_what_waits_is_saved_with_the_next_event_in_order(disk: Disk) -> None:
    remembers = Remember(disk)
    disk.full = True
    assert [await remembers.save("t", "u", [event(n)]) for n in (1, 2)] == [False, False]
    disk.full = False
    assert await remembers.save("t", "u", [event(3)]) is True
    assert (await ids(disk), remembers.waiting()) == (["e1", "e2", "e3"], 0)


async def test_a_flush_saves_what_waits_of_everybody(disk: Disk) -> None:
    remembers = Remember(disk)
    disk.full = True
    for user in ("a", "b"):
        await remembers.save("t", user, [event(1)])
    assert await remembers.flush() == 0
    disk.full = False
    assert await remembers.flush() == 2
    assert [await ids(disk, "a"), await ids(disk, "b"), remembers.waiting()] == [["e1"], ["e1"], 0]


async def test_a_cancelled_save_keeps_what_waited(disk: Disk) -> None:
    remembers = Remember(disk)
    disk.full = True
    await remembers.save("t", "u", [event(1)])
    disk.full, disk.slow = False, asyncio.Event()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(remembers.save("t", "u", [event(2)]), 0.05)
    disk.slow.set()
    await remembers.flush()
    assert (await ids(disk), remembers.waiting()) == (["e1"], 0)


async def test_what_waits_is_bounded_and_the_oldest_go_first(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remember, "MAX_PENDING_OF_USER", 2)
    monkeypatch.setattr(remember, "MAX_PENDING", 4)
    remembers = Remember(disk)
    disk.full = True
    for user in ("a", "b", "c"):
        for n in range(3):
            await remembers.save("t", user, [event(n)])
    disk.full = False
    await remembers.flush()
    assert [await ids(disk, user) for user in ("a", "b", "c")] == [[], ["e1", "e2"], ["e1", "e2"]]


async def test_what_waits_of_a_forgotten_person_is_dropped(disk: Disk) -> None:
    remembers = Remember(disk)
    disk.full = True
    await remembers.save("t", "u", [event(1)])
    assert [remembers.drop("t", "u"), remembers.drop("t", "u")] == [1, 0]
    disk.full = False
    await remembers.flush()
    assert await ids(disk) == []
