"""What customers asked and nobody could answer: one short list a tenant, for whoever writes the shop's answers.

A line holds the question without numbers and addresses that may be somebody's, and who asked it as hashes alone, so
that a person can be forgotten here too. The same question is one line, however often it is asked.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from config.vault import PLAIN, Safe, Vault
from memory import keys
from memory.errors import LongTermUnavailable
from memory.file_locks import exclusive
from processors.models import iso
from processors.normalise import PARTICLES, normalise, safe

log = logging.getLogger(__name__)

MOST = 300  # questions of a tenant: those that were last asked longest ago go first
KEPT = timedelta(days=90)  # since it was last asked
LONGEST = 300  # characters of a question
WRITTEN_EVERY = 3.0  # seconds
_MOST_PEOPLE = 500  # of one question that are told apart
_PRIVATE = re.compile(r"\S+@\S+|https?://\S+|\d(?:[\s().-]?\d){5,}")
_HIDDEN = "…"
_APART = re.compile(r"[^\w\u0e31-\u0e4e]+")  # Thai vowels and marks are no word characters


class Unanswered(BaseModel):
    """`times`: how many people asked; `near`: the shop's own question that is nearest, "" where there is none."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    question: str
    language: str
    times: int = Field(ge=1)
    first_at: datetime
    last_at: datetime
    near: str = ""
    people: tuple[str, ...] = Field(default=(), repr=False)


_LIST = TypeAdapter(list[Unanswered])


class _Asked(NamedTuple):
    user: str
    question: str
    now: datetime
    language: str
    near: str


class UnansweredQuestions:
    """`folder` is `DATA_DIR/unanswered`, made when something is first noted. All but `soon` block, for threads. Raises
    InvalidId for what is no tenant, LongTermUnavailable where the disk can't be used.

    `forgotten_at` says when somebody was forgotten last: of what they asked before nothing is written."""

    def __init__(
        self,
        folder: Path,
        vault: Vault = PLAIN,
        forgotten_at: Callable[[str, str], datetime | None] = lambda tenant, user: None,
    ) -> None:
        self._folder = folder
        self._vault = vault
        self._forgotten_at = forgotten_at
        self._waiting: dict[str, list[_Asked]] = {}
        self._lock = Lock()  # of what waits
        self._writing = Lock()  # whoever has it knows that nothing is between there and the file
        self._writer: asyncio.Task[None] | None = None

    def soon(
        self, tenant: str, user: str, question: str, now: datetime, *, language: str = "th", near: str = ""
    ) -> None:
        """`note` within WRITTEN_EVERY seconds, several in one step; this process shows it at once. Of a process that is
        killed these seconds' questions are lost to the list, and to nothing else. On the event loop."""
        keys.check_tenant(tenant)
        with self._lock:
            self._waiting.setdefault(tenant, []).append(_Asked(user, question, now, language, near))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write_soon())

    async def close(self) -> None:
        """Writes what waits."""
        if self._writer is not None:
            self._writer.cancel()
        await asyncio.to_thread(self._write_all)

    def all(self, tenant: str) -> list[Unanswered]:
        """Most people first, then the last asked."""
        self._write_waiting(tenant)
        found = self._read(keys.list_file(self._folder, tenant), self._vault.of(tenant))
        return sorted(found, key=lambda one: (-one.times, -one.last_at.timestamp(), one.id))

    def note(
        self, tenant: str, user: str, question: str, now: datetime, *, language: str = "th", near: str = ""
    ) -> Unanswered | None:
        """The line as it is now; None for a question without words. Of the same person again it counts once."""
        noted: list[Unanswered] = []

        def add(known: list[Unanswered]) -> list[Unanswered]:
            known, line = _with(known, tenant, _Asked(user, question, now, language, near))
            noted[:] = [line] if line else []
            return known

        self._change(tenant, add)
        return noted[0] if noted else None

    def drop(self, tenant: str, ids: Sequence[str]) -> int:
        """Those that have an answer now; how many there were."""
        self._write_waiting(tenant)
        return self._change(tenant, lambda known: [one for one in known if one.id not in set(ids)])

    def forget(self, tenant: str, user: str) -> int:
        """What this person asked alone goes, of the rest their part; how many lines that touched."""
        with self._writing, self._lock:
            if waiting := self._waiting.get(tenant):
                waiting[:] = [one for one in waiting if one.user != user]
        who, touched = _hash(tenant, user), [0]

        def without(known: list[Unanswered]) -> list[Unanswered]:
            kept = []
            for one in known:
                if who not in one.people:
                    kept.append(one)
                    continue
                touched[0] += 1
                others = tuple(other for other in one.people if other != who)
                if others:
                    kept.append(one.model_copy(update={"people": others, "times": max(1, one.times - 1)}))
            return kept

        self._change(tenant, without)
        return touched[0]

    # -- what waits --------------------------------------------------------------------------------------------------

    async def _write_soon(self) -> None:
        await asyncio.sleep(WRITTEN_EVERY)
        while self._waiting:
            if not await asyncio.to_thread(self._write_all):
                await asyncio.sleep(WRITTEN_EVERY)

    def _write_all(self) -> bool:
        """Whether all of it could be written."""
        written = True
        for tenant in list(self._waiting):
            try:
                self._write_waiting(tenant)
            except LongTermUnavailable as error:
                written = False
                log.warning("unanswered questions wait for the disk: %s", error, extra={"tenant": tenant})
        return written

    def _write_waiting(self, tenant: str) -> None:
        with self._writing:
            with self._lock:
                waiting = self._waiting.pop(tenant, [])
            if not waiting:
                return

            def add(known: list[Unanswered]) -> list[Unanswered]:
                for one in waiting:
                    at = self._forgotten_at(tenant, one.user)  # under the lock, which whoever forgets waits for
                    if at is None or at <= one.now:
                        known, _ = _with(known, tenant, one)
                return known

            try:
                self._change(tenant, add)
            except LongTermUnavailable:
                with self._lock:
                    self._waiting[tenant] = [*waiting, *self._waiting.get(tenant, [])][-MOST:]
                raise

    # -- the file ----------------------------------------------------------------------------------------------------

    def _change(self, tenant: str, change: Callable[[list[Unanswered]], list[Unanswered]]) -> int:
        """One writer at a time, over all processes; how many fewer there are."""
        path, safe = keys.list_file(self._folder, tenant), self._vault.of(tenant)
        if not path.exists() and not _beside(path).exists() and not change([]):
            return 0
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with exclusive(self._folder, tenant):
                before = self._read(path, safe)
                after = change(before)
                if after != before:
                    _write(path, after, safe)
                else:
                    _beside(path).unlink(missing_ok=True)
        except OSError as error:
            raise LongTermUnavailable(f"{path} can't be written: {error.strerror or error}") from error
        return len(before) - len(after)

    def _read(self, path: Path, safe: Safe) -> list[Unanswered]:
        """What can't be understood holds nothing."""
        try:
            return _LIST.validate_python(orjson.loads(safe.open(path.read_bytes())))
        except (FileNotFoundError, ValueError, ValidationError):
            return []
        except OSError as error:
            raise LongTermUnavailable(f"{path} can't be read: {error.strerror or error}") from error


