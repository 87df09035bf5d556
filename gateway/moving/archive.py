"""An archive with everything of a tenant: a compressed tar whose last member lists every file with size and SHA-256, so
that one that was cut off is known as such."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from gateway.moving.parts import Part

FORMAT = 1
_HEAD, _LIST = "chat-chat.json", "manifest.json"
_CHUNK = 1 << 20

Progress = Callable[[int, int], None]
Opened = Callable[[bytes], bytes]


class ArchiveBroken(Exception):
    """It is no archive of ours, or not a whole one; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of an archive."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    tenant: str
    made_at: str
    files: dict[str, Kept]

    @property
    def hash(self) -> str:
        """Of all names and hashes: the same archive, the same hash."""
        lines = "".join(f"{name} {kept.sha256}\n" for name, kept in sorted(self.files.items()))
        return hashlib.sha256(lines.encode()).hexdigest()


def pack(
    parts: Sequence[Part], tenant: str, made_at: str, to: Path, progress: Progress, opened: Opened = bytes
) -> Manifest:
    """Writes the archive, whole or not at all; for its owner alone to read. What lies encrypted on disk is `opened`: an
    archive is plain. Raises OSError."""
    if to.exists():
        raise FileExistsError(17, "there is such a file already", str(to))
    beside = to.with_name(f".{to.name}.part")
    files: dict[str, Kept] = {}
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            with tarfile.open(fileobj=out, mode="w:gz", compresslevel=3, format=tarfile.PAX_FORMAT) as tar:
                head = {"format": FORMAT, "tenant": tenant, "made_at": made_at, "files": len(parts)}
                _add(tar, _HEAD, orjson.dumps(head), 0)
                for done, part in enumerate(parts):
                    progress(done, len(parts))
                    try:
                        # Read at once: what is replaced or appended to meanwhile is kept as it was at one moment.
                        data = part.text if part.text is not None else opened(part.path.read_bytes())
                        changed = part.path.stat().st_mtime
                    except FileNotFoundError:  # folded in, or forgotten, since it was found
                        continue
                    _add(tar, part.name, data, changed)
                    files[part.name] = Kept(len(data), hashlib.sha256(data).hexdigest())
                progress(len(parts), len(parts))
                listed = {name: [kept.size, kept.sha256] for name, kept in files.items()}
                _add(tar, _LIST, orjson.dumps(head | {"listed": listed}), 0)
            out.flush()
            os.fsync(out.fileno())
        beside.rename(to)
    finally:
        beside.unlink(missing_ok=True)
    return Manifest(tenant, made_at, files)


def _add(tar: tarfile.TarFile, name: str, data: bytes, changed: float) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(data), changed, 0o600
    tar.addfile(info, io.BytesIO(data))


def unpack(archive: Path, into: Path, allowed: Callable[[str], bool], progress: Progress) -> Manifest:
    """Puts the archive's files below `into` and checks each. Raises ArchiveBroken, OSError."""
    found: dict[str, Kept] = {}
    listed: Any = None
    of = 0
    with _opened(archive) as members:
        for member, tar in members:
            data = tar.extractfile(member)
            if data is None:
                raise ArchiveBroken(f"it holds {member.name[:100]!r}, which is no file")
            if member.name in (_HEAD, _LIST):
                told = _told(data.read(64 * _CHUNK))
                of, listed = told["files"], told if member.name == _LIST else listed
                continue
            if not allowed(member.name) or member.name in found:
                raise ArchiveBroken(f"it holds {member.name[:100]!r}, which no export writes")
            path = into / member.name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            found[member.name] = _write(data, path)
            os.utime(path, (member.mtime, member.mtime))
            progress(len(found), max(of, len(found)))
    if listed is None:
        raise ArchiveBroken("its end is missing: copy it again")
    files = {name: Kept(size, digest) for name, (size, digest) in listed["listed"].items()}
    wrong = sorted(name for name in files.keys() | found.keys() if files.get(name) != found.get(name))
    if wrong:
        raise ArchiveBroken(f"{len(wrong)} of {len(files)} files are missing or damaged, such as {wrong[0]}")
    return Manifest(listed["tenant"], listed["made_at"], files)


@contextmanager
def _opened(archive: Path) -> Iterator[Iterator[tuple[tarfile.TarInfo, tarfile.TarFile]]]:
    try:
        with tarfile.open(archive, mode="r|gz") as tar:
            yield ((member, tar) for member in tar)
    except (tarfile.TarError, EOFError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise ArchiveBroken(f"it can't be read to its end ({type(error).__name__}): copy it again") from error
    except OSError as error:
        if error.errno is None:  # gzip's own
            raise ArchiveBroken("it is damaged, or no archive of an export: copy it again") from error
        raise


def _told(raw: bytes) -> dict[str, Any]:
    told = orjson.loads(raw)
    if told["format"] != FORMAT:
        raise ArchiveBroken("a newer version wrote it: update this installation first")
    return dict(told)


def _write(data: Any, path: Path) -> Kept:
    digest, size = hashlib.sha256(), 0
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
        while piece := data.read(_CHUNK):
            out.write(piece)
            digest.update(piece)
            size += len(piece)
    return Kept(size, digest.hexdigest())


def kept(path: Path, opened: Opened = bytes) -> Kept | None:
    """A file on disk, as the manifest tells of one; None: there is none."""
    try:
        contents = opened(path.read_bytes())
    except FileNotFoundError:
        return None
    return Kept(len(contents), hashlib.sha256(contents).hexdigest())
