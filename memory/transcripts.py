"""What was said, append-only: one JSON line a message, one file a person and month."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import orjson

from config.vault import PLAIN, Safe, Vault
from memory import amend, file_locks, keys
from memory.errors import LongTermUnavailable
from memory.keys import ConversationRef
from memory.long_term.document import dump
from memory.models import Message, is_fresh_start
from memory.threads import in_thread
from processors.models import iso

_BLOCK = 64 * 1024
_UNFINISHED = ".tmp"  # what the name of a file ends with that is to take another's place
_GROWS = os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
_MOST_PLACES = 1000
_MAX_SCAN = 8 * 1024 * 1024  # bytes looked through for one conversation's tail among a person's other ones


class TranscriptFiles:
    """`<base>/<tenant>/<user>/<YYYY-MM>.jsonl`; agent and conversation stand in each line.

    Raises LongTermUnavailable where the folder can't be read or written. `clock` names the month.
    """

    def __init__(
        self, base: Path | str, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC), vault: Vault = PLAIN
    ) -> None:
        self._base = Path(base)
        self._plain_base = str(base)
        self._clock = clock
        self._vault = vault
        self._places: dict[tuple[str, str], tuple[str, str]] = {}  # lock and folder of who said something lately

    def append(self, ref: ConversationRef, messages: Sequence[Message]) -> asyncio.Future[None]:
        """Begun at once, so that who has more to write has it written beside without a task."""
        if messages:
            return in_thread(_append, *self._lines(ref, messages))
        nothing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        nothing.set_result(None)
        return nothing

    async def tail(self, ref: ConversationRef, limit: int) -> list[Message]:
        if limit <= 0 or self._silent(ref):
            return []
        return await in_thread(self._tail, ref, limit)

    async def everything(self, tenant: str, user: str) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._everything, tenant, user)

    async def find(self, ref: ConversationRef, platform_id: str) -> Message | None:
        return await asyncio.to_thread(self._find, ref, platform_id)

    async def amend(
        self, ref: ConversationRef, platform_id: str, change: Callable[[Message], Message | None]
    ) -> Message | None:
        """Looks through whole months, the newest first: an edit or an unsend is rare."""
        return await asyncio.to_thread(self._amend, ref, platform_id, change)

    async def remove(self, ref: ConversationRef, goes: Callable[[Message], bool]) -> int:
        """Removes what was said in the conversation and `goes` names; the number of messages removed."""
        return await asyncio.to_thread(self._remove, ref, goes)

    async def users(self, tenant: str) -> list[str]:
        """Everybody of whom something is kept, but for ids too long to be told from a folder's name."""
        return await asyncio.to_thread(self._users, tenant)

    async def tenants(self) -> list[str]:
        return await asyncio.to_thread(self._tenants)

    async def prune(self, tenant: str, before: datetime) -> int:
        """Removes what was said before; the number of messages removed."""
        return await asyncio.to_thread(self._prune, tenant, before)

    async def forget(self, tenant: str, user: str) -> int:
        """Removes the person's transcripts; the number of messages removed."""
        return await asyncio.to_thread(self._forget, tenant, user)

    def _lines(self, ref: ConversationRef, messages: Sequence[Message]) -> tuple[str, str, str, bytes]:
        """What `_append` is told. Made by who has the messages at hand."""
        now, frame = self._clock(), {"agent": keys.agent_name(ref.agent), "conversation": ref.conversation}
        written, said = iso(now), []
        for one in messages:
            said.append(dump({**frame, **one, "timestamp": one.get("timestamp") or written}))
        place = self._places.get((ref.tenant, ref.user))
        if place is None:
            tenant, person = keys.transcript_place(self._plain_base, ref.tenant, ref.user)
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            place = file_locks.lock_file(tenant, person), f"{tenant}/{person}"
            self._places[ref.tenant, ref.user] = place
        return *place, f"{written[:7]}.jsonl", self._vault.of(ref.tenant).seal_lines(said)

    def _silent(self, ref: ConversationRef) -> bool:
        """Whether one look tells that nothing of the person is kept, which is so of everybody whom nobody has met."""
        try:
            os.stat("/".join(keys.transcript_place(self._plain_base, ref.tenant, ref.user)))
        except FileNotFoundError:
            return True
        except OSError:
            pass
        return False

    # -- in threads --------------------------------------------------------------------------------------------------

    def _tail(self, ref: ConversationRef, limit: int) -> list[Message]:
        folder = keys.transcript_dir(self._base, ref.tenant, ref.user)
        mine = (keys.agent_name(ref.agent), ref.conversation)
        newest_first: list[Message] = []
        seen: dict[str, int] = {}
        safe = self._vault.of(ref.tenant)
        with _faults(folder, "read"):
            for line in self._lines_backwards(folder):
                record = _parse(line, safe)
                if record is None or (record.pop("agent", None), record.pop("conversation", None)) != mine:
                    continue
                if is_fresh_start(cast("Message", record)):
                    break
                message_id = record.get("message_id")
                if message_id is not None and message_id in seen:
                    newest_first.pop(seen[message_id])  # the repeat goes, the first one keeps its place
                    seen = {one["message_id"]: at for at, one in enumerate(newest_first) if "message_id" in one}
                if message_id is not None:
                    seen[message_id] = len(newest_first)
                newest_first.append(cast("Message", record))
                if len(newest_first) >= limit:
                    break
        return newest_first[::-1]

    def _everything(self, tenant: str, user: str) -> list[dict[str, Any]]:
        folder = keys.transcript_dir(self._base, tenant, user)
        with _faults(folder, "read"):
            lines = [line for path in sorted(_files(folder)) for line in path.read_bytes().splitlines()]
            safe = self._vault.of(tenant)
            return list(_each_once(record for line in lines if (record := _parse(line, safe)) is not None))

    def _find(self, ref: ConversationRef, platform_id: str) -> Message | None:
        folder = keys.transcript_dir(self._base, ref.tenant, ref.user)
        with _faults(folder, "read"):
            safe = self._vault.of(ref.tenant)
            found = (_named(line, ref, platform_id, safe) for line in self._lines_backwards(folder))
            return next((message for message in found if message is not None), None)

    def _amend(
        self, ref: ConversationRef, platform_id: str, change: Callable[[Message], Message | None]
    ) -> Message | None:
        folder = keys.transcript_dir(self._base, ref.tenant, ref.user)
        if not folder.is_dir():
            return None
        with _faults(folder, "written"), self._locked(folder):
            for path in sorted(_files(folder), reverse=True):
                before = _amend_file(path, ref, platform_id, change, self._vault.of(ref.tenant))
                if before is not None:
                    return before
        return None

    def _lines_backwards(self, folder: Path) -> Iterator[bytes]:
        scanned = 0
        for path in sorted(_files(folder), reverse=True):
            with path.open("rb") as file:
                at = file.seek(0, os.SEEK_END)
                rest = b""
                while at > 0:
                    if scanned >= _MAX_SCAN:
                        return
                    start = max(0, at - _BLOCK)
                    file.seek(start)
                    block = file.read(at - start) + rest
                    scanned += at - start
                    at = start
                    lines = block.split(b"\n")
                    rest = lines[0]
                    yield from reversed(lines[1:])
                yield rest

    def _remove(self, ref: ConversationRef, goes: Callable[[Message], bool]) -> int:
        folder = keys.transcript_dir(self._base, ref.tenant, ref.user)
        mine = (keys.agent_name(ref.agent), ref.conversation)
        if not folder.is_dir():
            return 0
        removed, safe = 0, self._vault.of(ref.tenant)
        with _faults(folder, "removed"), self._locked(folder):
            _sweep(folder)
            for path in _files(folder):
                kept, before = [], removed
                for line in path.read_bytes().splitlines(keepends=True):
                    record = _parse(line, safe)
                    own = record is not None and (record.pop("agent", None), record.pop("conversation", None)) == mine
                    if own and goes(cast("Message", record)):
                        removed += 1
                    else:
                        kept.append(line)
                if removed > before:
                    if kept:
                        _replace(path, b"".join(kept))
                    else:
                        path.unlink()
        return removed

    def _users(self, tenant: str) -> list[str]:
        folder = keys.transcript_dir(self._base, tenant, "any").parent
        with _faults(folder, "read"):
            names = [one.name for one in folder.iterdir() if one.is_dir()] if folder.is_dir() else []
        found = (keys.unescape(name) for name in names if name != file_locks.FOLDER)
        return sorted(user for user in found if user)

    def _tenants(self) -> list[str]:
        with _faults(self._base, "read"):
            folders = self._base.iterdir() if self._base.is_dir() else ()
            return sorted(one.name for one in folders if one.is_dir() and keys.TENANT_ID.match(one.name))

    def _prune(self, tenant: str, before: datetime) -> int:
        folder = keys.transcript_dir(self._base, tenant, "any").parent
        if not folder.is_dir():
            return 0
        removed, safe, month = 0, self._vault.of(tenant), f"{before.astimezone(UTC):%Y-%m}"
        with _faults(folder, "pruned"):
            for name in sorted(os.listdir(folder)):
                person = folder / name
                if name != file_locks.FOLDER and _may_hold(person, month):
                    with self._locked(person):
                        _sweep(person)
                        removed += sum(_prune_file(path, before, safe) for path in _files(person))
                        if person.is_dir() and not any(person.iterdir()):
                            person.rmdir()
        return removed

    def _forget(self, tenant: str, user: str) -> int:
        folder = keys.transcript_dir(self._base, tenant, user)
        if not folder.is_dir():
            return 0
        with _faults(folder, "removed"), self._locked(folder):
            removed = sum(path.read_bytes().count(b"\n") for path in _files(folder))
            shutil.rmtree(folder, ignore_errors=False)
        return removed

    @contextmanager
    def _locked(self, folder: Path) -> Iterator[None]:
        with file_locks.exclusive(folder.parent, folder.name):
            yield


