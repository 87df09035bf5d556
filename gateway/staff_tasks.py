"""What staff have still to answer: noted while the shop was closed, and done when they have answered, or said so.

One task a conversation, in one hash a tenant. A task that nobody looked at for a month is dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import msgspec
from redis.asyncio import Redis

from gateway.described import described
from gateway.inbox.base import event_of, name_of
from gateway.messages import InboundMessage
from memory import keys
from processors.models import iso

KEPT_FOR = 30 * 86_400  # seconds
_LINES, _CHARACTERS = 10, 300  # of what the customer wrote


class Task(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What a customer waits for. `said` is the newest of what they wrote, oldest first."""

    id: str
    channel: str
    user_id: str
    chat_id: str
    since: str  # ISO 8601, UTC
    name: str = ""
    said: tuple[str, ...] = ()
    events: tuple[str, ...] = ()  # of the messages that stand in `said`
    by: tuple[str, ...] = ()  # in a group: who wrote them


class Noted(Enum):
    NEW = "new"
    MORE = "more"  # the conversation has a task already: the words stand in it


_encode = msgspec.json.encode
_decode = msgspec.json.Decoder(Task).decode


class StaffTasks:
    """Raises RedisError and OSError when Redis can't be reached."""

    def __init__(self, client: Redis, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._redis: Any = client
        self._clock = clock

    async def note(self, message: InboundMessage) -> Noted:
        """The message waits for an answer of staff's. Noted again it changes nothing."""
        key, name = _key(message.tenant), _id(message)
        raw = await self._redis.hget(key, name)
        old = _decode(raw) if raw else None
        event = event_of(message)
        if old is not None and event in old.events:
            return Noted.NEW if old.events[0] == event else Noted.MORE
        task = Task(
            id=name,
            channel=message.channel,
            user_id=message.user_id,
            chat_id=message.chat_id,
            since=old.since if old else iso(self._clock()),
            name=message.sender_name or (old.name if old else ""),
            said=(*(old.said if old else ()), described(message)[:_CHARACTERS])[-_LINES:],
            events=(*(old.events if old else ()), event)[-_LINES:],
            by=tuple(dict.fromkeys((*(old.by if old else ()), message.sender_id or ""))) if message.group else (),
        )
        pipe: Any = self._redis.pipeline(transaction=True)
        pipe.hset(key, name, _encode(task)).expire(key, KEPT_FOR)
        await pipe.execute()
        return Noted.MORE if old else Noted.NEW

    async def all(self, tenant: str) -> list[Task]:
        """Oldest first."""
        found = [_decode(raw) for raw in (await self._redis.hgetall(_key(tenant))).values()]
        oldest = iso(self._clock() - timedelta(seconds=KEPT_FOR))
        if old := [task.id for task in found if task.since < oldest]:
            await self._redis.hdel(_key(tenant), *old)
        return sorted((task for task in found if task.since >= oldest), key=lambda task: (task.since, task.id))

    async def done(self, tenant: str, task_id: str) -> bool:
        """False: there is none of that id."""
        return bool(await self._redis.hdel(_key(tenant), task_id))

    async def answered(self, message: InboundMessage) -> None:
        """Staff have answered the conversation that a message to it names."""
        await self._redis.hdel(_key(message.tenant), _id(message))

    async def forget(self, tenant: str, ids: Collection[str]) -> int:
        """Removes what these people wait for, in groups too; how many tasks that were."""
        found = [_decode(raw) for raw in (await self._redis.hgetall(_key(tenant))).values()]
        of_theirs = [task.id for task in found if task.user_id in ids or any(one in ids for one in task.by)]
        return int(await self._redis.hdel(_key(tenant), *of_theirs)) if of_theirs else 0


def _id(message: InboundMessage) -> str:
    return hashlib.sha256(name_of(message).encode()).hexdigest()[:10]


def _key(tenant: str) -> str:
    return keys.shared("tasks", tenant)
