"""Which words stand where in what is known of somebody, on disk, for those of whom much is known: derived, made anew
where it is missing, can't be read or is of an older version. Blocking, for threads."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from zlib import crc32

import msgspec

from config.vault import PLAIN, Damaged, Vault, key_of
from memory import keys
from memory.recall.ranking import Kept
from memory.recall.terms import edition

log = logging.getLogger(__name__)

_VERSION = 9  # another one where terms or what is kept of them are others
_decoder = msgspec.msgpack.Decoder(Kept)


class WordFiles:
    """`<base>/<tenant>/<user>.words`; `base` is `DATA_DIR/index`. A disk that can't be used costs making them anew."""

    def __init__(self, base: Path, vault: Vault = PLAIN) -> None:
        self._base = base
        self._vault = vault

    def load(self, tenant: str, user: str) -> Kept | None:
        try:
            with open(keys.words_file(self._base, tenant, user), "rb") as file:
                raw = file.read()
            raw = self._vault.of(tenant).open(raw)
            head, told = _head(), memoryview(raw)[_HEAD:]
            return _decoder.decode(told) if raw[:_HEAD] == b"%s%08x\n" % (head, crc32(told)) else None
        except FileNotFoundError:
            return None
        except (OSError, Damaged, msgspec.MsgspecError) as error:
            log.warning("words of somebody in %s are looked up anew: %s", tenant, error)
            return None

    def save(self, tenant: str, user: str, kept: Kept) -> None:
        path = keys.words_file(self._base, tenant, user)
        beside = f"{path}.{secrets.token_hex(8)}.tmp"  # of this call: another may be at the same person's
        try:
            told = msgspec.msgpack.encode(kept)
            raw = self._vault.of(tenant).seal(b"%s%08x\n%s" % (_head(), crc32(told), told))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(raw)
            os.replace(beside, path)  # not synced: a power cut leaves what is made anew
        except OSError as error:
            log.warning("words of somebody in %s can't be kept: %s", tenant, error)
            with suppress(OSError):
                os.unlink(beside)

    def drop(self, tenant: str, users: Collection[str]) -> None:
        """Raises OSError: what was to be forgotten is still there."""
        for user in users:
            path = Path(keys.words_file(self._base, tenant, user))
            for one in (path, *path.parent.glob(f"{_literal(path.name)}.*.tmp")):
                one.unlink(missing_ok=True)

    def expire(self, tenant: str, before: datetime) -> None:
        """Removes what was written before then: nobody may come any more to take out of it what retention removed."""
        oldest = before.timestamp()
        for path in (self._base / keys.check_tenant(tenant)).glob("*"):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < oldest:
                    path.unlink()

    def remove(self, tenant: str) -> None:
        """The tenant's: they are made anew."""
        shutil.rmtree(self._base / keys.check_tenant(tenant), ignore_errors=True)

    def renew(self, tenant: str) -> None:
        """Removes what is sealed with another key than the current one. Raises OSError."""
        current = self._vault.of(tenant).key_id
        for path in (self._base / keys.check_tenant(tenant)).glob("*"):
            with path.open("rb") as file:
                if key_of(file.read(64)) != current:
                    path.unlink(missing_ok=True)


def _head() -> bytes:
    """What a file begins with; the sum of what follows stands behind it."""
    return b"words %03d %08x " % (_VERSION, edition())


_HEAD = len(b"words 000 00000000 00000000\n")


def _literal(name: str) -> str:
    """Of a name, for a pattern of files."""
    return name.replace("[", "[[]")
