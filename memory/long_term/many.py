"""A person's events where there are many: the newest as they are, the others packed, in a tenth of the memory. What a
turn asks of all of them (whether one is known, how many, the newest, the important ones) unpacks none or a few."""

from __future__ import annotations

import math
import sys
import threading
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from operator import le
from typing import overload

import msgspec
import zstandard

from memory.long_term.event import Event
from memory.recall.entry import Line
from memory.retention import Retention

AS_THEY_ARE = 100  # the newest, at the least; a turn sums up a hundred
_BLOCK = 16  # events that are packed together: one of them costs the unpacking of all
_MORE = 3 * _BLOCK  # beyond the newest, until they are packed
_DIGEST = 8
_read = msgspec.json.Decoder(list[Event])
_growing = threading.Lock()


class _Growth:
    """What stands at a place in it stands there for good."""

    def __init__(self, end: int) -> None:
        self.end = end


class Many(Line[Event]):
    """Never changed: with what comes it is another one, of the same line where what was there is still there or went
    from the beginning. See Line."""

    __slots__ = ("_blocks", "_ids", "_line", "_newest", "_packed_from", "_scores", "_times", "first", "ordered")

    def __init__(self, known: Sequence[Event], times: Sequence[float] | None = None) -> None:
        """`times`: theirs, where somebody asked for them already."""
        self.first = self._packed_from = 0
        self._line = _Growth(len(known))
        self._blocks: list[bytes] = []
        self._newest: list[Event] = list(known)
        self._times = array("d", times or [one.timestamp.timestamp() for one in known])
        self._scores = array("d", [one.importance_score for one in known])
        self._ids = digests(known)
        self.ordered = all(map(le, self._times, self._times[1:]))
        self._pack()

    def __len__(self) -> int:
        return len(self._times)

    @property
    def bytes(self) -> int:
        """About what it takes."""
        return sum(map(len, self._blocks)) + 24 * len(self) + 700 * len(self._newest)

    def placed(self, place: int, name: str) -> Event | Placed:
        """The one there, of which the id is known."""
        return self[place] if place >= len(self) - len(self._newest) else Placed(self, place, name)

    def follows(self, other: object) -> bool:
        """Whether it is the other one, with some gone from the beginning and some come at the end."""
        if type(other) is not Many or other._line is not self._line:
            return False
        return other.first <= self.first and other.first + len(other) <= self.first + len(self)

    def knows(self, event_id: str | None) -> bool:
        return among(self._ids, event_id)

    def newest(self, most: int) -> list[Event]:
        left = len(self) - most
        if 0 < most <= len(self._newest):
            return self._newest[-most:]
        return [self[at] for at in range(max(0, left), len(self))] if most > 0 else []

    def important(self, least: float, most: int) -> list[Event]:
        """The newest of at least that score, by their times."""
        places = [at for at, score in enumerate(self._scores) if score >= least] if not self.ordered else []
        if self.ordered:
            scores = self._scores
            for at in range(len(scores) - 1, -1, -1):
                if scores[at] >= least:
                    places.append(at)
                    if len(places) == most:
                        break
            places.reverse()
        else:
            places = sorted(places, key=self._times.__getitem__)[-most:]
        return [self[at] for at in places]

    def grown(self, new: Sequence[Event], now: datetime, rules: Retention) -> Many | None:
        """With these behind it, and what retention takes gone from the beginning; None: that takes others away, as they
        are in no order."""
        times = self._times + array("d", [one.timestamp.timestamp() for one in new])
        last = max(0, len(self) - 1)
        ordered = self.ordered and all(map(le, times[last:], times[last + 1 :]))
        oldest = (now - timedelta(days=rules.days)).timestamp() if rules.days else -math.inf
        old = bisect_left(times, oldest) if ordered else sum([at < oldest for at in times])
        gone = max(old, len(times) - (rules.max_events or len(times)))
        if not (ordered or newer_behind(times, gone)):
            return None
        out = Many.__new__(Many)
        with _growing:
            if self._line.end == self.first + len(self):
                out._line = self._line
                out._line.end += len(new)
            else:  # another one grew from here
                out._line = _Growth(self.first + len(self) + len(new))
        out._times, out.ordered = times, ordered
        out._scores = self._scores + array("d", [one.importance_score for one in new])
        out._ids = self._ids + digests(new)
        out._blocks, out._packed_from, out._newest = self._blocks, self._packed_from, [*self._newest, *new]
        out.first = self.first
        out._go(gone)
        out._pack()
        return out

    @overload
    def __getitem__(self, at: int) -> Event: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Event]: ...

    def __getitem__(self, at: int | slice) -> Event | Sequence[Event]:
        count, newest = len(self._times), self._newest
        packed = count - len(newest)
        if isinstance(at, slice):
            begin, end, step = at.indices(count)
            if begin >= packed and step == 1:
                return newest[begin - packed : max(begin, end) - packed]
            return list(self)[at]
        at = range(count)[at]
        if at >= packed:
            return newest[at - packed]
        block, place = divmod(self.first + at - self._packed_from, _BLOCK)
        return _unpacked(self._blocks[block])[place]

    def __iter__(self) -> Iterator[Event]:
        skipped = self.first - self._packed_from
        for block in self._blocks:
            yield from _unpacked(block)[skipped:]
            skipped = 0
        yield from self._newest

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def _go(self, count: int) -> None:
        """From the beginning."""
        if count <= 0:
            return
        packed = len(self) - len(self._newest)
        self._newest = self._newest[max(0, count - packed) :]
        self._times, self._scores = self._times[count:], self._scores[count:]
        self._ids = self._ids[_DIGEST * count :]
        self.first += count
        if count >= packed:
            self._blocks, self._packed_from = [], self.first
        else:
            blocks = (self.first - self._packed_from) // _BLOCK
            self._blocks = self._blocks[blocks:]
            self._packed_from += blocks * _BLOCK

    def _pack(self) -> None:
        count = (len(self._newest) - AS_THEY_ARE) // _BLOCK * _BLOCK
        if count < _MORE:
            return
        if not self._blocks:
            self._packed_from = self.first
        packer = zstandard.ZstdCompressor(level=1)
        old, newest = self._newest[:count], self._newest[count:]
        packed = [packer.compress(msgspec.json.encode(old[at : at + _BLOCK])) for at in range(0, count, _BLOCK)]
        self._blocks = [*self._blocks, *packed]
        self._newest = _read.decode(msgspec.json.encode(newest))  # else they hold on to all that they were read from


