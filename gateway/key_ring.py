"""Keys that were made for a tenant, beside those that its file names: hashed, in `DATA_DIR/keys/<tenant>.json`."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from gateway.small_lists import Listed, SmallLists
from processors.models import iso

LONGEST_NAME = 60  # characters
MOST = 50  # keys of one tenant


@dataclass(frozen=True, slots=True)
class MadeKey:
    """`hash` is SHA-256 in hex; `made_at` ISO 8601 in UTC; `hint` the key's first characters, to tell keys apart."""

    id: str
    name: str
    hint: str
    hash: str
    made_at: str


class KeyRing:
    """Any process may change it; the others see it with their next look."""

    def __init__(self, data_dir: Path) -> None:
        self._lists = SmallLists(data_dir / "keys")

    def of(self, tenant: str) -> list[MadeKey]:
        """The oldest first. What was written by hand and is no key's record opens nothing."""
        found = []
        for one in self._lists.of(tenant):
            with suppress(TypeError, KeyError):
                found.append(MadeKey(**{name: str(one[name]) for name in MadeKey.__slots__}))
        return found

    def make(self, tenant: str, name: str, now: datetime) -> tuple[MadeKey, str]:
        """The new one and the key itself, which nobody can look up later. Raises ValueError for too many, OSError."""
        key = f"ck_{secrets.token_urlsafe(32)}"
        made = MadeKey(
            id=f"k_{secrets.token_hex(6)}",
            name=" ".join(name.split())[:LONGEST_NAME],
            hint=key[:7],
            hash=hashlib.sha256(key.encode()).hexdigest(),
            made_at=iso(now),
        )

        def added(there: Listed) -> Listed:
            if len(there) >= MOST:
                raise ValueError(f"{tenant} has {MOST} keys: revoke one first")
            return [*there, asdict(made)]

        self._lists.change(tenant, added)
        return made, key

    def revoke(self, tenant: str, key_id: str) -> bool:
        """Whether there was one. Raises OSError."""
        if all(one.id != key_id for one in self.of(tenant)):
            return False
        self._lists.change(tenant, lambda there: [one for one in there if one.get("id") != key_id])
        return True
