"""Other models when the first can't answer: in the order in which the shop names them, within the call's one timeout.

An endpoint that knows OpenRouter's `models` has tried them by itself by the time it fails; most others don't know it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

from msgspec import structs

from processors.llm import (
    ChatModel,
    ChatRequest,
    Completion,
    LLMBadAnswer,
    LLMError,
    LLMNotConfigured,
    LLMOutOfCredit,
    LLMOverBudget,
    LLMRejected,
    LLMUnauthorized,
    LLMUnavailable,
)

log = logging.getLogger(__name__)

_SHARE = 0.6  # of the time that is left: for a model behind which others wait
_TRIES_ITSELF = "//openrouter.ai/"
_FOR_ALL = (LLMNotConfigured, LLMUnauthorized, LLMOutOfCredit, LLMOverBudget)  # another model would fare no better


class WithFallbacks:
    """A ChatModel over another. A stream that has begun is not begun again with another model."""

    def __init__(self, model: ChatModel, clock: Callable[[], float] = time.monotonic) -> None:
        self._model = model
        self._clock = clock

    def complete(self, request: ChatRequest) -> Coroutine[Any, Any, Completion]:
        return self._completed(request) if request.access.fallback_models else self._model.complete(request)

    async def _completed(self, request: ChatRequest) -> Completion:
        failed: LLMError | None = None
        for one, share in self._in_order(request):
            try:
                async with asyncio.timeout(share):
                    return await self._model.complete(one)
            except TimeoutError:
                failed = LLMUnavailable(f"no answer from {one.access.model} in its share of the time")
            except _FOR_ALL:
                raise
            except LLMRejected as error:
                if request.tools:  # it may be these alone that the model does not know: whoever asks tries without
                    raise
                failed = error
            except LLMError as error:
                failed = error
            self._tell(one, failed)
        raise failed or LLMUnavailable("there was no time left to ask")

    def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        return self._streamed(request) if request.access.fallback_models else self._model.stream(request)

    async def _streamed(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        failed: LLMError | None = None
        for one, share in self._in_order(request):
            pieces = self._model.stream(one)
            try:
                async with asyncio.timeout(share):
                    first = await anext(pieces)
            except TimeoutError:
                failed = LLMUnavailable(f"no answer from {one.access.model} in its share of the time")
            except _FOR_ALL:
                raise
            except LLMRejected as error:
                if request.tools:  # it may be these alone that the model does not know: whoever asks tries without
                    raise
                failed = error
            except LLMError as error:
                failed = error
            else:
                try:
                    yield first
                    async for piece in pieces:
                        yield piece
                finally:
                    await _closed(pieces)
                return
            await _closed(pieces)
            self._tell(one, failed)
        raise failed or LLMUnavailable("there was no time left to ask")

    def _in_order(self, request: ChatRequest) -> Iterator[tuple[ChatRequest, float]]:
        """The request for each model, and the seconds that it has."""
        access = request.access
        deadline = self._clock() + access.timeout
        models = (access.model, *access.fallback_models)
        for at, model in enumerate(models):
            left = deadline - self._clock()
            if left <= 0:
                return
            behind = models[at + 1 :]
            own = replace(access, model=model, fallback_models=behind, timeout=left)
            waits_itself = not behind or _TRIES_ITSELF in access.base_url
            yield structs.replace(request, access=own), left if waits_itself else left * _SHARE

    def _tell(self, one: ChatRequest, error: LLMError) -> None:
        if one.access.fallback_models:
            log.info(
                "the next model is asked: %s",
                "it said nothing of use" if isinstance(error, LLMBadAnswer) else type(error).__name__,
                extra={"tenant": one.access.tenant, "model": one.access.model},
            )


async def _closed(pieces: AsyncIterator[str | Completion]) -> None:
    close = getattr(pieces, "aclose", None)
    if close is not None:
        await close()
