"""What a shop knows of a customer after two weeks, whether its language model answers well, badly or not at all."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway import app, assembly
from gateway.prompt import RULES
from memory.models import LongTermMemory
from tests.house import LLM_KEY, House, house, shop
from tests.standins.openrouter import Said, error

ANN = "U" + "a" * 32
HER, CHAT = f"line:{ANN}", 55
BEGIN = datetime(2026, 3, 2, 3, 0, tzinfo=UTC)
DAUGHTER = "ลูกสาวหนูคือมะลิค่ะ"


@dataclass
class Clock:
    now: datetime = BEGIN

    def __call__(self) -> datetime:
        return self.now


class Model:
    """`well`: reads a session as it should. `badly`: prose where an object is due. `never`: 503."""

    def __init__(self, manner: str) -> None:
        self.manner = manner

    def __call__(self, request: dict[str, Any]) -> str | dict[str, Any] | Said:
        asked = request["messages"][-1]["content"]
        if "response_format" not in request and "JSON Schema" not in str(request["messages"][-1]["content"]):
            return "ได้ค่ะ"
        if self.manner != "well":
            return "I am sorry, but I would rather talk about the weather."
        told = json.loads(asked)
        if "messages" not in told:
            return {
                "event_type": "INFORMATION",
                "importance_score": 0.8,
                "language": "th",
                "reasoning": "",
                "details": {},
            }
        found = [line["number"] for line in told["messages"] if line["text"] == DAUGHTER]
        facts = [
            {"key": "daughter", "value": "มะลิ", "text": "ลูกสาวชื่อมะลิ", "type": "relationship", "confidence": 0.9,
             "message": at, "ended": False}
            for at in found
        ]  # fmt: skip
        return {"summary": "ลูกค้าบอกข้อมูลของตัวเอง", "facts": facts}


async def cleanup(home: House, clock: Clock) -> int:
    async with app.tidy(home.settings, home.tenants, home.redis_url, clock=clock) as tidy:
        return (await tidy.run()).sessions


async def known(home: House, clock: Clock) -> LongTermMemory:
    manager = assembly.memory_of(home.settings, home.tenants, home.redis_url, clock=clock)
    memory = await manager.longterm.load("shop", HER)
    await manager.close()
    assert memory is not None
    return memory


def told(home: House) -> dict[str, Any]:
    """The facts in the last prompt for an answer."""
    prompts = [one["messages"] for one in home.llm.requests if str(one["messages"][0]["content"]).startswith(RULES)]
    moment = next(one["content"] for one in reversed(prompts[-1]) if "<customer>" in str(one["content"]))
    facts: dict[str, Any] = json.loads(moment.split("<customer>\n")[1].split("\n</customer>")[0])
    return facts


@pytest.mark.parametrize("manner", ["well", "badly", "never"])
async def test_the_last_prompt_holds_the_right_facts_and_no_stale_one(
    tmp_path: Path, redis_url: str, manner: str
) -> None:
    clock = Clock()
    async with house(tmp_path, redis_url, {"shop": shop()}, llm_key=LLM_KEY, clock=clock) as home:
        model = Model(manner)
        home.llm.answers(model)
        if manner == "never":
            home.llm.next(*(error(400, "out of order") for _ in range(500)))

        async def say(text: str) -> None:
            shown = len(home.line_shows(ANN))
            await home.line_says(ANN, text)
            await home.line.until(lambda: len(home.line_shows(ANN)) > shown)
            await home.quiet()

        for text in ("สวัสดีค่ะ ดิฉันชื่อพลอย", "หนูแพ้ถั่วค่ะ", "ใส่รองเท้าเบอร์ 38 ค่ะ", DAUGHTER):
            await say(text)
            clock.now += timedelta(minutes=1)
        clock.now += timedelta(days=5)
        assert await cleanup(home, clock) == 1
        assert [episode.understood for episode in (await known(home, clock)).episodes] == [manner == "well"]

        await say("/เชื่อมต่อ")
        code = re.search(r"[A-Z2-9]{4}-[A-Z2-9]{4}", home.line_shows(ANN)[-1])
        assert code
        await home.telegram_says(CHAT, f"/link {code[0]}")
        await home.quiet()
        await home.telegram_says(CHAT, "ตอนนี้เปลี่ยนเป็นเบอร์ 39 แล้วค่ะ")
        await home.telegram.until(lambda: len(home.telegram_shows(CHAT)) == 2)
        await home.quiet()
        clock.now += timedelta(days=4)

        model.manner = "well"
        home.llm.reset()
        home.llm.answers(model)
        await cleanup(home, clock)
        clock.now += timedelta(days=4)
        await say("มีรองเท้าแนะนำไหมคะ")
        assert told(home) == {
            "name": "พลอย",
            "allergies": ["ถั่ว"],
            "shoe_size": "39",
            "daughter": "มะลิ",
        }
        memory = await known(home, clock)
    sizes = [(fact.value, fact.current, fact.times_contradicted) for fact in memory.facts if fact.key == "shoe_size"]
    assert sizes == [("38", False, 1), ("39", True, 0)]
    assert [episode.understood for episode in memory.episodes] == [True, True]
    assert memory.person is not None
    assert memory.person.identities == {"line_id": ANN, "telegram_id": str(CHAT)}
    assert memory.person.conversations == 2
