"""An answer that a Telegram customer sees grow, and what may go wrong with that."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.house import LLM_KEY, TELEGRAM_SECRET, House, house, shop
from tests.standins.openrouter import Said, broken, usual
from tests.standins.telegram import refusal, too_many

SENTENCE = "The **latte** has two shots of espresso. "
ANSWER = (SENTENCE * 12).strip()
SHOWN = ANSWER.replace("**", "")
ASKED = "please tell me all about the coffee"


def writes(home: House, text: str = ANSWER, seconds: float = 3.5) -> None:
    """The model writes a text in so many seconds; what it is asked about a message's kind it answers at once."""
    pause = seconds / (len(text) / home.llm.chunk)
    home.llm.answers(lambda request: usual(request) if "response_format" in request else Said(text, pause=pause))


def drafts(home: House, chat: int = 55) -> list[dict[str, Any]]:
    return [draft for draft in home.telegram.drafts if draft["chat"] == str(chat)]


async def test_the_answer_grows_as_drafts_and_arrives_once(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        writes(home)
        await home.telegram_says(55, ASKED)
        await home.telegram.until(lambda: bool(home.telegram_shows(55)))
        await home.quiet()
        assert home.telegram_shows(55) == [SHOWN]
        seen = drafts(home)
        assert len(seen) >= 2
        for earlier, later in itertools.pairwise(seen):
            assert later["text"].startswith(earlier["text"].rstrip())
            assert len(later["text"]) > len(earlier["text"])
            assert later["at"] - earlier["at"] > 0.9
        assert SHOWN.startswith(seen[-1]["text"])
        assert {entity["type"] for entity in seen[-1]["entities"]} == {"bold"}
        assert len({draft["draft_id"] for draft in seen}) == 1
        assert {draft["after"] for draft in seen} == {0}, "none came after the answer"
        assert home.telegram.draft_on_screen("55") is None
        assert {call.answered_status for call in home.telegram.calls} == {200}


async def test_the_next_answer_has_a_draft_of_its_own(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        writes(home, seconds=3)
        for count in (1, 2):
            await home.telegram_says(55, ASKED)
            await home.telegram.until(lambda count=count: len(home.telegram_shows(55)) == count)  # type: ignore[misc]
        assert home.telegram_shows(55) == [SHOWN, SHOWN]
        assert {draft["after"] for draft in drafts(home)} == {0, 1}
        assert len({draft["draft_id"] for draft in drafts(home)}) == 2


async def test_each_who_waits_sees_once_that_the_bot_types_and_nobody_who_does_not(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        await home.telegram_says(57, ASKED)
        await home.telegram.until(lambda: bool(home.telegram_shows(57)))
        assert home.telegram.calls_to("/sendChatAction") == []
        writes(home, seconds=2.5)
        for chat in (55, 56):
            await home.telegram_says(chat, ASKED)
        await home.telegram.until(lambda: all(home.telegram_shows(chat) for chat in (55, 56)))
        typing = home.telegram.calls_to("/sendChatAction")
        assert sorted(str(call.body["chat_id"]) for call in typing) == ["55", "56"]


async def test_nothing_is_streamed_where_nobody_sees_it(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        writes(home, seconds=1.5)
        in_group = home.telegram.text_update(-1007, ASKED, user=55)
        in_group["message"]["reply_to_message"] = {
            "message_id": 1,
            "date": 1,
            "chat": in_group["message"]["chat"],
            "from": {"id": 1000001, "is_bot": True, "first_name": "Shop"},
            "text": "hello",
        }
        in_business = home.telegram.text_update(56, ASKED)
        in_business["business_message"] = in_business.pop("message") | {"business_connection_id": "b1"}
        for update in (in_group, in_business):
            assert await home.telegram.deliver(home.telegram_hook(), update, TELEGRAM_SECRET) == 200
        await home.line_says("U" + "a" * 32, ASKED)
        await home.telegram.until(lambda: home.telegram_shows(-1007) == home.telegram_shows(56) == [SHOWN])
        await home.line.until(lambda: len(home.line_shows("U" + "a" * 32)) == 1)
        assert home.telegram.drafts == []
        assert {body.get("stream", False) for body in home.llm.requests} == {False}


@pytest.mark.parametrize(
    "fault", [too_many(300), refusal(400, "Bad Request: DRAFTS_NOT_ALLOWED"), refusal(404, "Not Found")]
)
async def test_where_drafts_are_refused_the_answer_comes_in_its_time_and_no_other_is_tried(
    tmp_path: Path, redis_url: str, fault: Any
) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        writes(home, seconds=2.5)
        home.telegram.next(*[type(fault)(fault.status, fault.body, fault.headers, on="/sendMessageDraft")] * 9)
        for count in (1, 2):
            await home.telegram_says(55, ASKED)
            await home.telegram.until(lambda count=count: len(home.telegram_shows(55)) == count)  # type: ignore[misc]
        assert home.telegram_shows(55) == [SHOWN, SHOWN]
        assert len(home.telegram.calls_to("/sendMessageDraft")) == 1


async def test_a_draft_that_hangs_holds_nothing_up(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        writes(home, seconds=1.5)
        home.telegram.next(type(too_many())(delay=300, on="/sendMessageDraft"))
        await home.telegram_says(55, ASKED)
        await home.telegram.until(lambda: home.telegram_shows(55) == [SHOWN])


async def test_a_full_chat_has_room_for_the_answer_before_it_has_for_drafts(tmp_path: Path, redis_url: str) -> None:
    content = shop(faq=[{"questions": ["menu please"], "answer": "Latte 70"}], behaviour={"debounce_ms": 0})
    async with house(tmp_path, redis_url, {"shop": content}, llm_key=LLM_KEY) as home:
        writes(home, seconds=1.0)
        for count in (1, 2, 3):
            await home.telegram_says(55, "menu please")
            await home.telegram.until(lambda count=count: len(home.telegram_shows(55)) == count)  # type: ignore[misc]
        await home.telegram_says(55, ASKED)
        await home.telegram.until(lambda: home.telegram_shows(55)[3:] == [SHOWN])
        assert drafts(home) == []


async def test_rules_that_answer_for_a_broken_model_leave_no_half_of_its_words(tmp_path: Path, redis_url: str) -> None:
    content = shop(understanding={"policy": "never"}, replies={"fallback": {"en": "Let me ask."}})
    async with house(tmp_path, redis_url, {"shop": content}, llm_key=LLM_KEY) as home:
        writes(home, seconds=4)
        home.llm.next(broken("unfinished"))
        await home.telegram_says(55, ASKED)
        await home.telegram.until(lambda: bool(home.telegram_shows(55)))
        await home.quiet()
        (shown,) = home.telegram_shows(55)
        assert len(drafts(home)) >= 1
        assert all(draft["text"].startswith("The latte") for draft in drafts(home))
        assert "latte" not in shown
        assert home.telegram.draft_on_screen("55") is None


async def test_one_who_waits_behind_a_growing_answer_is_answered_after_it(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, llm_key=LLM_KEY) as home:
        writes(home, seconds=1.5)
        await asyncio.gather(*(home.telegram_says(chat, ASKED) for chat in (55, 56, 57)))
        await home.telegram.until(lambda: all(home.telegram_shows(chat) == [SHOWN] for chat in (55, 56, 57)))
        assert {draft["chat"] for draft in home.telegram.drafts} <= {"55", "56", "57"}
        assert home.telegram.drafts
