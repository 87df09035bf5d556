"""Names for people that can be compared and not read: a keyed hash of tenant and id.

The key is made once, in `DATA_DIR/pseudonym_key`, mode 0600. Without it nobody can try ids against the hashes; with it,
only ids that somebody already knows.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

from memory import keys

KEY_FILE = "pseudonym_key"
_BYTES = 32


class Pseudonyms:
    """`data_dir` is DATA_DIR. Blocking for the first call; raises OSError."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / KEY_FILE
        self._key: bytes | None = None

    def of(self, tenant: str, user: str) -> str:
        """32 hex digits: the same for the same person of the same tenant. Raises InvalidId."""
        if self._key is None:
            self._key = self._kept()
        named = f"{keys.check_tenant(tenant)}\n{keys.escape(user)}".encode()
        return hmac.new(self._key, named, hashlib.sha256).hexdigest()[:32]

    def _kept(self) -> bytes:
        with suppress(FileNotFoundError):
            return _read(self._path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        beside = self._path.with_name(f".{KEY_FILE}.{secrets.token_hex(8)}")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_hex(_BYTES).encode())
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # another process was faster: its key counts
                os.link(beside, self._path)
        finally:
            beside.unlink()
        return _read(self._path)


def _read(path: Path) -> bytes:
    key = path.read_bytes().strip()
    if len(key) < _BYTES:
        raise OSError(0, "it holds no key: put the one back that it held", str(path))
    return key
