"""What holds for any order of statements about a person."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memory.facts import Fact, attributes, from_attributes, merge, new, settled, upserted
from memory.long_term import document
from memory.long_term.frozen import frozen
from memory.wording import key_form
from processors.models import EventType, MemoryEvent

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
KEYS = st.sampled_from(["city", "Shoe size", "shoe_size", "allergies", "ชื่อ"])
VALUES = st.sampled_from(["a", "A", "b", "38", "39", "ไม่ชอบ", "ชอบ", 1, True, None, ["x"], {"k": 1}])


@given(st.lists(st.tuples(KEYS, VALUES, st.integers(0, 9)), max_size=12))
def test_one_fact_a_key_holds_and_none_is_lost(said: list[tuple[str, object, int]]) -> None:
    known: list[Fact] = []
    for number, (key, value, day) in enumerate(said):
        # Without a value the text is what is said, and the same words under two keys are one statement.
        text = f"{key_form(key)}?"
        fact = new(now=NOW + timedelta(days=day), key=key, value=value, text=text, source=f"m{number}")
        known = upserted(known, merge(known, fact).changed)
    forms = [key_form(fact.key) for fact in known if fact.current]
    assert sorted(forms) == sorted(set(forms))
    assert set(forms) == {key_form(key) for key, _, _ in said}
    ids = {fact.id for fact in known}
    assert all(fact.superseded_by in ids for fact in known if not fact.current)
    # Whoever spoke is named in some fact, so that taking a message back finds what it said.
    assert {source for fact in known for source in fact.sources} == {f"m{n}" for n in range(len(said))}


@given(st.dictionaries(st.text(max_size=8), st.one_of(VALUES, st.text(max_size=8)), max_size=6))
def test_a_file_with_attributes_alone_reads_the_same_each_time(view: dict[str, object]) -> None:
    once = settled([], view, NOW)
    assert settled(once, attributes(once), NOW + timedelta(days=1)) == once
    assert settled([], view, NOW) == once


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=5))
def test_a_journal_read_twice_is_as_if_read_once(told: list[dict[str, object]]) -> None:
    whole = document.empty("t", "u")
    lines = []
    known: list[Fact] = []
    for number, view in enumerate(told):
        changed = from_attributes(known, view, NOW + timedelta(days=number), f"m{number}")
        known = upserted(known, changed)
        lines.append({"facts": [document.plain(fact) for fact in changed]})
    once = document.merge(whole, lines, NOW)
    assert document.merge(once, lines, NOW) == once
    assert once["attributes"] == attributes(known)


class Mood(StrEnum):
    GOOD = "good"


LEAVES: Any = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(), st.dates()),
    *(st.datetimes(timezones=st.just(UTC)), st.sampled_from(Mood), st.decimals(allow_nan=False), st.just(date.min)),
)
PAYLOADS = st.dictionaries(
    st.text(max_size=5),
    st.recursive(LEAVES, lambda inner: st.one_of(st.lists(inner), st.tuples(inner), st.dictionaries(st.text(), inner))),
    max_size=4,
)


@settings(deadline=None)
@given(PAYLOADS, st.datetimes(timezones=st.just(UTC)), st.none() | st.text(max_size=5), st.sampled_from(EventType))
def test_an_event_is_written_as_its_model_would_write_it(
    payload: dict[str, Any], at: datetime, name: str | None, kind: EventType
) -> None:
    event = MemoryEvent(event_type=kind, payload=payload, importance_score=0.5, timestamp=at, event_id=name)
    try:
        whole = event.model_dump(mode="json", exclude_none=True)
    except ValueError:  # neither can: bytes that are no text
        return
    assert document.dump(document.plain(event)) == document.dump(whole)


@settings(deadline=None)
@given(
    st.sampled_from(["likes", "allergies", "current_topic", "ชื่อ", "shoe size"]),
    st.one_of(st.text(), st.lists(st.text()), st.lists(LEAVES), LEAVES),
    st.datetimes(timezones=st.just(UTC)) | st.datetimes(),
    st.none() | st.text(max_size=5),
)
def test_what_is_heard_becomes_the_fact_that_its_model_would_make(
    key: str, value: Any, at: datetime, source: str | None
) -> None:
    known = from_attributes([], {key: value}, at, source)[0]
    model = new(now=at, key=key, value=value, source=source) if value is not None else known
    assert list(known.__dict__.items()) == list(model.__dict__.items())
    assert known.model_fields_set == model.model_fields_set
    later = from_attributes([known], {key: value}, at + timedelta(days=1), "another")
    for one in (known, *later, known.with_(value=frozen(known.value))):
        told = one.model_dump(mode="json", exclude_none=True)
        assert list(document.plain(one).items()) == list(told.items())
        assert document.dump(document.plain(one)) == document.dump(told)
