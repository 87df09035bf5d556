"""What `chat-chat understanding` does: what the shop's own people correct, and what is learned of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from config.settings import Settings
from config.tenants import Tenants
from gateway.cli import Failed
from memory import keys
from processors import corrections, local
from processors.models import EventType, iso
from processors.rules import default_rules


def correct(settings: Settings, tenant: str, text: str, event_type: str, importance: float | None) -> str:
    folder = _folder(settings, tenant)
    now = iso(datetime.now(UTC))
    corrections.add(folder, corrections.Correction(text, EventType(event_type), importance, at=now))
    was = default_rules().classify(text)
    return f"{event_type} from now on (the rules say {was.event_type}, {was.confidence:.0%} sure)"


def listed(settings: Settings, tenant: str) -> list[str]:
    return [
        "  ".join(filter(None, (one.at, str(one.event_type), one.text)))
        for one in corrections.read(_folder(settings, tenant))
    ]


def train(settings: Settings, tenant: str) -> str:
    """Makes the tenant's own classifier; workers take it within seconds."""
    folder = _folder(settings, tenant)
    if not local.installed():
        raise Failed("needs the extra: pip install 'chat-chat[local]'; corrected words themselves need no training")
    from processors.local import own

    base = local.shared()
    assert base is not None  # installed
    try:
        weights, learned = own.train(base, corrections.read(folder))
    except own.NothingLearned as error:
        raise Failed(f"nothing was changed: {error}") from error
    path = own.write(folder, weights)
    return (
        f"{learned.after} of {learned.corrections} corrections are understood without looking them up "
        f"({learned.before} before): {path}"
    )


def _folder(settings: Settings, tenant: str) -> Path:
    tenants = Tenants(settings)
    tenants.load()
    if tenants.get(tenant) is None:
        raise Failed(f"no tenant is called {tenant!r}: see `chat-chat tenants list`")
    return keys.understanding_dir(settings.data_dir / "understanding", tenant)
