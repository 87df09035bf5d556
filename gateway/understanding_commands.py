"""What `chat-chat understanding` does: what the shop's own people correct, and what is learned of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from config.extras import install
from config.settings import Settings
from config.tenants import Tenants
from config.vault import Safe
from gateway.assembly import vault_of
from gateway.cli import Failed
from memory import keys
from processors import corrections, local
from processors.models import EventType, iso
from processors.rules import default_rules

if TYPE_CHECKING:
    from processors.local.own import Learned


def correct(settings: Settings, tenant: str, text: str, event_type: str, importance: float | None) -> str:
    folder, safe = _folder(settings, tenant)
    now = iso(datetime.now(UTC))
    corrections.add(folder, corrections.Correction(text, EventType(event_type), importance, at=now), safe)
    was = default_rules().classify(text)
    return f"{event_type} from now on (the rules say {was.event_type}, {was.confidence:.0%} sure)"


def listed(settings: Settings, tenant: str) -> list[str]:
    return [
        "  ".join(filter(None, (one.at, str(one.event_type), one.text)))
        for one in corrections.read(*_folder(settings, tenant))
    ]


def train(settings: Settings, tenant: str) -> str:
    """Makes the tenant's own classifier; workers take it within seconds."""
    if not local.installed():
        raise Failed(f"needs the extra: {install('local')}; corrected words themselves need no training")
    from processors.local.own import NothingLearned

    try:
        path, learned = learn(settings, tenant)
    except NothingLearned as error:
        raise Failed(f"nothing was changed: {error}") from error
    return (
        f"{learned.after} of {learned.corrections} corrections are understood without looking them up "
        f"({learned.before} before): {path}"
    )


def learn(settings: Settings, tenant: str) -> tuple[Path, Learned]:
    """With the extra `local`. Raises NothingLearned."""
    from processors.local import own

    folder, safe = _folder(settings, tenant)
    base = local.shared()
    assert base is not None  # installed
    weights, learned = own.train(base, corrections.read(folder, safe))
    return own.write(folder, weights), learned


def _folder(settings: Settings, tenant: str) -> tuple[Path, Safe]:
    tenants = Tenants(settings)
    tenants.load()
    if tenants.get(tenant) is None:
        raise Failed(f"no tenant is called {tenant!r}: see `chat-chat tenants list`")
    folder = keys.understanding_dir(settings.data_dir / "understanding", tenant)
    return folder, vault_of(settings, tenants).of(tenant)
