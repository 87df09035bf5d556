"""Seed calls of the manager, in this process and over a real server, with everything that may be away."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import memory
from memory import MemoryConfig, MemoryManager, MemoryManagerFactory
from memory.config import MemoryRules
from memory.errors import LongTermUnavailable, SessionsUnavailable
from memory.keys import ConversationRef, InvalidId
from memory.long_term.json_files import JsonFiles
from memory.models import LongTermMemory, Message
from memory.redis_client import connect
from memory.short_term.in_process import InProcessSessions
from memory.short_term.redis import RedisSessions
from processors import EventProcessor
from processors.extraction import Reading
from processors.models import EventType, MemoryEvent

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
TENANT, USER = "store_001", "line:U1"
WHO = (TENANT, USER)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **time: float) -> None:
        self.now += timedelta(**time)


class Scorer:
    """Classifies by the first word, as `0.9 …`; records what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, Any] | None]] = []

    async def analyze_message(self, message: str, context: Mapping[str, Any] | None = None) -> MemoryEvent:
        self.asked.append((message, context))
        first = message.partition(" ")[0]
        return MemoryEvent(
            event_type=EventType.REQUEST if first.startswith("0.") else EventType.GENERIC_EVENT,
            payload={"original_message": message, "language": "en" if message.isascii() else "th"},
            importance_score=float(first) if first.startswith("0.") else 0.1,
        )


class Away:
    """A store of sessions that can't be reached."""

    def __getattr__(self, name: str) -> Any:
        async def fail(*_: object, **__: object) -> None:
            raise SessionsUnavailable("away")

        if name in ("expired", "of"):
            return self._listed
        return fail

    async def _listed(self, *_: object, **__: object) -> AsyncIterator[ConversationRef]:
        raise SessionsUnavailable("away")
        yield


class Disk(JsonFiles):
    """Long-term memory on a disk that can be full."""

    full = False

    async def change(self, *args: Any, **more: Any) -> None:
        if self.full:
            raise LongTermUnavailable("full")
        await super().change(*args, **more)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def scorer() -> Scorer:
    return Scorer()


@pytest.fixture
def config(tmp_path: Path) -> MemoryConfig:
    return MemoryConfig(lm_base_path=tmp_path / "longterm")


@pytest.fixture
async def manager(config: MemoryConfig, clock: Clock, scorer: Scorer) -> AsyncIterator[MemoryManager]:
    manager = manager_of(config, clock, scorer)
    yield manager
    await manager.close()


def manager_of(config: MemoryConfig, clock: Clock, scorer: Scorer, **parts: Any) -> MemoryManager:
    parts.setdefault("sessions", InProcessSessions(clock=lambda: clock().timestamp()))
    return MemoryManager(config, processor=scorer, clock=clock, **parts)


async def known(manager: MemoryManager, user: str = USER) -> LongTermMemory:
    return await manager.longterm.load(TENANT, user) or LongTermMemory(tenant_id=TENANT, user_id=user)


def named(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.rglob(pattern))


def texts(messages: list[Message]) -> list[str]:
    return [message["message"] for message in messages]


