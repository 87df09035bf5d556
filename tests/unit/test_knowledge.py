"""What is remembered of a person, and what of it is told to whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory import MemoryConfig, MemoryManager
from memory.consolidate import Consolidation
from memory.errors import LongTermUnavailable
from memory.facts import Scope
from memory.long_term.json_files import JsonFiles
from memory.models import Message, ShortTermMemory
from memory.person import user_of

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
SHOP, HER = "store_001", "line:U1"


class Clock:
    now = NOW

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


class TestRemember:
    async def test_remember_answers_what_it_did(self, manager: MemoryManager) -> None:
        async def said(value: str, overwrite: bool = True) -> str:
            return await manager.remember_in_words(SHOP, HER, "color", value, overwrite=overwrite)

        assert await said("blue") == "Remembered: color = blue (created)"
        assert await said("blue") == "Remembered: color = blue (confirmed)"
        assert await said("red") == "Remembered: color = red (updated)"
        assert await said("green", overwrite=False) == "Already known: color = red (kept)"

    async def test_the_tools_type_is_world_knowledge_answered_as_fact(self, manager: MemoryManager) -> None:
        await manager.remember_in_words(SHOP, HER, "color", "blue")
        assert (await manager.remember(SHOP, HER, key="color", value="blue")).type == "fact"

    async def test_overwriting_updates_the_value_and_raises_times_confirmed(self, manager: MemoryManager) -> None:
        await manager.remember(SHOP, HER, key="color", value="red")
        blue = await manager.remember(SHOP, HER, key="color", value="blue")
        memory = await manager.longterm.load(SHOP, HER)
        assert memory is not None
        assert [(one.value, one.times_confirmed, one.times_contradicted) for one in memory.facts] == [
            ("red", 0, 1),
            ("blue", 1, 0),
        ]
        assert memory.facts[0].superseded_by == blue.id

    async def test_fifty_at_once_of_the_same_fact_leave_one(self, manager: MemoryManager) -> None:
        await asyncio.gather(*(manager.remember(SHOP, HER, text="ชอบกาแฟเย็น") for _ in range(50)))
        memory = await manager.longterm.load(SHOP, HER)
        assert memory is not None
        assert [one.text for one in memory.facts] == ["ชอบกาแฟเย็น"]

    async def test_each_scope_has_its_own_place(self, manager: MemoryManager, clock: Clock) -> None:
        for scope in Scope:
            await manager.remember(SHOP, HER, key="tone", value=f"{scope} one", scope=scope)
        memory, shared = await manager.longterm.load(SHOP, HER), await manager.longterm.load_shared(SHOP)
        session = await manager.get_or_create_session_context(SHOP, HER)
        assert memory is not None
        assert shared is not None
        assert [one.value for one in session.facts] == ["session one"]
        assert [one.value for one in memory.facts] == ["user one"]
        assert [one.value for one in shared.facts] == ["agent one", "global one"]
        assert await manager.recall(SHOP, HER, "tone") == "tone = session one"
        clock.now += timedelta(hours=2)
        assert await manager.recall(SHOP, HER, "tone") == "tone = user one"
        assert await manager.recall(SHOP, "line:U2", "tone") == "tone = agent one"
        assert await manager.recall(SHOP, "line:U2", "tone", agent="other") == "tone = global one"
        assert await manager.recall("store_002", HER, "tone") == "Nothing is known about tone."

    async def test_nothing_to_remember_is_an_error(self, manager: MemoryManager) -> None:
        with pytest.raises(ValueError, match="nothing to remember"):
            await manager.remember(SHOP, HER)


class TestRecall:
    @pytest.fixture(autouse=True)
    async def known(self, manager: MemoryManager) -> None:
        for key, value, confidence in (
            ("timezone", "Australia/Adelaide", 0.7),
            ("lesson_local_time_command", "date +%H:%M", 0.9),
            ("local_time_zone", "+09:30", 0.8),
            ("get-local-time", "yes", 0.6),
            ("guess", "maybe", 0.4),
        ):
            await manager.remember(SHOP, HER, key=key, value=value, confidence=confidence)

    async def test_by_key_the_fact_with_that_key(self, manager: MemoryManager) -> None:
        assert await manager.recall(SHOP, HER, key="timezone") == "timezone = Australia/Adelaide"
        assert await manager.recall(SHOP, HER, key="Get local_time") == "get-local-time = yes"

    async def test_without_an_exact_one_those_whose_key_has_its_words(self, manager: MemoryManager) -> None:
        assert await manager.recall(SHOP, HER, key="local time") == (
            "lesson_local_time_command = date +%H:%M\nlocal_time_zone = +09:30\nget-local-time = yes"
        )

    async def test_without_arguments_every_fact_the_surest_first(self, manager: MemoryManager) -> None:
        lines = (await manager.recall(SHOP, HER)).splitlines()
        assert [line.split(" = ")[0] for line in lines] == [
            "lesson_local_time_command",
            "local_time_zone",
            "timezone",
            "get-local-time",
        ]

    async def test_limit_and_min_confidence_hold(self, manager: MemoryManager) -> None:
        assert len((await manager.recall(SHOP, HER, limit=2)).splitlines()) == 2
        assert "guess = maybe" in await manager.recall(SHOP, HER, min_confidence=0.0)
        many = [manager.remember(SHOP, HER, key=f"k{n}", value=n) for n in range(12)]
        await asyncio.gather(*many)
        assert len((await manager.recall(SHOP, HER)).splitlines()) == 10

    async def test_by_query_what_has_its_words_over_the_kinds_asked_for(self, manager: MemoryManager) -> None:
        await manager.teach(SHOP, "when a customer asks for delivery, ask for the postcode first")
        assert await manager.recall(SHOP, HER, query="Adelaide") == "timezone = Australia/Adelaide"
        assert await manager.recall(SHOP, HER, query="delivery") == "Nothing is known about delivery."
        asked = await manager.recall(SHOP, HER, query="delivery", memory_type="procedures")
        assert asked == "ask for the postcode first"
        assert await manager.recall(SHOP, HER, query="delivery", memory_type="all") == asked
        with pytest.raises(ValueError, match="no kind of memory"):
            await manager.recall(SHOP, HER, query="x", memory_type="dreams")

    async def test_what_is_needed_does_not_fade(self, manager: MemoryManager, clock: Clock) -> None:
        clock.now += timedelta(days=100)
        await manager.recall(SHOP, HER, key="timezone")
        memory = await manager.longterm.load(SHOP, HER)
        assert memory is not None
        assert [one.key for one in memory.facts if one.last_used_at == clock.now] == ["timezone"]


class TestSearch:
    async def test_thai_is_found_inside_thai_and_not_in_what_only_looks_alike(self, manager: MemoryManager) -> None:
        await manager.remember(SHOP, HER, text="ชอบข้าวผัดปู")
        await manager.remember(SHOP, HER, text="อ่านข่าวทุกเช้า")
        assert [hit.text for hit in await manager.search(SHOP, HER, "ข้าว")] == ["ชอบข้าวผัดปู"]
        assert [hit.text for hit in await manager.search(SHOP, HER, "ข่าว")] == ["อ่านข่าวทุกเช้า"]

    async def test_latin_words_are_found_as_words_also_with_a_slip(self, manager: MemoryManager) -> None:
        await manager.remember(SHOP, HER, text="Likes steak")
        await manager.remember(SHOP, HER, text="Drinks tea")
        assert [hit.text for hit in await manager.search(SHOP, HER, "tea")] == ["Drinks tea"]
        assert [hit.text for hit in await manager.search(SHOP, HER, "steaks")] == ["Likes steak"]

    async def test_the_best_come_first_with_id_kind_text_and_score(self, manager: MemoryManager) -> None:
        await manager.remember(SHOP, HER, text="Likes coffee")
        both = await manager.remember(SHOP, HER, text="Likes iced coffee")
        hits = await manager.search(SHOP, HER, "iced coffee", limit=5)
        assert [(hit.kind, hit.text) for hit in hits] == [("fact", "Likes iced coffee"), ("fact", "Likes coffee")]
        assert (hits[0].id, hits[0].score) == (both.id, 1.0)
        assert 0 < hits[1].score < 1
        assert await manager.search(SHOP, HER, "coffee", kinds=["episodes"]) == []

    async def test_nobody_elses_is_found(self, manager: MemoryManager) -> None:
        await manager.remember(SHOP, "line:U10", text="Likes coffee")
        await manager.remember("store_002", HER, text="Likes coffee")
        assert await manager.search(SHOP, HER, "coffee") == []

    async def test_an_error_is_no_empty_answer(self, tmp_path: Path) -> None:
        (tmp_path / "longterm").write_text("a file where a folder should be")
        manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"))
        with pytest.raises(LongTermUnavailable):
            await manager.search(SHOP, HER, "coffee")
        await manager.close()


class TestIdentifyUser:
    async def test_an_unknown_one_is_taken_in_and_found_again(self, manager: MemoryManager) -> None:
        first = await manager.identify_user(SHOP, {"channel": "telegram", "user_id": 12345, "display_name": "Nok"})
        assert first["user"] | {"first_seen_at": "", "last_seen_at": ""} == {
            "canonical_id": "telegram:12345",
            "identities": {"telegram_id": "12345"},
            "display_name": "Nok",
            "conversations": 0,
            "messages": 0,
            "first_seen_at": "",
            "last_seen_at": "",
            "merged_into": None,
        }
        assert (await manager.identify_user(SHOP, "telegram:12345"))["user"] == first["user"]

    async def test_facts_and_the_newest_episodes_are_told_in_words(self, manager: MemoryManager) -> None:
        await manager.remember(SHOP, HER, key="name", value="พลอย")
        await manager.remember(SHOP, HER, key="guess", value="x", confidence=0.3)
        known = await manager.identify_user(SHOP, HER)
        assert known["preferences"] == {"name": "พลอย"}
        assert known["user_context"] == "User: พลอย (line:U1)\n- name = พลอย"

    @pytest.mark.parametrize(
        ("trigger", "user"),
        [
            ({"user_id": "line:U1"}, "line:U1"),
            ({"channel": "telegram", "chat_id": 7}, "telegram:7"),
            ({"telegram_id": "7"}, "telegram:7"),
            ({"email": "a@example.com"}, "email:a@example.com"),
            ({"text": "hello"}, None),
        ],
    )
    def test_channel_and_id_are_taken_out_of_the_payload(self, trigger: dict[str, object], user: str | None) -> None:
        assert user_of(trigger) == user

    async def test_a_payload_that_names_nobody_is_an_error(self, manager: MemoryManager) -> None:
        with pytest.raises(ValueError, match="names no user"):
            await manager.identify_user(SHOP, {"text": "hello"})


class TestOnePerson:
    async def test_merging_moves_everything_once_and_the_old_id_leads_to_the_new(self, manager: MemoryManager) -> None:
        await manager.remember(SHOP, HER, key="size", value="M")
        await manager.remember(SHOP, "telegram:7", key="city", value="Bangkok")
        for _ in range(2):
            await manager.merge_users(SHOP, "telegram:7", HER)
        memory = await manager.longterm.load(SHOP, HER)
        assert memory is not None
        assert memory.attributes == {"size": "M", "city": "Bangkok"}
        assert await manager.recall(SHOP, "telegram:7", "size") == "size = M"
        await manager.remember(SHOP, "telegram:7", key="color", value="blue")
        assert await manager.recall(SHOP, HER, "color") == "color = blue"
        known = await manager.identify_user(SHOP, "telegram:7")
        assert known["user"]["identities"] == {"line_id": "U1", "telegram_id": "7"}

    async def test_unmerging_gives_back_what_came_from_each(self, manager: MemoryManager, clock: Clock) -> None:
        await manager.remember(SHOP, HER, key="size", value="M")
        clock.now += timedelta(days=1)
        await manager.remember(SHOP, "telegram:7", key="size", value="L")
        before = await manager.longterm.load(SHOP, "telegram:7")
        await manager.merge_users(SHOP, "telegram:7", HER)
        assert await manager.recall(SHOP, HER, "size") == "size = L"
        await manager.unmerge_users(SHOP, "telegram:7", HER)
        after, hers = await manager.longterm.load(SHOP, "telegram:7"), await manager.longterm.load(SHOP, HER)
        assert before is not None
        assert after is not None
        assert hers is not None
        assert (after.facts, after.attributes) == (before.facts, {"size": "L"})
        assert hers.attributes == {"size": "M"}
        assert await manager.knowledge.canonical(SHOP, "telegram:7") == "telegram:7"

    async def test_nobody_is_merged_with_itself_or_round_in_a_circle(self, manager: MemoryManager) -> None:
        with pytest.raises(ValueError, match="itself"):
            await manager.merge_users(SHOP, HER, HER)
        await manager.merge_users(SHOP, "telegram:7", HER)
        with pytest.raises(ValueError, match="already"):
            await manager.merge_users(SHOP, HER, "telegram:7")

    async def test_the_same_name_merges_nobody(self, manager: MemoryManager) -> None:
        for user in (HER, "telegram:7"):
            await manager.remember(SHOP, user, key="name", value="พลอย")
            await manager.identify_user(SHOP, user, display_name="พลอย")
        assert await manager.knowledge.canonical(SHOP, "telegram:7") == "telegram:7"


class TestPruning:
    async def test_a_dry_run_changes_nothing_and_the_archive_keeps_what_went_for_thirty_days(
        self, manager: MemoryManager, clock: Clock
    ) -> None:
        await manager.remember(SHOP, HER, key="topic", value="q4", type="context")
        await manager.remember(SHOP, HER, key="name", value="พลอย")
        pinned = await manager.remember(SHOP, HER, key="vip", value=True, type="context", pinned=True)
        clock.now += timedelta(days=200)
        would = await manager.prune(SHOP, HER, dry_run=True)
        assert [one.key for one in would] == ["topic"]
        assert await manager.prune(SHOP, HER) == would
        memory = await manager.longterm.load(SHOP, HER)
        assert memory is not None
        assert memory.attributes == {"name": "พลอย", "vip": pinned.value}
        assert await manager.archive.load(SHOP, HER) == would
        clock.now += timedelta(days=31)
        assert await manager.prune_all(SHOP) == 0
        assert await manager.archive.load(SHOP, HER) == []

    async def test_forget_takes_the_archive_too(self, manager: MemoryManager, clock: Clock, tmp_path: Path) -> None:
        await manager.remember(SHOP, HER, key="topic", value="secret-word", type="context")
        clock.now += timedelta(days=200)
        await manager.prune(SHOP, HER)
        receipt = await manager.forget(SHOP, HER)
        assert receipt["archived"] == 1
        left = [path for path in tmp_path.rglob("*") if path.is_file() and b"secret-word" in path.read_bytes()]
        assert left == []


async def test_an_episode_is_rated_and_a_procedure_counted(manager: MemoryManager, clock: Clock) -> None:
    assert await manager.rate(SHOP, HER, 5) is False
    for said in ("I want a cake", "two please"):
        await manager.add_message_to_context(SHOP, HER, said)
    clock.now += timedelta(hours=2)
    await manager.cleanup_expired_sessions()
    assert await manager.rate(SHOP, HER, 2, "too slow") is True
    memory = await manager.longterm.load(SHOP, HER)
    assert memory is not None
    feedback = memory.episodes[0].feedback
    assert feedback is not None
    assert (feedback.rating, feedback.comment) == (2, "too slow")
    taught = await manager.teach(SHOP, "when a customer asks for delivery, ask for the postcode first")
    for succeeded in (True, False):
        await manager.knowledge.count(SHOP, [taught.id], succeeded, 3.0, clock.now)
    shared = await manager.longterm.load_shared(SHOP)
    assert shared is not None
    used = shared.procedures[0]
    assert (used.times_used, used.success_rate, used.average_duration) == (2, 0.5, 3.0)
    await manager.teach(SHOP, "when a customer asks for delivery, ask for the postcode first")
    assert await manager.longterm.load_shared(SHOP) == shared


async def test_nothing_is_learned_of_a_group_from_what_its_members_say(tmp_path: Path) -> None:
    said: list[Message] = [
        {"role": "user", "message": "I moved to Chiang Mai", "metadata": {"sender": "line:U1"}},
        {"role": "user", "message": "My shoe size is 42"},
    ]
    store = JsonFiles(tmp_path, clock=Clock())
    session = ShortTermMemory(tenant_id=SHOP, user_id="line:group:C1", session_id="s1", history=said)
    await Consolidation(store).end(session, NOW)
    memory = await store.load(SHOP, "line:group:C1")
    assert memory is not None
    assert [fact.value for fact in memory.facts] == ["42"]
    assert len(memory.episodes) == 1


async def test_a_way_that_went_well_three_times_becomes_the_tenants_procedure(tmp_path: Path) -> None:
    store = JsonFiles(tmp_path, clock=Clock())
    said: list[Message] = [
        {"role": "user", "message": "the usual please"},
        {"role": "bot", "message": "done", "metadata": {"actions": [{"tool": "recall", "result": "order = latte"}]}},
    ]
    found: list[list[str]] = []
    for number in range(4):
        session = ShortTermMemory(
            tenant_id=SHOP, user_id=HER, session_id=f"s{number}", history=said, last_intent="REQUEST"
        )
        await Consolidation(store).end(session, NOW)
        shared = await store.load_shared(SHOP)
        found.append([one.content for one in shared.procedures] if shared else [])
    assert found == [[], [], ['["recall"]'], ['["recall"]']]
