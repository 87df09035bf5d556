"""A circuit breaker: after some failures in a row nothing is tried for a while, then one probe decides."""

from __future__ import annotations

from collections.abc import Callable


class Breaker:
    """Opens after `threshold` failures in a row for `pause` seconds, doubling up to `longest` while probes fail."""

    def __init__(
        self, clock: Callable[[], float], *, threshold: int = 5, pause: float = 10.0, longest: float = 120.0
    ) -> None:
        self._clock, self._threshold, self._pause, self._longest = clock, threshold, pause, longest
        self._failures = 0
        self._next_pause = pause
        self._open_until: float | None = None
        self._probing = False
        self.reason = ""

    def refused_for(self) -> float | None:
        """Seconds until it is worth trying again; None: go ahead. Who goes ahead while it is half open is the probe
        and must tell how it ended: `succeeded`, `failed` or `gave_up`."""
        if self._open_until is None:
            return None
        left = self._open_until - self._clock()
        if left > 0:
            return left
        if self._probing:
            return 1.0
        self._probing = True
        return None

    def succeeded(self) -> None:
        self._failures, self._open_until, self._probing, self._next_pause = 0, None, False, self._pause

    def failed(self, reason: str, *, at_once_for: float | None = None) -> None:
        """One more failure; `at_once_for` opens it now, for that many seconds at least."""
        self._failures += 1
        self.reason = reason
        if at_once_for is not None:
            self._open_until = self._clock() + at_once_for
        elif self._probing or self._failures >= self._threshold:
            self._open_until = self._clock() + self._next_pause
            self._next_pause = min(self._next_pause * 2, self._longest)
        self._probing = False

    def gave_up(self) -> None:
        """The call ended without telling anything of the endpoint (it was cancelled)."""
        self._probing = False
