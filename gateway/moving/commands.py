"""What `chat-chat tenants export` and `import` do: settings in, lines to print out."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from config.settings import Settings
from config.tenant_files import read_tenant
from config.vault import Vault
from gateway.cli.common import Failed
from gateway.moving.archive import ArchiveBroken, Kept, Manifest, pack
from gateway.moving.arrival import Arrival, move_in, staged, there_already
from gateway.moving.parts import CONFIG, DATA, in_database, parts_of, place_of
from memory.keys import check_tenant
from processors.models import iso

Bar = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]


async def export(settings: Settings, tenant: str, to: Path | None, bar: Bar) -> list[str]:
    """Everything of a tenant's, but for secrets, into one file."""
    check_tenant(tenant)
    now = datetime.now(UTC)
    to = to or Path(f"{tenant}-{now:%Y%m%d-%H%M}.tar.gz")
    with tempfile.TemporaryDirectory(prefix="chat-chat-export-") as folder:
        longterm = None
        if settings.longterm_url:
            longterm = Path(folder) / "longterm"
            await _copy(settings, settings.longterm_url, str(longterm), tenant, bar)
        parts = parts_of(settings, tenant, longterm)
        if not parts:
            raise Failed(f"nothing is kept of a tenant {tenant!r}: see `chat-chat tenants list`")
        with bar(f"{tenant} → {to}") as progress:
            manifest = pack(parts, tenant, iso(now), to, progress, _vault(settings).of(tenant).readable)
    lines = [f"wrote {to}: {_counts(manifest.files)}", f"sha256 of all of it: {manifest.hash}"]
    lines.append("Not in it: secrets, API keys, and what is being said just now.")
    return [*lines, f"In the new place: chat-chat tenants import {quote(to.name)}"]


async def arrive(
    settings: Settings, archive: Path, tenant_as: str | None, add: bool, bar: Bar
) -> tuple[list[str], bool]:
    """Lines that say what came of it, and whether all is there."""
    if tenant_as:
        check_tenant(tenant_as)
    try:
        with bar(f"{archive.name} checked") as progress:
            folder, manifest, tenant = staged(settings, archive, tenant_as, progress)
    except ArchiveBroken as error:
        raise Failed(f"{archive}: {error}; nothing was changed") from error
    check_tenant(tenant)
    begun = folder / "begun"
    if not begun.exists():
        in_the_way = there_already(settings, tenant, manifest)
        if settings.longterm_url and await _in_database(settings, tenant):
            in_the_way.append(f"{DATA}/longterm/in the database")
        if in_the_way and not add:
            shutil.rmtree(folder, ignore_errors=True)
            raise Failed(
                f"there is something of {tenant} here already ({_counts(in_the_way)}), and nothing was changed: "
                "import it --as another id, or --add what is missing"
            )
        begun.touch()
    given = settings
    if settings.longterm_url:  # by way of files, which are then copied into the database
        given = replace(settings, data_dir=folder / "files")

    def place(name: str) -> Path | None:
        return place_of(given if in_database(name) else settings, tenant, name)

    if settings.longterm_url:
        return await _into_database(settings, folder, manifest, tenant, place, bar)
    with bar(f"{tenant} moved in") as progress:
        arrival = move_in(settings, folder, manifest, tenant, place, progress, _vault(settings).of(tenant).readable)
    _sealed(settings, tenant)
    return _told(settings, arrival, tenant), not (arrival.left or arrival.missing)


async def _into_database(
    settings: Settings,
    folder: Path,
    manifest: Manifest,
    tenant: str,
    place: Callable[[str], Path | None],
    bar: Bar,
) -> tuple[list[str], bool]:
    assert settings.longterm_url is not None
    files = {name: one for name, one in manifest.files.items() if in_database(name)}
    for name in files:
        path, source = place(name), folder / name
        if path is not None and source.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            source.rename(path)
    await _copy(settings, str(folder / "files" / "longterm"), settings.longterm_url, tenant, bar)
    rest = {name: one for name, one in manifest.files.items() if name not in files}
    with bar(f"{tenant} moved in") as progress:
        opened = _vault(settings).of(tenant).readable
        arrival = move_in(settings, folder, replace(manifest, files=rest), tenant, place, progress, opened)
    arrival.manifest = manifest
    _sealed(settings, tenant)
    return _told(settings, arrival, tenant), not (arrival.left or arrival.missing)


