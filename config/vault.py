"""Encryption of what lies on disk, an option: bytes in, bytes out. Every file with people's words in it passes through
here on its way to the disk and back, whole or line by line.

A main key comes from ENCRYPTION_KEY; each tenant's key is derived from it (HKDF, SHA-256) and seals with AES-256-GCM.
An envelope names its main key, so that what an older one sealed is read as long as that stands behind the first in
ENCRYPTION_KEY, and what was never sealed is read as it is.

    a file:  chat-chat sealed 1 <key id>⏎<nonce><ciphertext>
    a line:  {"sealed":"<key id>","data":"<nonce and ciphertext in base64>"}
"""

from __future__ import annotations

import base64
import binascii
import errno
import os
import re
import secrets
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from config.extras import install

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
_NONCE = 12
_FILE = re.compile(rb"chat-chat sealed 1 ([0-9a-f]{8})\n")
_LINE = re.compile(rb'\{"sealed":"([0-9a-f]{8})","data":"([A-Za-z0-9+/=]*)"\}\s*\Z')
_FILE_START, _LINE_START = b"chat-chat sealed ", b'{"sealed":"'


class Locked(OSError):
    """It is sealed with a key that is not at hand. To whoever reads or writes files this is a disk that
    can't be used: nothing is taken for broken, replaced or lost."""

    def __init__(self, what: str) -> None:
        super().__init__(errno.EACCES, what)


class Damaged(ValueError):
    """It was sealed with a key that is at hand, and is not what was sealed any more."""


class Vault:
    """`keys` are main keys of 32 bytes, the one that seals first; `encrypts` says whether a tenant's files are sealed.
    Without keys nothing is, and nothing is loaded for it."""

    def __init__(self, keys: Sequence[bytes] = (), encrypts: Callable[[str], bool] = lambda tenant: True) -> None:
        self._keys = {key_id(key): key for key in keys}
        self._encrypts = encrypts
        self._safes: dict[str, Safe] = {}  # of tenants, for each turn
        self.current = key_id(keys[0]) if keys else None

    @property
    def ids(self) -> list[str]:
        """Of the keys at hand, the one that seals first."""
        return list(self._keys)

    def of(self, tenant: str) -> Safe:
        safe = self._safes.get(tenant)
        if safe is None:
            safe = self._safes[tenant] = Safe(self, tenant, tenant)
        return safe

    def shared(self, tenant: str) -> Safe:
        """For files in which tenants lie together: sealed if this tenant's are, opened whoever's they are."""
        return Safe(self, tenant, "")

    def seals(self, tenant: str) -> str | None:
        """The id of the key that the tenant's files are sealed with now; None: they are not."""
        return self.current if self.current is not None and self._encrypts(tenant) else None

    def key(self, key: str, purpose: str) -> bytes:
        """32 bytes for one purpose. Raises Locked."""
        if key not in self._keys:
            raise Locked(
                f"it is encrypted with key {key}, which ENCRYPTION_KEY does not hold: put that key back, "
                "after the current one"
            )
        return _derived(self._keys[key], purpose)


