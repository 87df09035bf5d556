"""The language model over OpenRouter, or any endpoint that speaks OpenAI's chat completions.

Retries are ours: the SDK knows nothing of a deadline for the whole call, nor of a 402 that passes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any

import orjson
from msgspec import structs

from processors import lenient
from processors.attempts import Attempts
from processors.ladder import LAST, Ladder, request_body
from processors.llm import (
    Access,
    ChatRequest,
    Completion,
    LLMBadAnswer,
    LLMUnavailable,
    ToolCall,
    Usage,
    chat_usage,
)
from processors.openrouter_errors import FormatRefused, from_body, from_finish
from processors.streamed import Streamed, text_of
from processors.structured import NotUsable, parse
from processors.ways import Opened, Ways, all_of, refusal

_Begun = tuple[Opened, Streamed, str | Completion]  # an answer that is on its way, and the first of it


class OpenRouter:
    """A ChatModel. Building it costs nothing: the SDK comes with the first call or `warm`.

    `on_usage` hears of every answer, streamed ones included, with its tokens and cost as far as the endpoint tells. One
    instance serves all tenants.
    """

    def __init__(
        self,
        *,
        on_usage: Callable[[Access, str, Usage], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        breaker_threshold: int = 5,
        breaker_pause: float = 10.0,
    ) -> None:
        self._on_usage = on_usage
        self._clock = clock
        self._attempts = Attempts(clock, sleep, breaker_threshold, breaker_pause)
        self._ladder = Ladder()
        self._http = Ways()

    async def warm(self) -> None:
        """Imports the SDK (in a thread) and makes the client, so that the first customer doesn't wait for it."""
        await self._http.warm()

    async def close(self) -> None:
        await self._http.close()

    def complete(self, request: ChatRequest) -> Coroutine[Any, Any, Completion]:
        deadline = self._clock() + request.access.timeout
        if request.schema is None:
            return self._plain(request, deadline)
        return self._structured(request, request.schema, deadline)

    def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        return _Pieces(self, request)

    # -- one answer ----------------------------------------------------------------------------------------------

    async def _plain(self, request: ChatRequest, deadline: float) -> Completion:
        url = request.access.base_url
        for plain in (self._ladder.is_plain(url), True):
            body = request_body(request, plain=plain)
            try:
                return await self._attempts.retried(deadline, self._once, request.access, body)
            except FormatRefused as refused:
                if plain or not refused.unknown_field:
                    raise
                self._ladder.knows_no_extras(url)
        raise AssertionError("unreachable")

    async def _structured(self, request: ChatRequest, schema: Mapping[str, Any], deadline: float) -> Completion:
        """Down the ladder while the form is refused; one more try where the answer can't be used."""
        access = request.access
        rung = self._ladder.rung(access)
        learned = again = False
        while True:
            body = request_body(request, rung=rung, plain=self._ladder.is_plain(access.base_url))
            try:
                completion = await self._attempts.retried(deadline, self._once, access, body)
            except FormatRefused as refused:
                if refused.unknown_field and not self._ladder.is_plain(access.base_url):
                    self._ladder.knows_no_extras(access.base_url)
                    continue
                if rung == LAST:
                    raise
                rung, learned = rung + 1, True
                continue
            try:
                data = parse(completion.text, schema)
            except NotUsable as error:
                if again:
                    raise LLMBadAnswer(str(error), completion.text) from None
                again = True
                # Prose where JSON was asked for: this endpoint passes over response_format without a word.
                if "{" not in completion.text and rung < LAST:
                    rung, learned = rung + 1, True
                continue
            if learned:
                self._ladder.works(access, rung)
            return structs.replace(completion, data=data)

    async def _once(self, deadline: float, access: Access, body: dict[str, Any]) -> Completion:
        breaker = self._attempts.allowed(access)
        try:
            posted = await self._http.post(access, body, deadline - self._clock())
            if not 200 <= posted.status < 300:
                raise refusal(posted.status, posted.headers, posted.body)
            completion = self._completion(access, _read(posted.body))
        except BaseException as error:
            told = self._attempts.failed(breaker, error)
            if told is error:
                raise
            raise told from None
        breaker.succeeded()
        return completion

    def _completion(self, access: Access, answer: Any) -> Completion:
        if not isinstance(answer, dict):
            raise LLMUnavailable("the language model's answer is no object")
        if answer.get("error"):
            raise from_body(answer["error"])
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            raise LLMUnavailable("the language model's answer holds no choice")
        usage = self._used(access, answer)
        if choice.get("error"):
            raise from_body(choice["error"])
        reason = choice.get("finish_reason")
        message = choice.get("message")
        text, calls = text_of(message), _tool_calls(message)
        if not calls and (error := from_finish(reason, text)):
            raise error
        if reason == "error":
            raise LLMUnavailable("the language model broke off")
        model = answer.get("model") or access.model
        return Completion(text, str(model), answer.get("provider"), usage, reason, tool_calls=calls)

    # -- a stream ------------------------------------------------------------------------------------------------

    async def _begun(self, request: ChatRequest, deadline: float) -> _Begun | Completion:
        """The stream and its first piece: until that came, it may be tried again. An endpoint that refuses to stream
        is asked for the whole answer, and one may give it at once."""
        access = request.access
        while not self._ladder.never_streams(access):
            plain = self._ladder.is_plain(access.base_url)
            body = request_body(request, stream=True, plain=plain)
            try:
                return await self._attempts.retried(deadline, self._open, access, body)
            except FormatRefused as refused:
                if not refused.unknown_field or plain:
                    break
                self._ladder.knows_no_extras(access.base_url)
        completion = await self._plain(request, deadline)
        self._ladder.streams_never(access)
        return completion

    async def _open(self, deadline: float, access: Access, body: dict[str, Any]) -> _Begun | Completion:
        breaker = self._attempts.allowed(access)
        try:
            opened = await self._http.opened(access, body, deadline - self._clock())
            try:
                begun: _Begun | Completion
                if opened.is_json:  # whole all the same
                    begun = self._completion(access, _read(await all_of(opened.more)))
                    opened.close()
                else:
                    streamed = Streamed()
                    begun = opened, streamed, await self._more(access, opened, streamed)
                    if opened.whole and streamed.ended_well:  # with its first piece
                        begun = self._completion(access, streamed.whole())
                        opened.close()
            except BaseException:
                opened.close()
                raise
        except BaseException as error:
            told = self._attempts.failed(breaker, error)
            if told is error:
                raise
            raise told from None
        breaker.succeeded()
        return begun

    async def _more(self, access: Access, opened: Opened, streamed: Streamed) -> str | Completion:
        """The text that comes next, or what all of it was."""
        try:
            while data := await opened.more():
                if text := streamed.take(data):
                    return text
        except asyncio.CancelledError:  # nobody listens any more; it was asked for all the same
            self._used(access, streamed.whole())
            raise
        opened.close()
        answer = streamed.whole()
        choice = answer["choices"][0]
        if choice["finish_reason"] is None and choice["message"]["content"]:
            # The connection may end in the middle of an answer without any sign but this one.
            raise LLMUnavailable("the language model's answer is not whole")
        return self._completion(access, answer)

    async def _further(self, access: Access, opened: Opened, streamed: Streamed) -> str | Completion:
        """As `_more`, of a stream that is under way: it goes on whatever the breaker says by now, and tells it."""
        breaker = self._attempts.breaker(access)
        try:
            piece = await self._more(access, opened, streamed)
        except BaseException as error:
            told = self._attempts.failed(breaker, error)
            if told is error:
                raise
            raise told from None
        breaker.succeeded()
        return piece

    def _used(self, access: Access, answer: Mapping[str, Any]) -> Usage:
        usage = chat_usage(answer.get("usage"))
        model = str(answer.get("model") or access.model)
        if self._on_usage is not None:
            self._on_usage(access, model, usage)
        if access.on_usage is not None:
            access.on_usage(model, usage)
        return usage


