"""Work with files that is in no hurry: one piece after the other in a thread of its own, with pauses, so that many that
come at once take a fifth of a core at most. Threads at work hold up the event loop: each of its calls to the system may
wait for each of them."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

log = logging.getLogger(__name__)

_PAUSE = 4  # times as long as the last piece took
_LONGEST = 1.0  # seconds of a pause
_PATIENCE = 10.0  # seconds that who wants it gone waits for what is in hand: a disk may hang

Key = tuple[str, str]  # tenant and user


class Unhurried:
    """Safe between threads. What is not done when the process ends is not done: the next one must be able to tell."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: OrderedDict[Key, Callable[[], object]] = OrderedDict()
        self._in_hand: Key | None = None
        self._running = self._hurried = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def add(self, key: Key, work: Callable[[], object]) -> None:
        """`work` takes the place of what waits under this key."""
        with self._changed:
            self._waiting[key] = work
            if self._running:
                return
            self._running = True
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError as error:  # the machine gives this process no more threads now
            log.warning("%s waits for a thread: %s", self._name, error)
            with self._changed:
                self._running = False

    def drop(self, whose: Callable[[Key], bool]) -> None:
        """Nothing of these waits or is in hand when it returns. Blocking; not for the thread at work."""
        with self._changed:
            for key in [key for key in self._waiting if whose(key)]:
                del self._waiting[key]
            self._changed.wait_for(lambda: self._in_hand is None or not whose(self._in_hand), _PATIENCE)

    def finish(self) -> None:
        """Everything that waits is done when it returns, without pauses; blocking."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._running, _PATIENCE)
            self._hurried = False

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._waiting:
                    self._running = False
                    self._changed.notify_all()
                    return
                self._in_hand, work = self._waiting.popitem(last=False)
            begun = time.monotonic()
            try:
                work()
            except Exception as error:  # noqa: BLE001 - the next one is not to blame
                log.warning("%s: %s", self._name, type(error).__name__)
            del work
            with self._changed:
                self._in_hand = None
                self._changed.notify_all()
                pause = min(_PAUSE * (time.monotonic() - begun), _LONGEST)
                self._changed.wait_for(lambda: self._hurried, pause)