def _with(known: list[Unanswered], tenant: str, asked: _Asked) -> tuple[list[Unanswered], Unanswered | None]:
    """The list with this question, the last asked first, and its line; None: it has no words."""
    question = _PRIVATE.sub(_HIDDEN, " ".join(safe(asked.question).split()))[:LONGEST].strip()
    alike = _APART.sub("", PARTICLES.sub(" ", normalise(question)))
    if not alike:
        return known, None
    name = f"u_{blake2b(alike.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"
    who = _hash(tenant, asked.user)
    before = next((one for one in known if one.id == name), None)
    people = before.people if before else ()
    fresh = who not in people
    line = Unanswered(
        id=name,
        question=before.question if before else question,
        language=asked.language,
        times=(before.times if before else 0) + fresh,
        first_at=before.first_at if before else asked.now,
        last_at=asked.now,
        near=asked.near[:LONGEST],
        people=(*people, who)[-_MOST_PEOPLE:] if fresh else people,
    )
    rest = [other for other in known if other.id != name and asked.now - other.last_at <= KEPT]
    return [line, *sorted(rest, key=lambda other: other.last_at, reverse=True)[: MOST - 1]], line


def _hash(tenant: str, user: str) -> str:
    return blake2b(f"{tenant}\0{user}".encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def _beside(path: Path) -> Path:
    """Where the file is written before it takes its place; what a crash left there may hold what is forgotten."""
    return path.with_name(f".{path.name}.new")


def _write(path: Path, listed: Sequence[Unanswered], safe: Safe) -> None:
    beside = _beside(path)
    values = [
        {**one.model_dump(exclude={"first_at", "last_at"}), "first_at": iso(one.first_at), "last_at": iso(one.last_at)}
        for one in listed
    ]
    contents = safe.seal(orjson.dumps(values, option=orjson.OPT_INDENT_2))
    descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
