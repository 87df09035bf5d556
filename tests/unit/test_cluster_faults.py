"""What the library raises of a cluster's connection that another call closed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Connection, RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway.errors import InboxUnavailable
from gateway.inbox.spread_inbox import SpreadInbox
from memory.redis_client import connect


async def nothing_left_to_write_to(*args: Any, **given: Any) -> None:
    await Connection()._send_packed_command([b"PING"])


async def closed_by_uvloop(*args: Any, **given: Any) -> None:
    raise RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")


async def a_fault_of_ours(*args: Any, **given: Any) -> None:
    raise AttributeError("'Tenant' object has no attribute 'nme'")


@pytest.fixture
async def cluster() -> AsyncIterator[Any]:
    client = connect("redis+cluster://127.0.0.1:1")
    yield client
    await client.aclose()


@pytest.mark.parametrize("closed", [nothing_left_to_write_to, closed_by_uvloop])
async def test_it_is_away_for_a_moment_for_a_claim_and_for_a_webhook(
    cluster: Any, closed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RedisCluster, "execute_command", closed)
    with pytest.raises(RedisConnectionError, match="was closed"):
        await cluster.execute_command("GET", "a")
    with pytest.raises(InboxUnavailable):
        await SpreadInbox(cluster).claim(1)


async def test_a_fault_of_ours_stays_one(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RedisCluster, "execute_command", a_fault_of_ours)
    with pytest.raises(AttributeError):
        await cluster.execute_command("GET", "a")


@pytest.mark.parametrize("closed", [nothing_left_to_write_to, closed_by_uvloop])
async def test_listeners_are_counted_on_the_nodes_that_are_left(
    cluster: Any, closed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Node:
        def __init__(self, answer: Any) -> None:
            self.execute_command = answer

    async def known(*args: Any) -> None:
        pass

    async def heard(*args: Any) -> list[tuple[bytes, int]]:
        return [(b"live", 2)]

    monkeypatch.setattr(RedisCluster, "initialize", known)
    monkeypatch.setattr(RedisCluster, "get_nodes", lambda client: [Node(closed), Node(heard)])
    assert await cluster.pubsub_numsub("live") == [(b"live", 2)]
