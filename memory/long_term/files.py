"""The blocking half of the JSON files: one person's file and journal read, appended to, folded. Runs in threads."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from threading import get_ident
from typing import TypeVar

import msgspec
import orjson

from config.vault import PLAIN, Locked, Vault
from memory import file_locks
from memory.errors import LongTermUnavailable
from memory.long_term import document, journal
from memory.long_term.additions import Addition, adds, decided
from memory.long_term.cache import Cache, Entry
from memory.long_term.document import Document
from memory.long_term.due import Known
from memory.long_term.event import Event
from memory.long_term.events import apart, told
from memory.long_term.forgotten import Marks
from memory.long_term.place import Compression, FileMark, Mark, Place
from memory.models import LongTermMemory
from memory.retention import Retention
from memory.unhurried import Unhurried

T = TypeVar("T")
log = logging.getLogger(__name__)

# A longer journal is folded in, when there is time for it: some twenty events for one rewrite of the file, as half of
# each line is the summary. Four times as many cost whoever reads them anew four milliseconds, and are folded in at
# once.
JOURNAL_BYTES, _AT_ONCE = 32 * 1024, 4
_LONG, _MOST_SPELLED = 8 * 1024, 4000
_MOST_PLACES = 1000


class Decision(msgspec.Struct, frozen=True):
    """What additions come to, beside what was known."""

    mark: Mark  # of the files that say what was known
    lines: list[bytes]  # of the journal, as they are before they are sealed
    memory: LongTermMemory | None  # what is known after them; None: nobody needed to know
    whole: bool = False  # see Entry


class Files:
    """`retention` gives a tenant's rules; `clock` the time."""

    def __init__(
        self,
        base: Path,
        compression: Compression,
        retention: Callable[[str], Retention],
        cache: Cache[Entry],
        clock: Callable[[], datetime],
        noted: Callable[[str, str], None] | None = None,
        vault: Vault = PLAIN,
    ) -> None:
        self._base = str(base)
        self._vault = vault
        self._compression = compression
        self._retention = retention
        self._cache = cache
        self._clock = clock
        self._noted = noted or (lambda tenant, user: None)
        self._forgotten = Marks(base)
        self.never_forgotten = self._forgotten.surely_not  # asked several times a turn
        self._places: dict[tuple[str, str], Place] = {}  # of whom was looked at lately
        # Whom `ahead` has just looked for, and in which thread: what it decides in the same step asks the disk no more.
        self._sure: tuple[str, str, int] | None = None
        self._spelled: set[FileMark] = set()  # long files that were UTF-8 when they were read
        self._folding = Unhurried("folding journals")

    def stamp(self, tenant: str, user: str) -> str:
        place = self._place(tenant, user)
        with _faults("read", place):
            return place.mark().stamp

    def at_hand(self, tenant: str, user: str) -> tuple[LongTermMemory | None] | None:
        """What `load` gives, where a look at the files' names and times is enough to tell; None: it has to read."""
        place, entry = self._place(tenant, user), self._cache.get((tenant, user))
        try:
            if entry is not None and place.still(entry.mark):
                return (document.copy(entry.memory),)
            return (None,) if place.empty() and place.mark().nothing else None
        except OSError:
            return None

    def shared_at_hand(self, tenant: str) -> tuple[LongTermMemory | None] | None:
        """`at_hand` of what belongs to the tenant, of which there is mostly nothing: asked without an error for each
        name, behind a person's `at_hand`, which tells whether the folder can be read."""
        if self._cache.get((tenant, "")) is None and self._place(tenant, "").empty():
            return (None,)
        return self.at_hand(tenant, "")

    def load(self, tenant: str, user: str) -> LongTermMemory | None:
        place = self._place(tenant, user)
        with _faults("read", place):
            entry = self._cache.get((tenant, user))
            if entry is None or not place.still(entry.mark):
                if place.empty() and place.mark().nothing:
                    return None
                with place.shared():
                    entry = self._read(place, tenant, user)
                if entry is None:
                    entry = self._mended(place, tenant, user)
            return document.copy(entry.memory) if entry is not None else None

    def known(self, tenant: str, user: str) -> Known | None:
        """For a list of everybody: past the cache, which is for those whom the turns need."""
        place = self._place(tenant, user)
        with _faults("read", place):
            for _ in range(2):
                if place.mark().nothing:
                    return None
                with place.shared():
                    mark = place.mark()
                    if mark.nothing:  # forgotten meanwhile
                        return None
                    found = self._merged(place, mark, tenant, user)
                if found is not None:
                    break
                self._mended(place, tenant, user)
            else:  # and where nothing can be written, what is readable
                with place.shared():
                    lines = journal.read(place.journal, 0, place.safe)
                    whole = document.merge(self._salvaged(place, tenant, user), lines.lines, self._clock())
                found = whole, lines.end
        merged, _ = found
        oldest, events = document.oldest(merged), len(merged["events"])
        document.trim(merged, self._clock(), self._retention(tenant))
        return Known(document.view(merged, tenant, user), oldest, events)

    def document(self, tenant: str, user: str) -> Document | None:
        """All that is kept, of whatever version, with nothing left out by retention; None: nothing is."""
        if self.load(tenant, user) is None:  # which mends a broken file
            return None
        place = self._place(tenant, user)
        with _faults("read", place), place.shared():
            mark = place.mark()
            if mark.nothing:  # forgotten meanwhile
                return None
            whole = document.parse(place.read(mark.file)[0]) if mark.file else document.empty(tenant, user)
            return document.merge(whole, journal.read(place.journal, 0, place.safe).lines, self._clock())

    def put(self, tenant: str, user: str, whole: Document) -> None:
        """`whole` in the place of all that is kept."""
        place = self._place(tenant, user)
        with _faults("written", place), place.exclusive():
            new = {**document.empty(tenant, user), **whole, "tenant_id": tenant, "user_id": user}
            place.write(document.dump(new, readable=True), self._compression)
            place.drop_journal()
            self._cache.drop((tenant, user))
            self._noted(tenant, user)

    def ahead(self, tenant: str, user: str, additions: Sequence[Addition]) -> Decision | None:
        """What `append` will write if nobody writes before it, for the event loop: it has the memory at hand that this
        is about, and the thread is left with the disk. None: what is known is not held, or may take long."""
        entry = self._cache.held((tenant, user))
        if entry is None or entry.mark.file is None or told(entry.memory) is None:
            return None
        # Whoever is forgotten later than this look takes the files away, which `append` notices.
        for addition in additions:
            if not addition.ahead:
                return None
        if not self._forgotten.surely_not(tenant, user):
            return None
        self._sure = tenant, user, get_ident()
        try:
            return self._decided(entry, tenant, additions)
        except Exception:  # noqa: BLE001 - it comes again, where it can be told to who asked
            return None
        finally:
            self._sure = None

    def append(self, tenant: str, user: str, additions: Sequence[Addition], decision: Decision | None = None) -> None:
        """`decision`: what `ahead` gave, if it still holds."""
        place = self._place(tenant, user)
        try:
            held = file_locks.taken(place.lock)
            try:
                self._add(place, tenant, user, additions, decision)
            finally:
                os.close(held)
        except OSError as error:
            raise _unavailable("written", place, error) from error

    def compact(self, tenant: str, user: str, now: datetime) -> int:
        place = self._place(tenant, user)
        with _faults("written", place):
            if place.mark().nothing:
                return 0
            with place.exclusive():
                before = place.mark()
                if before.nothing:  # forgotten meanwhile
                    return 0
                removed = self._fold(place, tenant, user, now)
                if place.mark() != before:
                    self._noted(tenant, user)
                return removed

    def _fold_later(self, tenant: str, user: str) -> None:
        try:
            self.compact(tenant, user, self._clock())
        except LongTermUnavailable as error:  # as above
            log.warning("a journal can't be folded in now: %s", error)

    def close(self) -> None:
        """What is still to be folded in stays in its journal."""
        self._folding.drop(lambda key: True)

    def rewrite(self, tenant: str, user: str, change: Callable[[LongTermMemory], LongTermMemory]) -> bool:
        place = self._place(tenant, user)
        with _faults("written", place):
            if place.mark().nothing:
                return False
            with place.exclusive():
                if place.mark().nothing:
                    return False
                before = document.copy(self._memory(place, tenant, user))
                return self._replaced(place, tenant, user, before, change(document.copy(before)))

    def rewrite_both(
        self,
        tenant: str,
        user: str,
        other: str,
        change: Callable[[LongTermMemory, LongTermMemory], tuple[LongTermMemory, LongTermMemory]],
    ) -> None:
        places = [self._place(tenant, one) for one in (user, other)]
        with _faults("written", places[0]), file_locks.exclusive(places[0].folder, *(one.name for one in places)):
            known = [self._memory(at, tenant, one) for at, one in zip(places, (user, other), strict=True)]
            here, there = map(document.copy, known)
            after = change(document.copy(here), document.copy(there))
            self._replaced(places[0], tenant, user, here, after[0])
            self._replaced(places[1], tenant, other, there, after[1])

    def forget(self, tenant: str, user: str) -> dict[str, int]:
        place = self._place(tenant, user)
        removed = {"longterm_files": 0, "events": 0, "attributes": 0, "facts": 0, "episodes": 0}
        # Also where nothing is seen: somebody may be about to write it.
        with _faults("removed", place), place.exclusive():
            if not place.all_files():
                return removed
            try:
                known = (self._read(place, tenant, user) or self._readable(place, tenant, user)).memory
                for name in ("events", "attributes", "facts", "episodes"):
                    removed[name] = len(getattr(known, name))
            except Locked as error:  # to be removed it need not be read
                log.warning("what %s held is not counted: %s", place.name, error.strerror)
            for path in place.all_files():
                path.unlink()
                removed["longterm_files"] += 1
            self._cache.drop((tenant, user))
            journal.sync_folder(place.folder)
        return removed

    def mark_forgotten(self, tenant: str, user: str) -> None:
        now = self._clock()
        with _faults("removed", self._place(tenant, user)):
            self._forgotten.tidy(tenant, now)
            self._forgotten.set(tenant, user, now)

    def forgotten_at(self, tenant: str, user: str) -> datetime | None:
        if self._sure is not None and self._sure == (tenant, user, get_ident()):
            return None
        try:
            return self._forgotten.at(tenant, user)
        except OSError as error:
            raise _unavailable("read", self._place(tenant, user), error) from error

    def tidy_marks(self, tenant: str) -> None:
        with _faults("removed", self._place(tenant, "any")):
            self._forgotten.tidy(tenant, self._clock())

    def _place(self, tenant: str, user: str) -> Place:
        place = self._places.get((tenant, user))
        if place is None:
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            place = self._places[tenant, user] = Place(self._base, tenant, user, self._vault.of(tenant))
        return place

    def _decided(self, known: Entry, tenant: str, additions: Sequence[Addition]) -> Decision:
        lines, memory = decided(known.memory, additions, self._clock(), self._retention(tenant))
        return Decision(known.mark, lines, memory, known.whole)

    # -- under the user's lock ---------------------------------------------------------------------------------------

    def _add(
        self, place: Place, tenant: str, user: str, additions: Sequence[Addition], decision: Decision | None
    ) -> None:
        grown: tuple[int, int] | None = None
        if decision is not None:
            if decision.whole and decision.lines:  # nearly always
                grown = place.grown(decision.mark, place.safe.seal_lines(decision.lines))
            if grown is None and not place.still(decision.mark):
                decision = None
        if decision is None:
            if any(addition.asks for addition in additions):
                decision = self._decided(self._known(place, tenant, user), tenant, additions)
            else:
                decision = Decision(place.mark(), _dumped([addition.line for addition in additions]), None)
        mark, lines, memory = decision.mark, decision.lines, decision.memory
        if grown is None:
            if not lines:
                return
            if mark.nothing and self._begun(place, tenant, user, lines, memory):
                return
            grown = journal.append(place.journal, place.safe.seal_lines(lines))
        size = grown[1]
        self._noted(tenant, user)
        if memory is not None:  # known already: the next reader need not read what was just written
            self._cache.put((tenant, user), Entry(Mark(mark.file, mark.of_file, grown), size, memory, whole=True))
        if size > _AT_ONCE * JOURNAL_BYTES or mark.file is None:
            try:
                self._fold(place, tenant, user, self._clock())
            except OSError as error:  # the lines are safe in the journal; the next save tries again
                log.warning("the journal %s can't be folded in now: %s", place.journal, error.strerror)
        elif size > JOURNAL_BYTES:
            self._folding.add((tenant, user), lambda: self._fold_later(tenant, user))

    def _replaced(self, place: Place, tenant: str, user: str, before: LongTermMemory, after: LongTermMemory) -> bool:
        """Whether there was anything to write. `before` is none that is held: comparing makes all its events."""
        if after == before:
            return False
        self._fold(place, tenant, user, self._clock())
        path = place.mark().file
        whole = document.parse(place.read(path)[0]) if path else document.empty(tenant, user)
        written = document.dump(document.rewritten(whole, before, after, self._clock()), readable=True)
        place.write(written, self._compression)
        # As a reader will see it: what no file can hold was written as what stands for it.
        self._cache.put((tenant, user), self._entry(place.mark(), orjson.loads(written), 0, tenant, user))
        self._noted(tenant, user)
        return True

    def _begun(
        self, place: Place, tenant: str, user: str, lines: Sequence[bytes], memory: LongTermMemory | None
    ) -> bool:
        """The first of a person goes into the file at once: half the syncs of a journal that is folded in. Whether it
        is there; where a disk has no room for the file, it may have some for a line. `memory`: what comes of it, where
        that is known."""
        merged = document.merge(document.empty(tenant, user), map(orjson.loads, lines), self._clock())
        document.trim(merged, self._clock(), self._retention(tenant))
        try:
            place.write(document.dump(merged, readable=True), self._compression, first=True)
        except OSError as error:
            log.warning("the file of %s can't be begun now: %s", place.name, error.strerror)
            return False
        self._noted(tenant, user)
        mark = place.mark()
        entry = self._entry(mark, merged, 0, tenant, user) if memory is None else Entry(mark, 0, memory)
        self._cache.put((tenant, user), entry)
        return True

    def _memory(self, place: Place, tenant: str, user: str) -> LongTermMemory:
        return self._known(place, tenant, user).memory

    def _known(self, place: Place, tenant: str, user: str) -> Entry:
        entry = self._cache.get((tenant, user))
        if entry is not None and place.still(entry.mark):
            return entry
        mark = place.mark()
        if mark.nothing:
            return self._entry(mark, document.empty(tenant, user), 0, tenant, user)
        return self._read(place, tenant, user, mark) or self._mend(place, tenant, user)

    def _read(self, place: Place, tenant: str, user: str, mark: Mark | None = None) -> Entry | None:
        """The person as the files stand, from the cache where that holds; None: the file is broken. `mark`: what a look
        under the same lock told."""
        key = (tenant, user)
        mark = mark or place.mark()
        entry = self._cache.get(key)
        if entry is not None and entry.mark == mark:
            return entry
        if entry is not None and _only_grown(entry.mark, mark, entry.journal_end):
            added = journal.read(place.journal, entry.journal_end, place.safe)
            memory = document.extend(entry.memory, added.lines, self._clock(), self._retention(tenant))
            entry = Entry(mark, added.end, memory)
        else:
            whole: Document = document.empty(tenant, user)
            before: Sequence[Event] = ()
            if mark.file is not None:
                spelled = mark.of_file in self._spelled
                found = _whole(place, mark.file, lambda raw: _read_apart(raw, spelled))
                if found is None:
                    return None
                whole, before = found
                if before and mark.of_file is not None and mark.of_file[2] >= _LONG:
                    if len(self._spelled) >= _MOST_SPELLED:
                        self._spelled.clear()
                    self._spelled.add(mark.of_file)
            added = journal.read(place.journal, 0, place.safe)
            merged = document.merge(whole, added.lines, self._clock())
            entry = self._entry(mark, merged, added.end, tenant, user, before)
        self._cache.put(key, entry)
        return entry

    def _merged(self, place: Place, mark: Mark, tenant: str, user: str) -> tuple[Document, int] | None:
        """The file with its journal, and how far that was read; None: the file is broken."""
        whole = document.empty(tenant, user) if mark.file is None else _whole(place, mark.file, document.parse)
        if whole is None:
            return None
        added = journal.read(place.journal, 0, place.safe)
        return document.merge(whole, added.lines, self._clock()), added.end

    def _entry(
        self, mark: Mark, merged: Document, journal_end: int, tenant: str, user: str, before: Sequence[Event] = ()
    ) -> Entry:
        """`before`: events that go before those in `merged`."""
        memory = document.told_apart(merged, before, tenant, user, self._clock(), self._retention(tenant))
        return Entry(mark, journal_end, memory)

    def _mended(self, place: Place, tenant: str, user: str) -> Entry | None:
        """A reader met a broken file: mends it, or where nothing can be written, goes on with what is readable."""
        try:
            with place.exclusive():
                if place.mark().nothing:
                    return None
                return self._read(place, tenant, user) or self._mend(place, tenant, user)
        except OSError as error:
            log.warning("the broken file of %s can't be set aside: %s", place.name, error.strerror)
            return self._readable(place, tenant, user)

    def _readable(self, place: Place, tenant: str, user: str) -> Entry:
        """What a broken file and its journal still hold, with nothing written."""
        whole, added = self._salvaged(place, tenant, user), journal.read(place.journal, 0, place.safe)
        return self._entry(place.mark(), document.merge(whole, added.lines, self._clock()), added.end, tenant, user)

    def _salvaged(self, place: Place, tenant: str, user: str) -> Document:
        path = place.mark().file
        return document.salvage(place.read(path)[0], tenant, user) if path else document.empty(tenant, user)

    def _mend(self, place: Place, tenant: str, user: str) -> Entry:
        """Sets the broken file aside and writes what it still held into a new one."""
        whole, path = self._salvaged(place, tenant, user), place.mark().file
        contents = document.dump(document.merge(whole, (), self._clock()), readable=True)
        if path is None:
            place.write(contents, self._compression)
        else:
            aside = place.set_aside(path)
            try:
                place.write(contents, self._compression)
            except OSError:
                place.put_back(path, aside)
                raise
            log.error("%s could not be read: kept as %s, %d events saved", path, aside, len(whole["events"]))
        entry = self._readable(place, tenant, user)
        self._cache.put((tenant, user), entry)
        return entry

    def _fold(self, place: Place, tenant: str, user: str, now: datetime) -> int:
        """The journal into the file, retention applied; a journal with broken lines is set aside, not removed."""
        mark = place.mark()
        whole = document.empty(tenant, user) if mark.file is None else _whole(place, mark.file, document.parse)
        if whole is None:
            self._mend(place, tenant, user)
            return self._fold(place, tenant, user, now)
        added = journal.read(place.journal, 0, place.safe)
        merged = document.merge(whole, added.lines, self._clock())
        removed = document.trim(merged, now, self._retention(tenant))
        as_configured = mark.file is not None and place.kind(mark.file) == self._compression
        if mark.of_journal is None and not removed and as_configured:
            return 0
        place.write(document.dump({**merged, "tenant_id": tenant, "user_id": user}, readable=True), self._compression)
        if added.unreadable:
            log.error("%d lines of %s can't be read: the journal is set aside", added.unreadable, place.journal)
            place.set_aside(place.journal)
        place.drop_journal()
        held = self._cache.get((tenant, user))
        if held is not None and held.mark == mark and not added.unreadable and _alike(held.memory, merged):
            # What is held is what was written, so nobody has to take it in anew.
            entry = Entry(place.mark(), 0, document.extend(held.memory, (), now, self._retention(tenant)))
        else:
            entry = self._entry(place.mark(), merged, 0, tenant, user)
        self._cache.put((tenant, user), entry)
        return removed


