"""What the memory promises, row by row: each row of its tables has a test of its name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.prompt import build
from memory import MemoryConfig, MemoryManager, decay, procedures
from memory.facts import Fact, FactType
from memory.keys import ConversationRef
from memory.models import Changes
from memory.procedures import ProcedureType

SHOP, HER = "store_001", "line:U1"


@dataclass
class Clock:
    now: datetime = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def manager(tmp_path: Path, clock: Clock) -> AsyncIterator[MemoryManager]:
    manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"), clock=clock)
    yield manager
    await manager.close()


async def known(manager: MemoryManager, user: str = HER) -> list[Fact]:
    memory = await manager.longterm.load(SHOP, user)
    return memory.facts if memory else []


# -- Types of memory, with an example and a priority -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type", "example", "priority"),
    [
        ("fact", "User works at ACME Corp", "high"),
        ("preference", "Prefers concise answers", "medium"),
        ("context", "Working on Q4 report", "low"),
        ("procedure", "Use pytest for testing", "medium"),
        ("entity", "John = team lead", "medium"),
        ("relationship", "Reports to Jane", "low"),
    ],
    ids=lambda value: value.replace(" ", "_"),
)
async def test_type(manager: MemoryManager, type: str, example: str, priority: str) -> None:
    fact = await manager.remember(SHOP, HER, text=example, type=type)
    assert (fact.type, fact.text, fact.priority) == (type, example, priority)
    assert [one.text for one in await known(manager)] == [example]


@pytest.mark.parametrize(
    ("given", "answered"),
    [
        ("user_preference", FactType.PREFERENCE),
        ("world_knowledge", FactType.FACT),
        ("self_knowledge", FactType.SELF_KNOWLEDGE),
        ("correction", FactType.CORRECTION),
        ("relationship", FactType.RELATIONSHIP),
    ],
)
async def test_fact_type(manager: MemoryManager, given: str, answered: FactType) -> None:
    assert (await manager.remember(SHOP, HER, text="Don't use deprecated API v1", type=given)).type is answered


# -- The fields of a fact ----------------------------------------------------------------------------------------------


async def test_field_key(manager: MemoryManager) -> None:
    await manager.remember(SHOP, HER, key="user_timezone", value="Asia/Bangkok")
    assert await manager.recall(SHOP, HER, key="user timezone") == "user_timezone = Asia/Bangkok"


@pytest.mark.parametrize("value", ["text", 7, 1.5, True, ["a", 1], {"a": {"b": None}}], ids=str)
async def test_field_value_may_be_any_json(manager: MemoryManager, value: Any) -> None:
    await manager.remember(SHOP, HER, key="thing", value=value)
    assert [one.value for one in await known(manager)] == [value]


async def test_field_confidence_is_from_0_to_1(manager: MemoryManager) -> None:
    assert (await manager.remember(SHOP, HER, key="a", value="b", confidence=0.4)).confidence == 0.4
    with pytest.raises(ValueError, match="confidence"):
        await manager.remember(SHOP, HER, key="c", value="d", confidence=1.5)


async def test_field_times_confirmed_counts_when_it_is_said_again(manager: MemoryManager) -> None:
    for source in ("m1", "m2", "m3"):
        await manager.remember(SHOP, HER, key="color", value="blue", source=source)
    assert [(one.value, one.times_confirmed) for one in await known(manager)] == [("blue", 2)]


async def test_field_times_contradicted_counts_when_something_else_is_said(manager: MemoryManager) -> None:
    await manager.remember(SHOP, HER, key="city", value="Bangkok")
    await manager.remember(SHOP, HER, key="city", value="Chiang Mai")
    found = {one.value: (one.current, one.times_contradicted) for one in await known(manager)}
    assert found == {"Bangkok": (False, 1), "Chiang Mai": (True, 0)}


async def test_field_scope_the_most_specific_wins(manager: MemoryManager) -> None:
    await manager.get_or_create_session_context(SHOP, HER)
    for scope in ("global", "agent", "user", "session"):  # each narrower than the last
        await manager.remember(SHOP, HER, key="tone", value=scope, scope=scope)
        assert await manager.recall(SHOP, HER, key="tone") == f"tone = {scope}"
    assert await manager.recall(SHOP, "line:U2", key="tone") == "tone = agent"
    assert await manager.recall(SHOP, "line:U2", key="tone", agent="sales") == "tone = global"
    assert await manager.recall("store_002", "line:U2", key="tone") == "Nothing is known about tone."


# -- Lifecycle ---------------------------------------------------------------------------------------------------------


async def test_lifecycle_similar_one_there_merges_and_another_is_created(manager: MemoryManager) -> None:
    for text in ("ชอบกาแฟเย็น", "ชอบกาแฟเย็นค่ะ", "ชอบกาแฟร้อน"):
        await manager.remember(SHOP, HER, text=text)
    assert sorted(one.text for one in await known(manager)) == ["ชอบกาแฟร้อน", "ชอบกาแฟเย็น"]


async def test_lifecycle_decays_if_not_accessed_slower_when_important_or_confirmed(
    manager: MemoryManager, clock: Clock
) -> None:
    for type in ("fact", "preference", "context"):
        await manager.remember(SHOP, HER, text=f"some {type}", type=type, source="m1")
    await manager.remember(SHOP, HER, text="often said", type="context", source="m1")
    for source in ("m2", "m3", "m4"):
        await manager.remember(SHOP, HER, text="often said", type="context", source=source)
    await manager.remember(SHOP, HER, text="pinned", type="context", pinned=True)
    then = clock.now + timedelta(days=60)
    strength = {one.text: decay.strength(one, then) for one in await known(manager)}
    order = ["some context", "often said", "some preference", "some fact", "pinned"]
    assert sorted(strength, key=strength.__getitem__) == order
    assert strength["pinned"] == 1.0


async def test_lifecycle_below_the_threshold_it_is_pruned_after_a_dry_run_and_kept_30_days(
    manager: MemoryManager, clock: Clock
) -> None:
    await manager.remember(SHOP, HER, text="working on a report", type="context")
    await manager.remember(SHOP, HER, key="name", value="Ploy", pinned=True)
    clock.now += timedelta(days=365)
    would = await manager.prune(SHOP, HER, dry_run=True)
    assert [one.text for one in would] == ["working on a report"]
    assert len(await known(manager)) == 2
    assert [one.text for one in await manager.prune(SHOP, HER)] == ["working on a report"]
    assert [one.key for one in await known(manager)] == ["name"]
    archived = await manager.export(SHOP, HER)
    assert archived is not None
    assert "working on a report" in str(archived)
    clock.now += timedelta(days=31)
    assert await manager.prune_all(SHOP) == 0
    assert "working on a report" not in str(await manager.export(SHOP, HER))


# -- Episodes ----------------------------------------------------------------------------------------------------------


async def test_an_episode_has_trigger_conversation_actions_outcome_timing_and_feedback(
    manager: MemoryManager, clock: Clock
) -> None:
    await manager.add_message_to_context(SHOP, HER, "i would like to book a table for two")
    clock.now += timedelta(seconds=30)
    did = {"actions": [{"tool": "recall", "arguments": "{}", "result": "nothing"}]}
    await manager.add_message_to_context(SHOP, HER, "of course", role="bot", metadata=did)
    clock.now += timedelta(hours=2)
    assert await manager.cleanup_expired_sessions() == 1
    assert await manager.rate(SHOP, HER, 4, "quick")
    memory = await manager.longterm.load(SHOP, HER)
    assert memory is not None
    [episode] = memory.episodes
    assert episode.trigger["input"] == "i would like to book a table for two"
    assert [line["message"] for line in episode.conversation] == [episode.trigger["input"], "of course"]
    assert [(one["tool"], one["result"]) for one in episode.actions] == [("recall", "nothing")]
    assert (episode.outcome, episode.output, episode.error) == ("success", "of course", None)
    assert (episode.ended_at - episode.started_at, episode.duration) == (timedelta(seconds=30), 30.0)
    assert episode.feedback is not None
    assert (episode.feedback.rating, episode.feedback.comment) == (4, "quick")


# -- Procedures --------------------------------------------------------------------------------------------------------


async def test_a_procedure_of_human_teaching(manager: MemoryManager) -> None:
    taught = await manager.teach(SHOP, "when a customer asks for delivery, ask for the postcode first")
    assert (taught.source, taught.trigger, taught.content) == (
        "human",
        {"goal_contains": ["delivery"]},
        "ask for the postcode first",
    )


async def test_a_procedure_of_evolution(manager: MemoryManager, clock: Clock) -> None:
    parent = await manager.teach(SHOP, content="ask first", trigger={"goal_contains": ["delivery"]})
    child = procedures.derived(parent, "ask for the street too", clock.now)
    assert (child.source, child.derived_from, child.trigger) == ("derived", parent.id, parent.trigger)


@pytest.mark.parametrize("type", list(ProcedureType))
async def test_procedure_type(manager: MemoryManager, type: ProcedureType) -> None:
    taught = await manager.teach(SHOP, content={"steps": [1]}, trigger={"goal_contains": ["weather"]}, type=type)
    assert (taught.type, taught.content) == (type, '{"steps":[1]}')
    assert procedures.matching([taught], "how is the weather today?") == [taught]


async def test_a_procedures_performance_is_tracked(manager: MemoryManager, clock: Clock) -> None:
    taught = await manager.teach(SHOP, content="x", trigger={"goal_contains": ["weather"]})
    for succeeded, seconds in ((True, 1.0), (True, 2.0), (False, 3.0), (True, 2.0)):
        await manager.knowledge.count(SHOP, [taught.id], succeeded, seconds, clock.now)
    shared = await manager.longterm.load_shared(SHOP)
    assert shared is not None
    [kept] = shared.procedures
    assert (kept.times_used, kept.success_rate, kept.average_duration) == (4, 0.75, 2.0)


# -- Memory users ------------------------------------------------------------------------------------------------------


async def test_a_memory_user_has_ids_a_name_preferences_and_counts(manager: MemoryManager, clock: Clock) -> None:
    await manager.add_message_to_context(SHOP, "telegram:12345", "i would like to book a table for two")
    await manager.add_message_to_context(SHOP, "telegram:12345", "of course", role="bot")
    clock.now += timedelta(hours=2)
    await manager.cleanup_expired_sessions()
    await manager.remember(SHOP, "telegram:12345", key="size", value="M", type="preference")
    trigger = {"channel": "telegram", "user_id": 12345, "display_name": "Ploy"}
    who = await manager.identify_user(SHOP, trigger)
    user = who["user"]
    assert (user["canonical_id"], user["identities"]) == ("telegram:12345", {"telegram_id": "12345"})
    assert (user["display_name"], user["conversations"], user["messages"]) == ("Ploy", 1, 1)
    assert who["preferences"]["size"] == "M"


async def test_merged_into_leads_to_the_other_and_unmerging_gives_back(manager: MemoryManager) -> None:
    await manager.remember(SHOP, "telegram:7", key="size", value="M")
    await manager.remember(SHOP, HER, key="name", value="Ploy")
    assert await manager.link_users(SHOP, "telegram:7", HER) == HER
    assert await manager.link_users(SHOP, "telegram:7", HER) == HER  # once
    assert sorted((await manager.recall(SHOP, "telegram:7")).splitlines()) == ["name = Ploy", "size = M"]
    moved = await manager.longterm.load(SHOP, "telegram:7")
    assert moved is not None
    assert moved.person is not None
    assert moved.person.merged_into == HER
    await manager.remember(SHOP, "telegram:7", key="city", value="Trang")
    await manager.unlink_user(SHOP, "telegram:7")
    assert await manager.recall(SHOP, "telegram:7") == "size = M"
    assert sorted((await manager.recall(SHOP, HER)).splitlines()) == ["city = Trang", "name = Ploy"]


async def test_three_ids_in_a_row_are_one_person_and_forgotten_as_one(manager: MemoryManager, tmp_path: Path) -> None:
    for user in ("telegram:7", HER, "web:v1"):
        await manager.add_message_to_context(SHOP, user, f"hello from {user}")
    await manager.link_users(SHOP, "telegram:7", HER)
    await manager.link_users(SHOP, HER, "web:v1")
    assert await manager.knowledge.canonical(SHOP, "telegram:7") == "web:v1"
    session = await manager.get_or_create_session_context(SHOP, "telegram:7")
    assert session.user_id == "web:v1"
    assert sorted(line["message"] for line in session.history) == [
        "hello from line:U1",
        "hello from telegram:7",
        "hello from web:v1",
    ]
    with pytest.raises(ValueError, match="part those first"):
        await manager.unlink_user(SHOP, "telegram:7")
    await manager.forget(SHOP, "web:v1")
    left = [
        one.name
        for one in tmp_path.rglob("*")
        if one.suffix in (".json", ".journal", ".jsonl") and one.parent.name != "forgotten"
    ]
    assert left == []


# -- recall ------------------------------------------------------------------------------------------------------------


async def some(manager: MemoryManager) -> None:
    await manager.remember(SHOP, HER, key="local_time_zone", value="Asia/Bangkok", confidence=0.9)
    await manager.remember(SHOP, HER, key="lesson_local_time_command", value="date", confidence=0.6)
    await manager.remember(SHOP, HER, key="get-local-time", value="now", confidence=0.3)
    await manager.teach(SHOP, content="ask for the local time first", trigger={"goal_contains": ["time"]})


async def test_recall_no_arguments_lists_all_that_is_visible(manager: MemoryManager) -> None:
    await some(manager)
    assert await manager.recall(SHOP, HER) == "local_time_zone = Asia/Bangkok\nlesson_local_time_command = date"


async def test_recall_key_is_exact_and_falls_back_to_fuzzy(manager: MemoryManager) -> None:
    await some(manager)
    assert await manager.recall(SHOP, HER, key="local time zone") == "local_time_zone = Asia/Bangkok"
    assert await manager.recall(SHOP, HER, key="local time", min_confidence=0.0) == (
        "local_time_zone = Asia/Bangkok\nlesson_local_time_command = date\nget-local-time = now"
    )


@pytest.mark.parametrize(
    ("memory_type", "facts", "procedures_"), [("facts", True, False), ("procedures", False, True), ("all", True, True)]
)
async def test_recall_memory_type(manager: MemoryManager, memory_type: str, facts: bool, procedures_: bool) -> None:
    await some(manager)
    found = await manager.recall(SHOP, HER, query="local time", memory_type=memory_type)
    assert ("local_time_zone = Asia/Bangkok" in found, "ask for the local time first" in found) == (facts, procedures_)


async def test_recall_memory_type_episodes(manager: MemoryManager, clock: Clock) -> None:
    await manager.add_message_to_context(SHOP, HER, "i would like to book the garden table")
    await manager.add_message_to_context(SHOP, HER, "of course", role="bot")
    clock.now += timedelta(hours=2)
    await manager.cleanup_expired_sessions()
    assert "garden table" in await manager.recall(SHOP, HER, query="garden table", memory_type="episodes")


async def test_recall_limit_is_10_unless_it_is_given(manager: MemoryManager) -> None:
    for number in range(15):
        await manager.remember(SHOP, HER, key=f"thing_{number}", value=f"value {number}")
    assert len((await manager.recall(SHOP, HER)).splitlines()) == 10
    assert len((await manager.recall(SHOP, HER, limit=3)).splitlines()) == 3


async def test_recall_min_confidence_is_a_half_unless_it_is_given(manager: MemoryManager) -> None:
    await some(manager)
    assert "get-local-time" not in await manager.recall(SHOP, HER)
    assert "get-local-time" in await manager.recall(SHOP, HER, min_confidence=0.2)
    assert await manager.recall(SHOP, HER, min_confidence=0.8) == "local_time_zone = Asia/Bangkok"


# -- remember ----------------------------------------------------------------------------------------------------------


async def test_remember_answers_with_what_it_did(manager: MemoryManager) -> None:
    assert await manager.remember_in_words(SHOP, HER, "color", "blue") == "Remembered: color = blue (created)"


async def test_remember_overwrite_true_updates_and_counts_the_confirmation(manager: MemoryManager) -> None:
    await manager.remember_in_words(SHOP, HER, "color", "blue")
    assert await manager.remember_in_words(SHOP, HER, "color", "red") == "Remembered: color = red (updated)"
    found = {one.value: (one.current, one.times_confirmed, one.times_contradicted) for one in await known(manager)}
    assert found == {"blue": (False, 0, 1), "red": (True, 1, 0)}


async def test_remember_overwrite_false_skips_the_write(manager: MemoryManager) -> None:
    await manager.remember_in_words(SHOP, HER, "color", "blue")
    said = await manager.remember_in_words(SHOP, HER, "color", "red", overwrite=False)
    assert said == "Already known: color = blue (kept)"
    assert [one.value for one in await known(manager)] == ["blue"]


async def test_remember_fact_type_is_world_knowledge_unless_it_is_given(manager: MemoryManager) -> None:
    await manager.remember_in_words(SHOP, HER, "color", "blue")
    await manager.remember_in_words(SHOP, HER, "tone", "short", fact_type="user_preference")
    assert [one.type for one in await known(manager)] == [FactType.FACT, FactType.PREFERENCE]


# -- identify_user -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "user"),
    [
        ({"channel": "telegram", "chat_id": 12345}, "telegram:12345"),
        ({"channel": "email", "email": "ploy@example.com"}, "email:ploy@example.com"),
        ({"user_id": HER}, HER),
    ],
)
async def test_identify_user_reads_the_payload_and_takes_in_who_is_new(
    manager: MemoryManager, payload: dict[str, Any], user: str
) -> None:
    assert (await manager.identify_user(SHOP, payload))["user"]["canonical_id"] == user
    memory = await manager.longterm.load(SHOP, user)
    assert memory is not None


async def test_identify_user_loads_facts_of_the_user_and_recent_episodes(manager: MemoryManager, clock: Clock) -> None:
    await manager.remember(SHOP, HER, key="size", value="M")
    await manager.remember(SHOP, HER, key="opening", value="9", scope="global")
    for day in range(4):
        await manager.add_message_to_context(SHOP, HER, f"i would like to book table {day}")
        await manager.add_message_to_context(SHOP, HER, "of course", role="bot")
        clock.now += timedelta(days=1)
        await manager.cleanup_expired_sessions()
    who = await manager.identify_user(SHOP, HER)
    assert "size" in who["preferences"]
    assert "opening" not in who["preferences"]
    told = [one["trigger"]["input"] for one in who["episodes"]]
    assert told == [f"i would like to book table {day}" for day in (1, 2, 3)]
    assert "size = M" in who["user_context"]


# -- How instructions reach the model ----------------------------------------------------------------------------------


def told(system_role: str, instructions: str = "Be kind.", **context: Any) -> list[dict[str, Any]]:
    return build(
        shop="Shop",
        instructions=instructions,
        system_role=system_role,
        language="en",
        now=datetime(2026, 3, 1, 9, 0, tzinfo=UTC),
        context={
            "recent_messages": [{"role": "user", "message": "hello", "timestamp": "2026-03-01T08:59:00Z"}],
            **context,
        },
        knowledge=[],
        text="and now?",
    )


@pytest.mark.parametrize("role", ["system", "user"])
def test_the_instructions_are_told_once_in_the_role_that_the_model_heeds(role: str) -> None:
    found = [one for one in told(role) if "Be kind." in str(one["content"])]
    assert [one["role"] for one in found] == [role]
    # Turn after turn: what was told does not stay in the history to be told again.
    again = told(role, recent_messages=[{"role": "user", "message": str(n), "timestamp": ""} for n in range(9)])
    assert sum("Be kind." in str(one["content"]) for one in again) == 1


def test_user_context_stands_where_the_instructions_ask_for_it() -> None:
    first = told("system", "Know: {{ identify_user.user_context }}.", user_context="User: <Ploy>")[0]["content"]
    assert "Know: <customer>\nUser: &lt;Ploy&gt;\n</customer>." in first
    assert "Know: ." in told("system", "Know: {{identify_user.user_context}}.")[0]["content"]


# -- The session comes back --------------------------------------------------------------------------------------------


async def test_rehydration_gives_the_last_k_turns_back_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    config = MemoryConfig(lm_base_path=tmp_path / "longterm", max_turns=2)
    before = MemoryManager(config, clock=clock)
    for number in range(5):
        await before.add_message_to_context(SHOP, HER, f"question {number}")
        await before.add_message_to_context(SHOP, HER, f"answer {number}", role="bot")
        clock.now += timedelta(seconds=1)
    await before.close()
    after = MemoryManager(config, clock=clock)  # its sessions are empty
    session = await after.get_or_create_session_context(SHOP, HER)
    assert session.history == []
    context = await after.get_context_for_llm(SHOP, HER, max_recent_messages=10)
    await after.close()
    said = [line["message"] for line in context["recent_messages"]]
    assert said == ["question 3", "answer 3", "question 4", "answer 4"]


async def test_a_thread_is_a_user_and_an_agent_whatever_the_channel(manager: MemoryManager) -> None:
    await manager.link_users(SHOP, "telegram:7", HER)
    await manager.add_message_to_context(SHOP, HER, "on line")
    await manager.add_message_to_context(SHOP, "telegram:7", "on telegram")
    await manager.add_message_to_context(SHOP, HER, "to sales", agent="sales")
    main = await manager.sessions.load(ConversationRef(SHOP, HER))
    assert main is not None
    assert [line["message"] for line in main.history] == ["on line", "on telegram"]
    sales = await manager.sessions.load(ConversationRef(SHOP, HER, "sales"))
    assert sales is not None
    assert [line["message"] for line in sales.history] == ["to sales"]


async def test_a_fact_that_was_written_while_two_ids_became_one_is_in_one_of_them(manager: MemoryManager) -> None:
    await manager.remember(SHOP, "telegram:7", key="size", value="M")
    await manager.longterm.change(SHOP, HER, lambda memory: Changes())
    await manager.link_users(SHOP, "telegram:7", HER)
    await manager.remember(SHOP, "telegram:7", key="color", value="blue")
    assert sorted((await manager.recall(SHOP, HER)).splitlines()) == ["color = blue", "size = M"]


async def test_a_message_taken_back_after_the_link_is_gone_under_every_id(
    manager: MemoryManager, tmp_path: Path
) -> None:
    about = {"message_id": "t1", "platform_id": "77"}
    await manager.add_message_to_context(SHOP, "telegram:7", "my name is Mallow and i live in Trang", metadata=about)
    await manager.link_users(SHOP, "telegram:7", HER)
    assert await manager.retract(ConversationRef(SHOP, HER), "77") is not None
    left = "".join(one.read_text("utf-8") for one in tmp_path.rglob("*.json*"))
    assert "Mallow" not in left
    session = await manager.get_or_create_session_context(SHOP, HER)
    assert session.history == []
