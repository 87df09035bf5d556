"""Where a person's long-term memory lies, and how its files are read and written whole. Blocking; the caller locks."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import zstandard

from config.vault import PLAIN, Damaged, Safe
from memory import file_locks, keys
from memory.long_term import journal

Compression = Literal["none", "gzip", "zstd"]

ENDINGS: dict[Compression, str] = {"none": "", "gzip": ".gz", "zstd": ".zst"}

_ENDINGS = tuple(ENDINGS.values())
_ALL = (*(f".json{ending}" for ending in ENDINGS.values()), ".journal")

FileMark = tuple[int, int, int]  # inode, time of change in ns, size


class Mark(msgspec.Struct, frozen=True, gc=False):
    """What a look at the folder tells without opening a file: equal marks, equal contents."""

    file: str | None
    of_file: FileMark | None
    of_journal: tuple[int, int] | None  # inode, size: a journal only ever grows

    @property
    def nothing(self) -> bool:
        return self.file is None and self.of_journal is None

    @property
    def bytes(self) -> int:
        return (self.of_file[2] if self.of_file else 0) + (self.of_journal[1] if self.of_journal else 0)

    @property
    def stamp(self) -> str:
        return "" if self.nothing else f"{os.path.basename(self.file or '')} {self.of_file} {self.of_journal}"


class Place:
    """The files of one person, or with the user id "" the tenant's own. `name` is their common stem and names the
    person within the tenant's folder; what is written goes through `safe`. Paths are plain text here, as those of
    pathlib cost more than a look at them.

    A look takes no lock. So it begins with the journal: who folds it in writes the file first, and a look that met the
    file as it was and then no journal any more would know of neither."""

    __slots__ = ("_file", "_folder", "journal", "lock", "name", "safe")

    def __init__(self, base: Path | str, tenant: str, user: str, safe: Safe | None = None) -> None:
        self.safe = safe or PLAIN.of(tenant)
        self._folder, self.name = keys.longterm_place(base, tenant, user)
        self._file = f"{self._folder}/{self.name}.json"
        self.journal = f"{self._folder}/{self.name}.journal"
        self.lock = file_locks.lock_file(self._folder, self.name)  # see `file_locks.taken`

    @property
    def folder(self) -> Path:
        return Path(self._folder)

    @property
    def named(self) -> str:
        """For messages."""
        return f"{self._folder}/{self.name}"

    def exclusive(self) -> AbstractContextManager[None]:
        """The person's lock, alone."""
        return file_locks.exclusive(self._folder, self.name)

    def shared(self) -> AbstractContextManager[None]:
        """The person's lock, beside other readers."""
        return file_locks.shared(self._folder, self.name)

    def still(self, mark: Mark) -> bool:
        """Whether the files that `mark` is of are as they were. Where the file is, no other kind of it can be newer:
        see `write`."""
        if mark.file is None:
            return self.mark() == mark
        grows = _stat(self.journal)
        return ((grows.st_ino, grows.st_size) if grows else None) == mark.of_journal and _is(mark.file, mark.of_file)

    def grown(self, mark: Mark, lines: bytes) -> tuple[int, int] | None:
        """The journal's inode and new size with these lines, where the files are `still` those of `mark`; None: they
        are not, and nothing was added. The caller knows that the journal ends with a whole line."""
        if mark.file is None or mark.of_journal is None or not _is(mark.file, mark.of_file):
            return None
        return journal.grown(self.journal, mark.of_journal, lines)

    def empty(self) -> bool:
        """`mark().nothing`, for less where that is so; a disk that can't tell counts as one that has nothing."""
        access, there, file = os.access, os.F_OK, self._file
        if access(self.journal, there):
            return False
        for ending in _ENDINGS:  # noqa: SIM110 - a generator costs as much as a look
            if access(file + ending, there):
                return False
        return True

    def mark(self) -> Mark:
        newest: tuple[int, str, FileMark] | None = None
        grows = _stat(self.journal)
        for ending in _ENDINGS:
            path = self._file + ending
            if ending and not os.access(path, os.F_OK):  # nearly never there: half of what an error costs
                continue
            try:
                stat = os.stat(path)
            except FileNotFoundError:
                continue
            found = stat.st_mtime_ns, path, (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            newest = max(newest, found) if newest is not None else found
        return Mark(
            newest[1] if newest else None,
            newest[2] if newest else None,
            (grows.st_ino, grows.st_size) if grows else None,
        )

    def kind(self, path: str) -> Compression:
        return next(kind for kind, ending in ENDINGS.items() if path == self._file + ending)

    def read(self, path: str) -> tuple[bytes, bool]:
        """The contents unpacked, and whether they were whole: of a damaged archive what could be unpacked."""
        return unpacked(path, self.safe)

    def write(self, contents: bytes, kind: Compression, *, first: bool = False) -> None:
        """Replaces the file in one step, on disk when it returns. A file of another kind says the same before it goes,
        so that whoever knows that one misses nothing at any moment; `first`: there is none of any kind."""
        others = (
            [] if first else [one for one in ENDINGS if one != kind and os.access(self._file + ENDINGS[one], os.F_OK)]
        )
        for other in others:
            self._replace(contents, other)
        self._replace(contents, kind)
        journal.sync_folder(self._folder)
        for other in others:
            _unlink(self._file + ENDINGS[other])

    def _replace(self, contents: bytes, kind: Compression) -> None:
        if kind == "gzip":
            contents = gzip.compress(contents, compresslevel=6, mtime=0)
        elif kind == "zstd":
            contents = zstandard.ZstdCompressor(level=6, write_checksum=True).compress(contents)
        contents = self.safe.seal(contents)
        beside = f"{self._file}.tmp"  # one name is enough: the lock admits one writer
        descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self._file + ENDINGS[kind])
        except OSError:
            _unlink(beside)
            raise

    def drop_journal(self) -> None:
        _unlink(self.journal)

    def set_aside(self, path: str) -> str:
        """A file that can't be read stays as `<name>.corrupt-<time>`, the name it gives back; nothing is ever
        overwritten. It keeps its own name too, where the file system can do that, until what takes its place is on
        disk: a full disk and a crash leave what can still be read of it."""
        aside = f"{path}.corrupt-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S.%fZ')}"
        try:
            os.link(path, aside)
        except OSError:
            os.rename(path, aside)
        return os.path.basename(aside)

    def put_back(self, path: str, aside: str) -> None:
        """What was to take its place can't be written: it has its own name, and no other."""
        aside = f"{self._folder}/{aside}"
        if not os.path.exists(path):
            os.rename(aside, path)
        elif os.path.samefile(path, aside):
            os.unlink(aside)

    def all_files(self) -> list[Path]:
        """Every file of this person and of nobody else: also unfinished and broken ones."""
        own = re.compile(
            re.escape(self.name) + r"\.(?:json(?:\.gz|\.zst|\.tmp)?|journal)(?:\.corrupt-\d{8}T\d{6}\.\d{6}Z)?\Z"
        )
        try:
            return sorted(path for path in self.folder.iterdir() if own.match(path.name))
        except FileNotFoundError:
            return []


