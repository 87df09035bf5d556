"""Messages kept on disk while the inbox is away: one small file each, synced before anybody is told that it is safe.

A file's name is its event's hash, made with a hard link, so that of two deliveries (of two processes of this machine,
even) one is kept. While a process answers a message itself, it holds a lock on the file: what is unlocked and not
answered belongs into the inbox as soon as that is back.

    <conversation>-<event>.json   waiting, or in hand (locked); both are hashes
    <conversation>-<event>.done   answered while the inbox was away: to be known there as seen, and to join the session
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from config.vault import PLAIN, Damaged, Locked, Vault
from gateway.errors import InboxUnavailable
from gateway.inbox.base import Policy, event_of, name_of
from gateway.messages import BEGUN as BEGUN
from gateway.messages import InboundMessage

log = logging.getLogger(__name__)

OLD_DRAFT = 3600.0  # seconds
BROKEN = ".broken"  # what a file that can't be read ends with
BROKEN_FOR = 30 * 86_400.0  # seconds for which it is kept for an operator to look at
ROOM = 4096  # bytes that a message takes, about
RACY = 2.0  # seconds: a folder that changed this shortly ago may change again within the same tick of its clock
MOST = 20_000  # files: beyond that the platforms are asked to wait


class Spooled(msgspec.Struct, frozen=True):
    """One message as it stands in its file."""

    order: int  # nanoseconds since 1970: the order of acceptance
    message: InboundMessage
    policy: Policy
    doubtful: bool = False  # it may stand in the inbox all the same, as its way there was cut off half-way


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Spooled).decode


class SpoolFull(InboxUnavailable):
    """The spool holds as much as it may."""


@dataclass(slots=True)
class Entry:
    """A file of the spool, and the lock on it while this process has it in hand."""

    path: Path
    spooled: Spooled
    lock: int | None = None
    vault: Vault = PLAIN

    @property
    def answered(self) -> bool:
        return self.path.suffix == ".done"

    @property
    def conversation(self) -> str:
        """Its hash."""
        return self.path.name.partition("-")[0]

    def release(self) -> None:
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    def mark_begun(self, outbox: bytes) -> None:
        """On disk when it returns: from now on these calls may have reached the customer."""
        message = self.spooled.message
        if self.lock is None:
            return
        begun = msgspec.structs.replace(message, extra={**message.extra, BEGUN: outbox.decode()})
        spooled = msgspec.structs.replace(self.spooled, message=begun)
        # A file of its own takes the other's place, locked before it is seen: who is killed leaves one of them whole.
        draft, lock = _drafted(self.path, spooled, self.vault)
        try:
            os.replace(draft, self.path)
            _sync(self.path.parent)
        except OSError:
            os.close(lock)
            draft.unlink(missing_ok=True)
            raise
        os.close(self.lock)
        self.lock, self.spooled = lock, spooled

    def mark_answered(self) -> None:
        """On disk when it returns; the file is still held."""
        done = self.path.with_suffix(".done")
        self.path.rename(done)
        _sync(done.parent)
        self.path = done

    def remove(self) -> None:
        with suppress(FileNotFoundError):
            self.path.unlink()
        self.release()


class Spool:
    """`folder` is `DATA_DIR/spool`. All calls block: they belong into a thread."""

    def __init__(self, folder: Path, most: int = MOST, vault: Vault = PLAIN) -> None:
        self.folder = folder
        self._vault = vault
        self._most = most
        self._place = str(folder)
        self._empty_at = -1  # when the folder last changed before it was seen empty

    def add(
        self,
        messages: Sequence[tuple[InboundMessage, Policy]],
        *,
        doubtful: bool = False,
        accepted_at: int | None = None,
    ) -> list[Entry | None]:
        """Keeps all of them, synced, each held by this process; None for one that is here already. `accepted_at`, in
        nanoseconds since 1970, is now unless it is told.

        Raises SpoolFull, and InboxUnavailable when the disk does not take them; then none that is new here is kept.
        """
        entries: list[Entry | None] = []
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if self.count() + len(messages) > self._most:
                raise SpoolFull(f"the spool holds {self._most} messages already")
            for message, policy in messages:
                order = time.time_ns() if accepted_at is None else accepted_at + len(entries)
                entries.append(self._keep(Spooled(order, message, policy, doubtful)))
            _sync(self.folder)
        except OSError as error:
            for entry in entries:
                if entry is not None:
                    entry.remove()
            raise InboxUnavailable(f"the spool can't be written: {error.strerror}") from error
        return entries

    def count(self) -> int:
        try:
            return sum(1 for name in os.listdir(self.folder) if name.endswith((".json", ".done")))
        except (FileNotFoundError, NotADirectoryError):
            return 0

    def takes(self) -> bool:
        """Whether one message more would be kept: tried, as a disk that is full or read-only tells nobody before."""
        if self.count() >= self._most:
            return False
        draft = self.folder / f".room-{secrets.token_hex(8)}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                _write(file, bytes(ROOM))
                os.fsync(file)
            finally:
                os.close(file)
                draft.unlink()
        except OSError:
            return False
        return True

    def is_empty(self) -> bool:
        """As `count` would say, by one look where it was empty and has not changed since."""
        try:
            changed = os.stat(self._place).st_mtime_ns
        except FileNotFoundError:
            return True
        if changed == self._empty_at:
            return True
        if self.count():
            return False
        if time.time() - changed / 1e9 > RACY:
            self._empty_at = changed
        return True

    def holds(self, messages: Iterable[tuple[InboundMessage, Policy]]) -> bool:
        """Whether there is anything of their conversations, answered or not."""
        try:
            kept = [name for name in os.listdir(self.folder) if name.endswith((".json", ".done"))]
        except OSError:
            return False
        hashes = {_hash(name_of(message)) for message, _ in messages} if kept else set()
        return any(name.partition("-")[0] in hashes for name in kept)

    def free(self, suffixes: tuple[str, ...] = (".json", ".done")) -> list[Entry]:
        """What no living process has in hand, in the order of acceptance, each locked: to be removed or released.
        What comes after a message that is in somebody's hand waits for that one. A long folder is not looked at in one
        moment: a conversation of which something came meanwhile waits for the next look, as this one may have met a
        message and missed the one before it."""
        found: list[Entry] = []
        in_hand: dict[str, int] = {}  # conversation: order of its oldest message that somebody holds
        paths = set(self.folder.glob("*-*"))
        for path in paths:
            if path.name.startswith("."):
                _sweep(path)
            if path.suffix not in suffixes:
                continue
            if (entry := self._open(path)) is not None:
                found.append(entry)
            elif path.suffix == ".json":
                conversation = path.name.partition("-")[0]
                in_hand[conversation] = min(in_hand.get(conversation, sys.maxsize), self._order_in(path))
        came = (
            {path.name.partition("-")[0] for path in self.folder.glob("*-*.json") if path not in paths} if found else ()
        )
        behind = [
            one
            for one in found
            if one.conversation in came or one.spooled.order > in_hand.get(one.conversation, sys.maxsize)
        ]
        for entry in behind:
            entry.release()
        return sorted((one for one in found if one.lock is not None), key=lambda entry: entry.spooled.order)

    def earlier(self, entry: Entry) -> bool:
        """Whether an older message of the same conversation waits here."""
        others = self.folder.glob(f"{entry.conversation}-*.json")
        return any(self._order_in(path) < entry.spooled.order for path in others if path != entry.path)

    def expire_broken(self, now: float) -> int:
        """Removes what could not be read and has been set aside for 30 days; how many files. `now` in seconds since
        1970."""
        removed = 0
        for path in list(self.folder.glob(f"*{BROKEN}")):
            with suppress(FileNotFoundError):
                # Renaming leaves a file's own times alone but for the last: that is when it was set aside.
                if now - path.stat().st_ctime >= BROKEN_FOR:
                    path.unlink()
                    log.warning("a spooled message that could not be read is removed after 30 days: %s", path.name)
                    removed += 1
        return removed

    def forget(self, goes: Callable[[InboundMessage], bool], ids: Collection[str]) -> int:
        """Removes the messages that `goes` names, but for those in somebody's hand, and what can't be read but holds
        one of these ids; how many files. Raises OSError."""
        removed = 0
        named = [msgspec.json.encode(one)[1:-1] for one in ids]
        for path in list(self.folder.glob("*-*")) if self.folder.is_dir() else []:
            if path.suffix in (".json", ".done"):
                entry = self._open(path)
                if entry is not None and goes(entry.spooled.message):
                    entry.remove()
                    removed += 1
                    continue
                if entry is not None:
                    entry.release()
            if path.suffix == BROKEN or path.with_suffix(BROKEN).exists():
                path = path.with_suffix(BROKEN)
                if any(one in path.read_bytes() for one in named):
                    path.unlink()
                    removed += 1
        return removed

    def _keep(self, spooled: Spooled) -> Entry | None:
        name = f"{_hash(name_of(spooled.message))}-{_hash(event_of(spooled.message))}"
        path = self.folder / f"{name}.json"
        if path.exists() or path.with_suffix(".done").exists():
            return None
        draft, lock = _drafted(path, spooled, self._vault)
        try:
            os.link(draft, path)
        except FileExistsError:
            os.close(lock)
            return None
        except OSError:
            os.close(lock)
            raise
        finally:
            with suppress(OSError):
                draft.unlink()
        return Entry(path, spooled, lock, self._vault)

    def _open(self, path: Path) -> Entry | None:
        try:
            lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(lock), os.stat(path)):  # written anew between the two calls
                raise FileNotFoundError
            return Entry(path, self._read(path), lock, self._vault)
        except Locked as error:
            log.error("the spooled message %s waits: %s", path.name, error.strerror)
            os.close(lock)
            return None
        except (BlockingIOError, FileNotFoundError):
            os.close(lock)
            return None
        except (msgspec.DecodeError, Damaged):
            log.error("a spooled message can't be read and is set aside: %s", path.name)
            path.rename(path.with_suffix(BROKEN))
            os.close(lock)
            return None

    def _read(self, path: Path) -> Spooled:
        return _decode(self._vault.shared("").open_line(path.read_bytes()))

    def _order_in(self, path: Path) -> int:
        """When its message was accepted; a file that has gone by now comes after everything, one that makes no sense
        before everything."""
        try:
            return self._read(path).order
        except OSError:
            return sys.maxsize
        except (msgspec.DecodeError, Damaged):
            return 0


def _drafted(path: Path, spooled: Spooled, vault: Vault) -> tuple[Path, int]:
    """What is to stand at `path`, on disk beside it and locked by us. Its name is this call's own: the same delivery
    may be on its way twice in this process. Raises OSError."""
    draft = path.parent / f".{path.stem}.{secrets.token_hex(8)}"
    lock = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # before it is seen by anybody
        _write(lock, _sealed(spooled, vault))
        os.fsync(lock)
    except OSError:
        os.close(lock)
        draft.unlink(missing_ok=True)
        raise
    return draft, lock


def _sealed(spooled: Spooled, vault: Vault) -> bytes:
    """As a line. Tenants lie together here, by names that tell nobody whose."""
    return vault.shared(spooled.message.tenant).seal_line(_encode(spooled))


def _write(file: int, data: bytes) -> None:
    """All of it from the file's beginning: a disk that is nearly full takes a part and raises nothing until it is asked
    for the rest."""
    at = 0
    while at < len(data):
        at += os.pwrite(file, data[at:], at)


def _sweep(draft: Path) -> None:
    """Removes what a process left that was killed in mid-write."""
    with suppress(OSError):
        if time.time() - draft.stat().st_mtime > OLD_DRAFT:
            draft.unlink()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
