"""How streamed answers of the language model and writes that begin when they are asked for are counted."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from gateway.timings import SUM, TRANSCRIPTS, Timings
from memory.errors import LongTermUnavailable
from memory.keys import ConversationRef
from memory.models import Message
from memory.transcripts import TranscriptFiles
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


def counted(timings: Timings, wanted: str = "llm_seconds") -> dict[str, int]:
    """The outcomes of the model's calls, or of another's, and how many there were."""
    pipe, found = Pipe(), dict[str, int]()
    timings.into(pipe)
    for field, number in zip(pipe.told[6::2], pipe.told[7::2], strict=True):
        name, step, *labels = orjson.loads(field)
        if name == wanted and step != SUM:
            found[labels[-1]] = found.get(labels[-1], 0) + number
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


async def test_a_write_that_begins_when_it_is_asked_for_counts_once_whatever_becomes_of_it(tmp_path: Path) -> None:
    ref, line = ConversationRef("shop", "line:u"), Message(role="user", message="hello")
    timings, said = Timings(), TranscriptFiles(tmp_path / "there")
    timings._store("files", said, TRANSCRIPTS, "said_")
    writing = said.append(ref, [line])
    assert isinstance(writing, asyncio.Future)
    await writing
    await said.append(ref, [])
    said.append(ref, [line]).cancel()
    (tmp_path / "file").touch()
    nowhere = TranscriptFiles(tmp_path / "file")
    timings._store("files", nowhere, TRANSCRIPTS, "said_")
    with pytest.raises(LongTermUnavailable):
        await nowhere.append(ref, [line])
    await asyncio.sleep(0)
    assert counted(timings, "store_seconds") == {"ok": 2, "failed": 2}
    assert [one["message"] for one in await said.everything("shop", "line:u")] == ["hello", "hello"]
