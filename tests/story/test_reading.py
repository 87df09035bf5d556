"""What the model reads out of a conversation while it goes on: seldom, once, and again where it failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway import assembly
from memory.facts import Fact
from memory.keys import ConversationRef
from tests.house import LLM_KEY, House, house, shop
from tests.standins.model import Fault

ANN = "U" + "a" * 32
PONY = "my little pony is called Rex"


class Model:
    """Answers in words; reads what it is given as `manner` says: well, in prose, or under another key each time."""

    def __init__(self) -> None:
        self.manner = "well"
        self.readings: list[list[str]] = []

    def __call__(self, request: dict[str, Any]) -> Any:
        if "response_format" not in request:
            return "ok"
        told = json.loads(request["messages"][-1]["content"])
        if "messages" not in told:
            kind = {"event_type": "INFORMATION", "importance_score": 0.2, "language": "en"}
            return {**kind, "reasoning": "", "details": {}}
        self.readings.append([line["text"] for line in told["messages"] if line["from"] == "customer"])
        if self.manner == "prose":
            return "What a lovely pony."
        key = "pony" if self.manner == "well" else f"pet_{len(self.readings)}"
        facts = [
            {"key": key, "value": "Rex", "text": "Their pony is called Rex", "type": "relationship", "confidence": 0.9,
             "message": line["number"], "ended": False}
            for line in told["messages"] if line["text"] == PONY
        ]  # fmt: skip
        return {"summary": "The customer talked about a pony", "facts": facts}


async def say(home: House, *texts: str) -> None:
    for text in texts:
        shown = len(home.line_shows(ANN))
        await home.line_says(ANN, text)
        await home.line.until(lambda shown=shown: len(home.line_shows(ANN)) > shown)
        await home.quiet()


async def facts(home: House) -> list[Fact]:
    manager = assembly.memory_of(home.settings, home.tenants, home.redis_url)
    memory = await manager.longterm.load("shop", f"line:{ANN}")
    await manager.close()
    return [one for one in memory.facts if one.value == "Rex"] if memory else []


def every(count: int) -> dict[str, Any]:
    return {"shop": shop(memory={"extract_every": count}, language="en")}


async def test_it_is_read_every_so_many_messages_and_only_what_is_new(tmp_path: Path, redis_url: str) -> None:
    model = Model()
    async with house(tmp_path, redis_url, every(3), llm_key=LLM_KEY) as home:
        home.llm.answers(model)
        await say(home, "hello you", PONY)
        assert model.readings == []
        await say(home, "it is brown")
        await home.until(lambda: facts(home), bool)
        assert model.readings == [["hello you", PONY, "it is brown"]]
        await say(home, "and fast", "and old")
        assert len(model.readings) == 1
        await say(home, "and kind")
        await home.llm.until(lambda: len(model.readings) == 2)
        assert model.readings[1] == ["and fast", "and old", "and kind"]


@pytest.mark.parametrize("manner", ["well", "other keys"])
async def test_what_the_sessions_end_reads_again_is_no_second_fact(manner: str, tmp_path: Path, redis_url: str) -> None:
    model = Model()
    model.manner = manner
    async with house(tmp_path, redis_url, every(2), llm_key=LLM_KEY) as home:
        home.llm.answers(model)
        await say(home, PONY, "it is brown")
        await home.until(lambda: facts(home), bool)
        manager = assembly.memory_of(home.settings, home.tenants, home.redis_url)
        session = await manager.sessions.load(ConversationRef("shop", f"line:{ANN}"))
        assert session is not None
        await manager._cleanup._consolidation.end(session, session.created_at)
        await manager.close()
        assert len(model.readings) == 2
        [fact] = await facts(home)
    assert (fact.times_confirmed, fact.times_contradicted) == (0, 0)


async def test_a_reading_that_made_no_sense_is_tried_again_with_the_next_message(
    tmp_path: Path, redis_url: str
) -> None:
    model = Model()
    model.manner = "prose"
    async with house(tmp_path, redis_url, every(2), llm_key=LLM_KEY) as home:
        home.llm.answers(model)
        await say(home, PONY, "it is brown")
        await home.llm.until(lambda: bool(model.readings))
        await home.until(lambda: tries(home), lambda found: found == 1)
        model.manner = "well"
        await say(home, "and kind")
        await home.until(lambda: facts(home), lambda found: len(found) == 1)
        assert model.readings[-1] == [PONY, "it is brown", "and kind"]


async def tries(home: House) -> int:
    manager = assembly.memory_of(home.settings, home.tenants, home.redis_url)
    session = await manager.sessions.load(ConversationRef("shop", f"line:{ANN}"))
    await manager.close()
    return int(session.variables.get("read_tries") or 0) if session else 0


async def test_a_model_that_never_answers_is_asked_three_times_and_then_left_alone(
    tmp_path: Path, redis_url: str
) -> None:
    model = Model()
    async with house(tmp_path, redis_url, every(2), llm_key=LLM_KEY) as home:

        def usual(request: dict[str, Any]) -> Any:
            if "response_format" in request and '"earlier_summary"' in str(request["messages"][-1]["content"]):
                model.readings.append([])
                return "nothing of the kind"
            return model(request)

        home.llm.answers(usual)
        await say(home, "word one")
        for number in range(3):
            before = len(model.readings)
            await say(home, f"word {number}")
            await home.llm.until(lambda before=before: len(model.readings) > before)
            await home.until(lambda: tries(home), lambda found, number=number: found == (number + 1) % 3)
        before = len(model.readings)
        await say(home, "one more word")
    assert len(model.readings) == before


async def test_nothing_is_read_without_a_model_or_where_it_is_switched_off(tmp_path: Path, redis_url: str) -> None:
    model = Model()
    async with house(tmp_path, redis_url, every(0), llm_key=LLM_KEY) as home:
        home.llm.answers(model)
        home.llm.next(Fault(status=500))
        await say(home, PONY, "it is brown", "and kind", "and fast", "and old", "and small")
    assert model.readings == []
