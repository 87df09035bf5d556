"""A language model that is not told what a tenant withholds: numbers and addresses go out as names, and come back."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from msgspec import structs

from processors.embeddings import Embeddings
from processors.llm import ChatModel, ChatRequest, Completion
from processors.pii import Kind, Withheld, masked

_LONGEST = 20  # characters of a name: what may become one is held back until it is whole
_OPEN = re.compile(rf"\[[a-z_0-9]{{0,{_LONGEST}}}\Z")


class Shielded:
    """A ChatModel over another. `withheld` gives the kinds that a tenant withholds; of pictures nothing can be."""

    def __init__(self, model: ChatModel, withheld: Callable[[str], Collection[Kind]]) -> None:
        self._model = model
        self._withheld = withheld

    def complete(self, request: ChatRequest) -> Coroutine[Any, Any, Completion]:
        names = self._names(request)
        return self._model.complete(request) if names is None else self._named(names, request)

    async def _named(self, names: Withheld, request: ChatRequest) -> Completion:
        return _whole(names, await self._model.complete(_told(names, request)))

    def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        names = self._names(request)
        return self._model.stream(request) if names is None else self._without(names, request)

    async def _without(self, names: Withheld, request: ChatRequest) -> AsyncIterator[str | Completion]:
        pieces = cast("AsyncGenerator[str | Completion, None]", self._model.stream(_told(names, request)))
        held = ""
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Completion):
                    if held:
                        yield names.whole(held)
                    yield _whole(names, piece)
                else:
                    held += piece
                    begun = _OPEN.search(held)
                    ready, held = (held[: begun.start()], held[begun.start() :]) if begun else (held, "")
                    if ready:
                        yield names.whole(ready)

    def _names(self, request: ChatRequest) -> Withheld | None:
        kinds = self._withheld(request.access.tenant) if request.access.tenant else ()
        return Withheld(kinds) if kinds else None


def _told(names: Withheld, request: ChatRequest) -> ChatRequest:
    return structs.replace(request, messages=[_message(names, one) for one in request.messages])


def _message(names: Withheld, message: Mapping[str, Any]) -> Mapping[str, Any]:
    out = dict(message)
    content = out.get("content")
    if isinstance(content, str):
        out["content"] = names.told(content)
    elif isinstance(content, list):
        out["content"] = [
            {**part, "text": names.told(part["text"])} if isinstance(part.get("text"), str) else part
            for part in content
        ]
    if calls := out.get("tool_calls"):
        out["tool_calls"] = [_call(names, one) for one in calls]
    return out


def _call(names: Withheld, call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call["function"]
    return {**call, "function": {**function, "arguments": names.told(function["arguments"])}}


def _whole(names: Withheld, completion: Completion) -> Completion:
    return structs.replace(
        completion,
        text=names.whole(completion.text),
        data=_within(names, completion.data),
        tool_calls=tuple(structs.replace(one, arguments=names.whole(one.arguments)) for one in completion.tool_calls),
    )


def _within(names: Withheld, value: Any) -> Any:
    if isinstance(value, str):
        return names.whole(value)
    if isinstance(value, dict):
        return {name: _within(names, one) for name, one in value.items()}
    if isinstance(value, list):
        return [_within(names, one) for one in value]
    return value


class MaskedEmbeddings:
    """Embeddings over others, to which these kinds are not told."""

    def __init__(self, embeddings: Embeddings, kinds: Collection[Kind]) -> None:
        self._embeddings = embeddings
        self._kinds = tuple(sorted(kinds))
        self.name = f"{embeddings.name}/without-{'-'.join(self._kinds)}"
        self.floor, self.trust, self.remote = embeddings.floor, embeddings.trust, embeddings.remote

    async def encode(self, texts: Sequence[str], *, question: bool = False) -> Any:
        return await self._embeddings.encode([masked(one, self._kinds) for one in texts], question=question)

    async def close(self) -> None:
        """The others are closed by whoever made them."""
