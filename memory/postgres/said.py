"""What was said, one row a message: Transcripts of memory.protocols."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import orjson

from memory import amend, keys
from memory.errors import LongTermUnavailable
from memory.index.rows import milliseconds
from memory.keys import ConversationRef
from memory.long_term.document import dump, when
from memory.models import Message, is_fresh_start
from memory.postgres.database import Connection, Database, counted
from processors.models import iso

log = logging.getLogger(__name__)

_WAIT = 5_000  # messages that wait in this process while the database is away

_IN = "WHERE tenant = %s AND user_id = %s AND agent = %s AND conversation = %s"


class _Row(NamedTuple):
    where: tuple[str, str, str, str]  # tenant, user, agent, conversation: as `_IN` asks for them
    message_id: str | None
    at: int
    fresh: bool
    record: str


class PostgresTranscripts:
    """The store of long-term memory closes the connections. What can't be written now waits in this process for the
    next message, and is told of as LongTermUnavailable."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock
        self._waiting: list[_Row] = []

    async def append(self, ref: ConversationRef, messages: Sequence[Message]) -> None:
        rows = [self._row(ref, message) for message in messages]
        waiting, self._waiting = self._waiting, []
        due = [*waiting, *rows]
        try:
            for tenant in dict.fromkeys(row.where[0] for row in due):
                async with self._database.tenant(tenant) as db:
                    await _insert(db, tenant, [row for row in due if row.where[0] == tenant])
        except LongTermUnavailable:
            # Written twice it stands there once, by its id.
            self._waiting = [*due, *self._waiting][-_WAIT:]
            raise

    async def tail(self, ref: ConversationRef, limit: int) -> list[Message]:
        if limit <= 0:
            return []
        async with self._database.tenant(ref.tenant, reading=True) as db:
            found = await db.execute(
                f"SELECT fresh, record FROM chat_chat.said {_IN} ORDER BY place DESC LIMIT %s", [*_where(ref), limit]
            )
            rows = await found.fetchall()
        newest_first: list[Message] = []
        for fresh, record in rows:
            if fresh:
                break
            newest_first.append(_message(record))
        return newest_first[::-1]

    async def everything(self, tenant: str, user: str) -> list[dict[str, Any]]:
        async with self._database.tenant(tenant, reading=True) as db:
            found = await db.execute(
                "SELECT record FROM chat_chat.said WHERE tenant = %s AND user_id = %s ORDER BY place",
                [tenant, keys.escape(user)],
            )
            return [orjson.loads(record) for (record,) in await found.fetchall()]

    async def find(self, ref: ConversationRef, platform_id: str) -> Message | None:
        async with self._database.tenant(ref.tenant, reading=True) as db:
            return next((message for _, message in await _named(db, ref, platform_id)), None)

    async def amend(
        self, ref: ConversationRef, platform_id: str, change: Callable[[Message], Message | None]
    ) -> Message | None:
        async with self._database.tenant(ref.tenant) as db:
            before = None
            for place, message in await _named(db, ref, platform_id, lock=True):
                before = message
                after = change(message)
                if after is None:
                    await _remove(db, ref, [place])
                    continue
                row = self._row(ref, after)
                await db.execute(
                    "UPDATE chat_chat.said SET at = %s, fresh = %s, record = %s"
                    " WHERE tenant = %s AND user_id = %s AND place = %s",
                    [row.at, row.fresh, row.record, *_where(ref)[:2], place],
                )
        return before

    async def remove(self, ref: ConversationRef, goes: Callable[[Message], bool]) -> int:
        async with self._database.tenant(ref.tenant) as db:
            found = await db.execute(
                f"SELECT place, record FROM chat_chat.said {_IN} ORDER BY place FOR UPDATE", _where(ref)
            )
            gone = [place for place, record in await found.fetchall() if goes(_message(record))]
            await _remove(db, ref, gone)
        return len(gone)

    async def users(self, tenant: str) -> list[str]:
        """Everybody of whom something is kept, but for ids too long to be told from their key."""
        async with self._database.tenant(tenant, reading=True) as db:
            found = await db.execute("SELECT DISTINCT user_id FROM chat_chat.said WHERE tenant = %s", [tenant])
            return sorted(user for (name,) in await found.fetchall() if (user := keys.unescape(name)))

    async def tenants(self) -> list[str]:
        async with self._database.all_tenants() as db:
            found = await db.execute("SELECT tenant FROM chat_chat.tenants ORDER BY tenant")
            return [tenant for (tenant,) in await found.fetchall()]

    async def prune(self, tenant: str, before: datetime) -> int:
        async with self._database.tenant(tenant) as db:
            asked = "DELETE FROM chat_chat.said WHERE tenant = %s AND at < %s"
            return await counted(db, asked, [tenant, milliseconds(before)])

    async def forget(self, tenant: str, user: str) -> int:
        whose = [tenant, keys.escape(user)]
        self._waiting = [row for row in self._waiting if list(row.where[:2]) != whose]
        async with self._database.tenant(tenant) as db:
            return await counted(db, "DELETE FROM chat_chat.said WHERE tenant = %s AND user_id = %s", whose)

    def _row(self, ref: ConversationRef, message: Message) -> _Row:
        line: dict[str, Any] = {
            "agent": keys.agent_name(ref.agent), "conversation": ref.conversation, **message,
            "timestamp": message.get("timestamp") or iso(self._clock()),
        }  # fmt: skip
        name = message.get("message_id")
        at = milliseconds(when(line)) or milliseconds(self._clock())  # of an unreadable time, as of now
        record = dump(line).decode()
        return _Row(_where(ref), keys.escape(name) if name else None, at, is_fresh_start(message), record)


async def _insert(db: Connection, tenant: str, rows: Iterable[_Row]) -> None:
    await db.execute("INSERT INTO chat_chat.tenants VALUES (%s) ON CONFLICT DO NOTHING", [tenant])
    await db.cursor().executemany(
        "INSERT INTO chat_chat.said (tenant, user_id, agent, conversation, message_id, at, fresh, record)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
        [(*row.where, *row[1:]) for row in rows],
    )


async def _named(
    db: Connection, ref: ConversationRef, platform_id: str, *, lock: bool = False
) -> list[tuple[int, Message]]:
    """The conversation's messages that the platform knows by this id, the newest first, with their places."""
    inside = dump(platform_id).decode()[1:-1]  # as it stands in the records' JSON
    found = await db.execute(
        f"SELECT place, record FROM chat_chat.said {_IN} AND strpos(record, %s) > 0 ORDER BY place DESC"
        f"{' FOR UPDATE' if lock else ''}",
        [*_where(ref), inside],
    )
    rows = [(place, _message(record)) for place, record in await found.fetchall()]
    return [(place, message) for place, message in rows if amend.is_named(message, platform_id)]


async def _remove(db: Connection, ref: ConversationRef, places: list[int]) -> None:
    await db.execute(
        "DELETE FROM chat_chat.said WHERE tenant = %s AND user_id = %s AND place = ANY(%s)", [*_where(ref)[:2], places]
    )


def _where(ref: ConversationRef) -> tuple[str, str, str, str]:
    conversation = keys.escape(ref.conversation)
    return keys.check_tenant(ref.tenant), keys.escape(ref.user), keys.escape(keys.agent_name(ref.agent)), conversation


def _message(record: str) -> Message:
    line = orjson.loads(record)
    del line["agent"], line["conversation"]
    return cast("Message", line)
