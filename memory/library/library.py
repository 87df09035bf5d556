"""A tenant's files, read when they change, and what is found in them."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from config.stopping import stopped
from config.vault import PLAIN, Vault
from memory import keys
from memory.errors import LongTermUnavailable
from memory.file_locks import exclusive
from memory.library.passage_file import PassageFile, Shelved, Stamp, stamps
from memory.library.sureness import told_of
from memory.recall.entry import Entry
from memory.recall.finder import Finder
from processors.documents.parts import DocumentError, Passage
from processors.documents.reading import read
from processors.llm import LLMUnavailable

log = logging.getLogger(__name__)

OWNER = "\0knowledge"  # whose vectors those of passages are: nobody's
LOOK_EVERY = 2.0  # seconds
SETTLED = 1.0  # seconds without a change after which a file is whole
MOST_FILES, MOST_PASSAGES = 1_000, 30_000  # of a tenant
SURE = 0.8  # a score from which a passage is told as it stands, without a model; set with benchmarks/faq.py
_PATIENCE = 1.5  # seconds that a question waits for what changed: what was read before is there meanwhile
_FIRST_PATIENCE = 5.0  # and for the first reading of a process, before which everything would be "I don't know"
_UNREADABLE = "can't be opened"  # tried again: nothing of the file tells when that changes
_TRUST = 0.9  # weight beside what is known of the person


@dataclass(frozen=True, slots=True)
class FileState:
    """How a file stands. `waits`: it changed so shortly ago that it may be half written."""

    name: str
    passages: int
    error: str = ""
    remedy: str = ""
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that fits. `score` 0.0-1.0: how much of what is asked it tells."""

    passage: Passage
    file: str
    score: float


def sure(found: Sequence[Found], least: float = SURE) -> Found | None:
    """The one that surely answers, the first of those that tell most."""
    best = max(found, key=lambda one: one.score, default=None)
    return best if best is not None and best.score >= least else None


@dataclass
class _Shelf:
    """What is held of one tenant."""

    seen: Mapping[str, Stamp] = field(default_factory=dict)
    files: Mapping[str, Shelved] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()
    entries: Sequence[Entry] = ()
    passages: Mapping[str, tuple[str, Passage]] = field(default_factory=dict)  # by the entries' ids, with their files
    looked: float = 0.0
    failed: bool = False


