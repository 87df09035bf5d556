"""Conversations that people opened by name, one small file each: Conversations of memory.conversations."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import orjson

from config.vault import PLAIN, Vault
from memory import file_locks, keys
from memory.conversations import Conversation, conversation_of, record_of
from memory.errors import LongTermUnavailable

_KNOWN = 10_000  # files whose contents are kept in mind


class ConversationFiles:
    """`<base>/<tenant>/<id>.json`; the file's time says when it was last used.

    Raises LongTermUnavailable where the folder can't be read or written.
    """

    def __init__(self, base: Path | str, vault: Vault = PLAIN) -> None:
        self._base = Path(base)
        self._vault = vault
        self._known: dict[Path, tuple[tuple[int, int, int], Conversation]] = {}

    async def open(self, new: Conversation) -> Conversation:
        return await asyncio.to_thread(self._open, new)

    async def put(self, one: Conversation) -> None:
        await asyncio.to_thread(self._put, one)

    async def get(self, tenant: str, id_: str) -> Conversation | None:
        return await asyncio.to_thread(self._read, tenant, id_)

    async def used(self, tenant: str, id_: str, now: datetime) -> None:
        await asyncio.to_thread(self._touch, tenant, id_, now)

    async def rename(self, tenant: str, id_: str, name: str) -> Conversation | None:
        return await asyncio.to_thread(self._rename, tenant, id_, name)

    async def all(self, tenant: str) -> list[Conversation]:
        return await asyncio.to_thread(self._all, tenant)

    async def remove(self, tenant: str, id_: str) -> bool:
        return await asyncio.to_thread(self._remove_all, tenant, lambda one: one.id == id_, id_) > 0

    async def forget(self, tenant: str, user: str) -> int:
        return await asyncio.to_thread(self._remove_all, tenant, lambda one: one.user == user)

    async def prune(self, tenant: str, before: datetime) -> int:
        return await asyncio.to_thread(self._remove_all, tenant, lambda one: one.used_at < before)

    async def tenants(self) -> list[str]:
        return await asyncio.to_thread(self._tenants)

    # -- in threads --------------------------------------------------------------------------------------------------

    def _folder(self, tenant: str) -> Path:
        return keys.conversation_file(self._base, tenant, "any").parent

    def _open(self, new: Conversation) -> Conversation:
        path = keys.conversation_file(self._base, new.tenant, new.id)
        with _faults(path):
            if (known := self._load(path, new.tenant)) is not None:
                return known
            with file_locks.exclusive(*keys.shared_lock(self._base, new.tenant)):
                beside = self._write_beside(path, new)
                try:
                    os.link(beside, path)
                except FileExistsError:  # somebody else was faster
                    return self._load(path, new.tenant) or new
                finally:
                    beside.unlink()
            return new

    def _put(self, one: Conversation) -> None:
        path = keys.conversation_file(self._base, one.tenant, one.id)
        with _faults(path), file_locks.exclusive(*keys.shared_lock(self._base, one.tenant)):
            self._write_beside(path, one).replace(path)

    def _tenants(self) -> list[str]:
        with _faults(self._base):
            there = self._base.iterdir() if self._base.is_dir() else ()
            return sorted(one.name for one in there if one.is_dir() and keys.TENANT_ID.match(one.name))

    def _read(self, tenant: str, id_: str) -> Conversation | None:
        path = keys.conversation_file(self._base, tenant, id_)
        with _faults(path):
            return self._load(path, tenant)

    def _touch(self, tenant: str, id_: str, now: datetime) -> None:
        path = keys.conversation_file(self._base, tenant, id_)
        with _faults(path), suppress(FileNotFoundError):
            os.utime(path, (now.timestamp(), now.timestamp()))

    def _rename(self, tenant: str, id_: str, name: str) -> Conversation | None:
        path = keys.conversation_file(self._base, tenant, id_)
        with _faults(path), file_locks.exclusive(*keys.shared_lock(self._base, tenant)):
            if (known := self._load(path, tenant)) is None:
                return None
            renamed = replace(known, name=name)
            self._write_beside(path, renamed).replace(path)
            return renamed

    def _all(self, tenant: str) -> list[Conversation]:
        folder = self._folder(tenant)
        with _faults(folder):
            names = [one.name for one in os.scandir(folder) if one.name.endswith(".json")] if folder.is_dir() else []
            found = [self._load(folder / name, tenant) for name in names]
        return sorted((one for one in found if one), key=lambda one: (one.used_at, one.id), reverse=True)

    def _remove_all(self, tenant: str, goes: Callable[[Conversation], bool], id_: str | None = None) -> int:
        looked = self._all(tenant) if id_ is None else [one for one in (self._read(tenant, id_),) if one]
        removed = 0
        for one in looked:
            if goes(one):
                path = keys.conversation_file(self._base, tenant, one.id)
                self._known.pop(path, None)
                with (
                    _faults(path),
                    suppress(FileNotFoundError),
                    file_locks.exclusive(*keys.shared_lock(self._base, tenant)),
                ):
                    path.unlink()
                    removed += 1
        if id_ is None:
            self._sweep(tenant)
        return removed

    def _sweep(self, tenant: str) -> None:
        """What whoever was killed while writing left behind holds names and words that no list shows."""
        folder = self._folder(tenant)
        if not folder.is_dir():
            return
        with _faults(folder), file_locks.exclusive(*keys.shared_lock(self._base, tenant)):
            for beside in folder.glob(".*.tmp"):
                beside.unlink()

    def _load(self, path: Path, tenant: str) -> Conversation | None:
        """None: there is none, or nothing that can be read."""
        try:
            stat = path.stat()
            mark = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if (known := self._known.get(path)) and known[0] == mark:
                return known[1]
            record = orjson.loads(self._vault.of(tenant).open(path.read_bytes()))
            used_at = datetime.fromtimestamp(stat.st_mtime, UTC)
            conversation = conversation_of(record, tenant, path.name.removesuffix(".json"), used_at)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            return None
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[path] = (mark, conversation)
        return conversation

    def _write_beside(self, path: Path, one: Conversation) -> Path:
        """A whole file of another name, with the time of the last use."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{secrets.token_hex(8)}.tmp")
        contents = self._vault.of(one.tenant).seal(orjson.dumps(record_of(one), option=orjson.OPT_INDENT_2))
        descriptor = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(contents)
        os.utime(beside, (one.used_at.timestamp(), one.used_at.timestamp()))
        return beside


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LongTermUnavailable(f"conversations in {path} can't be kept: {error.strerror or error}") from error
