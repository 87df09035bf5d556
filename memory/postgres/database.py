"""Connections to the database, each piece of work in a transaction that sees one tenant alone."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, LiteralString
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout, TooManyRequests

from memory.errors import LongTermUnavailable
from memory.keys import check_tenant

ROLE = "chat_chat_app"  # not the tables' owner; made by the migrations where they may
_TAKE_ROLE: LiteralString = "SET LOCAL ROLE chat_chat_app"
NEEDS = "0004"  # the migration that this version can't do without; a later one does no harm

Connection = AsyncConnection[tuple[Any, ...]]

_PATIENCE = 5.0  # seconds for a connection
_GLANCE = 0.5  # seconds for a connection while it is away
_KNOCKS = 3  # whole seconds for another connection to a server that has not answered for so long
_IDLE = 1.0  # seconds without a transaction after which a connection is tried before it is used
_READING: LiteralString = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_TRUST = "name who signed it, sslrootcert=/path/to/ca.pem in LONGTERM_URL, or encrypt only: sslmode=require"
_TLS = {  # libpq's words
    "certificate verify failed": f"has a certificate that is not trusted: {_TRUST}",
    "root certificate file": f"has a certificate, and nothing says whom to trust: {_TRUST}",
    "does not match host name": "has a certificate of another name: write its host into LONGTERM_URL as that names it",
    "does not support SSL": "speaks no TLS: switch it on there (`ssl = on`), or leave sslmode out of LONGTERM_URL",
}
_AWAY_FOR = 1.0  # seconds that nobody asks again once it was found away


class Database:
    """`url` is a libpq URL. One pool an event loop, opened when first used; at most `size` connections."""

    def __init__(self, url: str, *, size: int = 8, patience: float = _PATIENCE) -> None:
        self.url = url
        self._size = size
        self._patience = patience
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncConnectionPool[Connection]] = WeakKeyDictionary()
        self._walled: bool | None = None  # whether we may take the role; None: not asked yet
        self._away_until = 0.0
        self._last_good = 0.0
        self.loop: asyncio.AbstractEventLoop | None = None  # where it was used last

    @asynccontextmanager
    async def tenant(self, tenant: str, *, reading: bool = False) -> AsyncIterator[Connection]:
        """A connection in a transaction that is committed when the body ends, and undone when it raises. It sees and
        writes this tenant's rows alone; with `reading` it sees one moment, and writes nothing.

        Raises InvalidId, LongTermUnavailable.
        """
        async with self._transaction(check_tenant(tenant), _READING if reading else "BEGIN") as connection:
            yield connection

    @asynccontextmanager
    async def all_tenants(self) -> AsyncIterator[Connection]:
        """A transaction that sees the tenants' names and nothing of theirs."""
        async with self._transaction("", _READING) as connection:
            yield connection

    async def examine(self) -> str | None:
        """What is wrong with what is there, and how to mend it; None: nothing. Raises LongTermUnavailable."""
        if (trouble := await self._tls_trouble()) is not None:
            return trouble
        async with self.all_tenants() as db:
            found = await db.execute("SELECT to_regclass('chat_chat.migrations') IS NOT NULL")
            if await found.fetchone() != (True,):
                return "has no tables of ours: run `chat-chat migrate`"
        async with self.all_tenants() as db:
            at = await (await db.execute("SELECT coalesce(max(version_num), '') FROM chat_chat.migrations")).fetchone()
            if at is None or at[0] < NEEDS:
                return "lacks tables of this version: run `chat-chat migrate`"
            walled = await (
                await db.execute("SELECT NOT rolsuper AND NOT rolbypassrls FROM pg_roles WHERE rolname = current_user")
            ).fetchone()
            if walled != (True,):
                return f"is used by a user who sees every tenant's rows: grant it the role {ROLE}, or give another user"
        return None

    async def close(self) -> None:
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _tls_trouble(self) -> str | None:
        """By a connection of its own: the pool's tell nobody why there are none."""
        try:
            connection = await AsyncConnection.connect(self.url, connect_timeout=5)
        except psycopg.OperationalError as error:
            return next((remedy for said, remedy in _TLS.items() if said in str(error)), None)
        await connection.close()
        return None

    @asynccontextmanager
    async def _transaction(self, tenant: str, begin: LiteralString) -> AsyncIterator[Connection]:
        """Statements are sent without waiting for each other's answers, until somebody looks at one."""
        pool = await self._pool()
        with _faults():
            connection = await self._alive(pool)
            try:
                async with self._heard_of(connection), connection.pipeline():
                    await connection.execute(begin)
                    if self._walled:
                        await connection.execute(_TAKE_ROLE)
                    await connection.execute("SELECT set_config('chat_chat.tenant', %s, true)", [tenant])
                    yield connection
                    await connection.execute("COMMIT")
            finally:  # the pool undoes what was left open, and drops what is broken
                await pool.putconn(connection)
            self._last_good = time.monotonic()

    async def _alive(self, pool: AsyncConnectionPool[Connection]) -> Connection:
        """A connection that may have been idle while the server was restarted is tried first."""
        connection = await self._connection(pool)
        if time.monotonic() - self._last_good > _IDLE:
            try:
                async with self._heard_of(connection):
                    await connection.execute("SELECT")
            except psycopg.OperationalError:
                await pool.putconn(connection)
                await pool.check()
                connection = await self._connection(pool)
            except BaseException:
                await pool.putconn(connection)
                raise
        return connection

    @asynccontextmanager
    async def _heard_of(self, connection: Connection) -> AsyncIterator[None]:
        """The driver waits for an answer for as long as the connection stands, and that of a server that hangs does."""
        loop = asyncio.get_running_loop()
        doubting: list[asyncio.Task[None]] = []
        doubt = loop.call_later(self._patience, lambda: doubting.append(loop.create_task(self._doubt(connection))))
        try:
            yield
        finally:
            doubt.cancel()
            for task in doubting:
                task.cancel()

    async def _doubt(self, connection: Connection) -> None:
        """Who is slow takes another connection meanwhile. One that hangs takes none: then it is away, and so is what
        was asked of it."""
        while True:
            try:
                other = await AsyncConnection.connect(self.url, connect_timeout=_KNOCKS)
                await other.close()
            except psycopg.errors.ConnectionTimeout:
                self._away_until = time.monotonic() + _AWAY_FOR
                with socket.socket(fileno=os.dup(connection.fileno())) as wire:
                    wire.shutdown(socket.SHUT_RDWR)
                return
            except psycopg.Error:  # it answers, if only that it is full; or its connections have ended by themselves
                pass
            await asyncio.sleep(self._patience)

    async def _connection(self, pool: AsyncConnectionPool[Connection]) -> Connection:
        began = time.monotonic()
        if began < self._away_until:
            raise LongTermUnavailable("PostgreSQL at LONGTERM_URL can't be reached")
        try:
            return await pool.getconn(_GLANCE if self._away_until > self._last_good else self._patience)
        except PoolTimeout:
            if self._last_good < began:  # nobody else got one meanwhile either: it is away, and not only busy
                self._away_until = time.monotonic() + _AWAY_FOR
            raise

    async def _pool(self) -> AsyncConnectionPool[Connection]:
        self.loop = asyncio.get_running_loop()
        pool = self._pools.get(self.loop)
        if pool is None:
            pool = self._pools[self.loop] = AsyncConnectionPool(
                self.url,
                min_size=1,
                max_size=self._size,
                open=False,
                name="longterm",
                timeout=self._patience,
                reconnect_timeout=_PATIENCE,  # then the next one who asks makes it try again
                configure=self._look,
                kwargs={"autocommit": True, "connect_timeout": 5, "application_name": "chat-chat"},
            )
            await pool.open()
        return pool

    async def _look(self, connection: Connection) -> None:
        """At a new connection: what this server has of ours."""
        # What we ask is short; compiling it first takes a hundred times as long, where the planner expects many rows.
        await connection.execute("SET statement_timeout = '60s'; SET lock_timeout = '20s'; SET jit = off")
        if not self._walled:
            asked = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s AND pg_has_role(oid, 'MEMBER'))"
            self._walled = bool((await (await connection.execute(asked, [ROLE])).fetchone() or (False,))[0])


async def counted(db: Connection, asked: str, values: Sequence[Any]) -> int:
    """How many rows a statement wrote or removed."""
    async with db.pipeline():  # which ends when its answers are there
        cursor = await db.execute(asked.encode(), values)
    return cursor.rowcount


@contextmanager
def _faults() -> Iterator[None]:
    """The edge: what the driver raises becomes LongTermUnavailable. Its own words may quote what was to be kept, and
    are left out."""
    try:
        yield
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedColumn):
        problem = "the database at LONGTERM_URL lacks tables of this version: run `chat-chat migrate`"
        raise LongTermUnavailable(problem) from None
    except psycopg.errors.InsufficientPrivilege:
        problem = f"the user of LONGTERM_URL may not use our tables: grant it the role {ROLE}"
        raise LongTermUnavailable(problem) from None
    except (PoolTimeout, TooManyRequests, PoolClosed):
        raise LongTermUnavailable("PostgreSQL at LONGTERM_URL can't be reached") from None
    except psycopg.Error as error:
        code = f" {error.sqlstate}" if error.sqlstate else ""
        raise LongTermUnavailable(f"PostgreSQL at LONGTERM_URL: {type(error).__name__}{code}") from None
