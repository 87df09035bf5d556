"""The one search: over whatever entries somebody may see, by words, and by meaning where vectors can be had."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence, Set
from datetime import datetime
from functools import partial
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from config.vault import PLAIN, Vault
from memory.errors import LongTermUnavailable
from memory.keys import DEFAULT_AGENT
from memory.recall.entry import Entry, Findable, Frames, Hit, Keep, Made, anything, entry_of, frames
from memory.recall.meaning import Meaning, packed
from memory.recall.ranking import Kept, Ranking
from memory.recall.sought import surely
from memory.recall.vector_file import Stored, VectorFile
from memory.recall.word_files import WordFiles
from memory.threads import in_thread
from memory.unhurried import Key, Unhurried
from processors.llm import LLMUnavailable

if TYPE_CHECKING:
    from processors.embeddings import Embeddings

log = logging.getLogger(__name__)

_HELD = 280  # rankings in memory, of 30 kB mostly; made anew within a millisecond or two for nearly everybody
_HELD_BYTES = 40 * 1024 * 1024  # in all of them, about; the least recently used go
_MANY = 24  # entries from which words are kept on disk: reading them takes a seventh of making them anew
_KEPT_AFTER, _KEPT_PART = 48, 8  # new entries, at the least, and which part of all: what packs and writes all of them
_KEPT_GOING = 12  # the same of somebody who is held no longer
_MOST_KEPT = 64  # persons whose words wait to be written: of whom there are more, they are made anew
_MOST_AHEAD = 64  # persons whose words were read and wait for a search
_AT_ONCE = 16  # vectors that are made before a search answers; the rest come behind it
_PART = 256  # vectors between two writes
_CLOSEST = 400  # of one search
_WARMED = 1024  # questions whose vector is kept, for a turn that searches more than once


class Finder:
    """`embeddings_of` gives a tenant's embeddings, None where it goes by words alone. `base`, `DATA_DIR/index`, is
    where vectors and words are kept; None: in memory alone. `forgotten`, blocking, tells when somebody was, within a
    day: what is held of them by whoever was at work is then not kept."""

    def __init__(
        self,
        base: Path | None = None,
        embeddings_of: Callable[[str], Embeddings | None] = lambda tenant: None,
        vault: Vault = PLAIN,
        forgotten: Callable[[str, str], datetime | None] = lambda tenant, user: None,
    ) -> None:
        self._forgotten = forgotten
        self._file = VectorFile(base, vault) if base is not None else None
        self._words = WordFiles(base, vault) if base is not None else None
        self._keeping = Unhurried("keeping words")
        self._embeddings_of = embeddings_of
        self._held: OrderedDict[tuple[str, str, str], _Owned] = OrderedDict()
        self._size = 0  # of all that are held
        self._ahead: dict[Key, _Ahead] = {}
        self._questions: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._later: set[asyncio.Task[None]] = set()

    async def find(
        self,
        tenant: str,
        user: str,
        entries: Sequence[Entry] | Made,
        question: str,
        limit: int,
        *,
        many: Sequence[Findable] = (),
        view: str = "",
        keep: Keep = anything,
        around: bool = False,
        now: datetime | None = None,
        most: int | None = None,
        shown: Set[str] = frozenset(),
    ) -> list[Hit]:
        """Best first; see Ranking.find. `many` are entries of the user's own, beside the others; see Ranking.update.
        `view` tells apart what one user sees with different agents."""
        if (
            not many
            and (tenant, user, view) not in self._held
            and not (entries.of if isinstance(entries, Made) else entries)
        ):
            return []  # of somebody nobody has met
        key, told = (tenant, user, view), None
        if key not in self._held and self._words is not None and len(many) >= _MANY:
            told = await self._begun(key, many)
        owned, few = self._owned(key, entries, many, shown, told)
        embeddings = self._embeddings_of(tenant)
        if embeddings is None or not question.strip() or not (few or many):
            return owned.ranking.find(question, limit, keep=keep, around=around, now=now, most=most, shown=shown)
        entries = [*few, *(entry_of(one, user) for one in many if one.id and one.found_by)]
        closeness = await self._closeness(tenant, owned, entries, question, embeddings)
        return owned.ranking.find(
            question, limit, closeness=closeness, floor=embeddings.floor, trust=embeddings.trust, keep=keep,
            around=around, now=now, most=most, shown=shown,
        )  # fmt: skip

    async def meant(self, tenant: str, question: str) -> dict[tuple[str, str], float]:
        """By owner and id, of everything in the tenant that has its vector: what surely means the same as the question,
        and how much that weighs beside words, which weigh 1. Nothing where there are no vectors on disk."""
        embeddings = self._embeddings_of(tenant)
        if embeddings is None or self._file is None or not question.strip():
            return {}
        if not await asyncio.to_thread(self._file.made_by, tenant, embeddings.name):
            return {}  # a model is not loaded for nothing
        try:
            asked = await self._asked(question, embeddings)
        except LLMUnavailable as error:
            log.warning("searched by words alone: %s", error, extra={"tenant": tenant})
            return {}
        floor, least = embeddings.floor, surely(embeddings.floor)
        found = await asyncio.to_thread(self._file.closest, tenant, embeddings.name, asked, least, _CLOSEST)
        return {one: embeddings.trust * (value - floor) / (1 - floor) for one, value in found.items()}

    async def fill(self, tenant: str, owner: str, entries: Sequence[Entry]) -> int:
        """Makes in the file the vectors that an owner's entries lack, and drops what is none of these; how many were
        made. Raises LLMUnavailable."""
        embeddings, made = self._embeddings_of(tenant), 0
        if self._file is None:
            return 0
        mine = [one for one in entries if one.owner == owner]
        await asyncio.to_thread(self._file.keep, tenant, owner, {one.id: one.digest for one in mine})
        if embeddings is not None:
            known = await asyncio.to_thread(self._file.load, tenant, owner, embeddings.name)
            wanted = [one for one in mine if one.id not in known]
            for at in range(0, len(wanted), _PART):
                made += len(await self._made(tenant, wanted[at : at + _PART], embeddings))
        return made

    async def tidy(self, tenant: str, user: str, entries: Sequence[Entry]) -> None:
        """What somebody's entries were and are no more is forgotten here too, on disk and in memory."""
        for key in [key for key in self._held if key[:2] == (tenant, user)]:
            self._let_go(key)
        self._ahead.pop((tenant, user), None)
        if self._file is not None:
            await asyncio.to_thread(self._file.keep, tenant, user, {one.id: one.digest for one in entries})
        await self._of_words(lambda words: words.drop(tenant, [user]), lambda key: key == (tenant, user))

    async def drop(self, tenant: str, users: Collection[str]) -> int:
        """Everything of these; how many vectors."""
        for key in [key for key in self._held if key[0] == tenant and key[1] in users]:
            self._let_go(key)
        self._ahead.clear()
        await self._of_words(lambda words: words.drop(tenant, users), lambda key: key[0] == tenant and key[1] in users)
        return await asyncio.to_thread(self._file.drop, tenant, users) if self._file is not None else 0

    async def expire(self, tenant: str, before: datetime) -> None:
        """Which words stand where is made anew of who comes after it was written then. Raises LongTermUnavailable."""
        self._ahead.clear()
        await self._of_words(lambda words: words.expire(tenant, before))

    async def owners(self, tenant: str) -> list[str]:
        return await asyncio.to_thread(self._file.owners, tenant) if self._file is not None else []

    async def remove(self, tenant: str) -> None:
        """The tenant's file of vectors."""
        for key in [key for key in self._held if key[0] == tenant]:
            self._let_go(key)
        self._ahead.clear()
        if self._file is not None:
            await asyncio.to_thread(self._file.remove, tenant)
        await self._of_words(lambda words: words.remove(tenant), lambda key: key[0] == tenant)

    async def close(self) -> None:
        for task in self._later:
            task.cancel()
        await asyncio.gather(*self._later, return_exceptions=True)
        await asyncio.to_thread(self._keeping.finish)

    def read_ahead(self, tenant: str, user: str, many: Sequence[Findable]) -> None:
        """Blocking, in a thread that has just read these events for a turn: a search of them needs no hop of its own
        then, and what is asked of each is asked while it is at hand."""
        if self._words is None or len(many) < _MANY or (tenant, user, DEFAULT_AGENT) in self._held:
            return
        if len(self._ahead) >= _MOST_AHEAD:
            self._ahead.clear()  # nobody asked
        self._ahead[tenant, user] = _Ahead(_Owned(self._words.load(tenant, user)), many, frames(many))
        self._unless_forgotten(tenant, user, lambda: self._ahead.pop((tenant, user), None))

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _begun(self, key: tuple[str, str, str], many: Sequence[Findable]) -> Frames | None:
        """Holds what is kept of theirs."""
        tenant, user, _ = key
        if (ahead := self._ahead.pop((tenant, user), None)) is not None:
            self._held[key] = ahead.owned
            return ahead.told if ahead.many is many else None
        assert self._words is not None
        kept = await in_thread(self._words.load, tenant, user)
        if key not in self._held:
            self._held[key] = _Owned(kept)
        return None

    def _owned(
        self,
        key: tuple[str, str, str],
        entries: Sequence[Entry] | Made,
        many: Sequence[Findable],
        shown: Set[str],
        told: Frames | None,
    ) -> tuple[_Owned, Sequence[Entry]]:
        tenant, user, _ = key
        worth = self._words is not None and len(many) >= _MANY
        owned = self._held.setdefault(key, _Owned()) if key not in self._held else self._held[key]
        self._held.move_to_end(key)
        few = owned.made(entries) if isinstance(entries, Made) else entries
        changed = owned.ranking.update(few, many, shown, told)
        if changed:
            owned.complete = False
        owned.worth = worth
        if worth and owned.ranking.added >= max(_KEPT_AFTER, len(owned.ranking) // _KEPT_PART):
            self._keep(tenant, user, owned)  # which packs it, so that it takes less
            changed = True
        if not changed:
            return owned, few
        size = owned.ranking.size
        self._size += size - owned.size
        owned.size = size
        while len(self._held) > 1 and (len(self._held) > _HELD or self._size > _HELD_BYTES):
            oldest = next(iter(self._held))
            gone = self._let_go(oldest)
            if gone.worth and gone.ranking.added >= _KEPT_GOING:
                self._keep(*oldest[:2], gone)
        return owned, few

    def _let_go(self, key: tuple[str, str, str]) -> _Owned:
        owned = self._held.pop(key)
        self._size -= owned.size
        return owned

    def _keep(self, tenant: str, user: str, owned: _Owned) -> None:
        """When there is time for it."""
        if self._words is not None and len(self._keeping) < _MOST_KEPT:
            self._keeping.add((tenant, user), partial(self._keep_words, self._words, tenant, user, owned.taken(user)))

    def _keep_words(self, words: WordFiles, tenant: str, user: str, kept: Kept) -> None:
        words.save(tenant, user, kept)
        self._unless_forgotten(tenant, user, lambda: words.drop(tenant, [user]))

    def _unless_forgotten(self, tenant: str, owner: str, drop: Callable[[], object]) -> None:
        """What was just kept of somebody goes again if they were forgotten meanwhile."""
        if not owner:  # the tenant's
            return
        try:
            if self._forgotten(tenant, owner) is not None:  # the mark came before anything was removed
                drop()
        except (LongTermUnavailable, OSError) as error:
            log.warning("what somebody forgotten is found by may be kept: %s", error, extra={"tenant": tenant})

    async def _of_words(self, work: Callable[[WordFiles], None], whose: Callable[[Key], bool] | None = None) -> None:
        """`whose`: of these nothing that was to be kept is kept any more."""
        if (words := self._words) is None:
            return

        def done() -> None:
            if whose is not None:
                self._keeping.drop(whose)
            work(words)

        try:
            await asyncio.to_thread(done)
        except OSError as error:
            raise LongTermUnavailable(f"which words stand where can't be removed: {error.strerror or error}") from error

    async def _closeness(
        self, tenant: str, owned: _Owned, entries: Sequence[Entry], question: str, embeddings: Embeddings
    ) -> dict[str, float]:
        """Empty where there are no vectors now: then words alone decide."""
        try:
            asked = await self._asked(question, embeddings)
            if owned.model != embeddings.name:
                await self._load(tenant, owned, entries, embeddings)
            missing: list[Entry] = []
            at_once: list[Entry] = []
            if not owned.complete:
                owned.forget({one.id: one.digest for one in entries})
                missing = [one for one in entries if one.id not in owned.digests and one.id not in owned.filling]
                at_once = [] if embeddings.remote else missing[-_AT_ONCE:]
                owned.take(await self._made(tenant, at_once, embeddings))
                owned.complete = len(owned.digests) >= len({one.id for one in entries})
        except LLMUnavailable as error:
            log.warning("searched by words alone: %s", error, extra={"tenant": tenant})
            return {}
        if rest := missing[: len(missing) - len(at_once)]:
            owned.filling |= {one.id for one in rest}
            self._soon(self._rest(tenant, owned, rest, embeddings))
        return owned.meaning.closest(asked, _CLOSEST) if owned.meaning is not None else {}

    async def _asked(self, question: str, embeddings: Embeddings) -> Any:
        key = (embeddings.name, question)
        if key not in self._questions:
            self._questions[key] = (await embeddings.encode([question], question=True))[0]
            if len(self._questions) > _WARMED:
                self._questions.popitem(last=False)
        return self._questions[key]

    async def _load(self, tenant: str, owned: _Owned, entries: Sequence[Entry], embeddings: Embeddings) -> None:
        found: dict[str, Stored] = {}
        if self._file is not None:
            for owner in {one.owner for one in entries if one.owner is not None}:
                found |= await asyncio.to_thread(self._file.load, tenant, owner, embeddings.name)
        owned.start(embeddings.name, found)

    async def _made(self, tenant: str, entries: Sequence[Entry], embeddings: Embeddings) -> dict[str, Stored]:
        if not entries:
            return {}
        vectors = packed(await embeddings.encode([one.found_by for one in entries]))
        made = {one.id: Stored(one.digest, vector) for one, vector in zip(entries, vectors, strict=True)}
        if self._file is not None:
            for owner in {one.owner for one in entries if one.owner is not None}:
                theirs = {one.id: made[one.id] for one in entries if one.owner == owner}
                await asyncio.to_thread(self._keep_vectors, self._file, tenant, owner, embeddings.name, theirs)
        return made

    def _keep_vectors(
        self, file: VectorFile, tenant: str, owner: str, model: str, vectors: Mapping[str, Stored]
    ) -> None:
        file.put(tenant, owner, model, vectors)
        self._unless_forgotten(tenant, owner, lambda: file.drop(tenant, [owner]))

    async def _rest(self, tenant: str, owned: _Owned, entries: Sequence[Entry], embeddings: Embeddings) -> None:
        """The newest first."""
        try:
            for end in range(len(entries), 0, -_PART):
                owned.take(await self._made(tenant, entries[max(0, end - _PART) : end], embeddings))
        except LLMUnavailable as error:
            log.warning("vectors are made later: %s", error, extra={"tenant": tenant})
        finally:
            owned.filling -= {one.id for one in entries}

    def _soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)


