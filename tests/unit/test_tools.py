"""What the model can do with the memory while it answers, and what it can't."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.tools import CUT, SPECIFICATIONS, MemoryTools, converse
from memory import MemoryConfig, MemoryManager
from memory.keys import ConversationRef
from processors.llm import Access, ChatRequest, Completion, LLMBadAnswer, LLMRejected, LLMUnavailable, ToolCall
from processors.openrouter import OpenRouter
from tests.standins.openrouter import OpenRouterStandIn, Said

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
SHOP, HER = "store_001", "line:U1"


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[MemoryManager]:
    manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"), clock=lambda: NOW)
    yield manager
    await manager.close()


@pytest.fixture
def tools(manager: MemoryManager) -> MemoryTools:
    return MemoryTools(manager, ConversationRef(SHOP, HER), "m1")


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("c1", name, orjson.dumps(arguments).decode())


class Recording:
    """A model that gives its answers in turn and keeps what it was asked."""

    def __init__(self, *answers: Completion | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[ChatRequest] = []
        self.streamed = 0

    async def complete(self, request: ChatRequest) -> Completion:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        self.streamed += 1
        answer = await self.complete(request)
        for word in answer.text.split(" ") if answer.text else ():
            yield f"{word} "
        if answer.finish_reason is None:
            raise LLMUnavailable("broken off")
        yield answer


class Watching:
    """Somebody who sees the answer grow, and leaves once they have seen `enough` of it."""

    def __init__(self, enough: str | None = None, *, leaves: bool = True) -> None:
        self.left = asyncio.Event()
        self.gone = self.left if leaves else None
        self.seen: list[str] = []
        self._enough = enough

    def grew(self, said: Callable[[], str]) -> None:
        self.seen.append(text := said())
        if text == self._enough:
            self.left.set()

    async def close(self) -> None:
        raise NotImplementedError


def says(text: str = "", *calls: ToolCall, finish_reason: str | None = "stop") -> Completion:
    return Completion(text, "m", tool_calls=calls, finish_reason=finish_reason)


REQUEST = ChatRequest([{"role": "user", "content": "my size?"}], Access("key"))


async def test_what_it_remembers_holds_for_the_user_and_names_the_message(
    tools: MemoryTools, manager: MemoryManager
) -> None:
    assert await tools.call(call("remember", key="size", value="M")) == "Remembered: size = M (created)"
    assert await tools.call(call("recall", key="size")) == "size = M"
    memory = await manager.longterm.load(SHOP, HER)
    assert memory is not None
    assert [(fact.scope, fact.source) for fact in memory.facts] == [("user", "m1")]
    assert await manager.longterm.load_shared(SHOP) is None


@pytest.mark.parametrize(
    "wanted",
    [
        call("recall", key="size", user_id="line:U2"),
        call("recall", key="size", tenant_id="store_002"),
        call("remember", key="size", value="M", scope="global"),
        call("recall", query="size", agent="other"),
    ],
)
async def test_it_has_no_word_for_anybody_else(tools: MemoryTools, manager: MemoryManager, wanted: ToolCall) -> None:
    await manager.remember(SHOP, "line:U2", key="size", value="SECRET")
    await manager.remember("store_002", HER, key="size", value="SECRET")
    answer = await tools.call(wanted)
    assert answer.startswith("error: ")
    assert await manager.longterm.load_shared(SHOP) is None
    assert await tools.call(call("recall", key="size")) == "Nothing is known about size."
    assert await tools.call(call("recall", query="SECRET", memory_type="all")) == "Nothing is known about SECRET."


@pytest.mark.parametrize(
    "nonsense",
    [
        call("delete_everything"),
        ToolCall("c1", "recall", "{not json"),
        ToolCall("c1", "recall", "[1]"),
        call("remember", key="size"),
        call("remember", key="size", value="M", type="hunch"),
        call("recall", query="x", memory_type="dreams"),
    ],
)
async def test_nonsense_is_answered_and_never_raises(tools: MemoryTools, nonsense: ToolCall) -> None:
    assert (await tools.call(nonsense)).startswith("error: ")


async def test_a_memory_that_is_away_is_said_to_be(tmp_path: Path) -> None:
    (tmp_path / "longterm").write_text("a file where a folder should be")
    manager = MemoryManager(MemoryConfig(lm_base_path=tmp_path / "longterm"))
    tools = MemoryTools(manager, ConversationRef(SHOP, HER), None)
    assert await tools.call(call("recall", key="size")) == "error: the memory can't be reached now"
    await manager.close()


async def test_the_model_gets_what_it_asked_for_and_then_answers(tools: MemoryTools, manager: MemoryManager) -> None:
    await manager.remember(SHOP, HER, key="size", value="M")
    model = Recording(says("", call("recall", key="size")), says("You wear M."))
    completion, actions = await converse(model, REQUEST, tools, 3)
    assert completion.text == "You wear M."
    assert actions == [{"tool": "recall", "arguments": '{"key":"size"}', "result": "size = M"}]
    assert [list(request.tools) for request in model.asked] == [list(SPECIFICATIONS)] * 2
    assert [message["role"] for message in model.asked[1].messages] == ["user", "assistant", "tool"]
    assert model.asked[1].messages[2] == {"role": "tool", "tool_call_id": "c1", "content": "size = M"}


async def test_after_the_last_round_it_has_to_answer(tools: MemoryTools) -> None:
    model = Recording(*(says("", call("recall")) for _ in range(3)))
    with pytest.raises(LLMBadAnswer):
        await converse(model, REQUEST, tools, 2)
    assert [request.tool_choice for request in model.asked] == [None, None, "none"]


async def test_with_no_rounds_no_tool_is_offered(tools: MemoryTools) -> None:
    model = Recording(says("hello"))
    assert await converse(model, REQUEST, tools, 0) == (says("hello"), [])
    assert list(model.asked[0].tools) == []


async def test_a_model_that_knows_no_tools_is_asked_without(tools: MemoryTools) -> None:
    model = Recording(LLMRejected("no endpoints found that support tool use"), says("hello"))
    assert await converse(model, REQUEST, tools, 3) == (says("hello"), [])
    assert list(model.asked[1].tools) == []


async def test_nobody_watches_nothing_is_streamed(tools: MemoryTools) -> None:
    model = Recording(says("hello"))
    await converse(model, REQUEST, tools, 3)
    assert model.streamed == 0


async def test_whoever_watches_sees_the_answer_grow_after_the_tools_were_used(
    tools: MemoryTools, manager: MemoryManager
) -> None:
    await manager.remember(SHOP, HER, key="size", value="M")
    model = Recording(says("One moment.", call("recall", key="size")), says("You wear M."))
    watch = Watching()
    completion, actions = await converse(model, REQUEST, tools, 3, watch)
    assert completion.text == "You wear M."
    assert [action["result"] for action in actions] == ["size = M"]
    assert watch.seen == ["One ", "One moment. ", "", "You ", "You wear ", "You wear M. "]
    assert model.streamed == 2


async def test_an_answer_that_breaks_off_begins_anew_for_those_who_watch() -> None:
    watch = Watching()
    with pytest.raises(LLMUnavailable):
        await converse(Recording(says("You wear", finish_reason=None)), REQUEST, None, 0, watch)
    assert watch.seen == ["You ", "You wear ", ""]


async def test_a_model_that_says_nothing_at_all_has_nothing_to_take_back() -> None:
    watch = Watching()
    with pytest.raises(LLMUnavailable):
        await converse(Recording(LLMUnavailable("down")), REQUEST, None, 0, watch)
    assert watch.seen == []


async def test_whoever_was_gone_before_it_began_asks_no_model(tools: MemoryTools) -> None:
    watch, model = Watching(), Recording()
    watch.left.set()
    completion, _ = await converse(model, REQUEST, tools, 3, watch)
    assert (completion.text, completion.finish_reason, model.asked) == ("", CUT, [])


async def test_once_they_are_gone_the_call_is_closed_and_what_was_said_is_the_answer(tools: MemoryTools) -> None:
    async with OpenRouterStandIn() as standin:
        standin.answers(Said("One two three four " * 50, pause=0.02))
        model, watch = OpenRouter(), Watching("One two three fo")
        request = ChatRequest(REQUEST.messages, Access("sk-or-test-1", standin.url))
        completion, _ = await converse(model, request, tools, 3, watch)
        assert (completion.text, completion.finish_reason) == ("One two three fo", CUT)
        assert watch.seen == ["One two ", "One two three fo"]
        await standin.until(lambda: standin.hung_up == 1, 5)
        await model.close()


async def test_a_watch_that_never_leaves_sees_the_answer_grow() -> None:
    watch = Watching(leaves=False)
    completion, _ = await converse(Recording(says("You wear 38")), REQUEST, None, 0, watch)
    assert completion.text == "You wear 38"
    assert watch.seen == ["You ", "You wear ", "You wear 38 "]
