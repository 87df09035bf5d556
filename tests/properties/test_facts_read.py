"""A fact as a file has it, read in the quick way: what pydantic makes of it, or left to it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memory.facts import Fact, FactType, Priority, Scope, new, read
from memory.long_term.document import plain
from processors.models import iso

NOW = datetime(2026, 11, 28, 9, 0, 3, 120_000, tzinfo=UTC)
LATER = NOW + timedelta(days=2)
STRANGE: tuple[Any, ...] = (
    None, "", "x", 0, 1, -1, 1.0, 1.5, float("nan"), True, [], ["a"], [1], {}, {"a": 1}, "fact", "user_preference",
    "2026-11-28T09:00:00Z", "2026-11-28T09:00:00.123Z", "2026-11-28 09:00:00", "2026-11-28T09:00:00+07:00",
    "2026-W48-6T09:00:00Z", "2026-11-28T09:00:00,123Z", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", "2026-11-31T09:00:00Z",
    1_793_000_300,
)  # fmt: skip

texts = st.text(st.characters(codec="utf-8"), max_size=8)
facts = st.fixed_dictionaries(
    {
        "id": texts,
        "key": texts,
        "text": texts,
        "created_at": st.sampled_from([iso(NOW), iso(LATER), iso(NOW.replace(microsecond=0))]),
        "last_used_at": st.sampled_from([iso(NOW), iso(LATER)]),
    },
    optional={
        "value": st.sampled_from(STRANGE),
        "type": st.sampled_from([*map(str, FactType), "user_preference"]),
        "priority": st.sampled_from([*map(str, Priority)]),
        "scope": st.sampled_from([*map(str, Scope)]),
        "agent": texts,
        "confidence": st.floats(0, 1),
        "times_confirmed": st.integers(0, 9),
        "times_contradicted": st.integers(0, 9),
        "source": texts,
        "also_from": st.lists(texts, max_size=3),
        "superseded_by": texts,
        "pinned": st.booleans(),
    },
)


def same(raw: dict[str, Any]) -> bool:
    """Whether the quick way knew it; it is then what the other gives."""
    found = read(raw)
    try:
        expected = Fact.model_validate(raw)
    except ValidationError:
        assert found is None
        return False
    if found is None:
        return False
    assert repr(found.__dict__) == repr(expected.__dict__)  # so that what is no number is like itself
    assert list(found.__dict__) == list(expected.__dict__)
    assert found.__pydantic_fields_set__ == expected.__pydantic_fields_set__
    assert found.__pydantic_extra__ == expected.__pydantic_extra__
    assert [type(one) for one in found.__dict__.values()] == [type(one) for one in expected.__dict__.values()]
    assert (found.created_at.tzinfo, found.last_used_at.tzinfo) == (UTC, UTC)
    return True


@given(raw=facts)
def test_what_we_write_is_read_as_before(raw: dict[str, Any]) -> None:
    assert same(raw) or raw.get("type") == "user_preference"


@given(raw=facts, name=st.sampled_from([*Fact.model_fields, "of a newer version"]), value=st.sampled_from(STRANGE))
def test_what_is_strange_is_left_to_the_closer_look(raw: dict[str, Any], name: str, value: Any) -> None:
    same({**raw, name: value})
    same({key: one for key, one in raw.items() if key != name})


def test_what_was_said_comes_back_quickly() -> None:
    fact = new(now=NOW.astimezone(timezone(timedelta(hours=7))), key="likes", value=["tea"], owner="u", source="m1")
    assert same(plain(fact))
    assert read(plain(fact)) == fact
