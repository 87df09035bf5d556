"""How things are done here: taught, matched, counted; never run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from memory import procedures
from memory.episodes import Episode, made_of
from memory.message import Message
from memory.procedures import Procedure

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def way(trigger: dict[str, Any], content: Any = "do it", **more: Any) -> Procedure:
    return procedures.new(content, trigger, NOW, **more)


@pytest.mark.parametrize(
    ("rule", "what", "how"),
    [
        ("when a customer asks for delivery, ask for the postcode first", "delivery", "ask for the postcode first"),
        ("If someone mentions a refund, then be brief.", "refund", "be brief."),
        ("ถ้าลูกค้าถามเรื่องจัดส่ง ให้ขอรหัสไปรษณีย์ก่อน", "จัดส่ง", "ขอรหัสไปรษณีย์ก่อน"),
    ],
)
def test_a_rule_in_words_is_understood(rule: str, what: str, how: str) -> None:
    taught = procedures.taught(rule, NOW)
    assert taught is not None
    assert (taught.trigger, taught.content, taught.source) == ({"goal_contains": [what]}, how, "human")


def test_other_words_are_no_rule() -> None:
    assert procedures.taught("be nice", NOW) is None


@pytest.mark.parametrize(
    ("trigger", "goal", "fits"),
    [
        ({"goal_contains": ["weather"]}, "What's the weather like?", True),
        ({"goal_contains": ["weather", "rain"]}, "will it RAIN", True),
        ({"goal_contains": ["tea"]}, "a steak please", False),
        ({"goal_contains": ["จัดส่ง"]}, "ขอถามเรื่องจัดส่งค่ะ", True),
        ({"goal_contains": ["ข้าว"]}, "อ่านข่าว", False),
        ({"goal_contains_all": ["cake", "birthday"]}, "a birthday cake", True),
        ({"goal_contains_all": ["cake", "birthday"]}, "a cake", False),
        ({"goal_contains": ["cake"], "language": "th"}, "a cake", False),
        ({"intent": ["REQUEST", "TRANSACTION"], "platform": "line"}, "anything", True),
        ({"goal_contains": ["cake"], "phase_of_moon": "full"}, "a cake", False),
        ({"goal_contains": []}, "a cake", False),
        ({}, "a cake", False),
    ],
)
def test_a_trigger_fits_when_all_its_conditions_hold(trigger: dict[str, Any], goal: str, fits: bool) -> None:
    one = way(trigger)
    found = procedures.matching([one], goal, intent="REQUEST", language="en", platform="line", agent="default")
    assert found == ([one] if fits else [])


def test_uses_are_counted_with_success_and_duration() -> None:
    one = way({"goal_contains": ["cake"]})
    assert (one.success_rate, one.average_duration) == (None, None)
    for succeeded, seconds in ((True, 2.0), (False, 4.0)):
        one = procedures.counted(one, succeeded, seconds, NOW)
    assert (one.times_used, one.success_rate, one.average_duration) == (2, 0.5, 3.0)


@pytest.mark.parametrize("kind", ["workflow_graph", "prompt_template", "code_snippet", "tool_sequence"])
def test_content_of_each_type_is_text(kind: str) -> None:
    assert way({"goal_contains": ["x"]}, {"steps": [1]}, type=kind).content == '{"steps":[1]}'


def test_a_derived_one_names_its_parent_and_counts_from_nothing() -> None:
    parent = procedures.counted(way({"goal_contains": ["cake"]}), True, 1.0, NOW)
    child = procedures.derived(parent, "do it better", NOW)
    assert (child.derived_from, child.source, child.times_used) == (parent.id, "derived", 0)
    assert child.trigger == parent.trigger


def test_what_went_well_three_times_in_the_same_way_is_learned() -> None:
    def went(number: int, *tools: str) -> Episode:
        actions = [{"tool": tool, "result": "ok"} for tool in tools]
        said: list[Message] = [
            {"role": "user", "message": "book a table"},
            {"role": "bot", "message": "done", "metadata": {"actions": actions}},
        ]
        return made_of(f"s{number}", NOW, said, last_intent="REQUEST")

    assert procedures.learned([went(1, "recall"), went(2, "recall"), went(3, "remember")], NOW) == []
    (one,) = procedures.learned([went(n, "recall", "remember") for n in range(3)], NOW)
    assert (one.type, one.trigger, one.content, one.source) == (
        "tool_sequence",
        {"intent": "REQUEST"},
        '["recall","remember"]',
        "learned",
    )


class TestEpisode:
    def test_it_holds_trigger_conversation_actions_outcome_and_times(self) -> None:
        said: list[Message] = [
            {"role": "user", "message": "my size?", "timestamp": "2026-03-01T09:00:00Z"},
            {
                "role": "bot",
                "message": "M",
                "timestamp": "2026-03-01T09:00:30Z",
                "metadata": {"actions": [{"tool": "recall", "result": "size = M"}]},
            },
        ]
        episode = made_of("s1", NOW, said, last_intent="INQUIRY")
        assert (episode.trigger, episode.conversation) == ({"input": "my size?", "intent": "INQUIRY"}, said)
        assert episode.actions == [{"tool": "recall", "result": "size = M"}]
        assert (episode.outcome, episode.output, episode.error) == ("success", "M", None)
        assert (episode.started_at, episode.duration) == (NOW, 30.0)
        assert made_of("s1", NOW, said).id == episode.id
        assert made_of("s1", NOW, said, conversation_id="c2").id != episode.id

    def test_an_unanswered_message_and_failed_tools_are_no_success(self) -> None:
        said: list[Message] = [{"role": "user", "message": "hello?"}]
        left = made_of("s1", NOW, said)
        assert (left.outcome, left.error) == ("failure", "the last message had no answer")
        failed: list[Message] = [
            *said,
            {"role": "bot", "message": "sorry", "metadata": {"actions": [{"tool": "recall", "error": "error: away"}]}},
        ]
        assert (made_of("s1", NOW, failed).outcome, made_of("s1", NOW, failed).error) == ("failure", "error: away")
