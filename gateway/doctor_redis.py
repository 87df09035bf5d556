"""What kind of Redis it is, and what that means for messages that were acknowledged."""

from __future__ import annotations

from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from config.settings import Settings
from memory.redis_client import connect, is_sentinels


async def topology(settings: Settings, client: Redis) -> tuple[str, list[str]]:
    """In words what there is and what it keeps, and what should be otherwise. Raises RedisError, OSError."""
    await client.ping()
    if not settings.redis_cluster:
        kind = "a primary that sentinels watch over" if is_sentinels(settings.redis_url or "") else "one server"
        kept, replicas, wrong = await _of(client)
    else:
        cluster: Any = client
        primaries = cluster.get_primaries()
        found = []
        for node in primaries:
            one = connect(settings.redis_url or "", alone=(node.host, node.port), retries=0)
            try:
                found.append(await _of(one))
            finally:
                await one.aclose()
        kind = f"a cluster of {len(primaries)} primaries, what waits marked in {settings.redis_shards} shards"
        kept = " / ".join(sorted({one[0] for one in found}))
        replicas = min(one[1] for one in found)
        wrong = sorted({said for one in found for said in one[2]})
    told = f"{kind}; appendfsync {kept}; {replicas} replicas of each; REDIS_COPIES {settings.redis_copies}"
    if replicas and not settings.redis_copies:
        wrong.append("a replica that takes over may lack the last messages that were acknowledged: set REDIS_COPIES=1")
    if settings.redis_copies > replicas:
        wrong.append(f"REDIS_COPIES asks for {settings.redis_copies} replicas and there are {replicas}")
    return told, wrong


async def _of(client: Redis) -> tuple[str, int, list[str]]:
    """How one primary syncs, how many replicas it has, and what is wrong with it."""
    told: Any = await client.info("replication")
    replicas, wrong = int(told.get("connected_slaves", 0)), []
    if told.get("role") != "master":
        wrong.append("it is a replica: REDIS_URL must lead to the primary")
    try:
        given: Any = await client.config_get("appendonly", "appendfsync", "min-replicas-to-write")
    except ResponseError:  # a hosted server that does not tell
        return "not told", replicas, wrong
    said = {_text(name): _text(value) for name, value in given.items()}
    if said.get("appendonly") != "yes":
        return "off", replicas, [*wrong, "keeps nothing over a restart: set `appendonly yes` in its configuration"]
    if replicas and said.get("min-replicas-to-write", "0") == "0":
        kept = f"{said['appendfsync']}, min-replicas-to-write 0 (goes on alone when its replicas are gone)"
        return kept, replicas, wrong
    return said["appendfsync"], replicas, wrong


def _text(raw: Any) -> str:
    return raw.decode() if isinstance(raw, bytes) else str(raw)
