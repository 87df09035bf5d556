"""One tenant's index as a file: opened, made, kept up, emptied. Blocking, for threads.

A connection lives for one piece of work. Whoever has one open shares a lock; only who throws a broken file away has it
alone, so that nobody's connection ever meets another file's log. One process at a time fills it, in short steps; what
must go at once does not wait for that.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from config.vault import PLAIN, Vault
from memory import keys, sqlite_files
from memory.errors import CatalogUnavailable, LongTermUnavailable
from memory.index import schema
from memory.index.notes import Mark, Notes
from memory.index.taking import (
    New,
    Source,
    compared,
    mark_of,
    put,
    set_compared,
    set_mark,
    set_whole,
    take,
    taken,
    whole,
)
from memory.scrubbing import scrub

log = logging.getLogger(__name__)

Progress = Callable[[int, int], None]

_STEP = 100  # persons between two chances for others to write
_LONG_NOTES = 64 * 1024  # bytes of notes that were read and are emptied
_WAIT = 10.0  # seconds for another's step
_PATIENCE = 1.0  # seconds for which whoever wants to open it waits for who waits to have it alone
_SHARE = 500  # comparing everybody takes at most one part in so many of a core, however many they are
_CHEAP = 0.02  # seconds of a core; what takes less is done whenever it is asked for
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA)
ENDING = "sqlite"
_TENANT = ""  # in the place of a user's id: what belongs to the tenant itself


class NotMade(Exception):
    """There is no index, or none that can be used: it is to be made."""


class IndexFile:
    """`base` is `DATA_DIR/index`. Raises CatalogUnavailable where the folder can't be used."""

    def __init__(self, base: Path, tenant: str, source: Source, notes: Notes, vault: Vault = PLAIN) -> None:
        self._base = base
        self._safe = vault.of(tenant)
        self._tenant = tenant
        self._source = source
        self._notes = notes
        self._broken = False  # found while it was read
        self.stopping = threading.Event()

    @contextmanager
    def open(self, *, unfinished: bool = False) -> Iterator[sqlite3.Connection]:
        """Raises NotMade where there is none that can be used, or with `unfinished` none at all."""
        with self._opened("lock") as descriptor:
            with self._alone("gate", fcntl.LOCK_EX):  # who needs it alone is not passed by
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            path = self._at()
            if not path.exists():
                raise NotMade
            try:
                with closing(self._connected(path)) as db:
                    if db.execute("PRAGMA user_version").fetchone()[0] != schema.VERSION:
                        raise NotMade
                    if not unfinished and not whole(db):
                        raise NotMade
                    yield db
            except sqlite_files.errors() as error:
                raise self._meaning(error) from error

    def behind(self) -> bool:
        """Whether somebody changed since it last looked. Raises NotMade."""
        with self.open() as db:
            return self._notes.behind(self._tenant, mark_of(db))

    def catch_up(self) -> int:
        """Takes in whoever changed; how many that were. Makes it where there is none that can be used."""
        with self._filling() as mine:
            return self._caught_up() if mine else 0

    def refresh(self, *, anew: bool = False, spare: bool = False, progress: Progress | None = None) -> int:
        """Compares everybody's files with what is in here; how many were taken in. With `spare` only whoever is known
        to have changed, where a comparison would take more than its share of the time since the last one."""
        with self._filling() as mine:
            if not mine:
                return 0
            done = self._brought_up(progress, anew=anew, spare=spare)
        if spare:  # the clean-up: also what retention took is to be gone
            with suppress(CatalogUnavailable, NotMade):
                self._scrubbed()
        return done

    def take_again(self, users: Collection[str]) -> None:
        """Also where nothing of them changed. Where there is none that can be used, it is made when it is asked."""
        with self._filling() as mine, suppress(NotMade):
            if mine:
                self._take(sorted(users), None, anew=True)

    def purge(self, users: Collection[str]) -> None:
        """See Catalog. Where it can't be told what is in it, all of it goes; it is made anew when it is asked."""
        deadline = time.monotonic() + _WAIT
        try:
            while True:
                with self.open(unfinished=True) as db:
                    news = self._notes.since(self._tenant, mark_of(db))
                    self._step(db, sorted({*users, *news.users}), None if news.everybody else news.mark, strict=True)
                    busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                gone = not busy and self._scrubbed()
                if gone and self._notes.drop(self._tenant, news.mark, everybody=news.everybody):
                    return
                if time.monotonic() > deadline:
                    raise CatalogUnavailable("others read the index all the time: it still holds what was deleted")
                time.sleep(0.02)
        except NotMade:
            self._throw_away()
            with suppress(OSError):
                keys.index_file(self._base, self._tenant, "changed").unlink(missing_ok=True)

    def renew(self) -> None:
        """Removes what was written under another key, or none: it is made anew when it is asked."""
        path = self._at()
        if any(one != path for one in sqlite_files.every(self._base, self._tenant, ENDING)):
            self._throw_away()

    # -- filling -----------------------------------------------------------------------------------------------------

    def _brought_up(self, progress: Progress | None, *, anew: bool, spare: bool) -> int:
        if spare and not anew and self._compared_lately():
            return self._caught_up()
        try:
            return self._refreshed(progress, anew=anew)
        except NotMade:  # what passed for whole was not
            return self._refreshed(progress)

    def _caught_up(self) -> int:
        try:
            with self.open() as db:
                news = self._notes.since(self._tenant, mark_of(db))
            if not news.everybody and not self._broken:
                return self._take(sorted(news.users), news.mark)
        except NotMade:
            pass
        return self._refreshed(None)

    def _compared_lately(self) -> bool:
        try:
            with self.open() as db:
                at, cost = compared(db)
        except NotMade:
            return False
        return cost > _CHEAP and 0 <= time.time() - at < _SHARE * cost

    def _refreshed(self, progress: Progress | None, *, anew: bool = False) -> int:
        began, worked = time.time(), time.thread_time()
        try:
            with self.open(unfinished=True) as db:
                if anew or self._broken or db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                    raise NotMade
        except NotMade:
            self._make()
            self._broken = False
        mark = self._notes.since(self._tenant, Mark()).mark  # first: who changes while we look is looked at again
        everybody = self._source.everybody(self._tenant)
        with self.open(unfinished=True) as db:
            known = taken(db)
        stamps = {_TENANT: self._source.stamp(self._tenant, _TENANT), **everybody}
        changed = [user for user, stamp in stamps.items() if stamp != known.get(user, "")]
        changed += sorted(known.keys() - stamps.keys())
        worked = time.thread_time() - worked
        done = self._take(changed, None, progress)
        if done < len(changed):
            return done
        with self.open(unfinished=True) as db, db:
            set_whole(db)
            set_mark(db, mark)
            set_compared(db, began, worked)
        self._tidy(mark)
        return done

    def _take(
        self, users: list[str], mark: Mark | None, progress: Progress | None = None, *, anew: bool = False
    ) -> int:
        if progress:
            progress(0, len(users))
        for start in range(0, len(users), _STEP):
            if self.stopping.is_set():
                return start
            with self.open(unfinished=True) as db:
                self._step(db, users[start : start + _STEP], None, anew=anew)
            if progress:
                progress(min(start + _STEP, len(users)), len(users))
        if mark is not None:
            with self.open(unfinished=True) as db, db:
                set_mark(db, mark)
            self._tidy(mark)
        return len(users)

    def _step(
        self, db: sqlite3.Connection, users: list[str], mark: Mark | None, *, strict: bool = False, anew: bool = False
    ) -> None:
        """One transaction, begun before anything is read: what is deleted meanwhile is taken out after it. Whom nobody
        can read now stays as they were, unless it is `strict`; the next comparison finds them again."""
        db.execute("BEGIN IMMEDIATE")
        new: New = {}
        with db:
            for user in users:
                try:
                    take(db, self._source, self._tenant, user, new, anew=anew)
                except LongTermUnavailable as error:
                    if strict:
                        raise
                    log.error("somebody is missing from the lists: %s", error)
            put(db, new)
            if mark is not None:
                set_mark(db, mark)

    def _tidy(self, mark: Mark) -> None:
        with suppress(CatalogUnavailable):
            self._notes.drop(self._tenant, mark, at_least=_LONG_NOTES)

    # -- the file ----------------------------------------------------------------------------------------------------

    def _at(self) -> Path:
        return sqlite_files.path_of(self._base, self._tenant, ENDING, self._safe)

    def _connected(self, path: Path) -> sqlite3.Connection:
        db = sqlite_files.connect(path, self._safe, make=False, timeout=_WAIT, isolation_level=None)
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA synchronous = NORMAL")
        return db

    def _make(self) -> None:
        """A new one in the place of what can't be used."""
        with self._alone("lock", fcntl.LOCK_EX):
            self._unlink()
            path = self._at()
            try:
                descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
                os.close(descriptor)
                with closing(self._connected(path)) as db:
                    db.execute(f"PRAGMA page_size = {sqlite_files.PAGE}")
                    db.execute("PRAGMA journal_mode = WAL")
                    db.executescript(f"BEGIN;{schema.TABLES}PRAGMA user_version = {schema.VERSION};COMMIT;")
            except sqlite_files.errors(OSError) as error:
                raise CatalogUnavailable(f"the index {path} can't be made: {error}") from error

    def _throw_away(self) -> None:
        with self._alone("lock", fcntl.LOCK_EX):
            self._unlink()

    def _scrubbed(self) -> bool:
        """Whether nothing that was deleted is left in it, nor beside it: not where others have it open for long. Raises
        NotMade."""
        path = self._at()
        deadline = time.monotonic() + _PATIENCE
        with self._alone("gate", fcntl.LOCK_EX), self._opened("lock") as descriptor:
            while not _had(descriptor):
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.005)
            if not path.exists():
                raise NotMade
            try:
                with closing(self._connected(path)) as db:  # closed by who is alone with it, its log goes
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                scrub(path)
            except sqlite_files.errors(OSError) as error:
                raise self._meaning(error) from error
        return True

    def _unlink(self) -> None:
        try:
            for path in sqlite_files.every(self._base, self._tenant, ENDING):
                sqlite_files.remove(path)
        except OSError as error:
            raise CatalogUnavailable(
                f"the index of tenant {self._tenant} can't be removed: {error.strerror}"
            ) from error

    def _meaning(self, error: Exception) -> Exception:
        """NotMade where it is broken, or not of the form that we gave it."""
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN:
            self._broken = True
            return NotMade()
        return CatalogUnavailable(f"the index of tenant {self._tenant} can't be used: {error}")

    @contextmanager
    def _filling(self) -> Iterator[bool]:
        """Alone with filling it, over all processes; False where we are asked to stop while we wait."""
        with self._opened("filling") as descriptor:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if self.stopping.wait(0.05):
                        yield False
                        return
            yield True

    @contextmanager
    def _alone(self, name: str, kind: int) -> Iterator[None]:
        with self._opened(name) as descriptor:
            fcntl.flock(descriptor, kind)
            yield

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        path = keys.index_file(self._base, self._tenant, name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise CatalogUnavailable(f"the index of tenant {self._tenant} can't be used: {error.strerror}") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _had(descriptor: int) -> bool:
    """Whether this file is locked now, by us alone."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
