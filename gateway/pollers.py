"""Telegram bots in polling mode: each is polled by exactly one worker, taken over when that one dies."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from redis.asyncio import Redis
from redis.asyncio.lock import Lock
from redis.exceptions import LockError, RedisError

from config.stopping import stopped
from config.tenants import TelegramChannel, Tenant, Tenants
from gateway.errors import GatewayFault, InboxUnavailable
from memory import keys

log = logging.getLogger(__name__)

LEASE = 10.0  # seconds
EVERY = 2.0  # seconds between looks: with the lease, the longest wait after a worker's death

AFTER_FAILURE = 60.0  # seconds before a bot that can't be polled (its token refused) is tried again

Poll = Callable[[Tenant, str, asyncio.Event], Coroutine[object, object, None]]


class Offsets:
    """From where on each bot's updates are still to be fetched, so that a taken-over bot repeats little."""

    def __init__(self, client: Redis) -> None:
        self._redis = client

    async def load(self, tenant: str, channel: str) -> int | None:
        with _away():
            kept = await self._redis.get(keys.shared("poll-offset", tenant, channel))
        return int(kept) if kept is not None else None

    async def save(self, tenant: str, channel: str, offset: int) -> None:
        with _away():
            # After a week without updates Telegram starts anew with any number.
            await self._redis.set(keys.shared("poll-offset", tenant, channel), offset, ex=6 * 86_400)


@contextmanager
def _away() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise InboxUnavailable(f"Redis can't be reached: {type(error).__name__}") from error


@dataclass
class _Running:
    tenant: Tenant
    lock: Lock
    stop: asyncio.Event
    task: asyncio.Task[None]


class Pollers:
    """`poll(tenant, channel, stop)` polls one bot until `stop` is set, or its channel changes: what else changes in the
    tenant's file does not touch it."""

    def __init__(self, client: Redis, tenants: Tenants, poll: Poll) -> None:
        self._redis = client
        self._tenants = tenants
        self._poll = poll
        self._running: dict[tuple[str, str], _Running] = {}
        self._failed: dict[tuple[str, str], tuple[Tenant, float]] = {}  # with which bot, when to try it again

    async def run(self, stop: asyncio.Event) -> None:
        try:
            while not stop.is_set():
                wanted = {
                    (tenant.id, name): tenant
                    for tenant in self._tenants.all()
                    for name, channel in tenant.channels.items()
                    if isinstance(channel, TelegramChannel) and channel.mode == "polling"
                }
                for key, running in list(self._running.items()):
                    changed = not _same_bot(wanted.get(key), running.tenant, key[1])
                    if changed or running.task.done() or not await self._keep(running):
                        await self._end(key)
                for key, tenant in wanted.items():
                    if key not in self._running and not self._waits(key, tenant):
                        await self._begin(key, tenant)
                await stopped(stop, EVERY)
        finally:
            for key in list(self._running):
                await self._end(key)

    def _waits(self, key: tuple[str, str], tenant: Tenant) -> bool:
        """Whether it failed a moment ago, and is still the same bot: one that was mended is polled at once."""
        failed = self._failed.get(key)
        return failed is not None and time.monotonic() < failed[1] and _same_bot(tenant, failed[0], key[1])

    async def _begin(self, key: tuple[str, str], tenant: Tenant) -> None:
        lock = self._redis.lock(keys.shared("poll", *key), timeout=LEASE, blocking=False, thread_local=False)
        try:
            if not await lock.acquire():
                return
        except (RedisError, OSError):
            return
        stop = asyncio.Event()
        task = asyncio.create_task(self._poll(tenant, key[1], stop), name=f"poll {key[0]}/{key[1]}")
        self._running[key] = _Running(tenant, lock, stop, task)
        log.info("polling", extra={"tenant": key[0], "channel": key[1]})

    async def _keep(self, running: _Running) -> bool:
        try:
            return bool(await running.lock.reacquire())
        except (LockError, RedisError, OSError):
            return False

    async def _end(self, key: tuple[str, str]) -> None:
        """Stops polling before the lease goes back, so that two never poll at once."""
        running = self._running.pop(key)
        running.stop.set()
        running.task.cancel()
        for outcome in await asyncio.gather(running.task, return_exceptions=True):
            if isinstance(outcome, Exception):
                # The words of what is not ours may quote somebody's.
                why = outcome if isinstance(outcome, GatewayFault) else type(outcome).__name__
                log.error("polling ended: %s", why, extra={"tenant": key[0], "channel": key[1]})
                self._failed[key] = running.tenant, time.monotonic() + AFTER_FAILURE
        try:
            await running.lock.release()
        except (LockError, RedisError, OSError):
            log.info("lease of the poller was gone", extra={"tenant": key[0], "channel": key[1]})


def _same_bot(wanted: Tenant | None, polled: Tenant, channel: str) -> bool:
    return wanted is not None and wanted.channels[channel] == polled.channels[channel]
