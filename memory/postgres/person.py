"""One person's rows within a transaction: locked, read, added to, put in order."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from memory import keys
from memory.index.rows import milliseconds
from memory.listing import Kind
from memory.long_term import document
from memory.long_term.document import MAX_EPISODES, Document
from memory.models import LongTermMemory
from memory.postgres import records
from memory.postgres.database import Connection, counted
from memory.postgres.records import KINDS, Row, Whole
from memory.retention import Retention

OLD_BY: dict[Kind, str] = {"events": "at", "episodes": "ended"}  # of what retention is about


@dataclass(frozen=True, slots=True)
class Head:
    """The person's own row. `cleared` is the version that last removed or replaced anything: since then rows were only
    added."""

    version: int
    cleared: int
    places: int
    seen: int
    words: str
    rest: str
    fresh: bool = False  # made just now: nothing was known


class PersonRows:
    """`user` "" is the tenant itself."""

    def __init__(self, connection: Connection, tenant: str, user: str) -> None:
        self._db = connection
        self._tenant = tenant
        self._user = user
        self._id = [tenant, keys.escape(user) if user else ""]

    async def head(self, *, lock: bool = False) -> Head | None:
        """None: nothing is known. With `lock` nobody else writes the person until the transaction ends."""
        asked = "SELECT version, cleared, places, seen, words, rest FROM chat_chat.people"
        found = await self._db.execute(
            f"{asked} WHERE tenant = %s AND user_id = %s{' FOR UPDATE' if lock else ''}", self._id
        )
        row = await found.fetchone()
        return Head(*row) if row else None

    async def locked(self) -> Head:
        """The person's row under its lock, made where there was none."""
        while (head := await self.head(lock=True)) is None:
            # Never a version again that somebody may hold in mind of a person who was forgotten since.
            version = time.time_ns() // 1000
            named = orjson.dumps(self._user).decode() if self._user and keys.unescape(self._id[1]) is None else None
            nothing = records.rest(document.empty(self._tenant, self._user))
            await self._db.execute("INSERT INTO chat_chat.tenants VALUES (%s) ON CONFLICT DO NOTHING", [self._tenant])
            made = await counted(
                self._db,
                "INSERT INTO chat_chat.people (tenant, user_id, named, version, cleared, rest)"
                " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                [*self._id, named, version, version, nothing],
            )
            if made:
                return Head(version, version, 0, 0, "", nothing, fresh=True)
        return head

    async def whole(self, head: Head, now: datetime) -> Whole:
        parts = [
            f"SELECT '{kind}', id, record, {OLD_BY.get(kind, '0')}, place FROM chat_chat.{kind}"
            " WHERE tenant = %s AND user_id = %s"
            for kind in KINDS
        ]
        found = await self._db.execute(f"{' UNION ALL '.join(parts)} ORDER BY 4, 5", self._id * len(KINDS))
        rows = [(kind, name, record) for kind, name, record, *_ in await found.fetchall()]
        return records.whole(self._tenant, self._user, head.rest, rows, now)

    async def since(self, head: Head, version: int) -> Document:
        """What was put after that version, as one line of a journal; only where nothing was cleared since."""
        parts = [
            f"SELECT '{kind}', record, place FROM chat_chat.{kind} WHERE tenant = %s AND user_id = %s AND rev > %s"
            for kind in KINDS
        ]
        found = await self._db.execute(f"{' UNION ALL '.join(parts)} ORDER BY 3", [*self._id, version] * len(KINDS))
        line: Document = {}
        for kind, record, _ in await found.fetchall():
            line.setdefault(kind, []).append(orjson.loads(record))
        rest = orjson.loads(head.rest)
        return line | {name: rest[name] for name in ("history_summary", "person") if name in rest}

    async def add(self, head: Head, lines: Sequence[Document], after: LongTermMemory | None) -> int:
        """The lines of a journal; the new version. `after` is the memory with them, None where nobody looked: then
        they hold nothing but events."""
        version, rest = head.version + 1, orjson.loads(head.rest)
        seen, words, place = head.seen, head.words, head.places
        for number, line in enumerate(lines):
            for kind in KINDS:
                new = [
                    records.row(kind, raw, records.spare(raw, version, number * 10_000 + at))
                    for at, raw in enumerate(line.get(kind, ()))
                ]
                await self.put(kind, new, version, place, replace=kind != "events")
                place += len(new)
                if kind in ("events", "facts"):
                    seen = max([seen, *(one.time for one in new)])
            rest |= {name: line[name] for name in ("history_summary", "person") if name in line}
        if after is not None:
            visited, words = records.person_values(after)
            seen = max(seen, visited)
        await self._set(Head(version, head.cleared, place, seen, words, records.rest(rest)))
        return version

    async def replace(self, head: Head, before: Whole, after: Document, memory: LongTermMemory) -> int:
        """The person as `after` says; the new version."""
        version = head.version + 1
        put, gone = records.changed(before, after, version)
        place = head.places
        for kind in KINDS:
            if gone[kind]:
                await self._db.execute(
                    f"DELETE FROM chat_chat.{kind} WHERE tenant = %s AND user_id = %s AND id = ANY(%s)",
                    [*self._id, gone[kind]],
                )
            await self.put(kind, put[kind], version, place, replace=True)
            place += len(put[kind])
        await self._set(Head(version, version, place, *records.person_values(memory, whole=True), records.rest(after)))
        return version

    async def relist(self, head: Head, whole: Whole, memory: LongTermMemory) -> None:
        """Makes the columns of the lists anew; the records stay as they are."""
        for kind in KINDS:
            names = records.columns(kind)
            values = [
                [*records.row(kind, raw, name).values, *self._id, name]
                for name, raw in zip(whole.names[kind], whole.document.get(kind, ()), strict=True)
            ]
            if values:
                await self._db.cursor().executemany(
                    f"UPDATE chat_chat.{kind} SET {', '.join(f'{one} = %s' for one in names)}"
                    " WHERE tenant = %s AND user_id = %s AND id = %s",
                    values,
                )
        seen, words = records.person_values(memory, whole=True)
        await self._set(Head(head.version, head.cleared, head.places, seen, words, head.rest))

    async def put(self, kind: Kind, rows: Sequence[Row], version: int, place: int, *, replace: bool) -> None:
        """What is known by the same id is replaced, in its place, or left alone."""
        if not rows:
            return
        names = records.columns(kind)
        new = ", ".join(f"{one} = EXCLUDED.{one}" for one in ("rev", *names))
        known = f"UPDATE SET {new}" if replace else "NOTHING"
        wanted = (
            f"INSERT INTO chat_chat.{kind} (tenant, user_id, id, place, rev, {', '.join(names)})"
            f" VALUES (%s, %s, %s, %s, %s{', %s' * len(names)}) ON CONFLICT (tenant, user_id, id) DO {known}"
        )
        values = [[*self._id, row.id, place + at, version, *row.values] for at, row in enumerate(rows)]
        if len(values) == 1:
            await self._db.execute(wanted, values[0])
        else:
            await self._db.cursor().executemany(wanted, values)

    async def trim(self, head: Head, now: datetime, rules: Retention) -> int:
        """Applies retention; how many events went."""
        removed = await self._trim("events", now, rules)
        told = await self._trim("episodes", now, Retention(MAX_EPISODES, rules.days))
        if removed or told:
            await self._set(Head(head.version + 1, head.version + 1, head.places, head.seen, head.words, head.rest))
        return removed

    async def remove(self) -> Mapping[str, int]:
        """Everything; how many records of each kind there were."""
        removed = {}
        for table in (*KINDS, "people"):
            asked = f"DELETE FROM chat_chat.{table} WHERE tenant = %s AND user_id = %s"
            removed[table] = await counted(self._db, asked, self._id)
        return removed

    # -- marks of who was forgotten ----------------------------------------------------------------------------------

    async def mark(self, now: datetime) -> None:
        await self._db.execute(
            "INSERT INTO chat_chat.forgotten VALUES (%s, %s, %s)"
            " ON CONFLICT (tenant, who) DO UPDATE SET at = EXCLUDED.at",
            [self._tenant, self._who, now.timestamp()],
        )

    async def forgotten_at(self) -> datetime | None:
        found = await self._db.execute(
            "SELECT at FROM chat_chat.forgotten WHERE tenant = %s AND who = %s", [self._tenant, self._who]
        )
        row = await found.fetchone()
        return datetime.fromtimestamp(row[0], UTC) if row else None

    @property
    def _who(self) -> str:
        return hashlib.sha256(self._id[1].encode()).hexdigest()

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _set(self, head: Head) -> None:
        await self._db.execute(
            "UPDATE chat_chat.people SET version = %s, cleared = %s, places = %s, seen = %s, words = %s, rest = %s,"
            " updated_at = clock_timestamp() WHERE tenant = %s AND user_id = %s",
            [head.version, head.cleared, head.places, head.seen, head.words, head.rest, *self._id],
        )

    async def _trim(self, kind: Kind, now: datetime, rules: Retention) -> int:
        table, at = f"chat_chat.{kind}", OLD_BY[kind]
        removed = 0
        if rules.days:
            oldest = milliseconds(now - timedelta(days=rules.days))
            asked = f"DELETE FROM {table} WHERE tenant = %s AND user_id = %s AND {at} < %s"
            removed += await counted(self._db, asked, [*self._id, oldest])
        if rules.max_events:
            over: list[Any] = [*self._id, *self._id, rules.max_events]
            removed += await counted(
                self._db,
                f"DELETE FROM {table} WHERE tenant = %s AND user_id = %s AND id IN (SELECT id FROM {table}"
                f" WHERE tenant = %s AND user_id = %s ORDER BY {at} DESC, place DESC OFFSET %s)",
                over,
            )
        return removed


