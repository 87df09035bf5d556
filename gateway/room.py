"""How many conversations a worker has in hand at once: no more than it can carry without letting a lease end, nor than
it takes to keep its core at work."""

from __future__ import annotations

import asyncio
from types import TracebackType

FIRST = 8
LEAST = 4  # while the core is the bottleneck
HELD = 4  # times as many are in hand, with those that wait for a model: each keeps a session, and a lease to be renewed
FULL = 0.85  # of a core: what more in hand would only share
SLOW = 0.1  # seconds that the event loop may be late before more in hand only makes everybody wait


class Room:
    """A worker that is short of CPU and takes ever more is late with every heartbeat, loses all that it holds and takes
    it again; nothing gets done. So it works at half as much whenever the event loop was late by a twentieth of the
    lease, and at a quarter more while it keeps up with all it may. Where its core is full, or others have it, it works
    at less: what waits outside is claimed in turn, tenant by tenant, and what waits inside is not. A flood of one stays
    outside.

    Who waits for a model (`resting`) costs no core and takes nobody's place: a slow one leaves room for as many more as
    the core can serve meanwhile. Who waits for a platform keeps theirs: a worker that dies leaves each call that was
    under way in doubt, so there must not be hundreds."""

    def __init__(self, most: int, lease: float) -> None:
        self.every = lease / 20  # seconds between looks, and how late one may be
        self._most = most
        self.size = min(most, FIRST)  # worked at, at once
        self.held = 0  # in hand
        self.resting = Resting(self)
        self.changed = asyncio.Event()

    @property
    def working(self) -> int:
        return self.held - self.resting.count

    @property
    def free(self) -> int:
        return min(self.size - self.working, HELD * self._most - self.held)

    def looked(self, late: float, busy: float) -> None:
        """`late` is by how many seconds the event loop came later than asked for, `busy` its share of a core since the
        last look."""
        working = self.working
        if late > self.every:
            self.size = max(1, min(self.size, self.held) // 2)
        elif late > SLOW or busy > FULL:
            self.size = max(min(self.size, LEAST), self.size - max(1, self.size // 4))
        elif working >= self.size:
            self.size = min(self._most, self.size + max(1, self.size // 4))
        self.changed.set()


class Resting:
    """`with room.resting:` while somebody else has to answer."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.count = 0

    def __enter__(self) -> None:
        self.count += 1
        self._room.changed.set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.count -= 1