def _append(lock: str, folder: str, name: str, lines: bytes) -> None:
    """For a thread, which has its caches cold: no more than what the disk is asked for."""
    try:
        held = file_locks.taken(lock)
        try:
            try:
                descriptor = os.open(f"{folder}/{name}", _GROWS, 0o600)
            except FileNotFoundError:
                os.mkdir(folder)
                descriptor = os.open(f"{folder}/{name}", _GROWS, 0o600)
            try:
                size = os.fstat(descriptor).st_size
                if size and os.pread(descriptor, 1, size - 1) != b"\n":
                    lines = b"\n" + lines  # ends a line that a crash cut short
                if os.write(descriptor, lines) < len(lines):
                    os.ftruncate(descriptor, size)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(descriptor)
        finally:
            os.close(held)
    except OSError as error:
        raise _unavailable(folder, "written", error) from error


def _files(folder: Path) -> list[Path]:
    return list(folder.glob("[0-9]*.jsonl")) if folder.is_dir() else []


def _may_hold(folder: Path, month: str) -> bool:
    """Whether there is anything of that month or an earlier one, or unfinished, or nothing at all; by a look at the
    names alone."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not names or any(
        name[: len(month)] <= month if name.endswith(".jsonl") else name.endswith(_UNFINISHED) for name in names
    )


def _sweep(folder: Path) -> None:
    """What whoever was killed while writing left behind, under the lock: it holds what is removed elsewhere."""
    for path in folder.glob(f"*{_UNFINISHED}"):
        path.unlink()


def _parse(line: bytes, safe: Safe) -> dict[str, Any] | None:
    try:
        record = orjson.loads(safe.open_line(line))
    except ValueError:
        return None
    whole = (
        isinstance(record, dict)
        and record.get("role") in ("user", "bot")
        and isinstance(record.get("message"), str)
        and isinstance(record.get("message_id"), str | None)
    )
    return record if whole else None


def _each_once(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What was written again after a crash is told where it stood first."""
    seen = set()
    for one in records:
        if (name := one.get("message_id")) is not None:
            if (which := (name, one.get("agent"), one.get("conversation"))) in seen:
                continue
            seen.add(which)
        yield one


