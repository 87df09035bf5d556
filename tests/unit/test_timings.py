"""How streamed answers of the language model are counted."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from gateway.timings import SUM, Timings
from processors.llm import Access, ChatRequest, Completion, LLMUnavailable

ASKED = ChatRequest([{"role": "user", "content": "hello"}], Access("k", "http://model.example/v1", "m"))


class Model:
    def __init__(self, *, fails: bool = False) -> None:
        self._fails = fails
        self.closed = 0

    async def complete(self, request: ChatRequest) -> Completion:
        raise NotImplementedError

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        try:
            yield "hel"
            if self._fails:
                raise LLMUnavailable("gone")
            yield "lo"
            yield Completion("hello", "m")
        finally:
            self.closed += 1


class Pipe:
    def __init__(self) -> None:
        self.told: tuple[Any, ...] = ()

    def execute_command(self, *told: Any) -> None:
        self.told = told


def counted(timings: Timings) -> dict[str, int]:
    """The outcomes of the model's calls, and how many there were."""
    pipe, found = Pipe(), dict[str, int]()
    timings.into(pipe)
    for field, number in zip(pipe.told[6::2], pipe.told[7::2], strict=True):
        name, step, *labels = orjson.loads(field)
        if name == "llm_seconds" and step != SUM:
            found[labels[0]] = found.get(labels[0], 0) + number
    return found


async def test_a_stream_counts_once_whatever_becomes_of_it() -> None:
    timings = Timings()
    whole = timings.model(Model()).stream(ASKED)
    assert [str(one) async for one in whole][:2] == ["hel", "lo"]
    await whole.aclose()  # type: ignore[attr-defined]
    assert counted(timings) == {"ok": 1}
    with pytest.raises(LLMUnavailable):
        _ = [one async for one in timings.model(Model(fails=True)).stream(ASKED)]
    assert counted(timings) == {"LLMUnavailable": 1}
    model = Model()
    left = timings.model(model).stream(ASKED)
    assert await anext(left) == "hel"
    await left.aclose()  # type: ignore[attr-defined]
    assert counted(timings) == {"broken off": 1}
    assert model.closed == 1
