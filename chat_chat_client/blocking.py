"""The client for programs without asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from chat_chat_client.client import Client

T = TypeVar("T")


class Blocking:
    """A context manager around a client of its own, in one thread."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __enter__(self) -> Blocking:
        self._runner = asyncio.Runner()
        self._runner.run(self._client.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.run(self._client.__aexit__())
        self._runner.close()

    def run(self, ask: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """What `ask` awaits: `run(lambda client: client.chat("Hello"))`."""
        return self._runner.run(ask(self._client))

    def each(self, ask: Callable[[Client], AsyncIterable[T]]) -> Iterator[T]:
        """What `ask` gives one by one: `each(lambda client: client.stream("Hello"))`."""
        found = aiter(ask(self._client))
        try:
            while (one := self._runner.run(_next(found))) is not None:
                yield one
        finally:
            if (close := getattr(found, "aclose", None)) is not None:
                self._runner.run(close())


async def _next(found: AsyncIterator[T]) -> T | None:
    return await anext(found, None)
