"""The free space inside a SQLite file, overwritten with zeroes.

SQLite's `secure_delete` zeroes what is deleted where it stands. A cell that it moved to another page before, as it
divides full pages and joins empty ones, stays readable where it stood: between the cells and their list. Nothing that
is in use is ever touched here, so it may be killed at any moment, and done again.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

_MAGIC = b"SQLite format 3\0"
_PART = 1024 * 1024  # bytes that are read at a time
# A page of a tree begins with its kind; what begins otherwise is a page of something long, or one that is free, and
# `secure_delete` empties these as a whole. They begin with the number of another page: 0 until 2^24 pages.
_HEADS = {2: 12, 5: 12, 10: 8, 13: 8}  # bytes of each kind's head
_MOST = 2**24  # pages
_MAPPED = slice(52, 56)  # of the file's head: whether pages tell where others belong, which look like those of a tree
_HEAD = struct.Struct(">BHHH")  # kind, first free block, cells, where the cells begin


def scrub(path: Path) -> int:
    """How many pages had something in their free space. Nobody may have the file open, and nothing may stand in a log
    beside it. What is no SQLite file, or an encrypted one, is left alone. Raises OSError."""
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        head = os.pread(file, 100, 0)
        if len(head) < 100 or not head.startswith(_MAGIC):
            return 0
        if any(head[_MAPPED]):
            return 0
        size = int.from_bytes(head[16:18], "big")
        size = 65536 if size == 1 else size
        if os.fstat(file).st_size // size > _MOST:
            return 0
        found = 0
        for start in range(0, os.fstat(file).st_size, _PART):
            part = os.pread(file, _PART, start)
            for at in range(0, len(part) - size + 1, size):
                dirty = False
                for begin, end in _free(part, at, 100 if start + at == 0 else 0, size):
                    if begin < end and part.count(0, begin, end) != end - begin:
                        os.pwrite(file, bytes(end - begin), start + begin)
                        dirty = True
                found += dirty
        if found:
            os.fsync(file)
        return found
    finally:
        os.close(file)


def _free(part: bytes, at: int, skipped: int, size: int) -> Iterator[tuple[int, int]]:
    """Where the page that begins `at` has room. `skipped` is what of it comes before its head."""
    head = _HEADS.get(part[at + skipped])
    if head is None:
        return
    _, block, cells, content = _HEAD.unpack_from(part, at + skipped)
    yield at + skipped + head + 2 * cells, at + min(size, content or 65536)
    while block and block + 4 <= size:  # each names the next, and how long it is
        following, length = struct.unpack_from(">HH", part, at + block)
        yield at + block + 4, at + min(size, block + length)
        if following and following <= block:
            return
        block = following
