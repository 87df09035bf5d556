"""What a shop's own people said of how messages were understood: `corrections.jsonl` in a folder of the tenant's.

The same words are understood as they said from then on; `processors.local.own` makes a classifier of the tenant's from
them, which also knows what is said in other words.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from processors.models import EventType
from processors.normalise import PARTICLES, normalise

log = logging.getLogger(__name__)

FILE, CLASSIFIER = "corrections.jsonl", "classifier.npz"
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


def read(folder: Path) -> list[Correction]:
    """All of them, the oldest first; a line that can't be read is passed over, as is a folder without the file."""
    try:
        lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for number, line in enumerate(lines, 1):
        try:
            said = json.loads(line)
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


def add(folder: Path, correction: Correction) -> None:
    """One more, on disk when this returns. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(correction), ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def forget(folder: Path, user: str) -> int:
    """Takes out what came from a person's messages; how many that were. Raises OSError."""
    every = read(folder)
    kept = [one for one in every if one.user != user]
    if len(kept) < len(every):
        lines = [json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in kept]
        new = folder / f"{FILE}.new"
        new.write_text("".join(lines), encoding="utf-8")
        new.replace(folder / FILE)
    return len(every) - len(kept)


class Followed:
    """A tenant's corrections as they stand on disk, looked at again every few seconds."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
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
            self._by_wording = {wording(one.text): one for one in read(self.folder)}
            self.version += 1


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
