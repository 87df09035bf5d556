"""Whether a file changed, and whether it may still be changing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

SETTLED = 1.0  # seconds: a younger change may be half written, or half of a rename
_UNENDED = 3.0  # seconds: the same where a file does not end with a line's end, as one does that comes over a slow line
_MANY = 16  # files in one folder from which on reading it whole costs less than asking for each
_RACY = 2.0  # seconds: a file that was changed this shortly before it was read may have changed again in the same tick
_AHEAD = 60.0  # seconds by which a file server's clock may be ahead

Stamp = tuple[int, int, int, int] | None  # mtime and ctime in ns, size, inode; None: there is no such file


def stamp_of(path: Path | str) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class Still:
    """Whether any of many files has changed since this was made, and whether one has come to `folder` or gone. A folder
    that holds many of them is read as a whole: a thousand files in 5 ms, where one by one they took 18."""

    def __init__(self, folder: Path, paths: Collection[Path]) -> None:
        files = [os.path.split(path) for path in paths]
        held = Counter(parent for parent, _ in files)
        listed = {str(folder), *(parent for parent, number in held.items() if number >= _MANY)}
        self._folders = sorted(listed)
        self._files = [os.path.join(parent, name) for parent, name in files if parent not in listed]
        self._seen = self._look()

    def so(self) -> bool:
        return self._look() == self._seen

    def _look(self) -> tuple[list[dict[str, Stamp] | None], list[Stamp]]:
        return [_listed(folder) for folder in self._folders], [stamp_of(file) for file in self._files]


def _listed(folder: str) -> dict[str, Stamp] | None:
    """The stamps of all that is in a folder; None where there is none."""
    try:
        with os.scandir(folder) as entries:
            return {entry.name: _stamp(entry) for entry in entries}
    except OSError:
        return None


def _stamp(entry: os.DirEntry[str]) -> Stamp:
    try:
        found = entry.stat()
    except OSError:  # a link that leads nowhere
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def changed(stamps: Mapping[Path, Stamp], read_at: float) -> bool:
    """Whether any of the files changed since they were read; True where that can't be told yet."""
    racy, ahead = (read_at - _RACY) * 1e9, (read_at + _AHEAD) * 1e9

    def told(stamp: Stamp) -> bool:
        """By its own time. What a copy gives it tells where that is not kept, but not where it is tomorrow."""
        return stamp is None or (stamp[1] < racy and not racy <= stamp[0] <= ahead)

    return any(stamp_of(path) != stamp or not told(stamp) for path, stamp in stamps.items())


def unsettled(stamps: Mapping[Path, Stamp], main: Path, ended: bool, now: float) -> bool:
    """Whether any of the files is so young that more of it may come; `ended`: `main` ends with a line's end."""
    return any(_young(stamp, now, SETTLED) for stamp in stamps.values()) or (
        not ended and _young(stamps[main], now, _UNENDED)
    )


def _young(stamp: Stamp, now: float, age: float) -> bool:
    # What a copy gives a file is the original's time; its own is the time of the last change to the inode.
    return stamp is not None and 0 <= now - max(stamp[0], stamp[1]) / 1e9 < age
