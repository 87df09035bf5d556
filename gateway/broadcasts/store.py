"""Broadcasts and who gets them, in `DATA_DIR/broadcasts/<tenant>.sqlite`. Blocking, for threads.

Each recipient has a row before anything is sent to them, and what became of it is written before the turn that sent it
ends. So whoever goes on after a crash knows of everybody: not yet, under way, or done.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from gateway.errors import GatewayFault
from gateway.staff_desk import Customer
from memory import keys
from processors.models import iso

Kind = Literal["once", "follow_up"]
State = Literal["running", "paused", "done", "cancelled"]
Fate = Literal["waiting", "queued", "sent", "left_out", "failed"]

VERSION = 1
_WAIT = 10.0  # seconds for another's step
_TABLES = """
CREATE TABLE broadcasts (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, state TEXT NOT NULL, why TEXT NOT NULL, created TEXT NOT NULL,
    ended TEXT NOT NULL, by TEXT NOT NULL, draft TEXT NOT NULL, beyond INTEGER NOT NULL, left_out TEXT NOT NULL
);
CREATE TABLE recipients (
    place INTEGER PRIMARY KEY, broadcast TEXT NOT NULL, user TEXT NOT NULL, fate TEXT NOT NULL, why TEXT NOT NULL,
    tries INTEGER NOT NULL, queued REAL NOT NULL, channel TEXT NOT NULL, language TEXT NOT NULL,
    heard REAL NOT NULL, customer TEXT NOT NULL,
    UNIQUE (broadcast, user)
);
CREATE INDEX recipients_fate ON recipients (broadcast, fate, channel);
CREATE INDEX recipients_user ON recipients (user);
"""
_RECIPIENT = "broadcast, user, fate, why, tries, queued, language, heard, customer"
_BROADCAST = "id, kind, state, why, created, ended, by, draft, beyond, left_out"

_encode = msgspec.json.encode
_customer = msgspec.json.Decoder(Customer).decode


class BroadcastsUnavailable(GatewayFault):
    """The file of a tenant's broadcasts can't be used just now."""


@dataclass(frozen=True, slots=True)
class Broadcast:
    """`why`: why it stands still, "" where it does not; `draft` is JSON; `left_out` counts by reason who was not taken
    up. Times are ISO 8601, "" while there is none."""

    id: str
    kind: Kind
    state: State
    why: str
    created: str
    ended: str
    by: str
    draft: str
    beyond: bool  # it goes on until LINE's quota is used up, knowing that it won't do
    left_out: Mapping[str, int]

    @property
    def over(self) -> bool:
        return self.state in ("done", "cancelled")


@dataclass(frozen=True, slots=True)
class Recipient:
    """`tries` counts how often it was given up before it was sent: each try has a name of its own in the inbox.
    `queued`: since when it is under way; `heard`: when the person was heard of last. Seconds since 1970."""

    broadcast: str
    user: str
    fate: Fate
    why: str
    tries: int
    queued: float
    language: str
    heard: float
    customer: Customer


@dataclass(frozen=True, slots=True)
class New:
    """Somebody to be taken up. `ids`: every id they are known by."""

    user: str
    ids: frozenset[str]
    customer: Customer
    language: str
    heard: float


class BroadcastStore:
    """Raises BroadcastsUnavailable. A tenant's file is made with its first broadcast."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "broadcasts"

    def marks(self) -> dict[str, tuple[int, ...]]:
        """By tenant what changes with its file; none for a tenant that never had a broadcast."""
        found: dict[str, list[int]] = {}
        try:
            with os.scandir(self._folder) as entries:
                for entry in sorted(entries, key=lambda one: one.name):
                    tenant, suffix, rest = entry.name.partition(".sqlite")
                    if suffix and rest in ("", "-wal"):
                        with suppress(FileNotFoundError):  # a log that was folded in meanwhile
                            seen = entry.stat()
                            found.setdefault(tenant, []).extend((seen.st_mtime_ns, seen.st_size))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise BroadcastsUnavailable(f"broadcasts can't be read: {error}") from error
        return {tenant: tuple(mark) for tenant, mark in found.items()}

    # -- broadcasts ----------------------------------------------------------------------------------------------------

    def add(self, tenant: str, broadcast: Broadcast, people: Sequence[New]) -> bool:
        """Keeps it with all its recipients in one step. False: there is one of that id."""
        with self._made(tenant) as db, _step(db):
            row = (
                *(broadcast.id, broadcast.kind, broadcast.state, broadcast.why, broadcast.created, broadcast.ended),
                *(broadcast.by, broadcast.draft, int(broadcast.beyond), _encode(broadcast.left_out).decode()),
            )
            kept = db.execute(f"INSERT OR IGNORE INTO broadcasts ({_BROADCAST}) VALUES ({_marks(10)})", row).rowcount
            if kept:
                _take_up(db, broadcast.id, people)
            return bool(kept)

    def take_up(self, tenant: str, broadcast: str, people: Sequence[New]) -> int:
        """More recipients of a follow-up: of each person once. How many are new."""
        if not people:
            return 0
        with self._made(tenant) as db, _step(db):
            return _take_up(db, broadcast, people)

    def get(self, tenant: str, broadcast: str) -> Broadcast | None:
        return next(iter(self._broadcasts(tenant, "WHERE id = ?", broadcast)), None)

    def all(self, tenant: str) -> list[Broadcast]:
        """The newest first."""
        return self._broadcasts(tenant, "ORDER BY created DESC, id DESC")

    def running(self, tenant: str) -> list[Broadcast]:
        """The oldest first."""
        return self._broadcasts(tenant, "WHERE state = 'running' ORDER BY created, id")

    def counts(self, tenant: str, broadcast: str) -> dict[tuple[Fate, str], int]:
        """Recipients by what became of them, and why."""
        with self._open(tenant) as db:
            sql = "SELECT fate, why, COUNT(*) FROM recipients WHERE broadcast = ? GROUP BY fate, why"
            return {(fate, why): number for fate, why, number in db.execute(sql, [broadcast])} if db else {}

    def open(self, tenant: str) -> dict[Fate, int]:
        """Recipients of what is not over, by what became of them."""
        with self._open(tenant) as db:
            sql = (
                "SELECT fate, COUNT(*) FROM recipients JOIN broadcasts ON broadcasts.id = broadcast"
                " WHERE state IN ('running', 'paused') GROUP BY fate"
            )
            return dict(db.execute(sql)) if db else {}

    def turn(
        self, tenant: str, broadcast: str, to: State, why: str, now: datetime, *, only: Sequence[State] = ()
    ) -> bool:
        """A new state, with its reason; a broadcast that is over leaves out who still waits. False where there is none,
        or its state is none of `only`."""
        with self._open(tenant) as db:
            if db is None:
                return False
            with _step(db):
                ended = iso(now) if to in ("done", "cancelled") else ""
                sql = "UPDATE broadcasts SET state = ?, why = ?, ended = ? WHERE id = ?"
                allowed = f" AND state IN ({_marks(len(only))})" if only else ""
                done = db.execute(sql + allowed, [to, why, ended, broadcast, *only]).rowcount
                if done and to == "cancelled":
                    sql = "UPDATE recipients SET fate = 'left_out', why = 'cancelled' WHERE broadcast = ? AND fate = ?"
                    db.execute(sql, [broadcast, "waiting"])
                return bool(done)

    def done(self, tenant: str, broadcast: str, now: datetime) -> bool:
        return self.turn(tenant, broadcast, "done", "", now, only=["running"])

    def stop(self, tenant: str, broadcast: str, why: str, now: datetime) -> bool:
        """Pauses it for a reason that somebody has to look at."""
        return self.turn(tenant, broadcast, "paused", why, now, only=["running"])

    def note(self, tenant: str, broadcast: str, why: str) -> None:
        """Why a running one stands still; "": it does not."""
        with self._open(tenant) as db:
            if db is not None:
                sql = "UPDATE broadcasts SET why = ? WHERE id = ? AND state = 'running' AND why <> ?"
                db.execute(sql, [why, broadcast, why])

    def prune(self, tenant: str, before: datetime) -> int:
        """Drops what was over before that; how many broadcasts. Follow-ups know for good who got them."""
        with self._open(tenant) as db:
            if db is None:
                return 0
            with _step(db):
                old = "SELECT id FROM broadcasts WHERE ended <> '' AND ended < ?"
                db.execute(f"DELETE FROM recipients WHERE broadcast IN ({old})", [iso(before)])
                return db.execute("DELETE FROM broadcasts WHERE ended <> '' AND ended < ?", [iso(before)]).rowcount

    # -- recipients ----------------------------------------------------------------------------------------------------

    def recipient(self, tenant: str, broadcast: str, user: str) -> Recipient | None:
        return next(iter(self._recipients(tenant, "broadcast = ? AND user = ?", broadcast, user)), None)

    def under_way(self, tenant: str) -> list[Recipient]:
        return self._recipients(tenant, "fate = 'queued' ORDER BY place")

    def page(self, tenant: str, broadcast: str, after: str, limit: int) -> list[Recipient]:
        return self._recipients(tenant, "broadcast = ? AND user > ? ORDER BY user LIMIT ?", broadcast, after, limit)

    def waiting(self, tenant: str, broadcast: str | None = None) -> dict[str, int]:
        """Who waits or is under way, by channel; of all that is not over where no broadcast is named."""
        with self._open(tenant) as db:
            if db is None:
                return {}
            if broadcast is not None:
                sql = "SELECT channel, COUNT(*) FROM recipients WHERE broadcast = ? AND fate = 'waiting'"
                return dict(db.execute(f"{sql} GROUP BY channel", [broadcast]))
            sql = (
                "SELECT channel, COUNT(*) FROM recipients JOIN broadcasts ON broadcasts.id = broadcast"
                " WHERE fate IN ('waiting', 'queued') AND state IN ('running', 'paused') GROUP BY channel"
            )
            return dict(db.execute(sql))

    def take(self, tenant: str, broadcast: str, channel: str, most: int, now: float) -> list[Recipient]:
        """The next ones on a channel, who are under way from now on: written down before anything is sent."""
        with self._open(tenant) as db:
            if db is None:
                return []
            with _step(db):
                where = "broadcast = ? AND fate = 'waiting' AND channel = ? ORDER BY place LIMIT ?"
                places = [
                    place
                    for (place,) in db.execute(
                        f"SELECT place FROM recipients WHERE {where}", [broadcast, channel, most]
                    )
                ]
                chosen = f"place IN ({_marks(len(places))})"
                db.execute(f"UPDATE recipients SET fate = 'queued', queued = ? WHERE {chosen}", [now, *places])
                sql = f"SELECT {_RECIPIENT} FROM recipients WHERE {chosen} ORDER BY place"
                return list(map(_recipient, db.execute(sql, places)))

    def settle(self, tenant: str, one: Recipient, fate: Fate, why: str = "") -> bool:
        """What became of somebody under way; back to `waiting` it gets another try. False: that is known already."""
        with self._open(tenant) as db:
            if db is None:
                return False
            again = int(fate == "waiting")
            sql = (
                "UPDATE recipients SET fate = ?, why = ?, tries = tries + ?"
                " WHERE broadcast = ? AND user = ? AND fate = 'queued' AND tries = ?"
            )
            return bool(db.execute(sql, [fate, why, again, one.broadcast, one.user, one.tries]).rowcount)

    def forget(self, tenant: str, ids: Collection[str]) -> int:
        """Removes these people; how many rows."""
        with self._open(tenant) as db:
            if db is None:
                return 0
            with _step(db):
                mine = f"user IN ({_marks(len(ids))}) OR json_extract(customer, '$.user_id') IN ({_marks(len(ids))})"
                gone = db.execute(f"DELETE FROM recipients WHERE {mine}", [*ids, *ids]).rowcount
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return gone

    # -- the file ------------------------------------------------------------------------------------------------------

    def _broadcasts(self, tenant: str, where: str, *values: Any) -> list[Broadcast]:
        with self._open(tenant) as db:
            found = db.execute(f"SELECT {_BROADCAST} FROM broadcasts {where}", values).fetchall() if db else []
        return list(map(_broadcast, found))

    def _recipients(self, tenant: str, where: str, *values: Any) -> list[Recipient]:
        with self._open(tenant) as db:
            if db is None:
                return []
            return list(map(_recipient, db.execute(f"SELECT {_RECIPIENT} FROM recipients WHERE {where}", values)))

    @contextmanager
    def _open(self, tenant: str) -> Iterator[sqlite3.Connection | None]:
        """None: the tenant has none."""
        if self._path(tenant).exists():
            with self._made(tenant) as db:
                yield db
        else:
            yield None

    @contextmanager
    def _made(self, tenant: str) -> Iterator[sqlite3.Connection]:
        path = self._path(tenant)
        try:
            if not path.exists():
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(path, timeout=_WAIT, isolation_level=None)) as db:
                db.execute("PRAGMA secure_delete = ON")
                if db.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                    _make(db)
                yield db
        except (sqlite3.Error, OSError) as error:
            raise BroadcastsUnavailable(f"broadcasts of {tenant} can't be read or written: {error}") from error

    def _path(self, tenant: str) -> Path:
        return self._folder / f"{keys.check_tenant(tenant)}.sqlite"


