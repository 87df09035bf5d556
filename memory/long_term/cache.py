"""The last persons read, bounded in number and bytes. Safe between threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, Protocol, TypeVar

import msgspec

from memory.long_term.events import told
from memory.long_term.many import Many
from memory.long_term.place import Mark
from memory.models import LongTermMemory

_REST = 8 * 1024  # bytes of a person beside packed events


class Sized(Protocol):
    @property
    def bytes(self) -> int:
        """About what it takes."""
        ...


E = TypeVar("E", bound=Sized)


class Entry(msgspec.Struct, frozen=True):
    """What the files said when they looked like `mark`. `memory` is never given away, only copies of it."""

    mark: Mark
    journal_end: int  # bytes of the journal that are in `memory`
    memory: LongTermMemory
    whole: bool = False  # whether the journal is known to end with a whole line: we have written that

    @property
    def bytes(self) -> int:
        events = told(self.memory)
        return _REST + events.bytes if type(events) is Many else self.mark.bytes * 5 // 4


class Cache(Generic[E]):
    """`max_bytes` is about what is held takes in memory."""

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._entries: OrderedDict[tuple[str, str], tuple[E, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str]) -> E | None:
        with self._lock:
            held = self._entries.get(key)
            if held is None:
                return None
            self._entries.move_to_end(key)
            return held[0]

    def held(self, key: tuple[str, str]) -> E | None:
        """`get` of who was got a moment ago, and is among the last anyway."""
        found = self._entries.get(key)
        return found[0] if found is not None else None

    def put(self, key: tuple[str, str], entry: E) -> None:
        size = entry.bytes
        with self._lock:
            self._take(key)
            if size > self._max_bytes:  # everybody else would go for one who can't be held either
                return
            self._entries[key] = entry, size
            self._bytes += size
            while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
                self._take(next(iter(self._entries)))

    def drop(self, key: tuple[str, str]) -> None:
        with self._lock:
            self._take(key)

    def _take(self, key: tuple[str, str]) -> None:
        held = self._entries.pop(key, None)
        if held is not None:
            self._bytes -= held[1]
