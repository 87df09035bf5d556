"""Passwords on the way to Redis: on a cluster, and behind sentinels that have one of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from memory.errors import MemoryFault
from memory.keys import ConversationRef
from memory.models import ShortTermMemory
from memory.redis_client import connect
from memory.short_term.redis import RedisSessions
from tests.redis_many import Node, free_port
from tests.redis_many import until as at_last

USER, SECRET, WATCHERS = "app", "not-a-real-secret", "another-invented-one"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    made: list[Node] = []

    def start(*options: str) -> Node:
        made.append(Node(tmp_path, free_port(), *options))
        at_last(made[-1].answers)
        return made[-1]

    yield start
    for one in made:
        one.kill()


def locked(one: Node) -> None:
    """From now on it takes nobody without a name and a password."""
    one.asked("ACL", "SETUSER", USER, "on", f">{SECRET}", "~*", "&*", "+@all")
    one.asked("ACL", "SETUSER", "default", "off")


async def works(url: str) -> bool:
    """Whether sessions are kept there: a command, a script, a pipeline and what is heard."""
    async with connect(url, retries=0) as client:
        store = RedisSessions(client, cluster="+cluster" in url)
        now = datetime.now(UTC)
        ref = ConversationRef("shop", f"line:{now.timestamp()}")
        saved = ShortTermMemory(tenant_id=ref.tenant, user_id=ref.user, session_id="s1", created_at=now, expires_at=now)
        heard = client.pubsub()
        try:
            if not await store.save(ref, saved, 60):
                return False
            await heard.subscribe("told")
            over = [one async for one in store.expired(now + timedelta(hours=1))]
            return await store.load(ref) is not None and ref in over
        except (MemoryFault, RedisError, OSError):
            return False
        finally:
            await heard.aclose()  # type: ignore[no-untyped-call]


async def refused(url: str) -> bool:
    """Whether it is for who asks, or whom it asks, and not because nobody is there."""
    client = connect(url, retries=0)
    try:
        await client.get("a")
    except RedisError as error:
        return any(one in str(error).lower() for one in ("auth", "password"))
    finally:
        await client.aclose()
    return False


async def test_a_cluster_is_used_by_a_user_with_a_password(node: Callable[..., Node]) -> None:
    one = node("--cluster-enabled", "yes")
    one.asked("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    at_last(lambda: "cluster_state:ok" in str(one.asked("CLUSTER", "INFO")))
    locked(one)
    assert await works(f"redis+cluster://{USER}:{SECRET}@127.0.0.1:{one.port}")
    for who in ("", f"{USER}:wrong@", f":{SECRET}@"):
        assert await refused(f"redis+cluster://{who}127.0.0.1:{one.port}")


async def test_sentinels_and_what_they_watch_over_have_passwords_of_their_own_and_a_failover_keeps_both(
    node: Callable[..., Node], tmp_path: Path
) -> None:
    primary = node()
    locked(primary)
    told = ("--masteruser", USER, "--masterauth", SECRET, "--repl-diskless-sync-delay", "0")
    replica = node(*told, "--replicaof", f"127.0.0.1 {primary.port}")
    at_last(lambda: _linked(replica))
    locked(replica)
    file = tmp_path / "sentinel.conf"
    file.write_text(
        f"sentinel monitor shop 127.0.0.1 {primary.port} 1\nsentinel auth-user shop {USER}\n"
        f"sentinel auth-pass shop {SECRET}\nsentinel down-after-milliseconds shop 1500\n"
    )
    watcher = node(str(file), "--sentinel")
    at_last(lambda: ["num-slaves", "1"] == _told(watcher, "num-slaves"))
    watcher.asked("ACL", "SETUSER", "default", "resetpass", f">{WATCHERS}")
    url = f"redis+sentinel://{USER}:{SECRET}@127.0.0.1:{watcher.port}/shop"
    assert await works(f"{url}?sentinel_password={WATCHERS}")
    assert await refused(url)
    assert await refused(f"{url}?sentinel_password=wrong")
    wrong = url.replace(SECRET, "wrong")
    assert await refused(f"{wrong}?sentinel_password={WATCHERS}")
    primary.kill()
    async with asyncio.timeout(90):
        while not await works(f"{url}?sentinel_password={WATCHERS}"):
            await asyncio.sleep(0.1)


def _linked(one: Node) -> bool:
    with one.client as client:
        return client.info("replication")["master_link_status"] == "up"


def _told(watcher: Node, name: str) -> list[str]:
    with watcher.client as client:
        (told,) = client.sentinel_masters().values()
    return [name, str(told[name])]
