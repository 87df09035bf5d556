"""A person is forgotten: what memory keeps of them, and what the gateway does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from gateway.dead_letters import DeadLetters
from gateway.inbox.base import Inbox
from gateway.linking import forget_links
from gateway.members import forget_member
from gateway.names import forget_name
from gateway.reach import Reach
from gateway.staff_desk import forget_customer
from gateway.web_log import forget_logs
from memory.canonical import all_ids
from memory.errors import LongTermUnavailable
from memory.keys import understanding_dir
from memory.memory_manager import MemoryManager
from processors import corrections


class Forgetting:
    """Forgets again without harm. Without a client, as while Redis is away, what memory keeps alone.

    Of the deliveries seen within 72 hours their ids stay known under the conversation's name until then: a repeat would
    be answered anew.
    """

    def __init__(self, manager: MemoryManager, inbox: Inbox, client: Redis | None, data_dir: Path) -> None:
        self._manager = manager
        self._inbox = inbox
        self._redis = client
        self._understanding = data_dir / "understanding"

    async def __call__(self, tenant: str, user: str) -> dict[str, Any]:
        """The receipt: see MemoryManager.forget, and `dead_letters`, `staff_notes`, `marks`, `links`, `web_logs`,
        `corrections`.
        Raises MemoryFault and RedisError when a store could not be reached: it must be asked for again."""
        more = {"dead_letters": 0, "staff_notes": 0, "marks": 0, "links": 0, "corrections": 0}
        # First, as long as memory knows every id of theirs.
        ids = frozenset((user, *await all_ids(self._manager.longterm, tenant, user)))
        folder = understanding_dir(self._understanding, tenant)
        try:
            for one in ids:
                more["corrections"] += await asyncio.to_thread(corrections.forget, folder, one)
        except OSError as error:
            raise LongTermUnavailable(f"corrections in {folder} can't be reached: {error.strerror or error}") from error
        if self._redis is not None:
            more["dead_letters"] = await DeadLetters(self._redis, self._inbox).forget(tenant, ids)
            more["staff_notes"] = await forget_customer(self._redis, tenant, ids)
            more["marks"] = await Reach(self._redis).forget(tenant, ids)
            for one in ids:
                more["marks"] += await forget_name(self._redis, tenant, one)
                more["marks"] += await forget_member(self._redis, tenant, one)
            more["links"] = await forget_links(self._redis, tenant, ids)
            more["web_logs"] = await forget_logs(self._redis, tenant, ids)
        return await self._manager.forget(tenant, user) | more