def _make(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA journal_mode = WAL")
    with _step(db):
        if db.execute("PRAGMA user_version").fetchone()[0] == 0:  # nobody else made it meanwhile
            for statement in filter(str.strip, _TABLES.split(";")):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _step(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    with db:
        yield


def _take_up(db: sqlite3.Connection, broadcast: str, people: Sequence[New]) -> int:
    """An id that was merged since is the same person."""
    known = {user for (user,) in db.execute("SELECT user FROM recipients WHERE broadcast = ?", [broadcast])}
    rows = []
    for one in people:
        if not known & one.ids:
            known |= one.ids
            to = _encode(one.customer).decode()
            rows.append((broadcast, one.user, "waiting", "", 0, 0.0, one.customer.channel, one.language, one.heard, to))
    columns = "broadcast, user, fate, why, tries, queued, channel, language, heard, customer"
    db.executemany(f"INSERT INTO recipients ({columns}) VALUES ({_marks(10)})", rows)
    return len(rows)


def _broadcast(row: Sequence[Any]) -> Broadcast:
    name, kind, state, why, created, ended, by, draft, beyond, left_out = row
    reasons = msgspec.json.decode(left_out)
    return Broadcast(name, kind, state, why, created, ended, by, draft, bool(beyond), reasons)


def _recipient(row: Sequence[Any]) -> Recipient:
    broadcast, user, fate, why, tries, queued, language, heard, customer = row
    return Recipient(broadcast, user, fate, why, tries, queued, language, heard, _customer(customer))


def _marks(number: int) -> str:
    return ", ".join("?" * number)
