"""The language model over OpenRouter, or any endpoint that speaks OpenAI's chat completions.

One pool of connections a process; each call brings its own key and address. The SDK opens the pool, with its TLS and
the environment's proxies; its layers above are passed by, for they cost more CPU than everything else in a call, and in
a stream fifteen times as much for each piece. A whole answer is asked for by `processors.posts`, a stream and whatever
goes through a proxy by aiohttp. Retries are ours: the SDK knows nothing of a deadline for the whole call, nor of a 402
that passes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from processors.attempts import Attempts
from processors.ladder import LAST, Ladder, request_body
from processors.llm import (
    Access,
    ChatRequest,
    Completion,
    LLMBadAnswer,
    LLMError,
    LLMUnavailable,
    ToolCall,
    Usage,
)
from processors.loading import in_part, loaded
from processors.openrouter_errors import FormatRefused, from_body, from_finish, from_status
from processors.posts import Posts, encoded, head_of
from processors.streamed import Streamed, text_of
from processors.structured import NotUsable, parse

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientTimeout
    from httpx2 import AsyncClient

_Pieces = AsyncGenerator[str | Completion, None]

_PATH = "/chat/completions"
_HEADERS = {"X-OpenRouter-Title": "chat-chat"}
_CONNECT = 5.0  # seconds
_ADDRESSES = 1000  # endpoints to which the way is remembered


class _Way(NamedTuple):
    post: Callable[..., AbstractAsyncContextManager[ClientResponse]]
    posts: Posts | None  # None: there is a proxy, or something else that is aiohttp's matter


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
        self._http: AsyncClient | None = None
        self._ways: dict[str, _Way] = {}  # by base URL
        self._heads: dict[tuple[str, str | None], bytes] = {}  # of a whole answer's request
        self._loop: asyncio.AbstractEventLoop | None = None

    async def warm(self) -> None:
        """Imports the SDK (in a thread) and makes the client, so that the first customer doesn't wait for it."""
        await loaded(load_sdk)
        self._pool()

    async def close(self) -> None:
        if self._http is not None and self._loop is asyncio.get_running_loop():
            for way in self._ways.values():
                if way.posts is not None:
                    way.posts.close()
            await self._http.aclose()
        self._http = None

    async def complete(self, request: ChatRequest) -> Completion:
        breaker = self._attempts.breaker(request.access)
        try:
            async with asyncio.timeout(request.access.timeout):
                if request.schema is None:
                    return await self._plain(request, self._clock() + request.access.timeout)
                return await self._structured(request, request.schema)
        except TimeoutError:
            breaker.failed("timeout")
            raise LLMUnavailable(f"no answer from the language model in {request.access.timeout:g} s") from None

    async def stream(self, request: ChatRequest) -> AsyncIterator[str | Completion]:
        breaker = self._attempts.breaker(request.access)
        deadline = self._clock() + request.access.timeout
        try:
            async with asyncio.timeout(request.access.timeout):
                pieces, piece = await self._begun(request, deadline)
        except TimeoutError:
            breaker.failed("timeout")
            raise LLMUnavailable(f"no answer from the language model in {request.access.timeout:g} s") from None
        try:
            yield piece
            while not isinstance(piece, Completion):
                try:
                    async with asyncio.timeout(max(0.0, deadline - self._clock())):
                        with self._attempts.watched(request.access, under_way=True):
                            piece = await anext(pieces)
                except TimeoutError:
                    breaker.failed("timeout")
                    raise LLMUnavailable("the language model's answer stopped coming") from None
                yield piece
        finally:
            await pieces.aclose()

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
        with self._attempts.watched(access):
            return self._completion(access, _read(await self._post(access, body)))

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
        text = text_of(choice.get("message"))
        calls = _tool_calls(choice.get("message"))
        if not calls and (error := from_finish(reason, text)):
            raise error
        if reason == "error":
            raise LLMUnavailable("the language model broke off")
        model = answer.get("model") or access.model
        return Completion(text, str(model), answer.get("provider"), usage, reason, tool_calls=calls)

    # -- a stream ------------------------------------------------------------------------------------------------

    async def _begun(self, request: ChatRequest, deadline: float) -> tuple[_Pieces, str | Completion]:
        """The stream and its first piece: until that came, it may be tried again. An endpoint that refuses to stream
        is asked for the whole answer."""
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
        pieces = _at_once(await self._plain(request, deadline))
        self._ladder.streams_never(access)
        return pieces, await anext(pieces)

    async def _open(self, access: Access, body: dict[str, Any]) -> tuple[_Pieces, str | Completion]:
        with self._attempts.watched(access):
            pieces = self._pieces(access, body)
            try:
                return pieces, await anext(pieces)
            except BaseException:
                await pieces.aclose()
                raise

    async def _pieces(self, access: Access, body: dict[str, Any]) -> _Pieces:
        async with self._asked(access, body) as response:
            if not 200 <= response.status < 300:
                raise _refusal(response.status, response.headers, await response.read())
            if response.headers.get("content-type", "").startswith("application/json"):  # whole all the same
                async for piece in _at_once(self._completion(access, _read(await response.read()))):
                    yield piece
                return
            streamed, some = Streamed(), False
            try:
                async for data in response.content.iter_any():
                    if text := streamed.take(data):
                        some = True
                        yield text
            except (asyncio.CancelledError, GeneratorExit):  # nobody listens any more; it was asked for all the same
                self._used(access, streamed.whole())
                raise
        answer = streamed.whole()
        if answer["choices"][0]["finish_reason"] is None and some:
            # The connection may end in the middle of an answer without any sign but this one.
            raise LLMUnavailable("the language model's answer is not whole")
        yield self._completion(access, answer)

    # -- the SDK -----------------------------------------------------------------------------------------------

    async def _post(self, access: Access, body: dict[str, Any]) -> bytes:
        posts = self._way(access.base_url).posts
        if posts is not None:
            posted = await posts.post(self._head(access), encoded(body), _patience(access.timeout))
            if not 200 <= posted.status < 300:
                raise _refusal(posted.status, posted.headers, posted.body)
            return posted.body
        async with self._asked(access, body) as response:
            raw = await response.read()
            if not 200 <= response.status < 300:
                raise _refusal(response.status, response.headers, raw)
            return raw

    def _asked(self, access: Access, body: Mapping[str, Any]) -> AbstractAsyncContextManager[ClientResponse]:
        """The call itself. A redirect is an answer like any other: nothing is led elsewhere."""
        return self._way(access.base_url).post(
            data=encoded(body),
            headers=_headers(access),
            timeout=_patience(access.timeout),
            allow_redirects=False,
        )

    def _head(self, access: Access) -> bytes:
        head = self._heads.get((access.base_url, access.api_key))
        if head is None:
            from aiohttp.http import SERVER_SOFTWARE

            if len(self._heads) >= _ADDRESSES:
                self._heads.clear()
            head = head_of(_url(access.base_url), {"User-Agent": SERVER_SOFTWARE, **_headers(access)})
            self._heads[access.base_url, access.api_key] = head
        return head

    def _way(self, base_url: str) -> _Way:
        """How this address is called: over the pool of the SDK's client, through its proxy if it has one for it."""
        http = self._pool()
        if (known := self._ways.get(base_url)) is not None:
            return known
        import aiohttp
        import httpx2
        from yarl import URL

        url = _url(base_url)
        transport: Any = http._transport_for_url(httpx2.URL(url))
        if not isinstance(transport.client, aiohttp.ClientSession):
            transport.client = transport.get_client()
        post, posts = partial(transport.client.post, url), None
        if (proxy := transport.proxy) is not None:
            known_there = aiohttp.BasicAuth(*proxy.auth) if proxy.auth else None
            post = partial(post, proxy=str(proxy.url), proxy_auth=known_there, proxy_headers=proxy.headers)
        elif URL(url).user is None:
            posts = Posts(transport.client, url)
        if len(self._ways) >= _ADDRESSES:
            self._ways.clear()
        way = self._ways[base_url] = _Way(post, posts)
        return way

    def _pool(self) -> AsyncClient:
        loop = asyncio.get_running_loop()
        if self._http is None or self._loop is not loop:  # a pool belongs to its loop
            self._http, self._loop = load_sdk()(), loop
            self._ways.clear()
        return self._http

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
        model = str(answer.get("model") or access.model)
        if self._on_usage is not None:
            self._on_usage(access, model, usage)
        if access.on_usage is not None:
            access.on_usage(model, usage)
        return usage


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


