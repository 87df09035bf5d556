"""What `chat-chat encryption` does, and what every process looks at before it opens anything: that each key which
something here is encrypted with is at hand. `DATA_DIR/encryption_keys` lists their ids."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from config.settings import Settings, SettingsError
from config.tenants import Tenants
from config.vault import Vault, key_id

KEPT = "encryption_keys"

Bar = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]


def check(settings: Settings) -> None:
    """Raises SettingsError where something is encrypted with a key that ENCRYPTION_KEY does not hold."""
    own = [key_id(one) for one in settings.encryption_key]
    known = _known(settings.data_dir)
    if missing := known - set(own):
        from memory.renewal import Renewal

        found = Renewal(settings.data_dir, Vault()).sealed_with(missing)
        if found is not None:
            raise SettingsError(
                f"ENCRYPTION_KEY: {found} is encrypted with key {' or '.join(sorted(missing))}, which is not set; "
                "put that key back, after the current one if there is one. Nothing was changed"
            )
        _keep(settings.data_dir, (known - missing) | set(own[:1]))
    elif own and own[0] not in known:
        _keep(settings.data_dir, known | {own[0]})


def apply(settings: Settings, only: str | None, bar: Bar) -> tuple[list[str], bool]:
    """Brings everything to what the settings say now; lines that tell what came of it, and whether all of it is so."""
    from gateway.assembly import vault_of
    from memory.renewal import Outcome, Renewal

    tenants = Tenants(settings)
    tenants.load()
    vault = vault_of(settings, tenants)
    renewal, lines, seen = Renewal(settings.data_dir, vault), list[str](), Outcome()
    for tenant in [only] if only else renewal.tenants():
        outcome = Outcome()
        with bar(tenant) as progress:
            renewal.renew(tenant, outcome, progress)
        wanted = vault.seals(tenant)
        state = f"encrypted with key {wanted}" if wanted else "not encrypted"
        lines.append(f"{tenant}: {outcome.files} files, {outcome.changed} of them changed: {state}")
        lines += [f"{tenant}: {path} can't be opened with the keys at hand" for path in outcome.locked]
        seen.keys.update(outcome.keys)
        seen.locked += outcome.locked
    if only is None and not seen.locked:
        _keep(settings.data_dir, seen.keys)
        if old := [one for one in vault.ids[1:] if one not in seen.keys]:
            lines.append(f"No file needs these keys any more: {', '.join(old)}")
        if not seen.keys and vault.ids:
            lines.append("Nothing here is encrypted any more; ENCRYPTION_KEY may go")
    return lines or ["there is nothing here yet"], not seen.locked


def shown(settings: Settings, path: Path) -> bytes:
    """A file as it would stand there plain."""
    from gateway.assembly import vault_of

    tenants = Tenants(settings)
    tenants.load()
    try:
        parts = path.resolve().relative_to(settings.data_dir.resolve()).parts
    except ValueError:
        raise SettingsError(f"{path}: is no file below DATA_DIR ({settings.data_dir})") from None
    vault = vault_of(settings, tenants)
    tenant = parts[1].removesuffix(".json") if len(parts) > 1 else ""
    safe = vault.shared("") if parts[0] == "spool" else vault.of(tenant)
    return safe.readable(path.read_bytes())


def _known(data_dir: Path) -> set[str]:
    try:
        return set((data_dir / KEPT).read_text("ascii").split())
    except FileNotFoundError:
        return set()


def _keep(data_dir: Path, ids: set[str]) -> None:
    if ids == _known(data_dir):
        return
    data_dir.mkdir(parents=True, exist_ok=True)
    beside = data_dir / f".{KEPT}.{os.getpid()}"
    beside.write_text("".join(f"{one}\n" for one in sorted(ids)), "ascii")
    beside.replace(data_dir / KEPT)
