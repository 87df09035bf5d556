"""What belongs to a tenant, and where each part of it lies. Secrets are no part: they stay where they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from config.mistakes import Loc
from config.secrets import variable_of
from config.settings import Settings
from config.tenant_files import Reading, read_tenant
from memory.keys import TENANT_ID

# Folders of DATA_DIR with one folder, and with one file, a tenant. What is derived is made anew (index); what opens
# something stays behind (keys), as does who was forgotten: it is known by names that hold in one installation alone.
FOLDERS = ("longterm", "transcripts", "media", "archive", "conversations", "understanding")
LISTS = ("blocked", "opted_out", "unanswered", "ratings", "taught")
IN_DATABASE = ("longterm", "transcripts", "conversations", "blocked", "opted_out")  # of these, where there is one
CONFIG, DATA = "config", "data"
_NAME = re.compile(r"(?!\.)[^/\0]{1,255}\Z")


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a tenant. `name` is its place in an archive: `data/longterm/…`, `config/tenant.yaml`."""

    name: str
    path: Path
    text: bytes | None = None  # instead of what is on disk: a tenant's file without the secrets written into it


def parts_of(settings: Settings, tenant: str, longterm: Path | None = None) -> list[Part]:
    """Every file of a tenant's, none of what is half written. `longterm` and what lies beside it are taken from there
    where the memory itself is in a database."""

    def base(area: str) -> Path:
        return longterm.parent if longterm and area in IN_DATABASE else settings.data_dir

    found = list(_config(settings, tenant))
    for area in FOLDERS:
        found += _below(base(area) / area / tenant, f"{DATA}/{area}")
    for area in LISTS:
        path = base(area) / area / f"{tenant}.json"
        if path.is_file():
            found.append(Part(f"{DATA}/{area}.json", path))
    # A journal goes before its file: what is folded in between is in both, and reading it twice changes nothing.
    return sorted(found, key=lambda part: (not part.name.endswith(".journal"), part.name))


def place_of(settings: Settings, tenant: str, name: str) -> Path | None:
    """Where a file of an archive belongs; None: it is no name that an archive of ours holds."""
    kind, _, rest = name.partition("/")
    names = rest.split("/")
    if not all(_NAME.match(one) for one in names):
        return None
    if kind == DATA and len(names) == 1 and names[0].removesuffix(".json") in LISTS and rest.endswith(".json"):
        return settings.data_dir / names[0].removesuffix(".json") / f"{tenant}.json"
    if kind == DATA and len(names) > 1 and names[0] in FOLDERS:
        return settings.data_dir.joinpath(names[0], tenant, *names[1:])
    if kind != CONFIG:
        return None
    if rest == "tenant.yaml":
        return settings.config_dir / "tenants" / f"{tenant}.yaml"
    if names[0] == "knowledge" and len(names) > 1:
        return settings.config_dir.joinpath("knowledge", tenant, *names[1:])
    if names[0] == "beside" and len(names) > 1 and names[1] != "secrets" and not _is_tenants(names[1:]):
        return settings.config_dir.joinpath(*names[1:])
    return None


def in_database(name: str) -> bool:
    """Whether a file of an archive holds what is kept in a database where there is one."""
    kind, _, rest = name.partition("/")
    return kind == DATA and rest.partition("/")[0].removesuffix(".json") in IN_DATABASE


def _is_tenants(names: list[str]) -> bool:
    """Whether it would be another tenant's file."""
    return len(names) == 2 and names[0] == "tenants" and bool(TENANT_ID.match(names[1].removesuffix(".yaml")))


def _below(folder: Path, name: str) -> Iterator[Part]:
    if not folder.is_dir():
        return
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        passed_over = any(part.startswith(".") for part in inside.parts) or path.suffix == ".tmp"
        if not passed_over and path.is_file() and not path.is_symlink():
            yield Part(f"{name}/{inside.as_posix()}", path)


def _config(settings: Settings, tenant: str) -> Iterator[Part]:
    """The tenant's file, the templates and instructions that it names, and its knowledge."""
    file = settings.config_dir / "tenants" / f"{tenant}.yaml"
    root = settings.config_dir.resolve()
    if file.is_file():
        reading = read_tenant(file, settings)
        written_in = _written_in(reading, tenant)
        yield Part(f"{CONFIG}/tenant.yaml", file, _without(file, written_in))
        for path in sorted(path.resolve() for path in reading.depends if path.is_file()):
            if path.is_relative_to(root) and not path.is_relative_to(root / "secrets"):
                name = f"{CONFIG}/beside/{path.relative_to(root).as_posix()}"
                yield Part(name, path, _without(path, written_in))
    yield from _below(settings.config_dir / "knowledge" / tenant, f"{CONFIG}/knowledge")


def _written_in(reading: Reading, tenant: str) -> dict[str, str]:
    """Secrets that stand in the file itself, and under which name they are to be set in the new place."""
    if reading.document is None or reading.tenant is None:
        return {}
    found: dict[str, str] = {}
    for loc in _secret_fields(reading.tenant, ()):
        value: Any = reading.document.data
        for part in loc:
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str) and value and "${" not in value:
            place = "_".join(str(part) for part in loc if part != "channels")
            found[value] = f"{variable_of(tenant)}_{re.sub('[^A-Za-z0-9]', '_', place).upper()}"
    return found


def _secret_fields(value: BaseModel, loc: Loc) -> Iterator[Loc]:
    for name in type(value).model_fields:
        field = getattr(value, name)
        if isinstance(field, SecretStr):
            yield (*loc, name)
        elif isinstance(field, BaseModel):
            yield from _secret_fields(field, (*loc, name))
        elif isinstance(field, dict):
            for key, one in field.items():
                if isinstance(one, BaseModel):
                    yield from _secret_fields(one, (*loc, name, key))


def _without(path: Path, secrets: dict[str, str]) -> bytes | None:
    if not secrets:
        return None
    text = path.read_bytes().decode("utf-8")
    for value in sorted(secrets, key=len, reverse=True):
        text = text.replace(value, f"${{{secrets[value]}}}")
    return text.encode()
