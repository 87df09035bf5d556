from __future__ import annotations

from datetime import UTC, datetime

from memory import history
from memory.models import LongTermMemory
from processors.models import EventType, MemoryEvent

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


REQUEST = MemoryEvent(
    event_type=EventType.REQUEST, payload={"original_message": "a cake"}, importance_score=0.8, timestamp=NOW
)


def memory(summary: str, events: int) -> LongTermMemory:
    return LongTermMemory(tenant_id="t", user_id="u", events=[REQUEST] * events, history_summary=summary)


ONCE = history.with_events(memory("", 0), [REQUEST], "en")


def test_the_first_event_begins_the_summary() -> None:
    assert "request" in ONCE
    assert "\n" not in ONCE


def test_events_replace_their_own_part_and_keep_the_gist() -> None:
    twice = history.with_events(memory(f"{ONCE}\nwanted a cake", 1), [REQUEST], "en")
    assert twice.split("\n") == [history.with_events(memory("", 0), [REQUEST, REQUEST], "en"), "wanted a cake"]


def test_a_gist_replaces_the_one_before_and_keeps_what_events_say() -> None:
    assert history.with_gist(memory(f"{ONCE}\nold", 1), "new\nlines") == f"{ONCE}\nnew\nlines"
    assert history.gist_of(memory(f"{ONCE}\nnew\nlines", 1)) == "new\nlines"
    assert history.with_gist(memory("old", 0), "new") == "new"


def test_what_stood_there_before_the_first_event_is_kept() -> None:
    assert history.with_events(memory("written by hand", 0), [REQUEST], "en") == f"{ONCE}\nwritten by hand"


def test_an_empty_gist_leaves_no_empty_line() -> None:
    assert history.with_gist(memory(f"{ONCE}\nold", 1), "") == ONCE
