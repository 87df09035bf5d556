"""When each conversation last had something put into the inbox, known to all HTTP processes of one data directory, and
after a kill -9 of any of them: a small table in a mapped file. Conversations whose hashes meet share an entry.
"""

from __future__ import annotations

import hashlib
import logging
import math
import mmap
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

log = logging.getLogger(__name__)

_SLOTS = 1 << 16
_CELL = 8  # bytes: a float
_BEGUN = hashlib.sha256()  # a copy has its algorithm: the library looks it up for each that is made anew

Noted = tuple[int, float, float]  # a conversation's place, what stands there now and what stood there before


class LastPuts:
    """`path` is made when it is missing; where it can't be, the table is this process's alone."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._at = memoryview(_mapped(path)).cast("d")  # of the inbox itself, then of conversations

    def note(self, conversations: Sequence[str]) -> list[Noted]:
        """Something of each is about to be put."""
        now, slots = self._clock(), [_slot(name) for name in conversations]
        noted = [(slot, now, self._at[slot]) for slot in slots]
        for slot in slots:
            self._at[slot] = now
        return noted

    def take_back(self, noted: Sequence[Noted]) -> None:
        """Nothing was put after all. What others noted since stays."""
        for slot, now, before in noted:
            if self._at[slot] == now:
                self._at[slot] = before

    def note_contact(self) -> None:
        """The inbox answered just now."""
        self._at[0] = self._clock()

    def forget_contact(self) -> None:
        """From now on, whatever was ever put counts as recent."""
        self._at[0] = 0.0

    def recent(self, conversation: str, seconds: float, written_at: float = math.inf) -> bool:
        """Whether something was put less than `seconds` before the inbox was last heard of: it may wait there still,
        however long the inbox has been away since. Or before `written_at`, when a message was written that comes only
        now: it may be what was put."""
        put_at = self._at[_slot(conversation)]
        return put_at > 0 and put_at > min(self._at[0], written_at) - seconds


def _slot(conversation: str) -> int:
    """The first slot is for the inbox itself."""
    digest = _BEGUN.copy()
    digest.update(conversation.encode())
    return 1 + int.from_bytes(digest.digest()[:4]) % (_SLOTS - 1)


def _mapped(path: Path) -> mmap.mmap | bytearray:
    size = _SLOTS * _CELL
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(file).st_size < size:
                # Its blocks are taken now: a write into a hole of a full disk would kill the process.
                os.posix_fallocate(file, 0, size) if hasattr(os, "posix_fallocate") else os.write(file, bytes(size))
            return mmap.mmap(file, size)
        finally:
            os.close(file)
    except (OSError, ValueError) as error:
        log.warning("what was put into the inbox lately is known to this process alone: %s", error)
        return bytearray(size)
