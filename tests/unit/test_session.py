from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory import context
from memory.keys import ConversationRef
from memory.models import LongTermMemory, Message, ShortTermMemory
from memory.session import append, kept_for, new_session, note_event, worth_saving
from memory.short_term import codec
from memory.surrogates import without_surrogates
from processors.models import EventType, MemoryEvent, iso

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
REF = ConversationRef("store_001", "line:U1")


def message(text: str, message_id: str | None = None, timestamp: str | None = None) -> Message:
    made: Message = {"role": "user", "message": text}
    if message_id:
        made["message_id"] = message_id
    if timestamp:
        made["timestamp"] = timestamp
    return made


def fresh(*carried: Message, lm: LongTermMemory | None = None) -> ShortTermMemory:
    return new_session(REF, "s1", lm, carried, NOW, 1800)


def added(session: ShortTermMemory, *messages: Message, most: int = 20, now: datetime = NOW) -> ShortTermMemory:
    return append(session, messages, max_messages=most, now=now, ttl=1800)


def event(**payload: Any) -> MemoryEvent:
    return MemoryEvent(event_type=EventType.INQUIRY, payload=payload, importance_score=0.5, timestamp=NOW)


def test_what_is_given_back_is_what_the_next_one_reads() -> None:
    """Whoever begins a session, or writes to it, has no finer times than a store keeps."""
    now = NOW + timedelta(microseconds=123_456)
    session = new_session(REF, "s1", None, (), now, 1800)
    assert codec.decode(codec.encode(session, 0)) == session
    session = added(session, message("hello", "m1"), now=now + timedelta(microseconds=1_234))
    assert codec.decode(codec.encode(session, 1)) == session.model_copy(update={"rev": 1})


def test_a_new_session_begins_with_summary_attributes_and_preferences() -> None:
    known = LongTermMemory(
        tenant_id=REF.tenant,
        user_id=REF.user,
        attributes={"preferred_language": "en", "current_topic": "cake", "timezone": "Asia/Bangkok"},
        history_summary="likes cake",
    )
    session = fresh(message("before"), lm=known)
    assert session.summary == "likes cake"
    assert session.variables == {
        "preferred_language": "en",
        "current_topic": "cake",
        "preferences": {"timezone": "Asia/Bangkok"},
    }
    assert session.carried == [message("before")]
    assert known.attributes["preferred_language"] == "en"


@settings(deadline=None)
@given(st.datetimes(timezones=st.timezones() | st.just(UTC)))
def test_a_time_is_written_in_utc_to_the_millisecond(at: datetime) -> None:
    try:
        plain = at.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        return
    assert iso(at) == plain.isoformat(timespec="milliseconds" if plain.microsecond else "seconds") + "Z"


_values = st.recursive(
    st.none() | st.integers() | st.text(), lambda deeper: st.lists(deeper) | st.dictionaries(st.text(), deeper)
)


@settings(deadline=None)
@given(st.text(), st.dictionaries(st.text(), _values, max_size=3))
def test_what_is_appended_is_a_copy_without_lone_surrogates(text: str, metadata: dict[str, Any]) -> None:
    given_one: Message = {"role": "user", "message": text, "metadata": metadata}
    [line] = added(fresh(), given_one).history
    assert line == without_surrogates(given_one) | {"timestamp": "2026-03-01T09:00:00Z"}
    assert "timestamp" not in given_one


def test_appending_leaves_the_session_that_was_given_as_it_was() -> None:
    before = fresh()
    after = added(before, message("a"))
    assert [len(before.history), len(after.history)] == [0, 1]


def test_if_nothing_is_new_the_same_session_comes_back_and_lives_no_longer() -> None:
    session = added(fresh(), message("a", "1"))
    assert added(session, message("a", "1"), now=NOW + timedelta(minutes=5)) is session


def test_a_message_that_was_only_carried_over_moves_into_the_history() -> None:
    session = added(fresh(message("x", "0"), message("a", "1")), message("a", "1"), message("b", "2"))
    assert [one["message"] for one in session.carried] == ["x"]
    assert [one["message"] for one in session.history] == ["a", "b"]


def test_a_time_is_kept_unless_it_lies_in_the_future_or_before_the_last() -> None:
    times = ("2026-03-01T08:00:00Z", "2026-03-01T07:00:00Z", "2027-01-01T00:00:00Z", "nonsense", None)
    session = added(fresh(), *(message("x", None, time) for time in times))
    assert [one["timestamp"] for one in session.history] == [
        "2026-03-01T08:00:00Z",
        "2026-03-01T08:00:00.001Z",
        "2026-03-01T09:00:00Z",
        "2026-03-01T09:00:00.001Z",
        "2026-03-01T09:00:00.002Z",
    ]