def _named(line: bytes, ref: ConversationRef, platform_id: str, safe: Safe) -> Message | None:
    """The message in the line, if it is the conversation's and the platform knows it by this id."""
    try:
        line = safe.open_line(line)
    except ValueError:
        return None
    if platform_id.encode("utf-8", "replace") not in line or (record := _parse(line, safe)) is None:
        return None
    mine = (record.pop("agent", None), record.pop("conversation", None)) == (
        keys.agent_name(ref.agent),
        ref.conversation,
    )
    message = cast("Message", record)
    return message if mine and amend.is_named(message, platform_id) else None


def _amend_file(
    path: Path, ref: ConversationRef, platform_id: str, change: Callable[[Message], Message | None], safe: Safe
) -> Message | None:
    found: Message | None = None
    lines = []
    for line in path.read_bytes().splitlines(keepends=True):
        message = _named(line, ref, platform_id, safe)
        if message is None:
            lines.append(line)
            continue
        found = message
        if (after := change(message)) is not None:
            place = {"agent": keys.agent_name(ref.agent), "conversation": ref.conversation}
            lines.append(safe.seal_line(dump({**place, **after})) + b"\n")
    if found is not None:
        _replace(path, b"".join(lines))
    return found


def _replace(path: Path, contents: bytes) -> None:
    beside = path.with_suffix(_UNFINISHED)
    beside.write_bytes(contents)
    beside.chmod(0o600)
    beside.replace(path)


def _prune_file(path: Path, before: datetime, safe: Safe) -> int:
    """A file of a later month holds nothing to remove and is not opened; one of an earlier month goes whole."""
    month = f"{before.astimezone(UTC):%Y-%m}"
    if path.stem > month:
        return 0
    if path.stem < month:
        removed = path.read_bytes().count(b"\n")
        path.unlink()
        return removed
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if not _older(line, before, safe)]
    if len(kept) < len(lines):
        if kept:
            _replace(path, b"".join(kept))
        else:
            path.unlink()
    return len(lines) - len(kept)


def _older(line: bytes, before: datetime, safe: Safe) -> bool:
    """Of a line that can't be read nobody knows the age: it goes with its month."""
    record = _parse(line, safe)
    try:
        moment = datetime.fromisoformat((record or {})["timestamp"])
    except (KeyError, TypeError, ValueError):
        return False
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) < before


class _faults:
    """The edge: what the system raises becomes LongTermUnavailable."""

    __slots__ = ("_deed", "_folder")

    def __init__(self, folder: Path | str, deed: str) -> None:
        self._folder = folder
        self._deed = deed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise _unavailable(self._folder, self._deed, error) from error


def _unavailable(folder: Path | str, deed: str, error: OSError) -> LongTermUnavailable:
    return LongTermUnavailable(f"transcripts in {folder} can't be {deed}: {error.strerror or error}")
