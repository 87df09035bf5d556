"""The seams of the memory. Each has one test suite under tests/contracts that every backend passes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import date, datetime, tzinfo
from typing import TYPE_CHECKING, Any, Protocol

from memory.keys import ConversationRef
from memory.listing import Counts, Kind, Listed, Place, Wanted
from memory.models import Changes, LongTermMemory, Message, ShortTermMemory
from processors.models import MemoryEvent

if TYPE_CHECKING:
    from processors.embeddings import Embeddings


class Sessions(Protocol):
    """Short-term memory: one session a conversation.

    Raises SessionsUnavailable (memory.errors) when the store can't be reached.
    """

    async def load(self, ref: ConversationRef) -> ShortTermMemory | None:
        """The stored session, also one that is past `expires_at` but still in its grace; None when there is none. What
        can't be read is set aside and counts as none."""
        ...

    async def save(self, ref: ConversationRef, session: ShortTermMemory, ttl: float) -> bool:
        """Stores it with `rev` + 1 if the stored `rev` is still `session.rev` (0: nothing stored or an expired one
        replaced by a new session: pass the old one's rev). Value, TTL (`ttl` seconds and the grace, 0: none) and the
        mark for clean-up in one atomic step. False: somebody else wrote; load again."""
        ...

    async def used(self, ref: ConversationRef) -> None:
        """Whoever writes a session in a step of their own, past `save`, calls this after it: the tenant's least
        recently written session goes when there are more than the cap allows."""
        ...

    async def delete(self, ref: ConversationRef) -> bool: ...

    def expired(self, now: datetime, limit: int = 100) -> AsyncIterator[ConversationRef]:
        """Conversations whose session is over and not yet consolidated, the oldest first. Never scans the keyspace."""
        ...

    def of(self, tenant: str, user: str | None = None) -> AsyncIterator[ConversationRef]:
        """The conversations of a tenant, or of one user there, that have a session."""
        ...

    async def consolidated(self, ref: ConversationRef, rev: int) -> bool:
        """The session of that `rev` has gone into long-term memory: drop it, unless a newer one stands there.
        True for the one caller who dropped it."""
        ...

    async def forget(self, tenant: str, user: str) -> int:
        """Removes every conversation's session of the user; how many there were."""
        ...

    async def close(self) -> None: ...


class LongTerm(Protocol):
    """Long-term memory: everything known of a person. One writer per user at a time, over tasks, threads, processes.

    Raises LongTermUnavailable (memory.errors) when it can't be written or read (full disk, read-only folder); the
    caller keeps what it wanted to save and tries again.
    """

    async def load(self, tenant: str, user: str) -> LongTermMemory | None: ...

    async def save_events(
        self,
        tenant: str,
        user: str,
        events: Sequence[MemoryEvent],
        *,
        attributes: dict[str, Any] | None = None,
        history_summary: str | Callable[[LongTermMemory], str] | None = None,
    ) -> None:
        """Appends events (once each, by `event_id`), merges attributes into the facts (a list gains items, anything
        else is superseded), replaces the summary where given. A function gets the memory as this save leaves it but for
        the summary, and is called under the user's lock: short, pure, so that no update is lost. On disk when it
        returns. Its cost does not grow with the events already there."""
        ...

    def change(
        self, tenant: str, user: str, decide: Callable[[LongTermMemory], Changes], *, ahead: bool = False
    ) -> Awaitable[None]:
        """One step: `decide` sees what is known and says what is added. It is called once, under the user's lock:
        short, pure. On disk when it returns; what adds nothing writes nothing. `ahead`: it takes some 100 µs, so that
        it may be called in the event loop, before the lock is there, and once more where what it saw is not what is
        known then; what it said last counts."""
        ...

    async def load_shared(self, tenant: str) -> LongTermMemory | None:
        """What belongs to the tenant itself: facts of the scopes `agent` and `global`, procedures. `user_id` is ""."""
        ...

    async def load_with_shared(self, tenant: str, user: str) -> tuple[LongTermMemory | None, LongTermMemory | None]:
        """What `load` and `load_shared` give, in one step: every turn wants both."""
        ...

    async def change_shared(self, tenant: str, decide: Callable[[LongTermMemory], Changes]) -> None:
        """`change` for what belongs to the tenant itself."""
        ...

    async def rewrite_shared(self, tenant: str, change: Callable[[LongTermMemory], LongTermMemory]) -> bool: ...

    async def rewrite(self, tenant: str, user: str, change: Callable[[LongTermMemory], LongTermMemory]) -> bool:
        """Replaces what is known by what `change` makes of it: events (those with an `event_id`), facts (or their view,
        the attributes), episodes, the person, the summary.
        It is called under the user's lock, or not at all where nothing is known: short, pure. False: it changed
        nothing."""
        ...

    async def rewrite_both(
        self,
        tenant: str,
        user: str,
        other: str,
        change: Callable[[LongTermMemory, LongTermMemory], tuple[LongTermMemory, LongTermMemory]],
    ) -> None:
        """`rewrite` of two people in one step, known or not: nobody writes either of them meanwhile. What `change`
        raises comes out of it, and nothing was written. `user` is written first: a crash in between leaves `other` as
        it was."""
        ...

    async def compact(self, tenant: str, user: str, now: datetime) -> int:
        """Folds the journal in, applies retention; the number of events removed."""
        ...

    async def expire(self, tenant: str, now: datetime) -> int:
        """Retention for everybody, also for who never comes back; the number of events removed. Whose memory can't be
        read now waits for the next time."""
        ...

    def fading(self, tenant: str, now: datetime) -> AsyncIterator[str]:
        """At least those users who have facts that have faded by now."""
        ...

    def users(self, tenant: str) -> AsyncIterator[str]: ...

    async def tenants(self) -> list[str]:
        """Those of whom something is kept, or was."""
        ...

    async def forget(self, tenant: str, user: str) -> dict[str, int]:
        """Removes the person; what was removed where, with counts."""
        ...

    async def mark_forgotten(self, tenant: str, user: str) -> None:
        """To be done before anything is removed: for a day it is known when the person was forgotten."""
        ...

    async def tidy_marks(self, tenant: str) -> None:
        """Removes such marks of more than a day ago."""
        ...

    def forgotten_at(self, tenant: str, user: str) -> datetime | None:
        """When the person was forgotten last, if that was within a day. Blocking: for threads, and for what `change`
        calls (of the person that it changes); what is decided there by it can't be overtaken by `forget`."""
        ...

    def never_forgotten(self, tenant: str, user: str) -> bool:
        """Whether it is plain at once that `forgotten_at` says None; False: it has to be asked. For an event loop."""
        ...

    async def close(self) -> None: ...


