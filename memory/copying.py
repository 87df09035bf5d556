"""All of long-term memory, and what was said, copied from one store into another while the bot goes on writing the
first.

Each pass copies whoever changed since they were copied last; the stamps of what was copied are noted in a file, so that
a copy that was broken off goes on where it was. What was copied is compared at the end, by count and by hash.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import orjson

from memory.keys import DEFAULT_AGENT, MAIN, ConversationRef
from memory.long_term.document import RECORDS, Document, dump
from memory.models import Message
from memory.protocols import Transcripts

Progress = Callable[[int, int], None]

_AT_ONCE = 4  # people


@runtime_checkable
class Whole(Protocol):
    """A store whose people can be taken and put as a whole. The user id "" is the tenant itself."""

    async def tenants(self) -> list[str]: ...

    async def stamps(self, tenant: str) -> dict[str, str]:
        """Of everybody of whom something is kept: the same as long as nothing changed."""
        ...

    async def document(self, tenant: str, user: str) -> Document | None: ...

    async def put(self, tenant: str, user: str, whole: Document) -> None: ...

    async def forget(self, tenant: str, user: str) -> dict[str, int]: ...

    async def mark_forgotten(self, tenant: str, user: str) -> None: ...


class Copied(NamedTuple):
    stamp: str  # in the source, hashed
    hash: str  # of what was copied


@dataclass
class Outcome:
    """Of one tenant. `people` are in the target as they were copied, with `hash` over all of them; `changed` were
    written in the source since; `different` are in the target otherwise; `missing` not; `unknown` in the target alone.
    """

    people: int = 0
    changed: int = 0
    missing: int = 0
    hash: str = ""
    different: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        return not (self.different or self.unknown or self.missing or self.changed)


class Copy:
    """`notes` is the file that remembers what was copied between these two stores, under hashes of the ids. `anew`:
    everybody is copied again, whatever it says."""

    def __init__(self, source: Whole, target: Whole, notes: Path, *, anew: bool = False) -> None:
        self._source = source
        self._target = target
        self._notes = notes
        if anew:
            notes.unlink(missing_ok=True)
        self._done = _read(notes)
        if notes.exists() and not notes.read_bytes().endswith(b"\n"):
            with notes.open("ab") as file:
                file.write(b"\n")  # ends a line that was broken off

    async def once(self, tenant: str, progress: Progress) -> int:
        """Copies whoever changed since they were copied; how many that were. `progress` is told how many of how many
        are done. Raises LongTermUnavailable; what was copied by then stays so."""
        stamps, copied = await _stamps(self._source, tenant), self._done.get(tenant, {})
        due = [user for user, stamp in stamps.items() if self._stamp(tenant, user) != stamp]
        if copied.keys() - {_key(tenant, user) for user in stamps}:
            there = await self._target.stamps(tenant)
            due += [user for user in there if user not in stamps and _key(tenant, user) in copied]
        done = 0
        progress(0, len(due))
        waiting = iter(due)

        async def work() -> None:
            nonlocal done
            for user in waiting:
                if user in stamps:
                    await self._copy(tenant, user, stamps[user])
                else:
                    await self._remove(tenant, user)
                done += 1
                progress(done, len(due))

        outcomes = await asyncio.gather(*(work() for _ in range(_AT_ONCE)), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        return len(due)

    async def compare(self, tenant: str, progress: Progress) -> Outcome:
        """What was copied with what is in the target now."""
        copied, target = self._done.get(tenant, {}), await self._target.stamps(tenant)
        outcome, all_of_them = Outcome(), hashlib.sha256()
        for at, user in enumerate(sorted(target)):
            progress(at, len(target))
            known = copied.get(_key(tenant, user))
            there = await self._target.document(tenant, user) if known else None
            if known is None:
                outcome.unknown.append(user)
            elif there is None or hash_of(there) != known.hash:
                outcome.different.append(user)
            else:
                outcome.people += 1
                all_of_them.update(known.hash.encode())
        progress(len(target), len(target))
        now = await _stamps(self._source, tenant)
        outcome.changed = sum(self._stamp(tenant, user) != stamp for user, stamp in now.items())
        outcome.changed += len(copied.keys() - {_key(tenant, user) for user in now})
        outcome.missing = len(copied.keys() - {_key(tenant, user) for user in target})
        outcome.hash = all_of_them.hexdigest()
        return outcome

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _copy(self, tenant: str, user: str, stamp: str) -> None:
        """The stamp is older than what is read: what changes meanwhile is copied again."""
        whole = await self._source.document(tenant, user)
        if whole is not None:  # else forgotten just now: the next pass finds them gone
            await self._target.put(tenant, user, whole)
            self._note(tenant, user, Copied(stamp, hash_of(whole)))

    async def _remove(self, tenant: str, user: str) -> None:
        if user:
            await self._target.mark_forgotten(tenant, user)
            await self._target.forget(tenant, user)
        self._note(tenant, user, None)

    def _stamp(self, tenant: str, user: str) -> str | None:
        known = self._done.get(tenant, {}).get(_key(tenant, user))
        return known.stamp if known else None

    def _note(self, tenant: str, user: str, copied: Copied | None) -> None:
        name = _key(tenant, user)
        _take(self._done, tenant, name, copied)
        self._notes.parent.mkdir(parents=True, exist_ok=True)
        with self._notes.open("ab") as file:
            file.write(json.dumps([tenant, name, *(copied or ())]).encode() + b"\n")


async def copy_said(
    source: Transcripts, target: Transcripts, tenant: str, progress: Progress, also: Iterable[str] = ()
) -> int:
    """What was said, too: after it the target has each message that the source has, and no other of these people; how
    many were added or removed. Ids that are too long to be told have to be among `also`.

    Raises LongTermUnavailable.
    """
    users, changed = sorted({*await source.users(tenant), *also} - {""}), 0
    for at, user in enumerate(users):
        progress(at, len(users))
        here, there = await source.everything(tenant, user), await target.everything(tenant, user)
        for ref in sorted({_ref(tenant, user, line) for line in (*here, *there)}):
            wanted = [line for line in here if _ref(tenant, user, line) == ref]
            known = Counter(_plain(line) for line in there if _ref(tenant, user, line) == ref)
            if known - Counter(map(_plain, wanted)):  # something was changed or taken back: all anew, in its order
                changed += await target.remove(ref, lambda line: True)
                known.clear()
            new = [_message(line) for line in wanted if not _taken(known, line)]
            await target.append(ref, new)
            changed += len(new)
    progress(len(users), len(users))
    return changed


def _ref(tenant: str, user: str, line: Mapping[str, Any]) -> ConversationRef:
    return ConversationRef(tenant, user, str(line.get("agent", DEFAULT_AGENT)), str(line.get("conversation", MAIN)))


def _message(line: Mapping[str, Any]) -> Message:
    return cast("Message", {name: value for name, value in line.items() if name not in ("agent", "conversation")})


def _taken(known: Counter[bytes], line: Mapping[str, Any]) -> bool:
    """Whether there is one of these left; then it is counted off."""
    name = _plain(line)
    if known[name] > 0:
        known[name] -= 1
        return True
    return False


def hash_of(whole: Document) -> str:
    """SHA-256 of what is kept, however a store orders it: without the view that is made of it, and whose it is."""
    elsewhere = ("tenant_id", "user_id", "attributes", "events", *RECORDS)
    rest = {name: value for name, value in whole.items() if name not in elsewhere}
    found = hashlib.sha256(_plain({"history_summary": "", **rest}))
    for kind in ("events", *RECORDS):
        for record in sorted(map(_plain, whole.get(kind, ()))):
            found.update(b"\n" + kind.encode() + record)
    return found.hexdigest()


def _plain(value: object) -> bytes:
    """As JSON in one form, as it comes back from any store."""
    return json.dumps(orjson.loads(dump(value)), sort_keys=True).encode()


async def _stamps(store: Whole, tenant: str) -> dict[str, str]:
    """A stamp may name the file, and so the person."""
    found = await store.stamps(tenant)
    return {user: hashlib.sha256(stamp.encode("utf-8", "surrogatepass")).hexdigest() for user, stamp in found.items()}


def _key(tenant: str, user: str) -> str:
    return hashlib.sha256(f"{tenant} {user}".encode("utf-8", "surrogatepass")).hexdigest()


def _take(done: dict[str, dict[str, Copied]], tenant: str, name: str, copied: Copied | None) -> None:
    if copied is None:
        done.get(tenant, {}).pop(name, None)
    else:
        done.setdefault(tenant, {})[name] = copied


def _read(notes: Path) -> dict[str, dict[str, Copied]]:
    done: dict[str, dict[str, Copied]] = {}
    for line in notes.read_bytes().splitlines() if notes.exists() else ():
        try:
            tenant, name, *copied = json.loads(line)
        except ValueError:  # it was broken off in mid-line
            continue
        _take(done, tenant, name, Copied(*copied) if copied else None)
    return done