def _url(base_url: str) -> str:
    return base_url.rstrip("/") + _PATH


def _headers(access: Access) -> dict[str, str]:
    return {"Authorization": f"Bearer {access.api_key}", "Content-Type": "application/json", **_HEADERS}


@lru_cache(maxsize=100)
def _patience(seconds: float) -> ClientTimeout:
    from aiohttp import ClientTimeout

    return ClientTimeout(connect=seconds, sock_connect=min(_CONNECT, seconds), sock_read=seconds)


def _read(raw: bytes) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise LLMUnavailable("the language model's answer is not JSON") from None


def _refusal(status: int, headers: Mapping[str, str], raw: bytes) -> LLMError:
    try:
        said = orjson.loads(raw)
    except orjson.JSONDecodeError:
        said = None
    return from_status(status, said, headers)


async def _at_once(completion: Completion) -> _Pieces:
    """A whole answer as a stream."""
    if completion.text:
        yield completion.text
    yield completion


@cache
def load_sdk() -> Callable[[], AsyncClient]:
    """Makes what `openai.DefaultAioHttpClient` is. The types of its calls, which nothing here uses, would take half a
    second and 20 MB."""
    with in_part({"openai": {}}):
        from openai._constants import DEFAULT_CONNECTION_LIMITS
        from openai._vendor.httpx_aiohttp import Httpx2AiohttpClient

    return lambda: Httpx2AiohttpClient(limits=DEFAULT_CONNECTION_LIMITS)
