"""A Redis Cluster in a chaos run, in place of one server: three primaries with a replica each. One node at a time is
killed or stopped: with two, a replica that lacks what its primary acknowledged could be promoted."""

from __future__ import annotations

import asyncio
import random
import signal

from redis.exceptions import RedisError

from tests.acceptance.processes import until
from tests.redis_many import Cluster, Node

WHOLE_WITHIN = 120.0  # seconds


class ClusterNode:
    """One of its nodes, as something to be killed."""

    def __init__(self, node: Node) -> None:
        self._node = node

    @property
    def ended(self) -> bool:
        return self._node.process.poll() is not None

    async def kill(self) -> None:
        await asyncio.to_thread(self._node.kill)

    def pause(self) -> None:
        self._node.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._node.process.send_signal(signal.SIGCONT)


class ClusterServer:
    """Has what a RedisServer has."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(f"nodes {seed}")
        self._cluster: Cluster

    async def __aenter__(self) -> ClusterServer:
        self._cluster = await asyncio.to_thread(Cluster)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self._cluster.end)

    @property
    def url(self) -> str:
        return self._cluster.url

    @property
    def running(self) -> ClusterNode:
        """A primary or a replica, by chance."""
        return ClusterNode(self._random.choice(self._cluster.nodes))

    async def start(self, seconds: float = WHOLE_WITHIN) -> None:
        """What was killed; until all is as it was before."""
        for node in self._cluster.nodes:
            if node.process.poll() is not None:
                await asyncio.to_thread(node.start_again)
        await until(self._whole, seconds, every=0.2)

    async def _whole(self) -> bool:
        try:
            return await asyncio.to_thread(self._cluster.whole)
        except (RedisError, OSError):
            return False
