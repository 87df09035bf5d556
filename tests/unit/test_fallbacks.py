"""Other models, in order, when the first can't answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest

from processors.fallbacks import WithFallbacks
from processors.llm import (
    Access,
    ChatRequest,
    Completion,
    LLMError,
    LLMRejected,
    LLMUnauthorized,
    LLMUnavailable,
)

ACCESS = Access("key", "http://127.0.0.1:1/v1", "first", ("second", "third"), timeout=30.0)


class Model:
    """Fails as told, by model; a stream breaks off after its first piece where the failure is `broken`."""

    def __init__(self, fails: Mapping[str, LLMError], broken: str = "") -> None:
        self.fails, self.broken = fails, broken
        self.asked: list[Access] = []

    async def complete(self, request: ChatRequest) -> Completion:
        self.asked.append(request.access)
        if error := self.fails.get(request.access.model):
            raise error
        return Completion("hello", request.access.model)

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        completion = await self.complete(request)
        yield "hel"
        if request.access.model == self.broken:
            raise LLMUnavailable("cut")
        yield completion


async def streamed(model: Model, request: ChatRequest) -> list[str]:
    return [one if isinstance(one, str) else one.model async for one in WithFallbacks(model).stream(request)]


async def test_each_is_asked_until_one_answers() -> None:
    model = Model({"first": LLMUnavailable("503"), "second": LLMRejected("no such model")})
    request = ChatRequest([], ACCESS)
    assert (await WithFallbacks(model).complete(request)).model == "third"
    assert [(one.model, one.fallback_models) for one in model.asked] == [
        ("first", ("second", "third")),
        ("second", ("third",)),
        ("third", ()),
    ]
    assert await streamed(model, request) == ["hel", "third"]


async def test_the_last_failure_is_told_when_none_answers() -> None:
    model = Model({"first": LLMRejected("x"), "second": LLMRejected("y"), "third": LLMUnavailable("z")})
    with pytest.raises(LLMUnavailable, match="z"):
        await WithFallbacks(model).complete(ChatRequest([], ACCESS))


async def test_a_refused_key_is_refused_for_all_and_tools_are_left_to_who_asks() -> None:
    for error, tools in ((LLMUnauthorized("401"), ()), (LLMRejected("no tools"), ({"type": "function"},))):
        model = Model({"first": error})
        with pytest.raises(type(error)):
            await WithFallbacks(model).complete(ChatRequest([], ACCESS, tools=tools))
        assert len(model.asked) == 1


async def test_a_stream_that_has_begun_is_not_begun_again() -> None:
    model = Model({}, broken="first")
    with pytest.raises(LLMUnavailable, match="cut"):
        await streamed(model, ChatRequest([], ACCESS))
    assert [one.model for one in model.asked] == ["first"]


async def test_without_other_models_nothing_is_changed() -> None:
    model = Model({})
    access = Access("key", model="only")
    await WithFallbacks(model).complete(ChatRequest([], access))
    assert model.asked == [access]
