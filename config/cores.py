"""A worker keeps to the core that its event loop is on, as long as it has it nearly to itself.

Linux wakes a thread on whichever core is idle just then: where messages come now and then, some three times a message,
and each time what the caches of the last core hold is fetched anew, a twentieth of a worker's CPU. While the loop has
to wait for its core because others are on it, it may run anywhere; it comes to rest again where it need not wait.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from config.stopping import stopped

LOOK_EVERY = 1.0  # seconds
CROWDED = 0.4  # waited for the core, of the time that the loop ran …
AT_LEAST = 0.01  # … and of all time
LONGEST_AWAY = 8  # looks until it comes to rest again, at the most; twice as many each time that it has to leave

_companions: set[int] = set()  # threads that take turns with the loop, by the system's numbers
_everywhere: set[int] = set()  # where this process may run; empty where it keeps to no core


class Spent(NamedTuple):
    """Of one thread, since it began."""

    ran: float  # seconds
    waited: float  # seconds that it could have run


class Resting:
    """When to keep to a core and when to leave it."""

    def __init__(self) -> None:
        self.rests = False
        self._last: Spent | None = None
        self._away = 1  # looks
        self._left = 0  # looks until it may rest

    def look(self, spent: Spent, seconds: float) -> bool:
        """`seconds` since the last look. Whether it is to rest."""
        last, self._last = self._last, spent
        if last is None:
            return False
        if spent.waited - last.waited > max(CROWDED * (spent.ran - last.ran), AT_LEAST * seconds):
            if self.rests:
                self._away = min(2 * self._away, LONGEST_AWAY)
            self.rests, self._left = False, self._away
        elif self._left:
            self._left -= 1
        elif self.rests:
            self._away = max(1, self._away - 1)
        else:
            self.rests = True
        return self.rests


async def keep(stop: asyncio.Event) -> None:
    """Of the main thread, which awaits it, and its companions, until `stop`. Does nothing where there is one core, nor
    where the system does not tell how long a thread waits."""
    global _everywhere
    if sys.platform != "linux":
        return
    try:
        everywhere, first = os.sched_getaffinity(0), spent()
        this_core: Callable[[], int] = ctypes.CDLL(None).sched_getcpu
    except (OSError, ValueError, AttributeError):
        return
    if len(everywhere) < 2 or not first.ran:
        return
    _everywhere = everywhere
    resting, here = Resting(), everywhere
    now = asyncio.get_running_loop().time
    at = now()
    try:
        while not await stopped(stop, LOOK_EVERY):
            since, at = at, now()
            was = here
            if not resting.look(spent(), at - since):
                here = everywhere
            elif here == everywhere:
                here = {this_core()}
            _place(was, here)
    finally:
        _place(here, everywhere)
        _everywhere = set()


def companion() -> None:
    """The thread that calls this takes turns with the event loop, and so goes where that goes."""
    _companions.add(threading.get_native_id())


def loosen() -> None:
    """Before a thread that is none of these begins another process: that may run where this one may."""
    if _everywhere and threading.get_native_id() != os.getpid():
        with suppress(OSError):
            os.sched_setaffinity(0, _everywhere)


def spent() -> Spent:
    """Of this thread. Raises OSError, ValueError where the system does not tell."""
    with open("/proc/thread-self/schedstat", encoding="ascii") as told:
        ran, waited, _ = map(int, told.read().split())
    return Spent(ran / 1e9, waited / 1e9)


def _place(was: set[int], here: set[int]) -> None:
    """Others begin where the thread is that began them. What somebody else has chosen for a thread stays."""
    ours = {os.getpid(), *_companions}
    for name in os.listdir("/proc/self/task"):
        thread = int(name)
        with suppress(OSError):  # it has ended; or these cores were taken from the process
            at = os.sched_getaffinity(thread)
            wanted = here if thread in ours else _everywhere
            if at != wanted and at in (was, here, _everywhere):
                os.sched_setaffinity(thread, wanted)