def unpacked(path: str, safe: Safe) -> tuple[bytes, bool]:
    """See Place.read. Raises OSError, also for a file that is sealed with a key that is not at hand."""
    with open(path, "rb", buffering=0) as file:
        raw = file.readall()
    try:
        raw = safe.open(raw)
    except Damaged:
        return b"", False
    if path.endswith(ENDINGS["gzip"]):
        return _gunzip(raw)
    return _unzstd(raw) if path.endswith(ENDINGS["zstd"]) else (raw, True)


class Seen(NamedTuple):
    """What a look into a tenant's folder tells of one user."""

    path: Path  # the file, or the journal where there is none yet
    stamp: str  # of the user's mark


def seen(folder: Path) -> dict[str, Seen]:
    """By the stem of the file's name: everybody of whom something is kept. What each one's Place would say, at the cost
    of one look at each file."""
    files: dict[str, list[tuple[int, str, FileMark]]] = {}
    journals: dict[str, tuple[str, tuple[int, int]]] = {}
    if not folder.is_dir():
        return {}
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            ending = next((one for one in _ALL if name.endswith(one)), None)
            if ending is None or name.startswith(("_", ".")):
                continue
            try:
                stat = entry.stat()
            except FileNotFoundError:
                continue
            stem, path = name.removesuffix(ending), entry.path
            if ending == ".journal":
                journals[stem] = path, (stat.st_ino, stat.st_size)
            else:
                of_file = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
                files.setdefault(stem, []).append((stat.st_mtime_ns, path, of_file))
    out: dict[str, Seen] = {}
    for stem in files.keys() | journals.keys():
        newest, journal = max(files.get(stem, ()), default=None), journals.get(stem)
        mark = Mark(newest[1] if newest else None, newest[2] if newest else None, journal[1] if journal else None)
        out[stem] = Seen(Path(newest[1] if newest else journals[stem][0]), mark.stamp)
    return out


def _is(path: str, found: FileMark | None) -> bool:
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return False
    return (stat.st_ino, stat.st_mtime_ns, stat.st_size) == found


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _gunzip(raw: bytes) -> tuple[bytes, bool]:
    unpacker = zlib.decompressobj(wbits=31)
    out = bytearray()
    for start in range(0, len(raw), 4096):
        try:
            out += unpacker.decompress(raw[start : start + 4096])
        except zlib.error:
            return bytes(out), False
    return bytes(out), unpacker.eof


def _unzstd(raw: bytes) -> tuple[bytes, bool]:
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    out = bytearray()
    for start in range(0, len(raw), 4096):
        try:
            out += unpacker.decompress(raw[start : start + 4096])
        except zstandard.ZstdError:
            return bytes(out), False
    return bytes(out), unpacker.eof
