"""What the library's cluster client does otherwise than the one of a single server, and ours does not."""

from __future__ import annotations

import asyncio

from redis.exceptions import RedisError

from config.settings import Settings
from gateway.assembly import inbox_client
from gateway.cleanup import LOCK
from gateway.doctor_redis import topology
from memory.redis_client import connect, run_copied


async def test_commands_over_several_slots_transactions_listeners_and_locks_work_on_a_cluster(cluster_url: str) -> None:
    client = connect(cluster_url, retries=0)
    try:
        for name in "abc":
            await client.set(name, name, ex=60)
        assert await client.mget(["a", "x", "b"]) == [b"a", None, b"b"]
        assert await client.delete("a", "b", "x") == 2
        for name in ("m1", "m2", "m3", "m4"):
            pipe = client.pipeline(transaction=True)
            pipe.sadd(name, "x").expire(name, 60).scard(name)
            assert await pipe.execute() == [1, 1, 1]
        pubsub = client.pubsub()
        await pubsub.subscribe("heard")

        async def heard() -> bool:
            return dict(await client.pubsub_numsub("heard", "not")) == {b"heard": 1, b"not": 0}

        async with asyncio.timeout(60):
            while not await heard():
                await pubsub.get_message(timeout=0.1)
        await pubsub.aclose()
        first, second = (client.lock(LOCK, timeout=60, blocking=False, thread_local=False) for _ in range(2))
        assert (await first.acquire(), await second.acquire(), await first.reacquire()) == (True, False, True)
        await first.release()
        assert await second.acquire()
        await second.release()
    finally:
        await client.aclose()


async def test_a_script_is_there_on_whichever_node_has_the_key_and_what_it_wrote_on_its_replica(
    cluster_url: str,
) -> None:
    client = connect(cluster_url, retries=0)
    script = client.register_script("return redis.call('SET', KEYS[1], ARGV[1], 'EX', 60)")
    try:
        for name in ("a", "b", "c", "d"):
            assert await script(keys=[name], args=["1"]) in (b"OK", True, "OK")
        copied = [(await run_copied(script, name, ["2"], 1, 30.0))[1] for name in ("e", "f", "g", "h")]
        assert copied == [1, 1, 1, 1]
    finally:
        await client.aclose()


async def test_a_cluster_that_is_away_is_one_of_redis_errors() -> None:
    client = connect("redis+cluster://127.0.0.1:1", retries=0)
    pipe = client.pipeline(transaction=False)
    pipe.get("a")
    for call in (client.get("a"), pipe.execute(), client.pubsub_numsub("a")):
        try:
            await call
        except RedisError:
            continue
        raise AssertionError("it answered")
    await client.aclose()


async def test_the_doctor_tells_what_a_cluster_is_and_whether_a_failover_may_lose_messages(cluster_url: str) -> None:
    for copies, wrong in (
        (0, ["a replica that takes over may lack the last messages that were acknowledged: set REDIS_COPIES=1"]),
        (1, []),
        (2, ["REDIS_COPIES asks for 2 replicas and there are 1"]),
    ):
        settings = Settings(redis_url=cluster_url, redis_cluster=True, redis_copies=copies)
        client = inbox_client(settings, cluster_url)
        told, found = await topology(settings, client)
        await client.aclose()
        assert told.startswith("a cluster of 3 primaries, what waits marked in 16 shards; appendfsync everysec")
        assert found == wrong