class TestSession:
    async def test_a_new_person_gets_an_empty_session(self, manager: MemoryManager) -> None:
        session = await manager.get_or_create_session_context(TENANT, USER, "sess_001")
        assert (session.tenant_id, session.user_id, session.session_id) == (TENANT, USER, "sess_001")
        assert (session.history, session.summary, session.state, session.last_intent) == (
            [],
            "",
            "awaiting_input",
            None,
        )
        assert set(session.variables) == {"preferred_language", "current_topic"}
        assert session.expires_at == START + timedelta(minutes=30)

    async def test_a_live_session_comes_back_unchanged_whatever_its_id(
        self, manager: MemoryManager, clock: Clock
    ) -> None:
        first = await manager.get_or_create_session_context(TENANT, USER, "sess_001")
        clock.pass_by(minutes=29)
        assert await manager.get_or_create_session_context(TENANT, USER, "other") == first

    async def test_reading_does_not_extend_a_session_writing_does(self, manager: MemoryManager, clock: Clock) -> None:
        await manager.get_or_create_session_context(TENANT, USER, "sess_001")
        clock.pass_by(minutes=20)
        written = await manager.add_message_to_context(TENANT, USER, "hello")
        clock.pass_by(minutes=20)
        await manager.get_context_for_llm(*WHO)
        read = await manager.get_or_create_session_context(TENANT, USER, "x")
        assert read.expires_at == written.expires_at == START + timedelta(minutes=50)

    async def test_history_keeps_the_newest_twenty_in_order(self, manager: MemoryManager) -> None:
        for n in range(25):
            session = await manager.add_message_to_context(TENANT, USER, str(n), role="bot")
        assert texts(session.history) == [str(n) for n in range(5, 25)]
        times = [datetime.fromisoformat(message["timestamp"]) for message in session.history]
        assert times == sorted(set(times))

    async def test_a_session_after_expiry_begins_with_what_was_remembered(
        self, manager: MemoryManager, clock: Clock
    ) -> None:
        await manager.add_message_to_context(TENANT, USER, "0.8 จองโต๊ะ ผมแพ้กุ้งครับ")
        await manager.add_message_to_context(TENANT, USER, "ได้ค่ะ", role="bot")
        clock.pass_by(minutes=30)
        session = await manager.get_or_create_session_context(TENANT, USER, "sess_002")
        assert (session.session_id, session.history) == ("sess_002", [])
        assert texts(session.carried) == ["0.8 จองโต๊ะ ผมแพ้กุ้งครับ", "ได้ค่ะ"]
        assert session.summary == (await known(manager)).history_summary != ""
        assert session.variables["preferred_language"] == "th"
        context = await manager.get_context_for_llm(*WHO)
        assert texts(context["recent_messages"]) == ["0.8 จองโต๊ะ ผมแพ้กุ้งครับ", "ได้ค่ะ"]

    async def test_a_restart_gives_the_last_turns_back(
        self, config: MemoryConfig, clock: Clock, scorer: Scorer
    ) -> None:
        await manager_of(config, clock, scorer).add_message_to_context(TENANT, USER, "my order is 77")
        again = manager_of(config, clock, scorer)
        await again.add_message_to_context(TENANT, USER, "and?")
        assert texts((await again.get_context_for_llm(*WHO))["recent_messages"]) == ["my order is 77", "and?"]

    async def test_a_ttl_of_zero_never_ends_a_session(self, config: MemoryConfig, clock: Clock, scorer: Scorer) -> None:
        manager = manager_of(config.model_copy(update={"sm_ttl": 0.0}), clock, scorer)
        await manager.add_message_to_context(TENANT, USER, "a")
        clock.pass_by(days=400)
        assert texts((await manager.get_or_create_session_context(TENANT, USER, "x")).history) == ["a"]

    async def test_each_conversation_has_a_session_of_its_own(self, manager: MemoryManager) -> None:
        await manager.add_message_to_context(TENANT, USER, "main")
        side = await manager.add_message_to_context(TENANT, USER, "side", agent="sales", conversation_id="c2")
        assert texts(side.history) == ["side"]
        assert [texts((await manager.get_context_for_llm(*WHO, agent="general"))["recent_messages"])] == [["main"]]

    async def test_tenants_and_users_never_see_each_other(self, manager: MemoryManager) -> None:
        await manager.add_message_to_context(TENANT, USER, "0.9 secret of one")
        for tenant, user in (("store_002", USER), (TENANT, "line:U2"), (TENANT, "line:U10")):
            await manager.get_or_create_session_context(tenant, user, "s")
            assert "secret" not in json.dumps(await manager.get_context_for_llm(tenant, user))

    async def test_wrong_ids_and_roles_are_refused(self, manager: MemoryManager) -> None:
        for tenant, user in (("../x", USER), ("", USER), (TENANT, "")):
            with pytest.raises(InvalidId):
                await manager.add_message_to_context(tenant, user, "x")
        with pytest.raises(ValueError, match="role"):
            await manager.add_message_to_context(TENANT, USER, "x", role="system")  # type: ignore[arg-type]

    @pytest.mark.parametrize("user", ["../../x", "a" * 4096, "a\x00b/c", "a\ud800"])
    async def test_an_odd_id_works_like_any_other(self, manager: MemoryManager, user: str) -> None:
        await manager.add_message_to_context(TENANT, user, "0.9 hello")
        assert len((await known(manager, user)).events) == 1

    @pytest.mark.parametrize("text", ["", "😀" * 50, "x" * 100_000, "\x00"])
    async def test_any_text_is_taken(self, manager: MemoryManager, text: str) -> None:
        assert texts((await manager.add_message_to_context(TENANT, USER, text)).history) == [text]

    async def test_a_lone_surrogate_is_replaced_at_the_door(self, manager: MemoryManager, scorer: Scorer) -> None:
        session = await manager.add_message_to_context(TENANT, USER, "0.9 a\ud800", metadata={"name": "\udfff"})
        assert texts(session.history) == ["0.9 a�"]
        assert session.history[0]["metadata"] == {"name": "�"}
        assert scorer.asked[0][0] == "0.9 a�"


