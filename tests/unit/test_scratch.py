"""What a plan of several steps has in mind."""

from __future__ import annotations

from typing import Any

from gateway.scratch import Scratch
from gateway.tools import converse
from processors.llm import Access, ChatRequest, Completion, ToolCall, Usage
from tests.unit.test_tools import Recording


def step(text: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": None}, {"role": "tool", "content": text}]


def test_a_plan_keeps_its_steps_in_order_and_forgets_them_when_it_ends() -> None:
    scratch = Scratch()
    with scratch.plan() as plan:
        scratch.add(plan, step("one"))
        scratch.add(plan, step("two"))
        assert [one["content"] for one in scratch.get(plan)] == [None, "one", None, "two"]
    assert (scratch.get(plan), len(scratch)) == ([], 0)


def test_two_plans_do_not_see_each_other() -> None:
    scratch = Scratch()
    with scratch.plan() as first, scratch.plan() as second:
        scratch.add(first, step("one"))
        assert scratch.get(second) == []


def test_whole_steps_go_when_a_plan_grows_too_large_but_never_the_newest() -> None:
    scratch = Scratch(steps=3, characters=10)
    with scratch.plan() as plan:
        for text in ("aaaa", "bbbb", "cccc"):
            scratch.add(plan, step(text))
        assert [one["content"] for one in scratch.get(plan)] == [None, "bbbb", None, "cccc"]
        scratch.add(plan, step("d" * 50))
        assert [one["content"] for one in scratch.get(plan)] == [None, "d" * 50]


def test_plans_that_nobody_ends_do_not_pile_up() -> None:
    scratch = Scratch(plans=2)
    open_plans = [scratch.plan() for _ in range(5)]
    for plan in open_plans:
        plan.__enter__()
    assert len(scratch) == 2


async def test_the_tool_rounds_of_an_answer_are_a_plan_that_is_gone_after_it() -> None:
    class Told:
        specifications = ({"type": "function", "function": {"name": "recall", "parameters": {}}},)

        async def call(self, call: ToolCall) -> str:
            return f"{len(scratch)} plan"

    scratch = Scratch()
    wants = Completion("", "m", usage=Usage(10, 1), tool_calls=(ToolCall("c1", "recall", "{}"),))
    model = Recording(wants, wants, Completion("done", "m", usage=Usage(30, 5)))
    request = ChatRequest([{"role": "user", "content": "hello"}], Access(api_key="k"))
    completion, actions = await converse(model, request, Told(), 3, None, scratch)
    assert [len(asked.messages) for asked in model.asked] == [1, 3, 5]
    assert ([one["result"] for one in actions], len(scratch)) == (["1 plan", "1 plan"], 0)
    assert completion.usage == Usage(50, 7, 0)
