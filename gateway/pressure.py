"""Whether the queue grows faster than it drains. Then answers get cheaper, by rules and FAQ, before they get late."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

LATE = 10.0  # seconds of waiting for a worker: until then there is no hurry
WINDOW = 10.0  # seconds


class Pressure:
    """One worker's look, taken from how long what it claims has been ready. A queue that is long but getting shorter
    (after a restart, say) is no pressure."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, float]] = deque()  # when, seconds waited
        self._late_at = float("-inf")  # when somebody had waited for long

    def note(self, waited: float) -> None:
        now = self._clock()
        self._seen.append((now, waited))
        if waited > LATE:
            self._late_at = now
        while now - self._seen[0][0] > 2 * WINDOW:
            self._seen.popleft()

    def high(self) -> bool:
        now = self._clock()
        if now - self._late_at > WINDOW:  # nearly always: what waited is not gone through
            return False
        lately = [waited for at, waited in self._seen if now - at <= WINDOW]
        before = [waited for at, waited in self._seen if WINDOW < now - at <= 2 * WINDOW]
        return bool(before) and max(lately) >= max(before)