class TestMessages:
    async def test_a_message_with_an_id_is_appended_and_classified_once(
        self, manager: MemoryManager, scorer: Scorer, clock: Clock
    ) -> None:
        first = await manager.add_message_to_context(TENANT, USER, "0.9 order", metadata={"message_id": "m1"})
        clock.pass_by(minutes=1)
        again = await manager.add_message_to_context(TENANT, USER, "0.9 order", metadata={"message_id": "m1"})
        assert again == first
        assert [len(scorer.asked), len((await known(manager)).events)] == [1, 1]

    async def test_a_repeat_is_known_after_it_left_the_history_and_after_expiry(
        self, manager: MemoryManager, clock: Clock
    ) -> None:
        for n in range(30):
            await manager.add_message_to_context(TENANT, USER, str(n), "bot", {"message_id": f"m{n}"})
        session = await manager.add_message_to_context(TENANT, USER, "0", "bot", {"message_id": "m0"})
        assert texts(session.history)[-1] == "29"
        clock.pass_by(hours=1)
        session = await manager.add_message_to_context(TENANT, USER, "29", "bot", {"message_id": "m29"})
        assert [texts(session.history), texts(session.carried)[-1]] == [[], "29"]

    @pytest.mark.parametrize("name", [0, 7, "7"])
    async def test_any_name_of_a_message_is_known_again(self, manager: MemoryManager, name: object) -> None:
        for _ in "12":
            session = await manager.add_message_to_context(TENANT, USER, "x", "bot", {"message_id": name})
        assert texts(session.history) == ["x"]

    async def test_repeats_at_once_are_appended_once(self, manager: MemoryManager) -> None:
        await asyncio.gather(
            *(manager.add_message_to_context(TENANT, USER, "x", "bot", {"message_id": "m"}) for _ in "12345")
        )
        assert texts((await manager.get_context_for_llm(*WHO))["recent_messages"]) == ["x"]

    async def test_messages_without_an_id_may_be_alike(self, manager: MemoryManager) -> None:
        for _ in range(2):
            session = await manager.add_message_to_context(TENANT, USER, "ครับ", role="bot")
        assert texts(session.history) == ["ครับ", "ครับ"]

    async def test_metadata_stays_with_its_message(self, manager: MemoryManager) -> None:
        metadata = {"platform": "line", "timestamp": "2025-07-30T10:30:00Z"}
        session = await manager.add_message_to_context(TENANT, USER, "hi", metadata=metadata)
        assert session.history[0]["metadata"] == metadata
        assert session.history[0]["timestamp"] == "2026-03-01T09:00:00Z"

    async def test_the_session_notes_intent_language_topic_and_whose_turn_it_is(self, manager: MemoryManager) -> None:
        session = await manager.add_message_to_context(TENANT, USER, "0.5 จองโต๊ะ")
        assert (session.last_intent, session.state) == ("REQUEST", "answering")
        assert session.variables == {"preferred_language": "th", "current_topic": "request"}
        session = await manager.add_message_to_context(TENANT, USER, "ได้ค่ะ", role="bot")
        assert (session.last_intent, session.state) == ("REQUEST", "awaiting_input")

    async def test_the_classifier_sees_the_conversation(self, manager: MemoryManager, scorer: Scorer) -> None:
        await manager.add_message_to_context(TENANT, USER, "ราคาเท่าไหร่")
        await manager.add_message_to_context(TENANT, USER, "แล้วอันนี้ล่ะ")
        context = scorer.asked[1][1]
        assert context is not None
        assert texts(context["recent_messages"]) == ["ราคาเท่าไหร่"]
        assert context["session_variables"]["preferred_language"] == "th"

    async def test_writers_in_one_process_lose_nothing(self, manager: MemoryManager) -> None:
        await asyncio.gather(*(manager.add_message_to_context(TENANT, USER, f"0.9 {n}") for n in range(15)))
        session = await manager.get_or_create_session_context(TENANT, USER, "s")
        assert sorted(texts(session.history)) == sorted(f"0.9 {n}" for n in range(15))
        assert len((await known(manager)).events) == 15