class Safe:
    """What one tenant's files go through."""

    def __init__(self, vault: Vault, tenant: str, owner: str) -> None:
        self._vault = vault
        self._tenant = tenant
        self._owner = owner

    @property
    def key_id(self) -> str | None:
        """See Vault.seals."""
        return self._vault.seals(self._tenant)

    def _purpose(self) -> str:
        return f"files of {self._owner}"

    def database_key(self, key: str) -> bytes:
        """Of SQLite files. Raises Locked."""
        return self._vault.key(key, f"databases of {self._owner}")

    def seal(self, data: bytes) -> bytes:
        """A file's contents as they are to be written."""
        if (key := self.key_id) is None:
            return data
        return b"%s1 %s\n%s" % (_FILE_START, key.encode(), self._sealed(key, data))

    def open(self, raw: bytes) -> bytes:
        """A file's contents; what was never sealed as it is. Raises Locked, Damaged."""
        if not raw.startswith(_FILE_START):
            return raw
        if (found := _FILE.match(raw)) is None:
            raise Damaged("a sealed file without its key's name")
        return self._opened(found[1].decode(), raw[found.end() :])

    def seal_line(self, line: bytes) -> bytes:
        """A line, without its end, as it is to be written."""
        if (key := self.key_id) is None:
            return line
        return b'%s%s","data":"%s"}' % (_LINE_START, key.encode(), base64.b64encode(self._sealed(key, line)))

    def seal_lines(self, lines: Sequence[bytes]) -> bytes:
        """Lines as they are to be written, with their ends."""
        if self._vault.current is None or self.key_id is None:
            return b"\n".join([*lines, b""])
        return b"".join([self.seal_line(line) + b"\n" for line in lines])

    def open_line(self, line: bytes) -> bytes:
        """A line; one that was never sealed as it is. Raises Locked, Damaged."""
        if not line.startswith(_LINE_START):
            return line
        if (found := _LINE.match(line)) is None:
            raise Damaged("a sealed line that was cut off")
        try:
            return self._opened(found[1].decode(), base64.b64decode(found[2], validate=True))
        except binascii.Error as error:
            raise Damaged("a sealed line that was cut off") from error

    def readable(self, raw: bytes) -> bytes:
        """A file of either kind with everything opened that can be; what is damaged stays as it is. Raises Locked."""
        if raw.startswith(_FILE_START) or _LINE_START not in raw:
            try:
                return self.open(raw)
            except Damaged:
                return raw
        return b"".join(self._line(line, lambda one: one) for line in raw.splitlines(keepends=True))

    def renewed(self, raw: bytes, *, lines: bool) -> bytes | None:
        """A file's contents as they would be written now; None: that is what they are. Damaged ones stay as they are.
        Raises Locked."""
        wanted = self.key_id
        if lines:
            parts = raw.splitlines(keepends=True)
            if all(_key_of_line(part) == wanted for part in parts if part.strip()):
                return None
            new = b"".join(part if _key_of_line(part) == wanted else self._line(part, self.seal_line) for part in parts)
            return new if new != raw else None
        found = _FILE.match(raw)
        if (found[1].decode() if found else None) == wanted or (not found and not raw):
            return None
        try:
            return self.seal(self.open(raw))
        except Damaged:
            return None

    def _line(self, line: bytes, then: Callable[[bytes], bytes]) -> bytes:
        body = line.rstrip(b"\r\n")
        if not body.strip():
            return line
        try:
            return then(self.open_line(body)) + line[len(body) :]
        except Damaged:
            return line

    def _sealed(self, key: str, data: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + _cipher(self._vault.key(key, self._purpose())).encrypt(nonce, data, None)

    def _opened(self, key: str, raw: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag

        cipher = _cipher(self._vault.key(key, self._purpose()))
        try:
            return cipher.decrypt(raw[:_NONCE], raw[_NONCE:], None)
        except (InvalidTag, ValueError) as error:
            raise Damaged("it is not what was sealed") from error


PLAIN = Vault()


def key_of(raw: bytes) -> str | None:
    """The id of the key that a file was sealed with, or its first sealed line; None: none was."""
    if (found := _FILE.match(raw)) is not None:
        return found[1].decode()
    at = raw.find(_LINE_START)
    return _key_of_line(raw[at:].partition(b"\n")[0]) if at >= 0 else None


def _key_of_line(line: bytes) -> str | None:
    return found[1].decode() if (found := _LINE.match(line)) is not None else None


def parse_keys(raw: str) -> tuple[bytes, ...]:
    """Main keys as text: 64 hex digits or 44 characters of base64 each, with spaces or commas between. Raises
    ValueError with what is allowed, and where what it takes is not installed; never with what was given."""
    keys = []
    for one in re.split(r"[\s,]+", raw.strip()):
        try:
            key = bytes.fromhex(one) if len(one) == 2 * KEY_BYTES else base64.b64decode(one, validate=True)
        except (ValueError, binascii.Error):
            key = b""
        if len(key) != KEY_BYTES:
            raise ValueError("is no key; allowed: what `chat-chat encryption new-key` prints, older keys after it")
        keys.append(key)
    if len({key_id(key) for key in keys}) < len(keys):
        raise ValueError("holds the same key twice; allowed: each key once, the current one first")
    if missing := [name for name in ("cryptography", "sqlcipher3") if find_spec(name) is None]:
        raise ValueError(f"needs {' and '.join(missing)}: {install('encryption')}")
    return tuple(keys)


def new_key() -> str:
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


@lru_cache(maxsize=64)
def key_id(key: bytes) -> str:
    """Tells keys apart, and nothing of what they are."""
    return _hkdf(key, "key id")[:4].hex()


@lru_cache(maxsize=4096)
def _derived(key: bytes, purpose: str) -> bytes:
    return _hkdf(key, purpose)


def _hkdf(key: bytes, purpose: str) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=f"chat-chat {purpose}".encode()).derive(key)


@lru_cache(maxsize=4096)
def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
