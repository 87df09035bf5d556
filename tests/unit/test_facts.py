"""What becomes of a statement beside what is known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memory import decay, facts
from memory.facts import Fact, FactType, Priority, Scope, attributes, merge, new, upserted
from processors.personal import Told, personal

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def fact(key: str = "", value: Any = None, text: str = "", **more: Any) -> Fact:
    return new(now=more.pop("now", NOW), key=key, value=value, text=text, **more)


def after(known: list[Fact], *said: Fact) -> list[Fact]:
    for one in said:
        known = upserted(known, merge(known, one).changed)
    return known


def current(known: list[Fact]) -> list[tuple[str, Any]]:
    return [(one.key, one.value) for one in known if one.current]


@pytest.mark.parametrize(
    ("name", "priority"),
    [
        ("fact", "high"),
        ("preference", "medium"),
        ("context", "low"),
        ("procedure", "medium"),
        ("entity", "medium"),
        ("relationship", "low"),
        ("correction", "high"),
        ("self_knowledge", "medium"),
    ],
)
def test_each_type_has_its_own_priority_unless_one_is_given(name: str, priority: str) -> None:
    assert fact("k", "v", type=name).priority == priority
    assert fact("k", "v", type=name, priority="low").priority == "low"


@pytest.mark.parametrize(("alias", "name"), [("user_preference", "preference"), ("world_knowledge", "fact")])
def test_the_other_names_of_types_are_taken_and_answered_as_ours(alias: str, name: str) -> None:
    assert fact("k", "v", type=alias).type == FactType(name)


def test_a_type_that_there_is_not_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="use one of fact, preference"):
        fact("k", "v", type="hunch")


def test_said_again_it_is_confirmed_and_stays_one() -> None:
    known = after([], fact("color", "blue"), fact("Color", "Blue"), fact("color", "blue "))
    assert [(one.value, one.times_confirmed) for one in known] == [("blue", 2)]


def test_the_same_message_read_twice_confirms_once() -> None:
    known = after([], fact("color", "blue", source="m1"), fact("color", "blue", source="m1"))
    assert known[0].times_confirmed == 0
    again = after(known, fact("color", "blue", source="m2"), fact("color", "blue", source="m2"))
    assert (again[0].times_confirmed, again[0].sources) == (1, {"m1", "m2"})


def test_contradicted_the_old_one_is_superseded_kept_as_history_and_counted() -> None:
    known = after([], fact("city", "Bangkok"), fact("city", "Chiang Mai", now=NOW + timedelta(days=1)))
    assert current(known) == [("city", "Chiang Mai")]
    old = known[0]
    assert (old.value, old.superseded_by, old.times_contradicted) == ("Bangkok", known[1].id, 1)
    assert known[1].times_confirmed == 0


def test_an_older_statement_that_comes_late_does_not_win() -> None:
    known = after([], fact("city", "Chiang Mai"), fact("city", "Bangkok", now=NOW - timedelta(days=9)))
    assert current(known) == [("city", "Chiang Mai")]


@pytest.mark.parametrize("alike", ["local time", "local-time", "Local_Time", "local__time"])
def test_space_underscore_and_hyphen_are_alike_in_keys(alike: str) -> None:
    assert len(after([], fact("local_time", "9:00"), fact(alike, "9:00"))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User prefers concise answers", "The user prefers concise answers."),
        ("แพ้ถั่วค่ะ", "แพ้ถั่ว"),
        ("แพ้ ถั่ว นะคะ", "แพ้ถั่ว"),
        ("Likes iced coffee", "likes  ICED coffee"),
    ],
)
def test_the_same_in_other_words_of_politeness_is_one(one: str, other: str) -> None:
    assert len(after([], fact(text=one), fact(text=other))) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("worked there for 5 years", "worked there for 6 years"),
        ("มีลูก 2 คน", "มีลูก 3 คน"),
        ("brother works at ACME Corp", "brother works at Beta Corp"),
        ("พี่ชายชื่อสมชาย", "พี่ชายชื่อสมชัย"),
        ("Anna manages Bert", "Bert manages Anna"),
    ],
)
def test_never_merged_when_a_number_or_a_name_differs(one: str, other: str) -> None:
    assert len(current(after([], fact(text=one), fact(text=other)))) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [("likes coffee", "does not like coffee"), ("ชอบกาแฟ", "ไม่ชอบกาแฟค่ะ"), ("eats meat", "doesn't eat meat")],
)
def test_a_negation_is_a_contradiction_and_never_a_repetition(one: str, other: str) -> None:
    known = after([], fact(text=one), fact(text=other))
    assert [item.text for item in known if item.current] == [other]
    assert [item.times_confirmed for item in known] == [0, 0]


def test_a_second_allergy_does_not_end_the_first() -> None:
    known = after([], fact("allergies", "ถั่ว"), fact("allergies", ["กุ้ง"]), fact("allergies", "ถั่ว"))
    assert [(one.value, one.times_confirmed) for one in known] == [(["ถั่ว", "กุ้ง"], 1)]


def test_what_holds_no_longer_leaves_its_list_and_stays_in_the_history() -> None:
    known = after([], fact("allergies", ["ถั่ว", "กุ้ง"]))
    known = upserted(known, facts.taken_back(known, "allergies", "ถั่ว", NOW))
    assert current(known) == [("allergies", ["กุ้ง"])]
    known = upserted(known, facts.taken_back(known, "allergies", "กุ้ง", NOW + timedelta(days=1)))
    assert current(known) == []
    assert len(known) == 2


def test_who_dislikes_something_likes_it_no_more() -> None:
    known = facts.heard([], Told({"likes": ["กาแฟ", "ชา"]}), NOW)
    known = upserted(known, facts.heard(known, Told({"dislikes": ["กาแฟ"]}), NOW))
    assert attributes(known) == {"likes": ["ชา"], "dislikes": ["กาแฟ"]}


def test_overwriting_keeps_the_old_value_in_the_history_and_counts_both_ways() -> None:
    merged = merge([fact("color", "red")], fact("color", "blue"), reassert=True)
    assert merged.outcome == "updated"
    assert [(one.value, one.times_confirmed, one.times_contradicted) for one in merged.changed] == [
        ("red", 0, 1),
        ("blue", 1, 0),
    ]


def test_without_overwrite_what_is_known_stands() -> None:
    merged = merge([fact("color", "red")], fact("color", "blue"), overwrite=False)
    assert (merged.outcome, merged.fact.value, merged.changed) == ("kept", "red", ())


def test_scopes_and_agents_do_not_meet() -> None:
    known = after(
        [],
        fact("tone", "formal", scope="global"),
        fact("tone", "brief", scope="agent", agent="sales"),
        fact("tone", "warm", scope="agent", agent="care"),
        fact("tone", "plain"),
        fact("tone", "none", scope="session"),
    )
    assert len(current(known)) == 5


def test_the_narrowest_scope_is_looked_up_first() -> None:
    known = [fact("tone", str(scope), scope=scope, agent="a") for scope in reversed(Scope)]
    for scope in Scope:
        found = facts.narrowest(known, "Tone")
        assert found is not None
        assert found.scope == scope
        known = [one for one in known if one is not found]


@pytest.mark.parametrize("value", [True, 0, 1.5, {"a": [1, None]}, [1, 2], "ข้อความ", 2**70])
def test_a_value_may_be_any_json(value: Any) -> None:
    kept = fact("k", value)
    assert Fact.model_validate_json(kept.model_dump_json()).value == value


def test_true_and_one_are_two_values() -> None:
    assert merge([fact("k", 1)], fact("k", True)).outcome == "updated"


def test_what_a_message_alone_said_goes_with_it_and_what_it_replaced_comes_back() -> None:
    known = after([], fact("city", "Bangkok", source="m1"), fact("city", "Phuket", source="m2"))
    assert attributes(facts.without_sources(known, ["m2"])) == {"city": "Bangkok"}
    twice = after([], fact("city", "Bangkok", source="m1"), fact("city", "Bangkok", source="m2"))
    assert [(one.value, one.sources) for one in facts.without_sources(twice, ["m1"])] == [("Bangkok", {"m2"})]
    assert facts.without_sources(twice, ["m1", "m2"]) == []


class TestDecay:
    @pytest.mark.parametrize(("kind", "days"), [("fact", 700), ("preference", 230), ("context", 55)])
    def test_it_fades_with_the_days_since_its_last_use_slower_where_it_matters_more(self, kind: str, days: int) -> None:
        one = fact("k", "v", type=kind)
        assert decay.fresh([one], NOW + timedelta(days=days)) == [one]
        assert decay.fresh([one], NOW + timedelta(days=days * 1.1)) == []

    def test_often_confirmed_it_fades_more_slowly(self) -> None:
        once, often = fact("k", "v", type="context"), fact("k", "v", type="context").with_(times_confirmed=4)
        later = NOW + timedelta(days=60)
        assert decay.strength(often, later) > 2 * decay.strength(once, later)

    def test_pinned_it_never_fades(self) -> None:
        pinned = fact("k", "v", type="context", pinned=True)
        assert decay.strength(pinned, NOW + timedelta(days=36500)) == 1.0
        assert decay.faded([pinned], NOW + timedelta(days=36500)) == []

    def test_just_used_it_is_whole_and_faded_it_is_to_be_pruned(self) -> None:
        one = fact("k", "v", type="context", priority=Priority.LOW)
        assert decay.strength(one, NOW) == 1.0
        assert decay.faded([one], NOW + timedelta(days=129)) == []
        assert decay.faded([one], NOW + timedelta(days=130)) == [one]

    def test_what_was_superseded_is_not_told(self) -> None:
        assert decay.fresh(after([], fact("a", 1), fact("a", 2)), NOW)[0].value == 2


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ("call me Nok please", {"nickname": "Nok"}),
        ("เรียกว่าพลอยก็ได้ค่ะ", {"nickname": "พลอย"}),
        ("My address is 12/3 Soi 4, Bangkok 10110", {"address": "12/3 Soi 4, Bangkok 10110"}),
        ("ที่อยู่: 99 ม.4 ต.บางพลี 10540", {"address": "99 ม.4 ต.บางพลี 10540"}),
        ("I moved to Chiang Mai", {"city": "Chiang Mai"}),
        ("ย้ายไปอยู่เชียงใหม่แล้วค่ะ", {"city": "เชียงใหม่"}),
        ("ใส่รองเท้าเบอร์ 38 ค่ะ", {"shoe_size": "38"}),
        ("My shoe size is 42", {"shoe_size": "42"}),
        ("I wear size m", {"size": "M"}),
        ("ปกติใส่ไซส์ L ค่ะ", {"size": "L"}),
        ("วันเกิดผม 5 มีนาคม", {"birthday": "5 มีนาคม"}),
        ("my birthday is 5 March", {"birthday": "5 March"}),
        ("ผมไม่ชอบผักชีครับ", {"dislikes": ["ผักชี"]}),
        ("I like spicy food", {"likes": ["spicy food"]}),
        ("do you like coffee?", {}),
        ("Call me back tomorrow", {}),
        ("มีไซส์ L ไหมคะ", {}),
        ("I'd like to order 2 cakes", {}),
    ],
)
def test_plain_sentences_about_oneself_are_understood_without_a_model(said: str, holds: dict[str, Any]) -> None:
    assert personal(said).holds == holds


@pytest.mark.parametrize(
    ("said", "item"),
    [
        ("ไม่แพ้ถั่วแล้วค่ะ", "ถั่ว"),
        ("ไม่ได้แพ้ถั่วค่ะ", "ถั่ว"),
        ("ไม่แพ้ถั่วนะคะ", "ถั่ว"),
        ("เคยแพ้กุ้งแต่ตอนนี้กินได้แล้ว", "กุ้ง"),
        ("เมื่อก่อนเคยแพ้กุ้ง ตอนนี้ไม่แพ้แล้วค่ะ", "กุ้ง"),
        ("I'm no longer allergic to nuts", "nuts"),
        ("I used to be allergic to shrimp but I'm fine now", "shrimp"),
    ],
)
def test_an_allergy_that_is_over_is_understood(said: str, item: str) -> None:
    assert personal(said) == Told({}, {"allergies": [item]})


def test_a_scope_that_is_none_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="'shop' is no scope: use one of session, user, agent, global"):
        fact("tone", "formal", scope="shop")
