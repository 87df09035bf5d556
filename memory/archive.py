"""What pruning removed, kept for 30 days: one JSON line a record, one file a person."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from config.vault import PLAIN, Locked, Safe, Vault
from memory import file_locks, keys
from memory.errors import LongTermUnavailable
from memory.facts import Fact
from memory.long_term.document import dump, plain
from processors.models import iso

KEPT_DAYS = 30

log = logging.getLogger(__name__)


class Archive:
    """`<base>/<tenant>/<user>.jsonl`. Raises LongTermUnavailable where it can't be written or read.

    `forgotten_at` says when somebody was forgotten last: of what was known before nothing is put here."""

    def __init__(
        self,
        base: Path,
        vault: Vault = PLAIN,
        forgotten_at: Callable[[str, str], datetime | None] = lambda tenant, user: None,
    ) -> None:
        self._base = base
        self._vault = vault
        self._forgotten_at = forgotten_at

    async def add(self, tenant: str, user: str, facts: Sequence[Fact], now: datetime) -> None:
        """On disk when it returns. `now`: before they were read."""
        if facts:
            await asyncio.to_thread(self._add, tenant, user, facts, now)

    async def remove(self, tenant: str, user: str, fact_ids: Collection[str]) -> int:
        """How many records were removed."""
        return await asyncio.to_thread(self._remove, tenant, user, fact_ids)

    async def expire(self, tenant: str, now: datetime) -> None:
        """Drops what has lain here for longer than 30 days, whoever it is of. Whose file can't be written now waits for
        the next time."""
        await asyncio.to_thread(self._expire, tenant, now)

    async def load(self, tenant: str, user: str) -> list[Fact]:
        return await asyncio.to_thread(self._load, tenant, user)

    async def forget(self, tenant: str, user: str) -> int:
        """The number of records removed."""
        return await asyncio.to_thread(self._forget, tenant, user)

    def _path(self, tenant: str, user: str) -> Path:
        return keys.archive_file(self._base, tenant, user)

    def _expire(self, tenant: str, now: datetime) -> None:
        """What is here was pruned within these days: far less than what is known."""
        folder = self._path(tenant, "any").parent
        for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
            try:
                self._change(tenant, path, (), now)
            except LongTermUnavailable as error:
                log.error("%s", error)

    def _add(self, tenant: str, user: str, facts: Sequence[Fact], now: datetime) -> None:
        def forgotten() -> bool:
            at = self._forgotten_at(tenant, user)
            return at is not None and at > now

        self._change(tenant, self._path(tenant, user), facts, now, forgotten)

    def _change(
        self,
        tenant: str,
        path: Path,
        facts: Sequence[Fact],
        now: datetime,
        stays_away: Callable[[], bool] = lambda: False,
    ) -> None:
        try:
            with file_locks.exclusive(path.parent, path.name):
                if stays_away():  # under the lock, which whoever forgets waits for
                    return
                known = _lines(path, self._vault.of(tenant))
                ids = {fact.id for fact in facts}
                oldest = iso(now - timedelta(days=KEPT_DAYS))
                kept = [one for one in known if one["at"] >= oldest and one["fact"].get("id") not in ids]
                if not facts and len(kept) == len(known):
                    return
                added = [{"at": iso(now), "fact": plain(fact)} for fact in facts]
                _write(path, [*kept, *added], self._vault.of(tenant))
        except OSError as error:
            raise LongTermUnavailable(f"the archive {path} can't be written: {error.strerror or error}") from error

    def _remove(self, tenant: str, user: str, fact_ids: Collection[str]) -> int:
        path = self._path(tenant, user)
        if not path.exists():
            return 0
        try:
            with file_locks.exclusive(path.parent, path.name):
                known = _lines(path, self._vault.of(tenant))
                kept = [one for one in known if one["fact"].get("id") not in fact_ids]
                if len(kept) < len(known):
                    _write(path, kept, self._vault.of(tenant))
        except OSError as error:
            raise LongTermUnavailable(f"the archive {path} can't be written: {error.strerror or error}") from error
        return len(known) - len(kept)

    def _load(self, tenant: str, user: str) -> list[Fact]:
        path = self._path(tenant, user)
        try:
            return [Fact.model_validate(one["fact"]) for one in _lines(path, self._vault.of(tenant))]
        except OSError as error:
            raise LongTermUnavailable(f"the archive {path} can't be read: {error.strerror or error}") from error

    def _forget(self, tenant: str, user: str) -> int:
        path = self._path(tenant, user)
        try:  # also where nothing is seen: somebody may be about to write it
            with file_locks.exclusive(path.parent, path.name):
                try:
                    removed = len(_lines(path, self._vault.of(tenant)))
                except Locked:  # to be removed it need not be read
                    removed = 0
                path.unlink(missing_ok=True)
                _beside(path).unlink(missing_ok=True)
        except OSError as error:
            raise LongTermUnavailable(f"the archive {path} can't be removed: {error.strerror or error}") from error
        return removed


def _lines(path: Path, safe: Safe) -> list[dict[str, Any]]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return []
    return [one for line in raw.splitlines() if (one := _parse(line, safe)) is not None]


def _parse(line: bytes, safe: Safe) -> dict[str, Any] | None:
    """None for a line that holds no archived fact."""
    try:
        one = orjson.loads(safe.open_line(line))
        Fact.model_validate(one["fact"])
        return one if isinstance(one["at"], str) else None
    except (ValueError, TypeError, KeyError):
        return None


def _beside(path: Path) -> Path:
    """Where the file is written before it takes its place; what a crash left there is the person's too."""
    return path.with_suffix(".tmp")


def _write(path: Path, lines: Sequence[object], safe: Safe) -> None:
    if not lines:
        path.unlink(missing_ok=True)
        return
    contents = b"".join(safe.seal_line(dump(line)) + b"\n" for line in lines)
    beside = _beside(path)
    descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