class TestEvents:
    async def test_what_matters_is_saved_and_what_does_not_is_not(self, manager: MemoryManager) -> None:
        for score in ("0.1", "0.49", "0.5", "0.8", "0.95"):
            await manager.add_message_to_context(TENANT, USER, f"{score} x")
        assert [event.importance_score for event in (await known(manager)).events] == [0.5, 0.8, 0.95]

    async def test_what_the_bot_says_is_not_classified(self, manager: MemoryManager, scorer: Scorer) -> None:
        await manager.add_message_to_context(TENANT, USER, "0.9 x", role="bot")
        assert [scorer.asked, (await known(manager)).events] == [[], []]

    async def test_a_critical_event_is_saved_whatever_the_threshold(
        self, config: MemoryConfig, clock: Clock, scorer: Scorer
    ) -> None:
        manager = manager_of(config, clock, scorer, rules=lambda _: MemoryRules(importance_threshold=1.0))
        for score in ("0.89", "0.9"):
            await manager.add_message_to_context(TENANT, USER, f"{score} x")
        assert [event.importance_score for event in (await known(manager)).events] == [0.9]

    async def test_attributes_and_summary_follow_each_saved_event(self, manager: MemoryManager) -> None:
        await manager.add_message_to_context(TENANT, USER, "0.9 สวัสดี")
        first = await known(manager)
        await manager.add_message_to_context(TENANT, USER, "0.9 again please")
        second = await known(manager)
        assert [first.attributes["preferred_language"], second.attributes["preferred_language"]] == ["th", "en"]
        assert "1" in first.history_summary
        assert "made 2 requests" in second.history_summary.lower()

    async def test_with_the_real_rules_an_order_is_saved_and_a_greeting_is_not(
        self, config: MemoryConfig, clock: Clock, tmp_path: Path
    ) -> None:
        manager = MemoryManager(config, processor=EventProcessor(), clock=clock)
        session = await manager.add_message_to_context(TENANT, USER, "สวัสดีครับ")
        assert (session.last_intent, session.variables["preferred_language"]) == ("GENERIC_EVENT", "th")
        assert (await known(manager)).events == []
        await manager.add_message_to_context(TENANT, USER, "โอนเงินแล้ว 500 บาท ออเดอร์ #123 ครับ")
        saved = json.loads((tmp_path / "longterm" / TENANT / "line:U1.json").read_bytes())
        assert [event["event_type"] for event in saved["events"]] == ["TRANSACTION"]
        assert saved["events"][0]["payload"]["original_message"] == "โอนเงินแล้ว 500 บาท ออเดอร์ #123 ครับ"


