"""Keys that were made for a tenant, beside those that its file names: hashed, in the list `keys` of memory.lists."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Literal, get_args

from memory.lists import KEYS, KeptLists, Listed
from processors.models import iso

LONGEST_NAME = 60  # characters
MOST = 50  # keys of one tenant
NOTED_EVERY = timedelta(minutes=10)  # how exactly a key's last use is known

Scope = Literal["read", "write", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)


@dataclass(frozen=True, slots=True)
class MadeKey:
    """`hash` is SHA-256 in hex; times are ISO 8601 in UTC, "" for never; `hint` is the key's first characters, to tell
    keys apart."""

    id: str
    name: str
    hint: str
    hash: str
    made_at: str
    scope: str = "admin"
    expires_at: str = ""
    last_used: str = ""

    def expired(self, now: datetime) -> bool:
        return bool(self.expires_at) and self.expires_at <= iso(now)


class KeyRing:
    """Any process may change it; the others see it with their next look: at once in files, within a second where the
    lists lie in a database. Raises LongTermUnavailable when that can't be asked, OSError."""

    def __init__(self, lists: KeptLists) -> None:
        self._lists = lists(KEYS)

    def of(self, tenant: str) -> list[MadeKey]:
        """The oldest first. What was written by hand and is no key's record opens nothing."""
        found = []
        for one in self._lists.of(tenant):
            with suppress(TypeError, AttributeError):
                known = {field.name for field in fields(MadeKey)} & one.keys()
                found.append(MadeKey(**{name: str(one[name]) for name in known}))
        return found

    def make(
        self, tenant: str, name: str, now: datetime, scope: Scope = "admin", days: int | None = None
    ) -> tuple[MadeKey, str]:
        """The new one, good for so many days or for ever, and the key itself, which nobody can look up later. Raises
        ValueError for too many."""
        key = f"ck_{secrets.token_urlsafe(32)}"
        made = MadeKey(
            id=f"k_{secrets.token_hex(6)}",
            name=" ".join(name.split())[:LONGEST_NAME],
            hint=key[:7],
            hash=hashlib.sha256(key.encode()).hexdigest(),
            made_at=iso(now),
            scope=scope,
            expires_at=iso(now + timedelta(days=days)) if days is not None else "",
        )

        def added(there: Listed) -> Listed:
            if len(there) >= MOST:
                raise ValueError(f"{tenant} has {MOST} keys: revoke one first")
            return [*there, asdict(made)]

        self._lists.change(tenant, added)
        return made, key

    def used(self, tenant: str, key: MadeKey, now: datetime) -> None:
        """Noted now and then, as each note is a file that is written. What can't be written is no reason to refuse a
        key."""
        if key.last_used >= iso(now - NOTED_EVERY):
            return

        def noted(there: Listed) -> Listed:
            return [{**one, "last_used": iso(now)} if _is(one, key.id) else one for one in there]

        self._lists.note(tenant, noted)

    def revoke(self, tenant: str, key_id: str) -> bool:
        """Whether there was one."""
        found = False

        def without(there: Listed) -> Listed:
            nonlocal found
            left = [one for one in there if not _is(one, key_id)]
            found = len(left) < len(there)
            return left

        self._lists.change(tenant, without)
        return found


def _is(one: object, key_id: str) -> bool:
    return isinstance(one, dict) and one.get("id") == key_id