def _dumped(lines: Sequence[Document]) -> list[bytes]:
    return [document.dump(line) for line in lines if adds(line)]


def _whole(place: Place, path: str, parse: Callable[[bytes], T]) -> T | None:
    """What a file holds; None: it is broken."""
    raw, complete = place.read(path)
    try:
        found = parse(raw)
    except ValueError:
        return None
    return found if complete else None


def _read_apart(raw: bytes, spelled: bool) -> tuple[Document, Sequence[Event]]:
    """The document, and its events beside it where they need no closer look. Raises ValueError."""
    found = apart(raw, spelled=spelled)
    if found is None:
        return document.parse(raw), ()
    return document.checked({**found[0], "events": []}), found[1]


def _only_grown(old: Mark, new: Mark, journal_end: int) -> bool:
    if (old.file, old.of_file) != (new.file, new.of_file) or new.of_journal is None:
        return False
    return old.of_journal is None or (
        old.of_journal[0] == new.of_journal[0] and new.of_journal[1] >= max(journal_end, old.of_journal[1])
    )


def _alike(memory: LongTermMemory, merged: Document) -> bool:
    """Whether nothing but the retention of events may set apart what was read and what is written of the same."""
    records = ((memory.facts, "facts"), (memory.episodes, "episodes"))
    return told(memory) is not None and all(
        [one.id for one in some] == [one.get("id") for one in merged.get(name) or ()] for some, name in records
    )


class _faults:
    """The edge: what the system raises becomes LongTermUnavailable. A class, as it is entered at each look."""

    __slots__ = ("_deed", "_place")

    def __init__(self, deed: str, place: Place) -> None:
        self._deed = deed
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise _unavailable(self._deed, self._place, error) from error


def _unavailable(deed: str, place: Place, error: OSError) -> LongTermUnavailable:
    return LongTermUnavailable(f"long-term memory {place.named} can't be {deed}: {error.strerror or error}")
