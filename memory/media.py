"""What people sent besides words: one file each, under `<base>/<tenant>/<user>/`."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path

import aiofiles

from config.vault import PLAIN, Damaged, Vault
from memory import file_locks, keys
from memory.errors import LongTermUnavailable

_WORDS = ".words"  # beside a recording: what is said in it


class MediaFiles:
    """`name` names the message and is escaped here; the file's suffix (`jpg`, `ogg`) tells its type.

    Raises LongTermUnavailable where the folder can't be read or written.
    """

    def __init__(self, base: Path | str, vault: Vault = PLAIN) -> None:
        self._base = Path(base)
        self._vault = vault

    async def save(self, tenant: str, user: str, name: str, suffix: str, data: bytes) -> Path:
        """On disk when it returns, whole or not at all."""
        return await asyncio.to_thread(self._save, tenant, user, f"{keys.escape(name)}.{suffix}", data)

    async def read(self, tenant: str, path: Path) -> bytes:
        """What `save` or `find` gave the path of."""
        with _faults(path):
            async with aiofiles.open(path, "rb") as file:
                sealed = await file.read()
        return await asyncio.to_thread(self._opened, tenant, path, sealed)

    async def save_words(self, tenant: str, path: Path, words: str) -> None:
        """Keeps beside a recording what is said in it."""
        beside = path.name + _WORDS
        await asyncio.to_thread(self._write, tenant, path.with_name(beside), words.encode("utf-8", "replace"))

    async def find(self, tenant: str, user: str, name: str) -> tuple[Path, str | None] | None:
        """The message's file, and the words of a recording that was understood; None: there is none."""
        return await asyncio.to_thread(self._find, tenant, user, keys.escape(name))

    async def remove(self, tenant: str, user: str, file: str) -> int:
        """Removes one message's file, by the file's name, and its words; how many files that were."""
        return await asyncio.to_thread(self._remove, tenant, user, file)

    async def prune(self, tenant: str, before: datetime) -> int:
        """Removes what came before; the number of files removed."""
        return await asyncio.to_thread(self._prune, tenant, before)

    async def forget(self, tenant: str, user: str) -> int:
        """Removes all of a person's files; how many there were."""
        return await asyncio.to_thread(self._forget, tenant, user)

    # -- in threads --------------------------------------------------------------------------------------------------

    def _save(self, tenant: str, user: str, file: str, data: bytes) -> Path:
        path = keys.media_dir(self._base, tenant, user) / file
        self._write(tenant, path, data)
        return path

    def _opened(self, tenant: str, path: Path, sealed: bytes) -> bytes:
        with _faults(path):
            try:
                return self._vault.of(tenant).open(sealed)
            except Damaged as error:
                raise LongTermUnavailable(f"{path}: {error}: put it back from a backup") from error

    def _write(self, tenant: str, path: Path, data: bytes) -> None:
        with _faults(path):
            data = self._vault.of(tenant).seal(data)
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_name(f".{path.name[-100:]}.{os.getpid()}.tmp")
            beside.touch(0o600)
            beside.write_bytes(data)
            beside.replace(path)

    def _find(self, tenant: str, user: str, name: str) -> tuple[Path, str | None] | None:
        folder = keys.media_dir(self._base, tenant, user)
        with _faults(folder):
            files = folder.iterdir() if folder.is_dir() else ()
            path = next((one for one in files if one.stem == name and one.suffix != _WORDS), None)
            if path is None:
                return None
            words = path.with_name(path.name + _WORDS)
            return path, self._opened(tenant, words, words.read_bytes()).decode(
                "utf-8", "replace"
            ) if words.exists() else None

    def _remove(self, tenant: str, user: str, file: str) -> int:
        folder = keys.media_dir(self._base, tenant, user)
        if not folder.is_dir():
            return 0
        with _faults(folder), self._locked(tenant):
            found = [one for one in (folder / Path(file).name, folder / (Path(file).name + _WORDS)) if one.is_file()]
            for one in found:
                one.unlink()
        return len(found)

    def _prune(self, tenant: str, before: datetime) -> int:
        folder = keys.media_dir(self._base, tenant, "any").parent
        if not folder.is_dir():
            return 0
        removed, oldest = 0, before.timestamp()
        with _faults(folder):
            found = [path for person in os.listdir(folder) for path in _older(folder / person, oldest)]
            with self._locked(tenant) if found else nullcontext():
                for path in found:
                    if _age(path) < oldest:  # nobody wrote it anew
                        path.unlink(missing_ok=True)
                        removed += 1
        return removed

    def _forget(self, tenant: str, user: str) -> int:
        folder = keys.media_dir(self._base, tenant, user)
        if not folder.is_dir():
            return 0
        with _faults(folder), self._locked(tenant):
            count = sum(1 for _ in folder.iterdir())
            shutil.rmtree(folder)
        return count

    def _locked(self, tenant: str) -> AbstractContextManager[None]:
        """What is removed is not put back by whoever writes the same file anew."""
        return file_locks.exclusive(*keys.shared_lock(self._base, tenant))


def _older(folder: Path, oldest: float) -> list[Path]:
    """The files that were written before then."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return [path for name in os.listdir(folder) if _age(path := folder / name) < oldest]
    return []


def _age(path: Path) -> float:
    """When it was written; of one that is gone, never."""
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        return math.inf


@contextmanager
def _faults(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LongTermUnavailable(f"media in {place} can't be reached: {error.strerror or error}") from error