class TestContext:
    async def test_without_a_live_session_there_is_an_error(self, manager: MemoryManager, clock: Clock) -> None:
        assert "error" in await manager.get_context_for_llm(*WHO)
        await manager.add_message_to_context(TENANT, USER, "x")
        clock.pass_by(minutes=31)
        assert "error" in await manager.get_context_for_llm(*WHO)

    async def test_it_holds_what_the_contract_names(self, manager: MemoryManager) -> None:
        for n in range(8):
            await manager.add_message_to_context(TENANT, USER, f"0.{n + 2} message {n}")
        context = await manager.get_context_for_llm(*WHO, max_recent_messages=3)
        assert set(context) == {
            "recent_messages",
            "current_state",
            "session_variables",
            "conversation_summary",
            "user_attributes",
            "history_summary",
            "important_events",
        }
        assert texts(context["recent_messages"]) == ["0.7 message 5", "0.8 message 6", "0.9 message 7"]
        assert [event["importance_score"] for event in context["important_events"]] == [0.7, 0.8, 0.9]
        assert context["user_attributes"] == {"preferred_language": "en"}
        assert context["current_state"] == "answering"
        json.dumps(context)

    async def test_of_many_important_events_the_newest_five_are_told(
        self, manager: MemoryManager, clock: Clock
    ) -> None:
        for n in range(9):
            clock.pass_by(seconds=1)
            await manager.add_message_to_context(TENANT, USER, f"0.8 {n}")
        events = (await manager.get_context_for_llm(*WHO))["important_events"]
        assert [event["payload"]["original_message"] for event in events] == [f"0.8 {n}" for n in range(4, 9)]

    async def test_the_summary_may_be_left_out(self, manager: MemoryManager) -> None:
        await manager.get_or_create_session_context(TENANT, USER, "s")
        assert (await manager.get_context_for_llm(*WHO))["conversation_summary"] == ""
        assert (await manager.get_context_for_llm(*WHO, include_summary=False))["conversation_summary"] is None


