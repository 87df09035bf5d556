"""Everything at rest brought to what the settings say now: encrypted with the current key, or plain. Works on while
others read and write, file by file under the lock of whoever writes it, and goes on where it was broken off."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from config.vault import Locked, Vault, key_of
from memory import file_locks, keys, sqlite_files
from memory.index.file import IndexFile
from memory.index.notes import Notes
from memory.library.passage_file import PassageFile
from memory.long_term.journal import sync_folder
from memory.long_term.json_files import JsonFiles
from memory.recall.vector_file import ENDING as VECTORS
from memory.recall.vector_file import VectorFile
from memory.recall.word_files import WordFiles
from processors import corrections

_OF_A_PERSON = re.compile(r"(.+)\.(json(?:\.gz|\.zst|\.tmp)?|journal)(?:\.corrupt-\d{8}T\d{6}\.\d{6}Z)?\Z")
_AREAS = ("longterm", "transcripts", "archive", "media", "conversations", "understanding")


@dataclass(frozen=True, slots=True)
class One:
    """A file. `lock`: the folder and name that its writers lock; `beside`: where it may be written before it takes its
    place, so that whoever removes the person's files finds that too."""

    path: Path
    lines: bool
    lock: tuple[Path, str]
    beside: Path


@dataclass(slots=True)
class Outcome:
    """`keys`: the ids of those that something is sealed with now; `locked`: what no key at hand opens."""

    files: int = 0
    changed: int = 0
    keys: set[str] = field(default_factory=set)
    locked: list[Path] = field(default_factory=list)

    def note(self, raw: bytes) -> None:
        if (key := key_of(raw)) is not None:
            self.keys.add(key)


class Renewal:
    """`data_dir` is DATA_DIR. Blocking."""

    def __init__(self, data_dir: Path, vault: Vault) -> None:
        self._data = data_dir
        self._vault = vault

    def tenants(self) -> list[str]:
        """Those that have anything here."""
        names = {one.name for area in _AREAS for one in _listed(self._data / area) if one.is_dir()}
        names |= {one.stem for one in _listed(self._data / "unanswered") if one.suffix == ".json"}
        names |= {one.name.partition(".")[0] for one in _listed(self._data / "index")}
        return sorted(name for name in names if keys.TENANT_ID.match(name))

    def files(self, tenant: str) -> Iterator[One]:
        """All but the databases and the corrections, which are renewed as a whole."""
        folder = self._data / "longterm" / tenant
        for path in _listed(folder):
            if found := _OF_A_PERSON.match(path.name):
                yield One(path, found[2] == "journal", (folder, found[1]), folder / f"{found[1]}.json.tmp")
        folder = self._data / "transcripts" / tenant
        for person in _folders(folder):
            for path in _listed(person):
                if path.suffix == ".jsonl":
                    yield One(path, True, (folder, person.name), path.with_suffix(".tmp"))
        folder = self._data / "archive" / tenant
        for path in _listed(folder):
            if path.suffix == ".jsonl":
                yield One(path, True, (folder, path.name), path.with_suffix(".tmp"))
        media = self._data / "media"
        for person in _folders(media / tenant):
            for path in _listed(person):
                yield One(
                    path,
                    False,
                    keys.shared_lock(media, tenant),
                    path.with_name(f".{path.name[-100:]}.{os.getpid()}.tmp"),
                )
        base = self._data / "conversations"
        for path in _listed(base / tenant):
            if path.suffix == ".json":
                yield One(path, False, keys.shared_lock(base, tenant), path.with_name(f".{path.name[-100:]}.tmp"))
        path = keys.list_file(self._data / "unanswered", tenant)
        if path.exists():
            yield One(path, False, (path.parent, tenant), path.with_name(f".{path.name}.new"))

    def renew(
        self, tenant: str, outcome: Outcome, progress: Callable[[int, int], None] = lambda done, of: None
    ) -> None:
        """All of a tenant's. What no key at hand opens stays as it is. Raises OSError."""
        safe = self._vault.of(tenant)
        files = list(self.files(tenant))
        for done, one in enumerate(files):
            progress(done, len(files))
            with file_locks.exclusive(*one.lock):
                try:
                    raw, state = one.path.read_bytes(), one.path.stat()
                except FileNotFoundError:  # folded in, pruned or forgotten meanwhile
                    continue
                outcome.files += 1
                try:
                    new = safe.renewed(raw, lines=one.lines)
                except Locked:
                    outcome.locked.append(one.path)
                    continue
                if new is not None:
                    _replace(one, new, state)
                    outcome.changed += 1
            outcome.note(raw if new is None else new)
        progress(len(files), len(files))
        folder = keys.understanding_dir(self._data / "understanding", tenant)
        outcome.changed += corrections.renew(folder, safe)
        if (folder / corrections.FILE).exists():
            outcome.files += 1
            outcome.note((folder / corrections.FILE).read_bytes())
        index = self._data / "index"
        VectorFile(index, self._vault).renew(tenant)
        WordFiles(index, self._vault).renew(tenant)
        PassageFile(index, self._vault).renew(tenant)
        source = JsonFiles(self._data / "longterm", vault=self._vault)
        IndexFile(index, tenant, source, Notes(index), self._vault).renew()

    def sealed_with(self, ids: set[str]) -> Path | None:
        """The first file that was sealed with one of these keys."""
        for tenant in self.tenants():
            for one in self.files(tenant):
                if _any_key(one.path, ids):
                    return one.path
            path = keys.understanding_dir(self._data / "understanding", tenant) / corrections.FILE
            if _any_key(path, ids):
                return path
            for path in sqlite_files.every(self._data / "index", tenant, VECTORS):
                if path.name.split(".")[1] in ids:
                    return path
            for path in _listed(self._data / "index" / tenant):
                if _any_key(path, ids):
                    return path
        return None


def _any_key(path: Path, ids: set[str]) -> bool:
    try:
        raw = path.read_bytes()
    except OSError:
        return False
    return any(b'"%s"' % one.encode() in raw or b" %s\n" % one.encode() in raw[:64] for one in ids)


def _replace(one: One, contents: bytes, state: os.stat_result) -> None:
    """In one step, on disk when it returns, with the time that it had: for some files that is when they were used."""
    descriptor = os.open(one.beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
        os.utime(one.beside, ns=(state.st_atime_ns, state.st_mtime_ns))
        one.beside.replace(one.path)
    except OSError:
        one.beside.unlink(missing_ok=True)
        raise
    sync_folder(one.path.parent)


def _listed(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if not one.name.startswith(".")) if folder.is_dir() else []


def _folders(folder: Path) -> list[Path]:
    return [one for one in _listed(folder) if one.is_dir()]