class Library:
    """`folder` is `CONFIG_DIR/knowledge` (None: there are no files), `base` `DATA_DIR/index`; `listed` gives what else
    the shop wrote down, its canned answers. Any number of processes follow the same files; one at a time reads them."""

    def __init__(
        self,
        folder: Path | None,
        base: Path,
        finder: Finder,
        listed: Callable[[str], Sequence[Entry]] = lambda tenant: (),
        vault: Vault = PLAIN,
    ) -> None:
        self._folder = folder
        self._base = base
        self._file = PassageFile(base, vault)
        self._finder = finder
        self._listed = listed
        self._shelves: dict[str, _Shelf] = {}
        self._looking: dict[str, asyncio.Task[bool]] = {}

    async def entries(self, tenant: str) -> list[Entry]:
        """What can be found: the files' passages and the canned answers."""
        return [*(await self._shelf(tenant)).entries, *self._listed(tenant)]

    async def find(self, tenant: str, question: str, limit: int = 4, *, said: str = "") -> list[Found]:
        """The passages that fit, best first; also what is only about the same, for a model that reads it. `said`: how
        the customer put it, where `question` is what that means: "and the mocha?" leaves out what the latte was for."""
        shelf = await self._shelf(tenant)
        if not shelf.entries:
            return []
        hits = await self._finder.find(tenant, OWNER, shelf.entries, question, limit, view="passages", around=True)
        found = [shelf.passages[hit.id] for hit in hits]
        return [
            Found(passage, file, max(told_of(one, _words(passage)) for one in {question, said}))
            for file, passage in found
        ]

    async def files(self, tenant: str) -> list[FileState]:
        shelf = await self._shelf(tenant)
        counts: dict[str, int] = {}
        for name, _ in shelf.passages.values():
            counts[name] = counts.get(name, 0) + 1
        return [
            FileState(
                name,
                counts.get(name, 0),
                shelf.files[name].error if name in shelf.files else "",
                shelf.files[name].remedy if name in shelf.files else "",
                name in shelf.waiting,
            )
            for name in sorted(shelf.seen)
        ]

    async def refresh(self, tenant: str, *, anew: bool = False) -> list[FileState]:
        """Takes in what changed, everything with `anew`; a file that changes just now is waited for, for ten seconds at
        the most. Makes what vectors are missing: raises LLMUnavailable where these can't be had."""
        if anew:
            await asyncio.to_thread(self._file.remove, tenant)
            self._shelves.pop(tenant, None)
        for _ in range(10):
            await self._look(tenant)
            if not self._shelves[tenant].waiting:
                break
            await asyncio.sleep(SETTLED)
        await self._finder.fill(tenant, OWNER, self._shelves[tenant].entries)
        return await self.files(tenant)

    async def watch(self, tenants: Callable[[], Iterable[str]], stop: asyncio.Event) -> None:
        """Follows the files of all tenants, and makes vectors ahead, until `stop` is set."""
        while not stop.is_set():
            for tenant in await self._touched(list(tenants())):
                if await self._look(tenant):
                    try:
                        await self._finder.fill(tenant, OWNER, self._shelves[tenant].entries)
                    except LLMUnavailable as error:
                        log.warning("vectors of files are made later: %s", error, extra={"tenant": tenant})
            await stopped(stop, LOOK_EVERY)

    async def close(self) -> None:
        """Waits for what is being read."""
        await asyncio.gather(*self._looking.values(), return_exceptions=True)

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _shelf(self, tenant: str) -> _Shelf:
        """As it stands: reading a large file is not waited for."""
        if self._folder is None:
            return _Shelf()
        shelf = self._shelves.get(tenant)
        # Twice: where `watch` follows the files, no question has to look as well.
        if shelf is None or time.monotonic() - shelf.looked >= 2 * LOOK_EVERY:
            patience = _FIRST_PATIENCE if shelf is None else _PATIENCE
            await asyncio.wait({self._look_once(tenant)}, timeout=patience)
        return self._shelves.get(tenant) or _Shelf()

    async def _touched(self, tenants: Sequence[str]) -> list[str]:
        """Those whose files have to be looked at: one step in a thread for all of them, as most have changed nothing or
        have no files. Of the others it is noted that they were looked at."""
        folder, shelves = self._folder, self._shelves
        if folder is None:
            return []

        def look() -> set[str]:
            out = set()
            try:
                there = _names_in(folder)
            except OSError:  # which of them is at fault is told of each
                there = set(tenants)
            for tenant in tenants:
                held = shelves.get(tenant)
                with suppress(OSError):
                    if held and not held.waiting and not held.seen and tenant not in there:
                        continue
                    if held and not held.waiting and stamps(keys.knowledge_dir(folder, tenant)) == held.seen:
                        continue
                out.add(tenant)
            return out

        touched, now = await asyncio.to_thread(look), time.monotonic()
        for tenant in tenants:
            if tenant not in touched and (held := shelves.get(tenant)):
                held.looked = now
        return [tenant for tenant in tenants if tenant in touched]

    async def _look(self, tenant: str) -> bool:
        return await asyncio.shield(self._look_once(tenant))

    def _look_once(self, tenant: str) -> asyncio.Task[bool]:
        task = self._looking.get(tenant)
        if task is None or task.done():
            task = self._looking[tenant] = asyncio.create_task(self._looked(tenant))
        return task

    async def _looked(self, tenant: str) -> bool:
        """Whether something changed."""
        held = self._shelves.get(tenant)
        before = held or _Shelf()
        try:
            shelf = await asyncio.to_thread(self._read, tenant, before, first=held is None)
        except OSError as error:
            if not before.failed:
                log.error("the files of tenant %s can't be indexed: %s", tenant, error.strerror or error)
            shelf = replace(before, failed=True)
        shelf.looked = time.monotonic()
        self._shelves[tenant] = shelf
        changed = shelf.entries != before.entries
        if changed and held is not None:
            try:
                await self._finder.tidy(tenant, OWNER, shelf.entries)
            except LongTermUnavailable as error:
                log.warning("%s", error)
        return changed

    def _read(self, tenant: str, held: _Shelf, *, first: bool) -> _Shelf:
        """In a thread. Nothing is touched while nothing changed."""
        if self._folder is None:
            return held
        folder = keys.knowledge_dir(self._folder, tenant)
        seen = stamps(folder)
        if seen == held.seen and not held.waiting and (not first or not (seen or self._file.exists(tenant))):
            return held
        waiting = set()
        with exclusive(self._base, f"{tenant}.knowledge"):
            # What can't be kept on disk, as while that is full, is held all the same.
            files, passages = self._file.load(tenant)
            gone = files.keys() - seen.keys()
            self._file.drop(tenant, gone)
            for name in gone:
                del files[name], passages[name]
            for at, (name, stamp) in enumerate(seen.items()):
                if name in files and files[name].stamp == stamp and files[name].error != _UNREADABLE:
                    continue
                if _young(stamp):
                    waiting.add(name)
                    continue
                others = sum(len(listed) for other, listed in passages.items() if other != name)
                shelved, made = _taken(folder / name, stamp, at, others)
                if shelved.error and files.get(name) != shelved:
                    log.error("%s %s: %s", folder / name, shelved.error, shelved.remedy, extra={"tenant": tenant})
                if shelved.error == _UNREADABLE:
                    waiting.add(name)
                self._file.put(tenant, name, shelved, made)
                files[name] = shelved
                passages[name] = made if made is not None else passages.get(name, [])
        entries: dict[str, Entry] = {}
        by_id: dict[str, tuple[str, Passage]] = {}
        for name, listed in passages.items():
            for one in listed:
                entry = _entry(name, one)
                entries[entry.id], by_id[entry.id] = entry, (name, one)
        return _Shelf(seen, files, frozenset(waiting), list(entries.values()), by_id)


