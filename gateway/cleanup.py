"""What has to be done now and then: sessions that are over, retention. Never twice at once."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from redis.asyncio import Redis
from redis.exceptions import LockError

from config.tenants import Tenants
from gateway.dead_letters import DeadLetters
from memory import keys
from memory.errors import MemoryFault
from memory.memory_manager import MemoryManager

log = logging.getLogger(__name__)

LOCK = keys.shared("lock", "cleanup")
LOCK_FOR = 300.0  # seconds until another one may begin after a crash


@dataclass(frozen=True, slots=True)
class Report:
    sessions: int  # ended, or to be ended
    transcript_messages: int  # removed, in all tenants
    dead_letters: int  # removed
    media_files: int = 0  # removed
    elsewhere: bool = False  # another clean-up is at work: nothing was done

    def lines(self, *, dry_run: bool = False) -> list[str]:
        if self.elsewhere:
            return ["another clean-up is at work; nothing to do here"]
        if dry_run:
            return [f"{self.sessions} sessions are over and would be ended (dry run: nothing was changed)"]
        return [
            f"{self.sessions} sessions ended",
            f"{self.transcript_messages} messages of transcripts removed",
            f"{self.media_files} media files removed",
            f"{self.dead_letters} dead letters removed",
        ]


class Cleanup:
    def __init__(self, client: Redis, tenants: Tenants, manager: MemoryManager, letters: DeadLetters) -> None:
        self._redis = client
        self._tenants = tenants
        self._manager = manager
        self._letters = letters

    async def run(self, tenant: str | None = None, *, dry_run: bool = False) -> Report:
        if dry_run:
            return Report(await self._manager.count_expired_sessions(tenant), 0, 0)
        lock = self._redis.lock(LOCK, timeout=LOCK_FOR, blocking=False, thread_local=False)
        if not await lock.acquire():
            return Report(0, 0, 0, elsewhere=True)
        try:
            sessions = await self._manager.cleanup_expired_sessions(tenant)
            said = media = dead = 0
            for one in self._tenants.all():
                if tenant is None or one.id == tenant:
                    said += await self._manager.prune_transcripts(one.id, one.memory.transcript_retention_days)
                    try:
                        media += await self._manager.prune_media(one.id, one.memory.transcript_retention_days)
                    except MemoryFault as error:
                        log.error("retention of media waits: %s", error)
                    dead += await self._letters.trim(one.id, datetime.now(UTC))
            return Report(sessions, said, dead, media)
        finally:
            with suppress(
                LockError
            ):  # it took longer than the lock lasts: whoever has it now does the same, harmlessly
                await lock.release()
