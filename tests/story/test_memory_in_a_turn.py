"""What the memory does within one turn: tools, procedures, and for whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gateway import assembly
from gateway.prompt import RULES
from tests.house import LLM_KEY, House, house, shop
from tests.standins.openrouter import Said, usual

ANN, BEE = "U" + "a" * 32, "U" + "b" * 32


def is_answer(request: dict[str, Any]) -> bool:
    return str(request["messages"][0]["content"]).startswith(RULES)


def calls(name: str, **arguments: Any) -> Said:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return Said(None, ({"id": "call_1", "type": "function", "function": function},), "tool_calls")


async def ask(home: House, user: str, text: str) -> str:
    shown = len(home.line_shows(user))
    await home.line_says(user, text)
    await home.line.until(lambda: len(home.line_shows(user)) > shown)
    await home.quiet()
    return home.line_shows(user)[-1]


async def test_the_model_notes_something_down_and_finds_it_again_for_nobody_else(
    tmp_path: Path, redis_url: str
) -> None:
    def model(request: dict[str, Any]) -> str | Said:
        if not is_answer(request):
            return usual(request)
        last = request["messages"][-1]
        if last["role"] == "tool":
            return f"tool said: {last['content']}"
        if "note" in last["content"]:
            return calls("remember", key="table", value="by the window")
        return calls("recall", key="table")

    async with house(tmp_path, redis_url, {"shop": shop()}, llm_key=LLM_KEY) as home:
        home.llm.answers(model)
        assert await ask(home, ANN, "note my table") == "tool said: Remembered: table = by the window (created)"
        assert await ask(home, ANN, "which table?") == "tool said: table = by the window"
        assert await ask(home, BEE, "which table?") == "tool said: Nothing is known about table."
        manager = assembly.memory_of(home.settings, home.tenants, home.redis_url)
        session = await manager.get_or_create_session_context("shop", f"line:{ANN}")
        await manager.close()
    actions = [line["metadata"]["actions"] for line in session.history if "actions" in line.get("metadata", {})]
    assert [one[0]["tool"] for one in actions] == ["remember", "recall"]


async def test_a_taught_procedure_goes_into_the_prompt_where_it_fits_and_its_use_is_counted(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": shop()}, llm_key=LLM_KEY) as home:
        manager = assembly.memory_of(home.settings, home.tenants, home.redis_url)
        await manager.teach("shop", "when a customer asks for delivery, ask for the postcode first")
        await manager.remember("shop", f"line:{ANN}", key="wifi", value="1234", scope="global")
        await ask(home, ANN, "do you do delivery?")
        await ask(home, ANN, "what cakes are there?")
        prompts = [json.dumps(one["messages"]) for one in home.llm.requests if is_answer(one)]
        assert ["ask for the postcode first" in one for one in prompts] == [True, False]
        assert ["wifi = 1234" in one for one in prompts] == [True, True]

        async def used() -> int:
            shared = await manager.longterm.load_shared("shop")
            return shared.procedures[0].times_used if shared else 0

        assert await home.until(used, lambda count: count > 0) == 1
        await manager.close()


async def test_a_stateless_agent_is_told_nothing_and_has_no_tools(tmp_path: Path, redis_url: str) -> None:
    stateless = shop(agents={"default": {"instructions": "Be kind.", "conversation_memory": False}})
    async with house(tmp_path, redis_url, {"shop": stateless}, llm_key=LLM_KEY) as home:
        manager = assembly.memory_of(home.settings, home.tenants, home.redis_url)
        await manager.remember("shop", f"line:{ANN}", key="city", value="Chiang Mai")
        await manager.close()
        await ask(home, ANN, "hello there, where do I live?")
        (request,) = [one for one in home.llm.requests if is_answer(one)]
        assert ["Chiang Mai" in json.dumps(request), "tools" in request] == [False, False]


async def test_what_a_small_window_has_no_room_for_is_looked_for(tmp_path: Path, redis_url: str) -> None:
    """The first line stands in the session's history still, and the prompt is too small for it."""
    small = shop(
        agents={"default": {"instructions": "Be kind.", "context_window": 4096}},
        memory={"importance_threshold": 0.0},
    )
    async with house(tmp_path, redis_url, {"shop": small}, llm_key=LLM_KEY) as home:
        await ask(home, ANN, "We sat at the long table under the mango tree")
        for at in range(8):
            await ask(home, ANN, f"Story number {at}: " + " ".join(f"word{at}x{n}" for n in range(60)))
        await ask(home, ANN, "Is the table under the mango tree free?")
        last = [one for one in home.llm.requests if is_answer(one)][-1]["messages"]
        told = [one["content"] for one in last if one["content"] == "We sat at the long table under the mango tree"]
        assert not told  # as a line
        assert "We sat at the long table" in json.dumps(last)