class Catalog(Protocol):
    """Lists over all that a tenant knows, made of what LongTerm holds. What was saved before is in the answer.

    Raises CatalogUnavailable (memory.errors) while it is being made for the first time or can't be read.
    """

    async def page(
        self, tenant: str, kind: Kind, wanted: Wanted, *, sort: str | None = None, limit: int = 50,
        after: Place | None = None,
    ) -> Listed:  # fmt: skip
        """The records after that place. Equal ones by whose they are and their id, so that pages stay stable while
        things change. Without a `sort` what fits `q` best comes first, where nothing is looked for the first of
        `listing.SORTS`. Raises ValueError for a `sort` that is none of these, nor the `order` of the page before."""
        ...

    async def counts(self, tenant: str, kind: Kind, wanted: Wanted) -> Counts:
        """Of facts by `type`, `priority`, `scope`; of events by `type`."""
        ...

    async def per_day(self, tenant: str, wanted: Wanted, zone: tzinfo) -> dict[date, int]:
        """How many events each day has in that zone; days without any are left out."""
        ...

    async def whose(self, tenant: str, kind: Kind, record_id: str) -> list[str]:
        """The users that have a record of this id; "": the tenant itself."""
        ...

    async def last_events(self, tenant: str, wanted: Wanted) -> dict[str, dict[str, Any]]:
        """The newest event of everybody who has one that is wanted."""
        ...

    async def purge(self, tenant: str, users: Collection[str] = ()) -> None:
        """Right after something was deleted: nothing that is gone from long-term memory, of these users and of whoever
        changed since, is left in here when it returns, also not in bytes that nobody reads any more."""
        ...

    async def refresh(
        self, tenant: str, *, anew: bool = False, spare: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> int:  # fmt: skip
        """Compares everything, so that it also sees what was changed by hand; how many were taken in. `anew`: from
        nothing. `spare`: called often, it takes in whoever is known to have changed, and compares a bounded part of the
        rest, or all of it when that has become a small share of the time. `progress` is told how many of how many are
        done, from another thread."""
        ...

    async def close(self) -> None: ...


class Transcripts(Protocol):
    """What was said, append-only, with its own retention."""

    def append(self, ref: ConversationRef, messages: Sequence[Message]) -> Awaitable[None]: ...

    async def tail(self, ref: ConversationRef, limit: int) -> list[Message]:
        """The newest messages since the last `fresh_start`, oldest first, each `message_id` once."""
        ...

    async def everything(self, tenant: str, user: str) -> list[dict[str, Any]]:
        """All that is kept of what was said to or by the user, oldest first: messages with `agent` and
        `conversation`."""
        ...

    async def find(self, ref: ConversationRef, platform_id: str) -> Message | None:
        """The message that the platform knows by this id; None: it is not kept (any more)."""
        ...

    async def amend(
        self, ref: ConversationRef, platform_id: str, change: Callable[[Message], Message | None]
    ) -> Message | None:
        """Replaces that message by what `change` makes of it, None: removes it. The message as it was; None: there is
        none."""
        ...

    async def remove(self, ref: ConversationRef, goes: Callable[[Message], bool]) -> int:
        """Removes those messages of the conversation that `goes` names; how many there were."""
        ...

    async def users(self, tenant: str) -> list[str]:
        """Everybody of whom something is kept."""
        ...

    async def tenants(self) -> list[str]: ...

    async def prune(self, tenant: str, before: datetime) -> int: ...

    async def forget(self, tenant: str, user: str) -> int: ...


class EmbeddingsOf(Protocol):
    """Which embeddings a tenant's search goes by."""

    def of(self, tenant: str) -> Embeddings | None:
        """None: by words alone."""
        ...

    async def close(self) -> None: ...


class Analyst(Protocol):
    """Classifies a message; EventProcessor is one."""

    async def analyze_message(self, message: str, context: Mapping[str, Any] | None = None) -> MemoryEvent: ...