class TestCleanup:
    async def test_sessions_that_are_over_are_ended_and_counted_once(
        self, manager: MemoryManager, clock: Clock
    ) -> None:
        for user in ("a", "b", "c"):
            await manager.add_message_to_context(TENANT, user, "0.8 please")
        clock.pass_by(minutes=20)
        await manager.add_message_to_context(TENANT, "c", "0.8 more")
        clock.pass_by(minutes=10)
        assert await manager.count_expired_sessions() == 2
        assert sum(await asyncio.gather(*(manager.cleanup_expired_sessions() for _ in range(3)))) == 2
        assert [await manager.cleanup_expired_sessions(), await manager.count_expired_sessions()] == [0, 0]
        clock.pass_by(minutes=20)
        assert await manager.cleanup_expired_sessions("store_002") == 0
        assert await manager.cleanup_expired_sessions(TENANT) == 1

    async def test_the_gist_joins_what_the_events_say_and_neither_overwrites_the_other(
        self, manager: MemoryManager, clock: Clock, tmp_path: Path
    ) -> None:
        await manager.add_message_to_context(TENANT, USER, "0.8 table for two")
        before = (await known(manager)).history_summary
        await manager.add_message_to_context(TENANT, USER, "and a cake")
        clock.pass_by(minutes=40)
        await manager.cleanup_expired_sessions()
        ended = (await known(manager)).history_summary
        assert ended.startswith(before + "\n")
        assert "cake" in ended
        assert named(tmp_path, "*.journal") == []
        await manager.add_message_to_context(TENANT, USER, "0.8 one more")
        after = (await known(manager)).history_summary
        assert [after.split("\n")[1], after.count("\n")] == [ended.split("\n")[1], 1]

    async def test_a_session_that_the_store_dropped_before_still_has_its_journal_folded(
        self, manager: MemoryManager, clock: Clock, tmp_path: Path
    ) -> None:
        for _ in range(2):
            await manager.add_message_to_context(TENANT, USER, "0.8 please")
        clock.pass_by(hours=1)
        assert await manager.cleanup_expired_sessions() == 0
        assert named(tmp_path, "*.journal") == []
        assert len((await known(manager)).events) == 2

    async def test_of_a_greeting_nothing_is_kept(self, manager: MemoryManager, clock: Clock, tmp_path: Path) -> None:
        await manager.add_message_to_context(TENANT, USER, "hello")
        clock.pass_by(minutes=40)
        assert await manager.cleanup_expired_sessions() == 1
        assert await manager.longterm.load(TENANT, USER) is None

    async def test_a_language_model_is_asked_at_clean_up_but_not_while_a_customer_waits(
        self, config: MemoryConfig, clock: Clock, scorer: Scorer
    ) -> None:
        asked: list[tuple[str, list[str], str]] = []

        async def ask(tenant: str, messages: Any, before: str, known: object, language: object) -> Reading:
            asked.append((tenant, texts(messages), before))
            return Reading(f"gist {len(asked)}")

        manager = manager_of(config, clock, scorer, read_session=ask)
        await manager.add_message_to_context(TENANT, USER, "0.8 a")
        clock.pass_by(minutes=40)
        await manager.cleanup_expired_sessions()
        await manager.add_message_to_context(TENANT, USER, "0.8 b")
        clock.pass_by(minutes=40)
        await manager.cleanup_expired_sessions()
        assert asked == [(TENANT, ["0.8 a"], ""), (TENANT, ["0.8 b"], "gist 1")]
        assert (await known(manager)).history_summary.endswith("\ngist 2")
        await manager.add_message_to_context(TENANT, USER, "0.8 c")
        clock.pass_by(minutes=40)
        await manager.get_or_create_session_context(TENANT, USER, "s")
        assert len(asked) == 2

    async def test_transcripts_have_their_own_retention(
        self, config: MemoryConfig, clock: Clock, scorer: Scorer
    ) -> None:
        manager = manager_of(config.model_copy(update={"transcript_retention_days": 90}), clock, scorer)
        await manager.add_message_to_context(TENANT, USER, "old")
        clock.pass_by(days=91)
        await manager.add_message_to_context(TENANT, USER, "new")
        await manager.cleanup_expired_sessions()
        said = await manager.transcripts.tail(ConversationRef(*WHO), 10)
        assert texts(said) == ["new"]


class TestForget:
    async def test_nothing_of_the_person_is_left_and_the_receipt_says_so(
        self, manager: MemoryManager, tmp_path: Path
    ) -> None:
        for user in (USER, "line:U10"):
            await manager.add_message_to_context(TENANT, user, "0.9 my name")
        await manager.add_message_to_context(TENANT, USER, "0.9 side", agent="sales", conversation_id="c2")
        assert await manager.forget(TENANT, USER) == {
            "tenant_id": TENANT,
            "user_id": USER,
            "sessions": 2,
            "waiting_events": 0,
            "longterm_files": 2,
            "events": 2,
            "attributes": 1,
            "facts": 1,
            "episodes": 0,
            "archived": 0,
            "transcript_messages": 2,
            "media_files": 0,
            "conversations": 0,
            "vectors": 0,
            "unanswered": 0,
            "group_messages": 0,
        }
        assert named(tmp_path, "*U1*") == ["line:U10", "line:U10.json"]
        session = await manager.get_or_create_session_context(TENANT, USER, "s")
        assert (session.history, session.carried, session.summary) == ([], [], "")
        assert len((await known(manager, "line:U10")).events) == 1

    async def test_it_does_not_claim_what_could_not_be_done(
        self, config: MemoryConfig, clock: Clock, scorer: Scorer
    ) -> None:
        manager = manager_of(config, clock, scorer, sessions=Away())
        await manager.add_message_to_context(TENANT, USER, "0.9 x")
        with pytest.raises(SessionsUnavailable):
            await manager.forget(TENANT, USER)
        assert (await known(manager)).events == []


