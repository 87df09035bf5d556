"""A tenant arrives: first its archive is unpacked beside everything and checked, then its files are moved in, each in
one step, the tenant's own file last. What is broken off goes on with the next call."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import zstandard

from config.settings import Settings
from gateway.moving.archive import Kept, Manifest, Opened, Progress, kept, unpack
from gateway.moving.parts import CONFIG, DATA, parts_of, place_of

_DONE = "unpacked.json"


@dataclass
class Arrival:
    """What came of it. `left`: files that were there already, and are other ones; they stayed as they were."""

    manifest: Manifest
    moved: int = 0
    same: int = 0
    left: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def staged(settings: Settings, archive: Path, tenant_as: str | None, progress: Progress) -> tuple[Path, Manifest, str]:
    """Unpacks and checks; the folder, what is in it, and the tenant's id here. A folder that an earlier call left whole
    is taken as it is. Raises ArchiveBroken, OSError."""
    stat = archive.stat()
    key = "-".join([f"{stat.st_size:x}", f"{stat.st_mtime_ns:x}", *([tenant_as] if tenant_as else [])])
    folder = settings.data_dir / "arriving" / key
    note = folder / _DONE
    if note.exists():
        told = orjson.loads(note.read_bytes())
        manifest = Manifest(told["tenant"], told["made_at"], {name: Kept(*one) for name, one in told["listed"].items()})
        return folder, manifest, tenant_as or manifest.tenant
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    try:
        manifest = unpack(archive, folder, lambda name: place_of(settings, "any", name) is not None, progress)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    tenant = tenant_as or manifest.tenant
    files = {name: _renamed(folder, name, one, tenant, manifest.tenant) for name, one in manifest.files.items()}
    manifest = Manifest(manifest.tenant, manifest.made_at, files)
    listed = {name: [one.size, one.sha256] for name, one in files.items()}
    told = {"tenant": manifest.tenant, "made_at": manifest.made_at, "listed": listed}
    beside = folder / f".{_DONE}"
    beside.write_bytes(orjson.dumps(told))
    beside.rename(note)
    return folder, manifest, tenant


def there_already(settings: Settings, tenant: str, manifest: Manifest) -> list[str]:
    """What stands in the way: files of a tenant of that id, and others under a name that comes along."""
    known = [part.name for part in parts_of(settings, tenant)]
    beside = [name for name in manifest.files if name.startswith(f"{CONFIG}/beside/")]
    for name in beside:
        path = place_of(settings, tenant, name)
        found = kept(path) if path else None
        if found is not None and found != manifest.files[name]:
            known.append(name)
    return sorted(set(known))


def move_in(
    settings: Settings,
    folder: Path,
    manifest: Manifest,
    tenant: str,
    place: Callable[[str], Path | None],
    progress: Progress,
    opened: Opened = bytes,
) -> Arrival:
    """Moves every file to its place and looks that it is there. Nothing that is there is overwritten."""
    arrival = Arrival(manifest)
    # The tenant is served as soon as its own file is there: by then everything else is.
    names = sorted(manifest.files, key=lambda name: (name == f"{CONFIG}/tenant.yaml", not name.startswith(DATA), name))
    for done, name in enumerate(names):
        progress(done, len(names))
        path = place(name)
        assert path is not None  # checked when it was unpacked
        source = folder / name
        known = kept(path, opened)
        if known == manifest.files[name]:
            arrival.same += not source.exists()
            arrival.moved += source.exists()
            source.unlink(missing_ok=True)
        elif known is not None:
            arrival.left.append(name)
        elif source.exists():
            _move(source, path)
            arrival.moved += 1
        if kept(path) is None:
            arrival.missing.append(name)
    progress(len(names), len(names))
    if not arrival.missing:
        shutil.rmtree(folder, ignore_errors=True)
    return arrival


def _move(source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.rename(path)
    except OSError:  # another file system
        beside = path.with_name(f".{path.name[-100:]}.{os.getpid()}.tmp")
        shutil.copy2(source, beside)
        beside.rename(path)
        source.unlink()


def _renamed(folder: Path, name: str, known: Kept, tenant: str, before: str) -> Kept:
    """Long-term files name their tenant within."""
    if tenant == before or not name.startswith(f"{DATA}/longterm/") or name.endswith(".journal"):
        return known
    path = folder / name
    raw = path.read_bytes()
    try:
        if name.endswith(".gz"):
            text = gzip.decompress(raw)
        elif name.endswith(".zst"):
            text = zstandard.ZstdDecompressor().decompressobj().decompress(raw)
        else:
            text = raw
        document = orjson.loads(text)
        if not isinstance(document, dict) or document.get("tenant_id") != before:
            return known
    except (ValueError, zstandard.ZstdError, OSError):  # set aside as unreadable: it stays what it is
        return known
    new = orjson.dumps({**document, "tenant_id": tenant}, option=orjson.OPT_INDENT_2)
    if name.endswith(".gz"):
        new = gzip.compress(new)
    elif name.endswith(".zst"):
        new = zstandard.ZstdCompressor().compress(new)
    stat = path.stat()
    path.write_bytes(new)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    found = kept(path)
    assert found is not None
    return found
