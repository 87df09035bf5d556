"""A session read by a language model, and what is made of good, bad and no answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from processors.extraction import borne_out, read
from processors.llm import Access, ChatRequest, Completion, LLMUnavailable

ACCESS = Access("key")
TALK = [
    {"role": "user", "message": "สวัสดีค่ะ ชื่อพลอยนะคะ"},
    {"role": "bot", "message": "สวัสดีค่ะคุณพลอย ใส่ไซส์ M ใช่ไหมคะ"},
    {"role": "user", "message": "ใส่เบอร์ 38 ค่ะ"},
]
GIST = "ลูกค้าชื่อพลอยแจ้งเบอร์รองเท้า"


class Recording:
    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> Completion:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Completion("", "m", data=answer)

    def stream(self, request: ChatRequest) -> AsyncIterator[str]:
        raise NotImplementedError


def found(key: str, value: str, message: int, **more: Any) -> dict[str, Any]:
    given = {"key": key, "value": value, "text": f"{key} {value}", "type": "fact", "confidence": 0.9}
    return {**given, "message": message, "ended": False, **more}


async def test_one_call_gives_the_gist_and_the_facts_with_the_message_that_says_each() -> None:
    model = Recording({"summary": GIST, "facts": [found("name", "พลอย", 0), found("Shoe size", "38", 2)]})
    reading = await read(model, ACCESS, TALK, "", {}, "th")
    assert (reading.summary, reading.understood, reading.by_rules) == (GIST, True, False)
    assert [(one.key, one.value, one.message) for one in reading.facts] == [("name", "พลอย", 0), ("shoe_size", "38", 2)]
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        found("size", "M", 1),  # the shop said it
        found("shoe_size", "39", 2),  # another number
        found("name", "Ploy", 0),  # another script
        found("name", "พลอย", 9),  # no such message
        found("", "พลอย", 0),
    ],
)
async def test_what_the_conversation_does_not_bear_out_is_left_out(wrong: dict[str, Any]) -> None:
    reading = await read(
        Recording({"summary": GIST, "facts": [wrong, found("name", "พลอย", 0)]}), ACCESS, TALK, "", {}, "th"
    )
    assert [one.key for one in reading.facts] == ["name"]
    assert reading.understood
    alone = await read(Recording({"summary": GIST, "facts": [wrong]}), ACCESS, TALK, "", {}, "th")
    assert (alone.facts, alone.understood) == ((), False)


@pytest.mark.parametrize(
    "answer",
    [LLMUnavailable("away"), {"summary": "", "facts": []}, {"summary": "The customer is called Ploy.", "facts": []}],
)
async def test_no_answer_or_one_of_another_language_is_to_be_asked_again(answer: dict[str, Any] | Exception) -> None:
    reading = await read(Recording(answer), ACCESS, TALK, "", {}, "th")
    assert (reading.understood, reading.by_rules) == (False, True)
    assert "พลอย" in reading.summary


async def test_without_a_model_the_gist_is_told_from_the_messages_and_that_is_all() -> None:
    reading = await read(None, None, TALK, "", {}, "th")
    assert (reading.facts, reading.understood, reading.by_rules) == ((), True, True)


async def test_a_long_session_is_read_in_parts_each_with_what_came_before() -> None:
    talk = [{"role": "user", "message": f"ข้อความที่ {n}"} for n in range(90)]
    model = Recording(*({"summary": f"สรุปส่วนที่ {n}", "facts": []} for n in range(3)))
    reading = await read(model, ACCESS, talk, "ก่อนหน้า", {}, "th")
    assert reading.summary == "สรุปส่วนที่ 2"
    asked = [str(request.messages[-1]["content"]) for request in model.asked]
    assert ["ก่อนหน้า" in asked[0], "สรุปส่วนที่ 0" in asked[1], "สรุปส่วนที่ 1" in asked[2]] == [True] * 3
    assert all(sum(f'"ข้อความที่ {n}"' in one for one in asked) == 1 for n in range(90))


@pytest.mark.parametrize(
    ("value", "message", "holds"),
    [("38", "เบอร์ 38", True), ("38", "เบอร์ ๓๘", True), ("39", "เบอร์ 38", False), ("Anna", "แอนนา", False)],
)
def test_numbers_and_scripts_must_be_those_of_the_message(value: str, message: str, holds: bool) -> None:
    assert borne_out(value, message) is holds
