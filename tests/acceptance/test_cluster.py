"""A server of many that dies under load: a primary of a cluster, or the one that sentinels watch over."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.processes import Stage, line_event, stage, until
from tests.redis_many import Cluster, Node, Sentinels

pytestmark = pytest.mark.slow

USERS = ["U" + f"{number:032x}" for number in range(6)]
ROUNDS = 8


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    one = Cluster()
    yield one
    one.end()


@pytest.fixture
def sentinels() -> Iterator[Sentinels]:
    one = Sentinels()
    yield one
    one.end()


async def test_a_cluster_loses_a_primary_and_nothing_that_was_acknowledged(tmp_path: Path, cluster: Cluster) -> None:
    async with stage(tmp_path, redis_url=cluster.url, REDIS_COPIES="1") as s:
        await keeps_order_while_one_dies(s, cluster.primary_of(f"sm:shop:line:{USERS[0]}"))


async def test_sentinels_promote_a_replica_and_nothing_that_was_acknowledged_is_lost(
    tmp_path: Path, sentinels: Sentinels
) -> None:
    async with stage(tmp_path, redis_url=sentinels.url, REDIS_COPIES="1") as s:
        await keeps_order_while_one_dies(s, sentinels.primary)


async def keeps_order_while_one_dies(s: Stage, node: Node) -> None:
    """Everybody writes one message after the other, each brought until it is taken; what dies does so in between."""
    _, url = await s.serve()
    workers = [await s.start("worker"), await s.start("worker")]
    await s.take_part(workers, 180.0)
    await s.line_says(url, line_event("U" + "f" * 32, "hello"))
    await until(lambda: s.line_shows("U" + "f" * 32), 180.0)  # the platform's SDK is loaded
    taken = 0

    async def write(user: str) -> None:
        nonlocal taken
        for number in range(ROUNDS):
            event = line_event(user, f"please note m{number:02d}")
            while await s.line_says(url, event) != 200:
                await asyncio.sleep(0.2)
            taken += 1
            if taken == len(USERS) * ROUNDS // 3:
                node.kill()
            await asyncio.sleep(0.2)

    await asyncio.gather(*map(write, USERS))
    wanted = {user: [f"m{number:02d}" for number in range(ROUNDS)] for user in USERS}

    async def shown() -> dict[str, list[str]]:
        screens: defaultdict[str, list[str]] = defaultdict(list)
        for user in USERS:
            for text in await s.line_shows(user):
                screens[user] += re.findall(r"m\d\d", text)
        return dict(screens)

    async def all_there() -> bool:
        found = await shown()
        return all(set(marks) <= set(found.get(user, ())) for user, marks in wanted.items())

    try:
        await until(all_there, 180.0)
    finally:
        assert await shown() == wanted
    await s.quiet()
    assert await shown() == wanted