async def expire(db: Connection, tenant: str, oldest: int, limit: int) -> tuple[list[str], int]:
    """Removes what happened before `oldest` of those people to whom the newest `limit` of it belong; their keys, and
    how many events that were."""
    old = " UNION ".join(
        f"(SELECT user_id FROM chat_chat.{kind} WHERE tenant = %s AND {at} < %s ORDER BY {at} DESC LIMIT %s)"
        for kind, at in OLD_BY.items()
    )
    locked = await db.execute(
        f"SELECT user_id FROM chat_chat.people WHERE tenant = %s AND user_id IN ({old}) ORDER BY user_id FOR UPDATE",
        [tenant, *[tenant, oldest, limit] * len(OLD_BY)],
    )
    whose = [name for (name,) in await locked.fetchall()]
    gone = {}
    for kind, at in OLD_BY.items():
        asked = f"DELETE FROM chat_chat.{kind} WHERE tenant = %s AND user_id = ANY(%s) AND {at} < %s"
        gone[kind] = await counted(db, asked, [tenant, whose, oldest])
    await db.execute(
        "UPDATE chat_chat.people SET version = version + 1, cleared = version + 1, updated_at = clock_timestamp()"
        " WHERE tenant = %s AND user_id = ANY(%s)",
        [tenant, whose],
    )
    return whose, gone["events"]