class TestAway:
    async def test_without_redis_a_minimal_session_goes_on(
        self, config: MemoryConfig, clock: Clock, scorer: Scorer
    ) -> None:
        manager = manager_of(config, clock, scorer, sessions=Away())
        session = await manager.get_or_create_session_context(TENANT, USER, "sess_001")
        assert (session.session_id, session.history) == ("sess_001", [])
        session = await manager.add_message_to_context(TENANT, USER, "0.9 order")
        assert texts(session.history) == ["0.9 order"]
        await manager.add_message_to_context(TENANT, USER, "done", role="bot")
        context = await manager.get_context_for_llm(*WHO)
        assert texts(context["recent_messages"]) == ["0.9 order", "done"]
        assert len(context["important_events"]) == 1
        assert await manager.cleanup_expired_sessions() == 0

    async def test_what_was_said_meanwhile_joins_the_live_session_once(
        self, manager: MemoryManager, config: MemoryConfig, clock: Clock, scorer: Scorer
    ) -> None:
        ref = ConversationRef(*WHO)
        await manager.rejoin(ref)
        await manager.add_message_to_context(TENANT, USER, "earlier")
        clock.pass_by(minutes=40)
        await manager.add_message_to_context(TENANT, USER, "before")
        away = manager_of(config, clock, scorer, sessions=Away())
        await away.add_message_to_context(TENANT, USER, "meanwhile")
        for _ in range(2):
            await manager.rejoin(ref)
        session = await manager.get_or_create_session_context(TENANT, USER, "s")
        assert [texts(session.carried), texts(session.history)] == [["earlier"], ["before", "meanwhile"]]

    async def test_while_the_disk_is_full_events_wait_and_are_saved_once_afterwards(
        self, config: MemoryConfig, clock: Clock, scorer: Scorer
    ) -> None:
        disk = Disk(config.lm_base_path, clock=clock)
        manager = manager_of(config, clock, scorer, longterm=disk)
        disk.full = True
        for n in range(3):
            session = await manager.add_message_to_context(TENANT, USER, f"0.9 {n}")
        assert len(session.history) == 3
        assert [manager.saving.waiting(), (await known(manager)).events] == [3, []]
        disk.full = False
        await manager.cleanup_expired_sessions()
        saved = await known(manager)
        assert [event.payload["original_message"] for event in saved.events] == ["0.9 0", "0.9 1", "0.9 2"]
        assert [saved.attributes, manager.saving.waiting()] == [{"preferred_language": "en"}, 0]

    async def test_a_session_that_can_not_be_saved_to_disk_is_ended_by_the_next_clean_up(
        self, config: MemoryConfig, clock: Clock, scorer: Scorer
    ) -> None:
        disk = Disk(config.lm_base_path, clock=clock)
        manager = manager_of(config, clock, scorer, longterm=disk)
        await manager.add_message_to_context(TENANT, USER, "0.4 a question")
        clock.pass_by(minutes=40)
        disk.full = True
        assert await manager.cleanup_expired_sessions() == 0
        disk.full = False
        assert await manager.cleanup_expired_sessions() == 1
        assert "question" in (await known(manager)).history_summary

    async def test_without_any_disk_the_conversation_goes_on(
        self, tmp_path: Path, clock: Clock, scorer: Scorer
    ) -> None:
        in_the_way = tmp_path / "file"
        in_the_way.touch()
        manager = manager_of(MemoryConfig(lm_base_path=in_the_way / "longterm"), clock, scorer)
        await manager.add_message_to_context(TENANT, USER, "0.9 a")
        session = await manager.add_message_to_context(TENANT, USER, "b", role="bot")
        assert texts(session.history) == ["0.9 a", "b"]
        assert texts((await manager.get_context_for_llm(*WHO))["recent_messages"]) == ["0.9 a", "b"]