class _Pieces:
    """An answer that is streamed. No generator: the event loop keeps a list of those, which costs a short answer as
    much as all else that is done with its pieces."""

    __slots__ = ("_access", "_begun", "_last", "_loop", "_of", "_opened", "_request", "_streamed")

    def __init__(self, of: OpenRouter, request: ChatRequest) -> None:
        self._of, self._request, self._access = of, request, request.access
        self._begun = False
        self._opened: Opened | None = None  # while it is under way
        self._streamed: Streamed
        self._loop: asyncio.AbstractEventLoop
        self._last: Completion | None = None  # to be told once its text was

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> str | Completion:
        of, opened = self._of, self._opened
        if opened is not None:
            try:
                piece = await of._further(self._access, opened, self._streamed)
            except BaseException:
                self._close()
                raise
            if isinstance(piece, Completion):
                self._close()
            return piece
        if self._begun:
            last, self._last = self._last, None
            if last is None:
                raise StopAsyncIteration
            return last
        self._begun = True
        begun = await of._begun(self._request, of._clock() + self._access.timeout)
        if isinstance(begun, Completion):
            if not begun.text:
                return begun
            self._last = begun
            return begun.text
        opened, streamed, piece = begun
        if isinstance(piece, Completion):
            opened.close()
        else:
            self._opened, self._streamed, self._loop = opened, streamed, asyncio.get_running_loop()
        return piece

    async def aclose(self) -> None:
        """Nobody listens any more."""
        self._begun, self._last = True, None
        if self._opened is not None:
            self._left(self._opened, self._streamed)
            self._opened = None

    def __del__(self) -> None:
        if self._opened is not None and not self._loop.is_closed():  # left without a word, perhaps in another thread
            self._loop.call_soon_threadsafe(self._left, self._opened, self._streamed)

    def _left(self, opened: Opened, streamed: Streamed) -> None:
        self._of._used(self._access, streamed.whole())  # it was asked for all the same
        opened.close()

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None


def _tool_calls(message: Any) -> tuple[ToolCall, ...]:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not calls:
        return ()
    out = []
    for at, call in enumerate(calls if isinstance(calls, list) else ()):
        wanted = call.get("function") if isinstance(call, dict) else None
        if isinstance(wanted, dict) and isinstance(wanted.get("name"), str):
            given = wanted.get("arguments")
            arguments = given if isinstance(given, str) else orjson.dumps(given or {}, default=str).decode()
            out.append(ToolCall(str(call.get("id") or f"call_{at}"), wanted["name"], arguments))
    return tuple(out)


def _read(raw: bytes) -> Any:
    try:
        return lenient.loads(raw)
    except ValueError:
        raise LLMUnavailable("the language model's answer is not JSON") from None