class Placed(msgspec.Struct, frozen=True, gc=False):
    """An event by its place; read when somebody asks for more than its id. What `memory.recall.entry.Findable` asks of
    it."""

    many: Many
    place: int
    id: str

    @property
    def _event(self) -> Event:
        return self.many[self.place]

    @property
    def kind(self) -> str:
        return "event"

    @property
    def text(self) -> str:
        return self._event.text

    @property
    def found_by(self) -> str:
        return self._event.found_by

    @property
    def weight(self) -> float:
        return self._event.weight

    @property
    def at(self) -> datetime:
        return self._event.at

    @property
    def by(self) -> str:
        return ""

    @property
    def mark(self) -> int:
        return self._event.mark


def newer_behind(times: Sequence[float], count: int) -> bool:
    """Whether none of the first ones is newer than what stands behind them."""
    return not 0 < count < len(times) or max(times[:count]) <= min(times[count:])


def _unpacked(block: bytes) -> list[Event]:
    return _read.decode(zstandard.ZstdDecompressor().decompress(block))


def digests(some: Sequence[Event]) -> bytes:
    """What their ids are known by."""
    if len(some) == 1:  # each turn's
        return digest(some[0].event_id)
    return array("q", [-1 if (name := one.event_id) is None else hash(name) for one in some]).tobytes()


def among(ids: bytes, event_id: str | None) -> bool:
    """Whether one of those whose `digests` they are has this id."""
    return event_id is not None and holds(ids, digest(event_id))


def holds(ids: bytes, wanted: bytes) -> bool:
    """Whether that digest is one of them."""
    at = -1
    while (at := ids.find(wanted, at + 1)) >= 0:
        if at % _DIGEST == 0:
            return True
    return False


def digest(event_id: str | None) -> bytes:
    """What an id is known by: Python's own, which each process keys anew, so that nobody can choose ids that are taken
    for one another. No text has that of -1: nobody asks for what has no id."""
    return (-1 if event_id is None else hash(event_id)).to_bytes(_DIGEST, sys.byteorder, signed=True)