class TestRedis:
    async def test_managers_of_several_processes_lose_nothing(
        self, redis_url: str, config: MemoryConfig, clock: Clock, scorer: Scorer
    ) -> None:
        managers = [manager_of(config, clock, scorer, sessions=RedisSessions(connect(redis_url))) for _ in range(3)]
        writes = (managers[n % 3].add_message_to_context(TENANT, USER, str(n), "bot") for n in range(18))
        await asyncio.gather(*writes)
        session = await managers[0].get_or_create_session_context(TENANT, USER, "s")
        assert sorted(texts(session.history), key=int) == [str(n) for n in range(18)]
        for manager in managers:
            await manager.close()

    async def test_made_from_a_configuration_it_works_as_the_readme_shows(self, redis_url: str, tmp_path: Path) -> None:
        config = MemoryConfig(
            redis_url=redis_url,
            sm_ttl=1800,
            lm_base_path=tmp_path / "longterm",
            max_events_per_user=1000,
            event_retention_days=365,
            importance_threshold=0.5,
        )
        manager = MemoryManagerFactory.create_from_config(config)
        session = await manager.get_or_create_session_context(tenant_id=TENANT, user_id=USER, session_id="sess_001")
        assert session.session_id == "sess_001"
        await manager.add_message_to_context(tenant_id=TENANT, user_id=USER, message="ราคาสินค้านี้เท่าไหร่ครับ", role="user")
        context = await manager.get_context_for_llm(TENANT, USER, include_summary=True, max_recent_messages=10)
        assert texts(context["recent_messages"]) == ["ราคาสินค้านี้เท่าไหร่ครับ"]
        await manager.close()
        again = MemoryManagerFactory.create_from_config(config)
        session = await again.get_or_create_session_context(TENANT, USER, "sess_002")
        assert (session.session_id, session.last_intent) == ("sess_001", "INQUIRY")
        await again.close()


class TestPackage:
    def test_a_wrong_value_is_refused_by_name(self) -> None:
        for field, value in (("sm_ttl", -1), ("importance_threshold", 1.5), ("lm_compression", "rar"), ("sm_tll", 1)):
            with pytest.raises(ValidationError, match=field):
                MemoryConfig(**{field: value})

    def test_a_key_is_never_shown(self) -> None:
        assert "very-secret" not in repr(MemoryConfig(openrouter_api_key="very-secret"))

    def test_every_name_of_the_package_is_there_and_no_other(self) -> None:
        assert [getattr(memory, name).__name__ for name in memory.__all__] == memory.__all__
        with pytest.raises(AttributeError):
            _ = memory.nothing

    def test_keys_alone_are_imported_without_the_rest(self) -> None:
        code = "import sys, memory.keys; print([m for m in ('pydantic', 'redis', 'processors') if m in sys.modules])"
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert out.stdout == "[]\n"


@pytest.mark.parametrize("nothing", [None, 5, b"hello"])
async def test_what_is_no_text_is_told_as_that(manager: MemoryManager, nothing: Any) -> None:
    with pytest.raises(ValueError, match="message must be a text, not "):
        await manager.add_message_to_context(*WHO, nothing)
    with pytest.raises(ValueError, match="query must be a text, not "):
        await manager.search(*WHO, nothing)
    with pytest.raises(ValueError, match="message must be a text, not "):
        await EventProcessor(api_key=None).analyze_message(nothing)
