"""What a shop's own people said of how messages were understood: `corrections.jsonl` in a folder of the tenant's.

The same words are understood as they said from then on; `processors.local.own` makes a classifier of the tenant's from
them, which also knows what is said in other words.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from config.vault import PLAIN, Locked, Safe
from processors.models import EventType
from processors.normalise import PARTICLES, normalise

log = logging.getLogger(__name__)

FILE, CLASSIFIER = "corrections.jsonl", "classifier.npz"
_PLAIN = PLAIN.of("")
_LOOK = 5.0  # seconds between looks at whether the files changed
_SILENT = re.compile(r"[^\w๎ั-ฺ็-๎]+")


@dataclass(frozen=True, slots=True)
class Correction:
    """`importance` 0.0 to 1.0, None: it was not judged. `user`: whose message it was, if that is known; `at`: when that
    was said, ISO 8601."""

    text: str
    event_type: EventType
    importance: float | None = None
    user: str = ""
    at: str = ""


def wording(text: str) -> str:
    """The words alone: without politeness, spaces and marks."""
    return _SILENT.sub("", PARTICLES.sub("", normalise(text))) or normalise(text)


def read(folder: Path, safe: Safe = _PLAIN) -> list[Correction]:
    """All of them, the oldest first; a line that can't be read is passed over, as is a folder without the file, or one
    whose key is not at hand."""
    try:
        return _read(folder, safe)
    except Locked as error:
        log.error("%s can't be read: %s", FILE, error.strerror)
    except OSError:
        pass
    return []


def _read(folder: Path, safe: Safe) -> list[Correction]:
    lines = (folder / FILE).read_bytes().splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        try:
            said = json.loads(safe.open_line(line))
            importance = said.get("importance")
            found.append(
                Correction(
                    str(said["text"]),
                    EventType(said["event_type"]),
                    None if importance is None else min(1.0, max(0.0, float(importance))),
                    str(said.get("user") or ""),
                    str(said.get("at") or ""),
                )
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            log.warning("%s, line %d: no correction", FILE, number)
    return found


def add(folder: Path, correction: Correction, safe: Safe = _PLAIN) -> None:
    """One more, on disk when this returns. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    line = _line(correction, safe)
    with _alone(folder), (folder / FILE).open("ab") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def forget(folder: Path, user: str, safe: Safe = _PLAIN) -> int:
    """Takes out what came from a person's messages; how many that were. Raises OSError."""
    if not (folder / FILE).exists():
        return 0
    with _alone(folder):
        every = _read(folder, safe)
        kept = [one for one in every if one.user != user]
        if len(kept) < len(every):
            _replace(folder, b"".join(_line(one, safe) for one in kept))
    return len(every) - len(kept)


def renew(folder: Path, safe: Safe) -> bool:
    """Seals or opens what was written under other settings; whether there was any. Raises OSError."""
    if not (folder / FILE).exists():
        return False
    with _alone(folder):
        new = safe.renewed((folder / FILE).read_bytes(), lines=True)
        if new is not None:
            _replace(folder, new)
    return new is not None


def _line(correction: Correction, safe: Safe) -> bytes:
    return safe.seal_line(json.dumps(asdict(correction), ensure_ascii=False).encode()) + b"\n"


def _replace(folder: Path, contents: bytes) -> None:
    new = folder / f"{FILE}.new"
    with new.open("wb") as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / FILE)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One writer at a time, over all processes."""
    descriptor = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class Followed:
    """A tenant's corrections as they stand on disk, looked at again every few seconds."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic, safe: Safe = _PLAIN) -> None:
        self.folder = folder
        self._safe = safe
        self._clock = clock
        self._next = float("-inf")
        self._known: tuple[object, object] = (None, None)
        self._by_wording: dict[str, Correction] = {}
        self.version = 0  # grows when a file changed

    def of(self, text: str) -> Correction | None:
        """What was said of these words; of two corrections the later."""
        self.look()
        return self._by_wording.get(wording(text)) if self._by_wording else None

    def look(self) -> None:
        if self._clock() < self._next:
            return
        self._next = self._clock() + _LOOK
        known = (_stamp(self.folder / FILE), _stamp(self.folder / CLASSIFIER))
        if known != self._known:
            self._known = known
            self._by_wording = {wording(one.text): one for one in read(self.folder, self._safe)}
            self.version += 1


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
