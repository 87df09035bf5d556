"""The files of DATA_DIR in a backup, and the sums of all that is in one."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

from gateway.cli.common import Failed
from memory import lists
from memory.forgotten_people import FOLDER as FORGOTTEN
from memory.pseudonyms import KEY_FILE as PSEUDONYM_KEY

SUMS = "SHA256SUMS"
# What is kept otherwise (Redis' own files, long-term memory), is made anew (index) or is on its way (copies, arrivals).
ELSEWHERE = frozenset({"redis", "longterm", "index", "copied", "arriving"})
IN_DATABASE = frozenset({"transcripts", "conversations", *lists.NAMES})  # where LONGTERM_URL names one
STAYS = frozenset({"redis", FORGOTTEN, PSEUDONYM_KEY})  # here, whatever is put back: see memory.forgotten_people

Progress = Callable[[int, int], None]


def save(data_dir: Path, to: Path, names: list[str], progress: Progress) -> int:
    """Copies these files and folders while they are written: what is added to at its end is taken to its last whole
    line, anything else is put in its place in one step. How many files that were."""
    found = [path for name in names for path in _files(data_dir / name)]
    copied = 0
    for at, path in enumerate(found):
        progress(at, len(found))
        copy = _database if path.suffix == ".sqlite" else _copied
        copied += copy(path, to / path.relative_to(data_dir))
    progress(len(found), len(found))
    return copied


def kept_in(folder: Path, but: frozenset[str] = ELSEWHERE) -> list[str]:
    """The names in a DATA_DIR, or a backup, below which anything is kept."""
    there = folder.iterdir() if folder.is_dir() else ()
    return sorted(one.name for one in there if one.name not in but and one.name[0] != "." and any(_files(one)))


def put(backup: Path, data_dir: Path, names: list[str], progress: Progress) -> int:
    """The files of a backup into DATA_DIR, where nothing is in their way; how many. Who was forgotten stays so: the
    list here gets what the other one has, where both call people by the same names."""
    found = [path for name in names for path in _files(backup / name)]
    same_names = _same_names(backup, data_dir)
    for at, path in enumerate(found):
        progress(at, len(found))
        there = data_dir / path.relative_to(backup)
        if path.relative_to(backup).parts[0] in (FORGOTTEN, PSEUDONYM_KEY):
            if not same_names:
                continue
            if there.exists():
                _join(path, there)
                continue
        _copied(path, there)
    progress(len(found), len(found))
    return len(found)


def clear(data_dir: Path) -> None:
    for path in data_dir.iterdir() if data_dir.is_dir() else ():
        if path.name in STAYS:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def seal(backup: Path, progress: Progress) -> int:
    """Writes the sums of everything, on disk when it returns; how many files there are."""
    found = sorted(_files(backup))
    lines = []
    for at, path in enumerate(found):
        progress(at, len(found))
        lines.append(f"{_sum(path)}  {path.relative_to(backup)}\n")
    progress(len(found), len(found))
    _written(backup / SUMS, "".join(lines).encode("utf-8", "surrogateescape"))
    os.sync()
    return len(found)


def check(backup: Path, progress: Progress) -> int:
    """How many files there are, all of them as they were written. Raises Failed."""
    try:
        lines = (backup / SUMS).read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        raise Failed(f"{backup} is no backup, or one that was not finished: there is no {SUMS} in it") from None
    listed = {line[66:]: line[:64] for line in lines}
    for at, (name, wanted) in enumerate(listed.items()):
        progress(at, len(listed))
        path = backup / name
        if not path.is_file() or _sum(path) != wanted:
            raise Failed(f"{path} is missing or was changed: nothing was put back")
    progress(len(listed), len(listed))
    if more := {str(path.relative_to(backup)) for path in _files(backup)} - listed.keys() - {SUMS}:
        raise Failed(f"{backup / min(more)} does not belong to the backup: nothing was put back")
    return len(listed)


def _files(path: Path) -> Iterator[Path]:
    """Below a path, or itself; none of what is half written or a lock."""
    if path.is_file():
        yield path
    elif path.is_dir():
        for one in sorted(path.iterdir()):
            if not one.name.startswith(".") and not one.name.endswith(("-wal", "-shm")):
                yield from _files(one)


def _copied(path: Path, to: Path) -> bool:
    """With its time, which tells of some when they were last used. False: it is gone by now."""
    to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        with path.open("rb") as source:
            at = os.fstat(source.fileno()).st_mtime_ns
            if path.suffix == ".jsonl":
                whole = source.read()
                _written(to, whole[: whole.rfind(b"\n") + 1])
            else:
                with _opened(to) as target:
                    shutil.copyfileobj(source, target, 1 << 20)
        os.utime(to, ns=(at, at))
    except FileNotFoundError:
        return False
    return True


def _database(path: Path, to: Path) -> bool:
    """As it was at one moment, with what only its log holds so far."""
    to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _written(to, b"")
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode = DELETE")  # it stands alone
    return True


def _join(path: Path, there: Path) -> None:
    """Adds the lines that are not there."""
    known = there.read_bytes()
    more = [line for line in path.read_bytes().splitlines(keepends=True) if line not in known]
    if more and path.name != PSEUDONYM_KEY:
        with there.open("ab") as file:
            file.writelines(more)


def _same_names(backup: Path, data_dir: Path) -> bool:
    here = data_dir / PSEUDONYM_KEY
    if not here.exists():
        return True
    return (backup / PSEUDONYM_KEY).exists() and here.read_bytes() == (backup / PSEUDONYM_KEY).read_bytes()


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _opened(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb")


def _written(path: Path, content: bytes) -> None:
    with _opened(path) as file:
        file.write(content)
