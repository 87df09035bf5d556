"""Who has something that is due: too old, too much, faded. Told by a derived list, so that nobody else is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from memory.models import LongTermMemory


class Known(NamedTuple):
    """A person as they are read, and of what is kept of them, with nothing left out: when the oldest of it was, and how
    many events there are."""

    memory: LongTermMemory
    oldest: datetime | None
    events: int


class Due(Protocol):
    """Blocking. Raises CatalogUnavailable where it can't be told."""

    def old(self, tenant: str, before: datetime | None, most: int) -> list[str]:
        """Who has something from before then, or more than `most` events (0: as many as they like)."""
        ...

    def fading(self, tenant: str, now: datetime) -> list[str]:
        """Who has facts that have faded by then."""
        ...

    def seen_to(self, tenant: str, users: Sequence[str]) -> None:
        """They are listed anew as they are now, also where nothing of them changed."""
        ...

    def stop(self) -> None:
        """What is under way ends early."""
        ...