def _vault(settings: Settings) -> Vault:
    from config.tenants import Tenants
    from gateway.assembly import vault_of

    tenants = Tenants(settings)
    tenants.load()
    return vault_of(settings, tenants)


def _sealed(settings: Settings, tenant: str) -> None:
    """What came along lies plain in an archive: here it is encrypted where the tenant's files are."""
    from memory.renewal import Outcome, Renewal

    vault = _vault(settings)
    if vault.current is not None:
        Renewal(settings.data_dir, vault).renew(tenant, Outcome())


async def _in_database(settings: Settings, tenant: str) -> bool:
    from config.tenants import Tenants
    from gateway.assembly import memory_of

    manager = memory_of(settings, Tenants(settings), None)
    try:
        return bool([user async for user in manager.longterm.users(tenant)])
    finally:
        await manager.close()


async def _copy(settings: Settings, source: str, target: str, tenant: str, bar: Bar) -> None:
    from gateway.longterm_commands import copy

    lines, whole = await copy(settings, source, target, tenant, True, bar)
    if not whole:
        raise Failed("; ".join(lines))


def _told(settings: Settings, arrival: Arrival, tenant: str) -> list[str]:
    count = len(arrival.manifest.files)
    lines = [f"{tenant}: {_counts(arrival.manifest.files)}"]
    if arrival.missing:
        lines.append(f"{len(arrival.missing)} of {count} files are missing: call it again, {arrival.missing[0]} first")
    if arrival.left:
        lines.append(f"{len(arrival.left)} were here already and are other ones; they were left as they are:")
        lines += [f"  {name}" for name in arrival.left[:10]] + ["  …"] * (len(arrival.left) > 10)
    if not (arrival.missing or arrival.left):
        lines.append(f"All {count} files are there, each checked by its SHA-256; of all: {arrival.manifest.hash}")
    file = settings.config_dir / "tenants" / f"{tenant}.yaml"
    if file.is_file():
        missing = sorted(read_tenant(file, settings).missing)
        if missing:
            lines.append(f"Set these secrets, in .env or in {settings.config_dir / 'secrets'}: {', '.join(missing)}")
        lines.append("Take the tenant's file away in the old place, so that only one of the two answers.")
        lines.append(f"Then: chat-chat webhooks set --tenant {tenant}, chat-chat doctor")
    return lines


def _counts(names: Iterable[str] | dict[str, Kept]) -> str:
    """Such as `120 people, 3 400 lines…`: what a person would count."""
    kinds = Counter(map(_kind, names))
    people = {
        name.split("/")[2].split(".json")[0].removesuffix(".journal") for name in names if _kind(name) == "people"
    }
    kinds["people"] = len(people - {"_tenant"})
    words = {"people": "person", "transcripts": "transcript", "media files": "media file"}
    words |= {"knowledge files": "knowledge file", "other files": "other file"}
    shown = [f"{kinds[kind]} {words[kind] if kinds[kind] == 1 else kind}" for kind in words]
    size = sum(one.size for one in names.values()) if isinstance(names, dict) else 0
    files = f"{len(list(names))} files" + (f", {size / 1e6:.1f} MB" if size else "")
    return f"{', '.join(one for one in shown if not one.startswith('0 '))} ({files})"


def _kind(name: str) -> str:
    if name.startswith(f"{DATA}/longterm/"):
        return "people"
    if name.startswith(f"{DATA}/transcripts/"):
        return "transcripts"
    if name.startswith(f"{DATA}/media/"):
        return "media files"
    if name.startswith(f"{CONFIG}/knowledge/"):
        return "knowledge files"
    return "other files"
