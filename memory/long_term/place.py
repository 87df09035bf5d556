"""Where a person's long-term memory lies, and how its files are read and written whole. Blocking; the caller locks."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

import zstandard

from config.vault import PLAIN, Damaged, Safe
from memory import keys
from memory.long_term.journal import sync_folder

Compression = Literal["none", "gzip", "zstd"]

ENDINGS: dict[Compression, str] = {"none": "", "gzip": ".gz", "zstd": ".zst"}

_ALL = (*(f".json{ending}" for ending in ENDINGS.values()), ".journal")

FileMark = tuple[int, int, int]  # inode, time of change in ns, size


@dataclass(frozen=True, slots=True)
class Mark:
    """What a look at the folder tells without opening a file: equal marks, equal contents."""

    file: Path | None
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
        return "" if self.nothing else f"{self.file.name if self.file else ''} {self.of_file} {self.of_journal}"


class Place:
    """The files of one person, or with the user id "" the tenant's own. `name` is their common stem and names the
    person within the tenant's folder; what is written goes through `safe`."""

    def __init__(self, base: Path, tenant: str, user: str, safe: Safe | None = None) -> None:
        self.safe = safe or PLAIN.of(tenant)
        plain = keys.longterm_file(base, tenant, user) if user else keys.tenant_file(base, tenant)
        self.folder = plain.parent
        self.name = plain.name.removesuffix(".json")
        self.journal = self.folder / f"{self.name}.journal"
        self._kinds = {self.folder / f"{plain.name}{ending}": kind for kind, ending in ENDINGS.items()}

    def mark(self) -> Mark:
        found: list[tuple[int, Path, FileMark]] = []
        for path in self._kinds:
            if (stat := _stat(path)) is not None:
                found.append((stat.st_mtime_ns, path, (stat.st_ino, stat.st_mtime_ns, stat.st_size)))
        journal = _stat(self.journal)
        newest = max(found, default=None)
        return Mark(
            newest[1] if newest else None,
            newest[2] if newest else None,
            (journal.st_ino, journal.st_size) if journal else None,
        )

    def kind(self, path: Path) -> Compression:
        return self._kinds[path]

    def read(self, path: Path) -> tuple[bytes, bool]:
        """The contents unpacked, and whether they were whole: of a damaged archive what could be unpacked."""
        return unpacked(path, self.safe)

    def write(self, contents: bytes, kind: Compression) -> None:
        """Replaces the file in one step, on disk when it returns. Other kinds of it go afterwards."""
        target = next(path for path, of in self._kinds.items() if of == kind)
        if kind == "gzip":
            contents = gzip.compress(contents, compresslevel=6, mtime=0)
        elif kind == "zstd":
            contents = zstandard.ZstdCompressor(level=6, write_checksum=True).compress(contents)
        contents = self.safe.seal(contents)
        beside = self.folder / f"{self.name}.json.tmp"  # one name is enough: the lock admits one writer
        descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(contents)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        except OSError:
            beside.unlink(missing_ok=True)
            raise
        sync_folder(self.folder)
        for path in self._kinds:
            if path != target:
                path.unlink(missing_ok=True)

    def set_aside(self, path: Path) -> Path:
        """Renames a file that can't be read to `<name>.corrupt-<time>`; nothing is ever overwritten."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        aside = path.with_name(f"{path.name}.corrupt-{stamp}")
        path.rename(aside)
        return aside

    def all_files(self) -> list[Path]:
        """Every file of this person and of nobody else: also unfinished and broken ones."""
        own = re.compile(
            re.escape(self.name) + r"\.(?:json(?:\.gz|\.zst|\.tmp)?|journal)(?:\.corrupt-\d{8}T\d{6}\.\d{6}Z)?\Z"
        )
        try:
            return sorted(path for path in self.folder.iterdir() if own.match(path.name))
        except FileNotFoundError:
            return []


def unpacked(path: Path, safe: Safe) -> tuple[bytes, bool]:
    """See Place.read. Raises OSError, also for a file that is sealed with a key that is not at hand."""
    try:
        raw = safe.open(path.read_bytes())
    except Damaged:
        return b"", False
    if path.suffix == ENDINGS["gzip"]:
        return _gunzip(raw)
    return _unzstd(raw) if path.suffix == ENDINGS["zstd"] else (raw, True)


class Seen(NamedTuple):
    """What a look into a tenant's folder tells of one user."""

    path: Path  # the file, or the journal where there is none yet
    stamp: str  # of the user's mark


def seen(folder: Path) -> dict[str, Seen]:
    """By the stem of the file's name: everybody of whom something is kept. What each one's Place would say, at the cost
    of one look at each file."""
    files: dict[str, list[tuple[int, Path, FileMark]]] = {}
    journals: dict[str, tuple[Path, tuple[int, int]]] = {}
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
            stem, path = name.removesuffix(ending), folder / name
            if ending == ".journal":
                journals[stem] = path, (stat.st_ino, stat.st_size)
            else:
                of_file = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
                files.setdefault(stem, []).append((stat.st_mtime_ns, path, of_file))
    out: dict[str, Seen] = {}
    for stem in files.keys() | journals.keys():
        newest, journal = max(files.get(stem, ()), default=None), journals.get(stem)
        mark = Mark(newest[1] if newest else None, newest[2] if newest else None, journal[1] if journal else None)
        out[stem] = Seen(newest[1] if newest else journals[stem][0], mark.stamp)
    return out


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


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
