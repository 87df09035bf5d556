"""What is left when something of a memory is deleted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from memory import facts, identities
from memory.curation import mended, tag
from memory.facts import Fact, Priority, merge
from memory.models import LongTermMemory
from memory.removal import without_any_facts, without_episodes, without_facts
from processors.models import EventType, MemoryEvent

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ANN, BEE = "line:U1", "telegram:2"


def fact(key: str, value: Any, *, at: int = 0, **more: Any) -> Fact:
    return facts.new(now=NOW + timedelta(seconds=at), key=key, value=value, **more)


def memory(*known: Fact, user: str = ANN, events: tuple[MemoryEvent, ...] = ()) -> LongTermMemory:
    return LongTermMemory(
        tenant_id="shop", user_id=user, facts=list(known), attributes=facts.attributes(known), events=list(events)
    )


def test_what_has_none_of_them_stays_the_very_same() -> None:
    known = memory(fact("size", "M"))
    assert without_facts(known, ["f_other"], NOW) is known
    assert without_episodes(known, ["ep_other"]) is known
    assert without_any_facts(memory(), NOW) == memory()


def test_a_fact_that_no_message_told_leaves_nothing() -> None:
    size, city = fact("size", "M"), fact("city", "Trang")
    left = without_facts(memory(size, city), [size.id], NOW)
    assert (left.facts, left.attributes) == ([city], {"city": "Trang"})


def test_the_mark_of_one_that_was_told_names_its_messages_and_nothing_else() -> None:
    said = fact("allergies", ["nuts"], source="m1").with_(also_from=["default/c1/m7"])
    batch = MemoryEvent(
        event_type=EventType.INFORMATION, payload={"sources": ["m1", "m2"]}, importance_score=0.9, event_id="m1"
    )
    (mark,) = without_facts(memory(said, events=(batch,)), [said.id], NOW).facts
    assert mark.sources == {"m1", "m2", "m7", "default/c1/m7"}
    assert "nuts" not in mark.model_dump_json()
    assert "allerg" not in mark.model_dump_json()
    assert (mark.current, mark.deleted, facts.visible([mark]), facts.attributes([mark])) == (False, True, [], {})


def test_it_is_not_learned_again_from_these_messages_but_from_others() -> None:
    said = fact("allergies", ["nuts"], source="m1")
    marks = without_facts(memory(said), [said.id], NOW).facts
    assert merge(marks, fact("nut_allergy", True, source="m1")).changed == ()
    assert merge(marks, fact("allergies", ["nuts"], source="m2")).outcome == "created"
    assert merge(marks, fact("allergies", ["nuts"])).outcome == "created"


def test_what_it_had_taken_the_place_of_goes_too_and_does_not_hold_again() -> None:
    first, second = fact("size", "M"), fact("size", "L", at=1)
    changed = merge([first], second).changed
    assert without_facts(memory(*changed), [second.id], NOW).facts == []


def test_what_came_with_a_merged_id_goes_there_too() -> None:
    """Also where both had it: then the copy has another id."""
    ours, theirs = fact("city", "Trang", owner=ANN), fact("city", "Trang", owner=BEE)
    deeper = identities.merged(
        memory(user=BEE), memory(fact("pet", "cat"), fact("city", "Trang", owner="x"), user="web:3"), NOW
    )
    other = deeper.model_copy(update={"facts": [*deeper.facts, theirs]})
    known = identities.merged(memory(ours), other, NOW)
    left = without_facts(known, [one.id for one in known.facts if one.key == "city"], NOW)
    assert ("Trang" in left.model_dump_json(), "cat" in left.model_dump_json()) == (False, True)
    parted = identities.returned(memory(user=BEE), identities.part_of(left, BEE))
    assert [one.key for one in parted.facts] == ["pet"]
    assert "cat" not in without_any_facts(known, NOW).model_dump_json()


def test_a_mended_value_says_what_its_text_says() -> None:
    size, likes, count, free = (
        fact("shoe_size", "38"), fact("likes", ["tea"]), fact("children", 2), fact("note", "likes it quiet")
    )  # fmt: skip
    later = NOW + timedelta(days=1)
    after = [
        mended(size, later, text="Shoe size: 39"),
        mended(size, later, text="wears 39 now"),
        mended(likes, later, text="likes: tea, cold coffee"),
        mended(count, later, text="children: 3"),
        mended(free, later, text="likes it loud", priority=Priority.LOW),
    ]
    assert [one.value for one in after] == ["39", "wears 39 now", ["tea", "cold coffee"], 3, "likes it loud"]
    assert (after[-1].priority, after[-1].last_used_at, after[-1].id) == (Priority.LOW, later, free.id)
    assert len({tag(one) for one in (size, *after[:2])}) == 3
    assert mended(size, later, text=size.text).value == "38"