@given(st.lists(st.lists(st.integers(0, 30), max_size=5), max_size=15), st.integers(1, 8))
def test_every_message_is_appended_once_and_the_newest_are_kept(batches: list[list[int]], most: int) -> None:
    session, order = fresh(), list[int]()
    for batch in batches:
        order += [n for n in dict.fromkeys(batch) if n not in order]
        session = added(session, *(message(str(n), str(n)) for n in batch), most=most)
    assert [int(one["message"]) for one in session.history] == order[-most:]
    times = [datetime.fromisoformat(one["timestamp"]) for one in session.history]
    assert times == sorted(set(times))


@pytest.mark.parametrize(
    ("before", "spoken", "after"),
    [(None, "th", "th"), ("th", "en", "en"), ("th", "mixed", "th"), (None, "mixed", "mixed"), ("en", None, "en")],
)
def test_the_language_follows_what_is_spoken(before: str | None, spoken: str | None, after: str | None) -> None:
    session = fresh().model_copy(update={"variables": {"preferred_language": before}})
    assert note_event(session, event(language=spoken)).variables["preferred_language"] == after


def test_the_topic_is_the_models_word_or_the_kind_of_message() -> None:
    assert note_event(fresh(), event(details={"topic": "cake"})).variables["current_topic"] == "cake"
    assert note_event(fresh(), event()).variables["current_topic"] == "inquiry"
    small_talk = event().model_copy(update={"event_type": EventType.GENERIC_EVENT})
    noted = note_event(note_event(fresh(), event()), small_talk)
    assert (noted.variables["current_topic"], noted.last_intent) == ("inquiry", "GENERIC_EVENT")


@pytest.mark.parametrize(
    ("score", "threshold", "saved"),
    [(0.5, 0.5, True), (0.49, 0.5, False), (0.9, 1.0, True), (0.89, 1.0, False), (0.0, 0.0, True)],
)
def test_what_is_worth_saving(score: float, threshold: float, saved: bool) -> None:
    scored = event().model_copy(update={"importance_score": score})
    assert worth_saving(scored, threshold) is saved


def test_while_a_person_has_it_a_session_ends_no_sooner_than_they_were_given_time_for() -> None:
    until = NOW + timedelta(hours=2)
    theirs = fresh().model_copy(update={"state": "human", "expires_at": until})
    later = added(theirs, message("hello", "m1"), now=NOW + timedelta(minutes=10))
    assert (later.expires_at, kept_for(later, NOW, 1800), kept_for(later, NOW, 0)) == (until, 7200.0, 0)
    back = added(later.model_copy(update={"state": "awaiting_input"}), message("thanks", "m2"))
    assert (back.expires_at, kept_for(back, NOW, 1800)) == (NOW + timedelta(minutes=30), 1800)


def test_the_beginning_of_what_is_told_stays_for_three_turns_of_a_full_history() -> None:
    """However long the talk is: the ids that a session remembers are let go of by a multiple of the step."""
    session, firsts = fresh(), []
    for turn in range(100):
        told = context.recent(session, context.steady(session, 20))
        assert told == session.history[len(session.history) - len(told) :]
        assert len(told) == len(session.history) if turn <= 10 else len(told) in (16, 18, 20)
        firsts.append(told[0]["message"] if told else "")
        said = [message(f"{turn} {part}", f"{turn} {part}") for part in "ab"]
        session = added(session, *said, now=NOW + timedelta(minutes=turn))
        assert len(session.recent_ids) <= 64
    full = firsts[11:]
    assert [len(list(same)) for _, same in groupby(full)][:-1] == [3] * (len(full) // 3)


def test_of_few_messages_none_is_left_out_of_a_prompt() -> None:
    said = [message(str(number), str(number)) for number in range(9)]
    assert context.steady(added(fresh(), *said, most=5), 5) == 5
    assert context.steady(fresh(), 20) == 0
    assert context.steady(fresh(*said), 20) == 9


def test_a_changed_session_is_the_copy_that_pydantic_makes() -> None:
    session = added(fresh(message("before", "m0")), message("hello", "m1"))
    was = session.model_dump_json()
    fields = {"last_intent": "INQUIRY", "variables": {"current_topic": "cake"}}
    made, copied = session.changed(fields), session.model_copy(update=fields)
    assert made == copied
    assert made.model_fields_set == copied.model_fields_set
    assert made.model_dump_json() == copied.model_dump_json()
    assert made.changed({"summary": "s"}).model_copy(deep=True).summary == "s"
    assert session.model_dump_json() == was
