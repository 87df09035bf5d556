"""How many conversations a worker has in hand at once: no more than it can carry without letting a lease end, nor than
it takes to keep its core at work."""

from __future__ import annotations

FIRST = 8
LEAST = 4  # while the core is the bottleneck
FULL = 0.85  # of a core: what more in hand would only share
SLOW = 0.1  # seconds that the event loop may be late before more in hand only makes everybody wait


class Room:
    """A worker that is short of CPU and takes ever more is late with every heartbeat, loses all that it holds and takes
    it again; nothing gets done. So it holds half as much whenever the event loop was late by a twentieth of the lease,
    and a quarter more while it keeps up with all it may hold. Where its core is full, or others have it, it holds less:
    what waits outside is claimed in turn, tenant by tenant, and what waits inside is not. A flood of one stays outside;
    what waits for a model costs no core, and lets in as many as there are."""

    def __init__(self, most: int, lease: float) -> None:
        self.every = lease / 20  # seconds between looks, and how late one may be
        self._most = most
        self.size = min(most, FIRST)

    def looked(self, late: float, in_hand: int, busy: float) -> None:
        """`late` is by how many seconds the event loop came later than asked for, `busy` its share of a core since the
        last look."""
        if late > self.every:
            self.size = max(1, min(self.size, in_hand) // 2)
        elif late > SLOW or busy > FULL:
            self.size = max(min(self.size, LEAST), self.size - max(1, self.size // 4))
        elif in_hand >= self.size:
            self.size = min(self._most, self.size + max(1, self.size // 4))
