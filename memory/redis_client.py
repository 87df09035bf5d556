"""The Redis client as all of ours make it, and its errors in our words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis.asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from memory.errors import SessionsUnavailable


def connect(url: str, *, cluster: bool = False, retries: int = 2) -> aioredis.Redis:
    """A client for `redis://`, `rediss://` or `unix://`; nothing is sent yet. Answers are bytes.

    A cluster's client is of another class with the same calls. Raises ValueError for a URL of another scheme.
    """
    options: dict[str, Any] = {
        "decode_responses": False,
        "socket_timeout": 5.0,
        "socket_connect_timeout": 2.0,
    }
    if not url.startswith("unix:"):
        options["socket_keepalive"] = True
    if cluster:
        return aioredis.RedisCluster.from_url(url, **options)  # type: ignore[return-value]
    # Two more tries: enough for a connection that the server closed while idle, not enough to hold up an answer.
    options["retry"] = Retry(ExponentialWithJitterBackoff(base=0.02, cap=0.2), retries)
    options["retry_on_error"] = [RedisConnectionError, RedisTimeoutError]
    options["health_check_interval"] = 30
    return aioredis.Redis.from_url(url, **options)


@contextmanager
def sessions_errors() -> Iterator[None]:
    """The edge: what the Redis library or the system raises becomes SessionsUnavailable."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise SessionsUnavailable(f"short-term memory can't be reached: {type(error).__name__}: {error}") from error
