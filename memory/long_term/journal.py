"""The newest lines of a person's memory, appended beside the file until they are folded in. One JSON object a line."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import orjson

from config.vault import PLAIN, Safe
from memory.long_term.document import Document, named

_LISTS = ("events", "facts", "episodes", "procedures")
_NO_SAFE = PLAIN.of("")


@dataclass(frozen=True, slots=True)
class Read:
    lines: list[Document]
    unreadable: int  # lines that are whole but broken
    end: int  # bytes read: up to the last line's end


def append(path: str, lines: bytes) -> tuple[int, int]:
    """Adds whole lines with one write and has them on disk when it returns; the journal's inode and new size.

    The caller holds the user's lock. Raises OSError; the journal is then as it was before. A line that a crash cut
    short is ended first, so that it spoils no other.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        before = os.fstat(descriptor)
        size = before.st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        _add(descriptor, size, b"\n" + lines if torn else lines)
        if size == 0:
            sync_folder(os.path.dirname(path))
        return before.st_ino, size + torn + len(lines)
    finally:
        os.close(descriptor)


def grown(path: str, known: tuple[int, int], lines: bytes) -> tuple[int, int] | None:
    """`append` to a journal that was left with this inode and size, and with a whole line at its end. None: it is
    another one by now, and nothing was added."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        stat = os.fstat(descriptor)
        if (stat.st_ino, stat.st_size) != known:
            return None
        _add(descriptor, stat.st_size, lines)
        return stat.st_ino, stat.st_size + len(lines)
    finally:
        os.close(descriptor)


def _add(descriptor: int, size: int, lines: bytes) -> None:
    try:
        if (done := os.write(descriptor, lines)) < len(lines):
            _write_all(descriptor, lines[done:])
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def read(path: str, start: int = 0, safe: Safe = _NO_SAFE) -> Read:
    """The lines from byte `start` on; none when there is no journal. A last line without its end is read if whole.
    Raises OSError, also where a line is sealed with a key that is not at hand."""
    try:
        with open(path, "rb") as file:
            file.seek(start)
            raw = file.read()
    except FileNotFoundError:
        return Read([], 0, 0)
    lines: list[Document] = []
    unreadable = 0
    whole, _, tail = raw.rpartition(b"\n")
    for line in whole.splitlines():
        parsed = _parse(line, safe)
        if parsed is not None:
            lines.append(parsed)
        elif line.strip():
            unreadable += 1
    end = start + len(raw) - len(tail)
    if tail and (last := _parse(tail, safe)) is not None:
        lines.append(last)
        end += len(tail)
    return Read(lines, unreadable, end)


def sync_folder(folder: Path | str) -> None:
    """Makes a file's coming or going in this folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _parse(line: bytes, safe: Safe) -> Document | None:
    try:
        value = orjson.loads(safe.open_line(line))
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("attributes", {}), dict):
        return None
    if not named(value):
        return None
    for name in _LISTS:
        for item in value.get(name, ()):  # a list: see `named`
            if not isinstance(item, dict):
                return None
    return value


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