class _Ahead(NamedTuple):
    """Of whom a search will ask: what will be held of them, and what is needed of their events."""

    owned: _Owned
    many: Sequence[Findable]
    told: Frames


class _Owned:
    """What is held of one owner."""

    def __init__(self, kept: Kept | None = None) -> None:
        self.ranking = Ranking(kept=kept)
        self.size = 0  # of its ranking, among those of all that are held
        self.worth = False  # there are enough of them to be kept on disk
        self.meaning: Meaning | None = None
        self.model = ""
        self.digests: dict[str, bytes] = {}
        self.filling: set[str] = set()
        self.complete = False  # every entry has its vector
        self._made: tuple[Sequence[object], Sequence[Entry]] = ((), ())

    def made(self, entries: Made) -> Sequence[Entry]:
        of, known = self._made
        if len(of) != len(entries.of) or not all(map(is_, of, entries.of)):
            known = entries.make()
            self._made = entries.of, known
        return known

    def taken(self, user: str) -> Kept:
        """What is to be kept of the user's own."""
        self.ranking.added = 0
        return self.ranking.kept(self.ranking.of_owner(user))

    def start(self, model: str, stored: dict[str, Stored]) -> None:
        self.model, self.digests, self.meaning, self.complete = model, {}, None, False
        self.take(stored)

    def take(self, stored: dict[str, Stored]) -> None:
        if not stored:
            return
        vectors = {name: one.vector for name, one in stored.items()}
        if self.meaning is None:
            self.meaning = Meaning(vectors)
        else:
            self.meaning.put(vectors)
        self.digests |= {name: one.digest for name, one in stored.items()}

    def forget(self, wanted: dict[str, bytes]) -> None:
        """What is no entry any more, or another one under the same id."""
        gone = [name for name, digest in self.digests.items() if wanted.get(name) != digest]
        if gone and self.meaning is not None:
            self.meaning.drop(gone)
            for name in gone:
                del self.digests[name]
