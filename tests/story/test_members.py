"""A LINE group's history says who spoke, by the name that LINE tells."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import redis

from gateway import assembly
from gateway.assembly import utc_now
from gateway.members import forget_member
from tests.house import LLM_KEY, House, house, shop
from tests.standins.model import Fault

DAY = timedelta(days=1)
ANN, GROUP, ROOM = "U" + "a" * 32, "C" + "c" * 32, "R" + "d" * 32
EVERYBODY = {"debounce_ms": 0, "groups": "always", "rate_limit_per_minute": 0}


async def says(home: House, text: str, group: str = GROUP) -> None:
    event: dict[str, Any] = home.line.text_event(ANN, text, group=group)
    if group == ROOM:
        event["source"] = {"type": "room", "roomId": ROOM, "userId": ANN}
    await home.line.deliver(home.line_hook(), event)
    await home.quiet()


async def test_a_members_name_is_asked_for_once_and_stands_in_the_history(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(behaviour=EVERYBODY)}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "asked: " + request["messages"][-1]["content"])
        home.line.profiles[ANN] = {"displayName": "สมหญิง\u202e  ใจดี"}
        for text in ("hello", "hello again"):
            await says(home, text)
        await says(home, "hello room", ROOM)
        assert home.line_shows(GROUP) == ["asked: สมหญิง ใจดี: hello", "asked: สมหญิง ใจดี: hello again"]
        assert home.line_shows(ROOM) == ["asked: สมหญิง ใจดี: hello room"]
        assert [call.path for call in home.line.calls_to("/member/")] == [
            f"/v2/bot/group/{GROUP}/member/{ANN}",
            f"/v2/bot/room/{ROOM}/member/{ANN}",
        ]
        with redis.Redis.from_url(redis_url) as client:
            session = json.loads(client.get(f"sm:shop:line:group:{GROUP}") or "{}")
        assert session["history"][0]["metadata"]["sender_name"] == "สมหญิง ใจดี"
        asynchronous = assembly.inbox_client(home.settings, redis_url)
        assert await forget_member(asynchronous, "shop", f"line:{ANN}") == 2
        await asynchronous.aclose()


async def test_without_a_name_a_group_is_answered_all_the_same(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(behaviour=EVERYBODY)}, llm_key=LLM_KEY) as home:
        home.llm.answers(lambda request: "asked: " + request["messages"][-1]["content"])
        home.line.next(Fault(500, {"message": "no"}, on="/member/"))
        for text in ("hello", "hello again"):
            await says(home, text)
        called = f"member {ANN[-4:]}"
        assert home.line_shows(GROUP) == [f"asked: {called}: hello", f"asked: {called}: hello again"]
        assert len(home.line.calls_to("/member/")) == 1


async def test_the_model_is_told_who_said_what_in_an_earlier_talk(tmp_path: Path, redis_url: str) -> None:
    told = shop(behaviour=EVERYBODY, memory={"max_turns": 1})
    async with house(tmp_path, redis_url, {"shop": told}, llm_key=LLM_KEY) as home:
        home.llm.answers("ok")
        home.line.profiles[ANN] = {"displayName": "นก"}
        for text in ("ของเราขอต้มยำกุ้งไม่ใส่เห็ด", "พรุ่งนี้มากันหกคน", "hello"):
            await says(home, text)
        later = assembly.memory_of(home.settings, home.tenants, home.redis_url, clock=lambda: utc_now() + DAY)
        assert await later.cleanup_expired_sessions() == 1
        await later.close()
        await says(home, "นกขอต้มยำแบบไหนนะ")
        prompt = "\n".join(str(one["content"]) for one in home.llm.requests[-1]["messages"])
        assert "<memories>" in prompt
        assert " นก: ของเราขอต้มยำกุ้งไม่ใส่เห็ด" in prompt.partition("<memories>")[2].partition("</memories>")[0]
