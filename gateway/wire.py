"""What is published in Redis, heard by any number of listeners of this process over one connection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

AGAIN_AFTER = 0.3  # seconds before the connection is tried again
SILENCE = 10.0  # seconds after which the connection is asked whether it lives; twice as long: it does not
JOINED_WITHIN = 1.0  # seconds a listener waits for its place on the wire

_HELLO = "cc:wire"  # a channel on which nothing is said: the connection always has one


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """`hear` gets each message's bytes; `missed` says that some may have been missed, as the connection was away."""

    hear: Callable[[bytes], None]
    missed: Callable[[], None]


class Wire:
    """Connects with the first listener. While Redis is away listeners hear nothing, and are told when it is back."""

    def __init__(self, client: Redis) -> None:
        self._redis = client
        self._pubsub: Any = None
        self._channels: dict[str, list[Listener]] = {}
        self._asked: Counter[str] = Counter()  # subscriptions under way
        self._joined: dict[str, asyncio.Event] = {}
        self._behind: set[Listener] = set()  # who may miss something until their channel is joined again
        self._greeted = False  # whether this connection's channel was joined
        self._reading: asyncio.Task[None] | None = None

    async def join(self, channel: str, listener: Listener) -> None:
        """From its return on everything is heard; while Redis is away it returns all the same."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="wire")
        listeners = self._channels.setdefault(channel, [])
        listeners.append(listener)
        joined = self._joined.setdefault(channel, asyncio.Event())
        if len(listeners) == 1 and self._pubsub is not None:
            await self._ask(channel)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(JOINED_WITHIN):
                await joined.wait()
        if not joined.is_set():
            self._behind.add(listener)

    async def leave(self, channel: str, listener: Listener) -> None:
        listeners = self._channels.get(channel, [])
        if listener in listeners:
            listeners.remove(listener)
        self._behind.discard(listener)
        if listeners or channel not in self._channels:
            return
        del self._channels[channel]
        self._joined.pop(channel, None)
        if self._pubsub is not None:
            with contextlib.suppress(RedisError, OSError):  # the reader notices it, and connects again
                await self._pubsub.unsubscribe(channel)

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _ask(self, channel: str) -> None:
        self._asked[channel] += 1
        with contextlib.suppress(RedisError, OSError):
            await self._pubsub.subscribe(channel)

    async def _read(self) -> None:
        while True:
            pubsub: Any = None
            try:
                await self._redis.initialize()  # a cluster's client knows its nodes only then
                pubsub = self._redis.pubsub()
                first = set(self._channels)
                self._asked, self._greeted = Counter(dict.fromkeys(first, 1)), False
                await pubsub.subscribe(_HELLO, *first)
                # Only now: of two that subscribe before it is connected each takes a connection, and one is never read.
                self._pubsub = pubsub
                for channel in self._channels.keys() - first:
                    await self._ask(channel)
                for channel in first - self._channels.keys():
                    await pubsub.unsubscribe(channel)
                silent = 0
                while silent < 2:
                    message = await pubsub.get_message(timeout=SILENCE)
                    if message is None:
                        silent += 1
                        await pubsub.ping()
                    else:
                        silent = 0
                        self._heard(message)
            except (RedisError, OSError) as error:
                log.debug("the wire is down: %s", type(error).__name__)
            finally:
                self._pubsub = None
                if pubsub is not None:
                    with contextlib.suppress(RedisError, OSError):
                        await pubsub.aclose()
            for channel, joined in self._joined.items():
                joined.clear()
                self._behind.update(self._channels[channel])
            await asyncio.sleep(AGAIN_AFTER)

    def _heard(self, message: dict[str, Any]) -> None:
        if message["type"] not in ("subscribe", "message"):
            return
        channel = message["channel"].decode()
        if message["type"] == "message":
            for listener in list(self._channels.get(channel, ())):
                listener.hear(message["data"])
            return
        if channel == _HELLO:
            if self._greeted:  # the library connected anew by itself, and joins them all again
                self._behind.update(one for listeners in self._channels.values() for one in listeners)
            self._greeted = True
            return
        # Whoever left and came back in between has an older subscription's answer before its own.
        self._asked[channel] -= 1
        joined = self._joined.get(channel)
        if self._asked[channel] <= 0:
            del self._asked[channel]
            if joined is not None:
                joined.set()
                for listener in self._behind.intersection(self._channels[channel]):
                    self._behind.discard(listener)
                    listener.missed()
