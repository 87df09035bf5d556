"""How an endpoint of the language model is reached: HTTP, and what is a refusal there.

One pool of connections a process; each call brings its own key and address. The SDK opens the pool, with its TLS and
the environment's proxies; its layers above are passed by, for they cost more CPU than everything else in a call, and in
a stream fifteen times as much for each piece. What goes through a proxy aiohttp asks, all else `processors.posts`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import orjson

from processors.llm import Access, LLMError
from processors.loading import in_part, loaded
from processors.openrouter_errors import from_status
from processors.posts import Growing, Posted, Posts, encoded, head_of

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientTimeout
    from aiohttp.client import _RequestContextManager
    from httpx2 import AsyncClient

More = Callable[[], Awaitable[bytes]]  # what came of an answer since, b"" at its end


class Opened(Protocol):
    """An answer of which the head is there."""

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def is_json(self) -> bool: ...

    @property
    def whole(self) -> bool: ...

    async def more(self) -> bytes: ...

    def close(self) -> None: ...


_PATH = "/chat/completions"
_HEADERS = {"X-OpenRouter-Title": "chat-chat"}
_CONNECT = 5.0  # seconds
_ADDRESSES = 1000  # endpoints to which the way is remembered


class _Way(NamedTuple):
    post: Callable[..., _RequestContextManager]
    posts: Posts | None  # None: there is a proxy, or something else that is aiohttp's matter


class _ByAiohttp:
    """An Opened, with so much of the loop's time to come."""

    whole = False  # as far as is known here

    def __init__(self, response: ClientResponse, until: float) -> None:
        self.status, self.headers, self._response, self._until = response.status, response.headers, response, until
        self.is_json = response.headers.get("content-type", "").startswith("application/json")

    async def more(self) -> bytes:
        async with asyncio.timeout_at(self._until):
            return await self._response.content.readany()

    def close(self) -> None:
        self._response.release()


class Ways:
    """To all endpoints. Calls raise the HTTP client's own errors. A redirect is a refusal like any other: nothing is
    led elsewhere."""

    def __init__(self) -> None:
        self._http: AsyncClient | None = None
        self._ways: dict[str, _Way] = {}  # by base URL
        self._heads: dict[tuple[str, str | None], bytes] = {}  # of requests, by base URL and key
        self._loop: asyncio.AbstractEventLoop | None = None

    async def warm(self) -> None:
        await loaded(load_sdk)
        self._pool()

    async def close(self) -> None:
        if self._http is not None and self._loop is asyncio.get_running_loop():
            for way in self._ways.values():
                if way.posts is not None:
                    way.posts.close()
            await self._http.aclose()
        self._http = None

    def post(self, access: Access, body: dict[str, Any], seconds: float) -> Coroutine[Any, Any, Posted]:
        """The whole answer, also one that is a refusal; after so many seconds without it TimeoutError is raised."""
        posts = self._way(access.base_url).posts
        if posts is None:
            return self._by_aiohttp(access, body, seconds)
        return posts.post(self._head(access), encoded(body), _patience(access.timeout), seconds)

    async def _by_aiohttp(self, access: Access, body: dict[str, Any], seconds: float) -> Posted:
        async with asyncio.timeout(seconds), self._asked(access, body) as response:
            return Posted(response.status, await response.read(), list(response.raw_headers))

    async def opened(self, access: Access, body: dict[str, Any], seconds: float) -> Opened:
        """The answer as it comes, for so many seconds: then TimeoutError is raised in the place of more. To be
        closed. Raises LLMError for what the endpoint refuses."""
        posts = self._way(access.base_url).posts
        answer: Growing | _ByAiohttp
        if posts is not None:
            answer = await posts.stream(self._head(access), encoded(body), _patience(access.timeout), seconds)
        else:
            until = asyncio.get_running_loop().time() + seconds
            async with asyncio.timeout_at(until):
                answer = _ByAiohttp(await self._asked(access, body), until)
        try:
            if not 200 <= answer.status < 300:
                raise refusal(answer.status, answer.headers, await all_of(answer.more))
        except BaseException:
            answer.close()
            raise
        return answer

    def _asked(self, access: Access, body: Mapping[str, Any]) -> _RequestContextManager:
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


async def all_of(more: More) -> bytes:
    parts = []
    while data := await more():
        parts.append(data)
    return b"".join(parts)


def _url(base_url: str) -> str:
    return base_url.rstrip("/") + _PATH


def _headers(access: Access) -> dict[str, str]:
    return {"Authorization": f"Bearer {access.api_key}", "Content-Type": "application/json", **_HEADERS}


@lru_cache(maxsize=100)
def _patience(seconds: float) -> ClientTimeout:
    from aiohttp import ClientTimeout

    return ClientTimeout(connect=seconds, sock_connect=min(_CONNECT, seconds), sock_read=seconds)


def refusal(status: int, headers: Mapping[str, str], raw: bytes) -> LLMError:
    """What an answer says that is none of 2xx."""
    try:
        said = orjson.loads(raw)
    except orjson.JSONDecodeError:
        said = None
    return from_status(status, said, headers)


@cache
def load_sdk() -> Callable[[], AsyncClient]:
    """Makes what `openai.DefaultAioHttpClient` is. The types of its calls, which nothing here uses, would take half a
    second and 20 MB."""
    with in_part({"openai": {}}):
        from openai._constants import DEFAULT_CONNECTION_LIMITS
        from openai._vendor.httpx_aiohttp import Httpx2AiohttpClient

    return lambda: Httpx2AiohttpClient(limits=DEFAULT_CONNECTION_LIMITS)