def _names_in(folder: Path) -> set[str]:
    """What stands in the folder of all tenants' files, in small letters: most shops have none."""
    try:
        return {name.lower() for name in os.listdir(folder)}
    except FileNotFoundError:
        return set()


def _taken(path: Path, stamp: Stamp, at: int, others: int) -> tuple[Shelved, list[Passage] | None]:
    """A file read; `at` is its place, `others` how many passages the tenant's other files have. Nothing else stops for
    what is wrong with it."""
    try:
        if at >= MOST_FILES:
            raise DocumentError(f"is beyond the {MOST_FILES:,} files that are read", "put several into one")
        made = read(path)
        if others + len(made) > MOST_PASSAGES:
            raise DocumentError(f"brings more than {MOST_PASSAGES:,} passages together", "shorten it, or remove others")
    except DocumentError as error:
        return Shelved(stamp, str(error), error.remedy), None
    except OSError as error:
        log.debug("%s: %s", path, error.strerror)
        return Shelved(stamp, _UNREADABLE, "let this user read it, or remove it"), None
    return Shelved(stamp), made


def _young(stamp: Stamp) -> bool:
    return 0 <= time.time() - stamp[0] / 1e9 < SETTLED


def _entry(file: str, passage: Passage) -> Entry:
    found_by = _words(passage)
    digest = blake2b(f"{file}\0{passage.page}\0{found_by}".encode("utf-8", "surrogatepass"), digest_size=10)
    return Entry(f"k_{digest.hexdigest()}", "knowledge", passage.text, found_by, _TRUST, owner=OWNER)


def _words(passage: Passage) -> str:
    return f"{passage.title} {passage.heading} {passage.text}"
