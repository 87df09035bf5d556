"""A person is forgotten: what memory keeps of them, and what the gateway does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from gateway.blocked import Blocked, OptedOut
from gateway.board import Board
from gateway.broadcasts.store import BroadcastStore, BroadcastsUnavailable
from gateway.dead_letters import DeadLetters, persons
from gateway.inbox.base import Inbox
from gateway.inbox.spool import Spool
from gateway.linking import forget_links
from gateway.members import forget_member
from gateway.messages import InboundMessage
from gateway.names import forget_name
from gateway.ratings import Ratings
from gateway.reach import Reach
from gateway.staff_desk import forget_customer
from gateway.staff_tasks import StaffTasks
from gateway.undo import Undo
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
        self._spool = Spool(data_dir / "spool", vault=manager.vault)
        self._blocked = Blocked(manager.lists)
        self._opted_out = OptedOut(manager.lists)
        self._broadcasts = BroadcastStore(data_dir)
        self._ratings = Ratings(data_dir)

    async def __call__(self, tenant: str, user: str) -> dict[str, Any]:
        """The receipt: see MemoryManager.forget, and `waiting_messages`, `spool_files`, `dead_letters`, `staff_notes`,
        `marks`, `links`, `web_logs`, `corrections`, `blocks`,
        `ratings`, `broadcasts`.
        Raises MemoryFault and RedisError when a store could not be reached: it must be asked for again."""
        names = ("waiting_messages", "dead_letters", "staff_notes", "marks", "links", "web_logs", "corrections")
        more = dict.fromkeys(names, 0)
        # First, as long as memory knows every id of theirs.
        ids = frozenset((user, *await all_ids(self._manager.longterm, tenant, user)))

        def goes(message: InboundMessage) -> bool:
            return bool(ids & persons(message))

        try:
            more |= await asyncio.to_thread(self._in_files, tenant, ids, goes)
        except BroadcastsUnavailable as error:
            raise LongTermUnavailable(str(error)) from error
        except OSError as error:
            raise LongTermUnavailable(f"{error.filename} can't be reached: {error.strerror or error}") from error
        # Words that wait in somebody's hand just now go with the end of that turn.
        more["waiting_messages"] = await self._inbox.forget(tenant, goes)
        if self._redis is not None:
            more["dead_letters"] = await DeadLetters(self._redis, self._inbox).forget(tenant, ids)
            more["staff_notes"] = await forget_customer(self._redis, tenant, ids)
            more["tasks"] = await StaffTasks(self._redis).forget(tenant, ids)
            more["marks"] = await Reach(self._redis).forget(tenant, ids)
            for one in ids:
                more["marks"] += await forget_name(self._redis, tenant, one)
                more["marks"] += await forget_member(self._redis, tenant, one)
            more["marks"] += await Undo(self._redis).forget(tenant, ids)
            more["links"] = await forget_links(self._redis, tenant, ids)
            more["web_logs"] = await forget_logs(self._redis, tenant, ids)
        receipt = await self._manager.forget(tenant, user) | more
        if self._redis is not None:  # last: from here on no turn puts them back
            receipt["marks"] += await Board(self._redis).forget(tenant, ids)
        return receipt

    def _in_files(self, tenant: str, ids: frozenset[str], goes: Callable[[InboundMessage], bool]) -> Mapping[str, int]:
        folder = understanding_dir(self._understanding, tenant)
        safe = self._manager.vault.of(tenant)
        blocks = len(ids & self._blocked.of(tenant))
        self._blocked.unblock(tenant, ids)
        self._opted_out.unblock(tenant, ids)
        return {
            "ratings": self._ratings.forget(tenant, ids),
            "corrections": sum(corrections.forget(folder, one, safe) for one in ids),
            "spool_files": self._spool.forget(goes, ids),
            "blocks": blocks,
            "broadcasts": self._broadcasts.forget(tenant, ids),
        }
