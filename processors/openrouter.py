"""The language model over OpenRouter, or any endpoint that speaks OpenAI's chat completions.

One SDK client a process; each call brings its own key and address. The SDK gives transport and errors; its typed
layer is passed by, for it costs more CPU than everything else in a call. Retries are ours: the SDK knows nothing of a
deadline for the whole call, nor of a 402 that passes.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import orjson

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
)
from processors.openrouter_errors import FormatRefused, from_body, from_finish, from_status
from processors.structured import NotUsable, parse

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from openai import AsyncOpenAI
    from openai._types import RequestOptions

_Chunks = AsyncGenerator[str, None]

_PATH = "/chat/completions"
_HEADERS = {"X-OpenRouter-Title": "chat-chat"}
_CONNECT = 5.0  # seconds
_CLIENTS = 1000


class OpenRouter:
    """A ChatModel. Building it costs nothing: the SDK (0.7 s of import) comes with the first call or `warm`.

    `on_usage` hears of every answer's tokens and cost, streamed ones included. One instance serves all tenants.
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
        self._client: AsyncOpenAI | None = None
        self._http: AsyncClient | None = None  # the SDK's own, which `_client` uses too
        self._clients: dict[tuple[str, str], AsyncOpenAI] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def warm(self) -> None:
        """Imports the SDK (in a thread) and makes the client, so that the first customer doesn't wait for it."""
        await asyncio.to_thread(_import_sdk)
        self._base()

    async def close(self) -> None:
        if self._client is not None and self._loop is asyncio.get_running_loop():
            await self._client.close()
        self._client = None

    async def complete(self, request: ChatRequest) -> Completion:
        breaker = self._attempts.breaker(request.access)
        try:
            async with asyncio.timeout(request.access.timeout):
                if request.schema is None:
                    return await self._plain(request)
                return await self._structured(request, request.schema)
        except TimeoutError:
            breaker.failed("timeout")
            raise LLMUnavailable(f"no answer from the language model in {request.access.timeout:g} s") from None

    async def stream(self, request: ChatRequest) -> AsyncIterator[str]:
        breaker = self._attempts.breaker(request.access)
        deadline = self._clock() + request.access.timeout
        body = request_body(request, stream=True, plain=self._ladder.is_plain(request.access.base_url))
        try:
            async with asyncio.timeout(request.access.timeout):
                chunks, first = await self._attempts.retried(deadline, self._open, request.access, body)
        except TimeoutError:
            breaker.failed("timeout")
            raise LLMUnavailable(f"no answer from the language model in {request.access.timeout:g} s") from None
        try:
            yield first
            while True:
                try:
                    async with (
                        asyncio.timeout(max(0.0, deadline - self._clock())),
                        self._attempts.watched(request.access, under_way=True),
                    ):
                        text = await anext(chunks, None)
                except TimeoutError:
                    breaker.failed("timeout")
                    raise LLMUnavailable("the language model's answer stopped coming") from None
                if text is None:
                    break
                yield text
        finally:
            await chunks.aclose()

    # -- one answer ----------------------------------------------------------------------------------------------

    async def _plain(self, request: ChatRequest) -> Completion:
        deadline = self._clock() + request.access.timeout
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

    async def _structured(self, request: ChatRequest, schema: Mapping[str, Any]) -> Completion:
        """Down the ladder while the form is refused; one more try where the answer can't be used."""
        access = request.access
        deadline = self._clock() + access.timeout
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
            return replace(completion, data=data)

    async def _once(self, access: Access, body: dict[str, Any]) -> Completion:
        async with self._attempts.watched(access):
            raw = await self._post(access, body)
            try:
                answer = orjson.loads(raw)
            except orjson.JSONDecodeError:
                raise LLMUnavailable("the language model's answer is not JSON") from None
            return self._completion(access, answer)

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
        text = _text(choice.get("message"))
        calls = _tool_calls(choice.get("message"))
        if not calls and (error := from_finish(reason, text)):
            raise error
        if reason == "error":
            raise LLMUnavailable("the language model broke off")
        model = answer.get("model") or access.model
        return Completion(text, str(model), answer.get("provider"), usage, reason, tool_calls=calls)

    # -- a stream ------------------------------------------------------------------------------------------------

    async def _open(self, access: Access, body: dict[str, Any]) -> tuple[_Chunks, str]:
        """The stream, up to its first text: until then it may be tried again."""
        async with self._attempts.watched(access):
            chunks = self._texts(access, body)
            try:
                return chunks, await anext(chunks)
            except BaseException:
                await chunks.aclose()
                raise

    async def _texts(self, access: Access, body: dict[str, Any]) -> _Chunks:
        from openai import AsyncStream

        client = self._for(access)
        sse: Any = await client.post(
            _PATH, cast_to=object, body=body, options=_options(access), stream=True, stream_cls=AsyncStream[object]
        )
        reason, some = None, False
        try:
            async for chunk in sse:
                if not isinstance(chunk, dict):
                    continue
                if chunk.get("usage"):
                    self._used(access, chunk)
                choices = chunk.get("choices")
                choice = choices[0] if isinstance(choices, list) and choices else {}
                if choice.get("error"):
                    raise from_body(choice["error"])
                reason = choice.get("finish_reason") or reason
                if text := _text(choice.get("delta")):
                    some = True
                    yield text
        finally:
            await sse.close()
        if reason == "error":
            raise LLMUnavailable("the language model broke off")
        if reason is None and some:
            # The connection may end in the middle of an answer without any sign but this one.
            raise LLMUnavailable("the language model's answer is not whole")
        if not some:
            raise from_finish(reason, "") or LLMUnavailable("the language model's answer is empty")

    # -- the SDK -----------------------------------------------------------------------------------------------

    async def _post(self, access: Access, body: dict[str, Any]) -> bytes:
        """The whole answer's body. Straight through the SDK's HTTP client: what the SDK adds to it, checks of a body
        that we made ourselves, took half of a call's CPU."""
        import httpx2

        self._base()
        assert self._http is not None
        headers = {"Authorization": f"Bearer {access.api_key}", "Content-Type": "application/json", **_HEADERS}
        try:
            response = await self._http.post(
                access.base_url.rstrip("/") + _PATH,
                content=_encoded(body),
                headers=headers,
                timeout=_options(access)["timeout"],
            )
        except httpx2.TimeoutException:
            raise LLMUnavailable("the language model did not answer in time") from None
        except httpx2.TransportError:
            raise LLMUnavailable("the language model can't be reached") from None
        if not response.is_success:
            try:
                said = orjson.loads(response.content)
            except orjson.JSONDecodeError:
                said = None
            raise from_status(response.status_code, said, response.headers)
        return response.content

    def _for(self, access: Access) -> AsyncOpenAI:
        base = self._base()
        name = (access.base_url, access.api_key or "")
        if name not in self._clients:
            if len(self._clients) >= _CLIENTS:
                self._clients.clear()  # they are views on one pool: nothing to close
            self._clients[name] = base.with_options(api_key=access.api_key, base_url=access.base_url)
        return self._clients[name]

    def _base(self) -> AsyncOpenAI:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:  # a pool belongs to its loop
            from openai import AsyncOpenAI, DefaultAioHttpClient

            self._http = DefaultAioHttpClient()
            self._client = AsyncOpenAI(
                api_key="given with each call",
                http_client=self._http,
                max_retries=0,
                default_headers=_HEADERS,
            )
            self._loop = loop
            self._clients.clear()
        return self._client

    def _used(self, access: Access, answer: Mapping[str, Any]) -> Usage:
        told = answer.get("usage")
        told = told if isinstance(told, Mapping) else {}
        details = told.get("prompt_tokens_details")
        cost = told.get("cost")
        usage = Usage(
            int(told.get("prompt_tokens") or 0),
            int(told.get("completion_tokens") or 0),
            int(details.get("cached_tokens") or 0) if isinstance(details, Mapping) else 0,
            float(cost) if isinstance(cost, int | float) else None,
        )
        if self._on_usage is not None and told:
            self._on_usage(access, str(answer.get("model") or access.model), usage)
        return usage


def _text(message: Any) -> str:
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, list):  # some providers answer in parts
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _tool_calls(message: Any) -> tuple[ToolCall, ...]:
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    out = []
    for at, call in enumerate(calls if isinstance(calls, list) else ()):
        wanted = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(wanted, Mapping) and isinstance(wanted.get("name"), str):
            given = wanted.get("arguments")
            arguments = given if isinstance(given, str) else orjson.dumps(given or {}, default=str).decode()
            out.append(ToolCall(str(call.get("id") or f"call_{at}"), wanted["name"], arguments))
    return tuple(out)


def _options(access: Access) -> RequestOptions:
    import httpx2

    return {"timeout": httpx2.Timeout(access.timeout, connect=min(_CONNECT, access.timeout))}


def _encoded(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body)
    except TypeError:  # a lone surrogate, or a number over 64 bits: escaped it gets through
        return json.dumps(body).encode()


def _import_sdk() -> None:
    import openai  # noqa: F401
