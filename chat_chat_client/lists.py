"""What a tenant keeps: listed, looked at, mended, deleted."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypedDict, TypeVar
from urllib.parse import quote

from msgspec.structs import replace
from typing_extensions import Unpack

from chat_chat_client.models import (
    Checkpoint,
    Conversation,
    Deleted,
    Episode,
    Event,
    EventStats,
    Export,
    Memory,
    Page,
    Procedure,
    Removed,
    Resumed,
    Stats,
    User,
    WholeCheckpoint,
    WholeEpisode,
)
from chat_chat_client.wire import Wire, decoded

Item = TypeVar("Item")

API = "/api/v1"


class Listing(Generic[Item]):
    """`async for one in listing` over all pages, or `await listing.page(cursor)`. Pages hold while things change: what
    is there all the time comes once."""

    def __init__(self, wire: Wire, path: str, kind: type[Page[Item]], filters: Mapping[str, Any]) -> None:
        self._wire = wire
        self._path = path
        self._kind = kind
        self._filters = filters

    async def page(self, cursor: str | None = None) -> Page[Item]:
        return await self._wire.ask(self._kind, "GET", self._path, params={**self._filters, "cursor": cursor})

    async def pages(self) -> AsyncGenerator[Page[Item], None]:
        page = await self.page()
        yield page
        while page.next_cursor is not None:
            page = await self.page(page.next_cursor)
            yield page

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for page in self.pages():
            for one in page.items:
                yield one


class _Part:
    path = ""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def _of(self, name: str) -> str:
        if not name:  # it would be the address of the whole list
            raise ValueError("an id is empty")
        return f"{self.path}/{quote(name, safe='')}"


class _Batch(_Part):
    async def delete(self, ids: Iterable[str], user: str | None = None) -> int:
        """How many there were of at most 1000; `user` says whose, where several persons have one of an id."""
        body = {"ids": list(ids), "user": user}
        return (await self._wire.ask(Deleted, "POST", f"{self.path}/batch-delete", body=body)).deleted


class Bounds(TypedDict, total=False):
    """For every list: `limit` is how many are on a page (1 to 200); `q` are words in it."""

    limit: int
    q: str
    user: str


class MemoryFilters(Bounds, total=False):
    """`sort`: created, confidence, used, priority; `superseded`: also what gave way to something else."""

    type: str | Sequence[str]
    priority: str | Sequence[str]
    scope: str
    sort: str
    superseded: bool


class FactFilters(MemoryFilters, total=False):
    min_confidence: float


class UserFilters(Bounds, total=False):
    since: datetime
    until: datetime


class EpisodeFilters(UserFilters, total=False):
    agent: str
    outcome: str | Sequence[str]


class ProcedureFilters(TypedDict, total=False):
    limit: int
    q: str
    type: str | Sequence[str]


class EventFilters(UserFilters, total=False):
    """`importance`, at least: a band, or a score of 0 to 1. `sort`: at, importance."""

    type: str | Sequence[str]
    importance: str | float
    sort: str


class EventCounts(UserFilters, total=False):
    type: str | Sequence[str]
    importance: str | float


class CheckpointFilters(Bounds, total=False):
    agent: str
    conversation: str


class Conversations(_Part):
    """Those that have a name of their own."""

    path = "/api/memories"

    def list(self, **filters: Unpack[Bounds]) -> Listing[Conversation]:
        """The last used first."""
        return Listing(self._wire, self.path, Page[Conversation], filters)

    async def create(
        self, name: str | None = None, *, conversation_id: str | None = None, user: str | None = None,
        agent: str | None = None,
    ) -> Conversation:  # fmt: skip
        """A new one, by an id of the server's unless one is given; one that is there gets the name."""
        body = {"conversationId": conversation_id, "memoryName": name, "user": user, "agent": agent}
        return await self._wire.ask(Conversation, "POST", self.path, body=body)

    async def rename(self, conversation_id: str, name: str) -> Conversation:
        body = {"conversationId": conversation_id, "memoryName": name}
        return await self._wire.ask(Conversation, "PUT", self.path, body=body)

    async def get(self, conversation_id: str, user: str | None = None) -> Conversation:
        """`user`: whose, of the conversation `main`."""
        params = {"conversationId": conversation_id, "user": user}
        return await self._wire.ask(Conversation, "GET", f"{self.path}/single", params=params)

    async def delete(self, conversation_id: str, user: str | None = None) -> Removed:
        return await self._wire.ask(Removed, "DELETE", self._of(conversation_id), params={"user": user})


class Memories(_Part):
    path = f"{API}/memory"

    def list(self, **filters: Unpack[MemoryFilters]) -> Listing[Memory]:
        """The newest first."""
        return Listing(self._wire, self.path, Page[Memory], filters)

    async def get(self, memory_id: str, user: str | None = None) -> Memory:
        return await self._one("GET", memory_id, params={"user": user})

    async def patch(
        self, memory_id: str, *, text: str | None = None, priority: str | None = None, pinned: bool | None = None,
        etag: str | None = None, user: str | None = None,
    ) -> Memory:  # fmt: skip
        """With the `etag` of the memory that was seen it is refused (412) where somebody else changed it since."""
        headers = {} if etag is None else {"If-Match": etag}
        body = {"text": text, "priority": priority, "pinned": pinned}
        return await self._one("PATCH", memory_id, params={"user": user}, body=body, headers=headers)

    async def delete(self, memory_id: str, user: str | None = None) -> int:
        return (await self._wire.ask(Deleted, "DELETE", self._of(memory_id), params={"user": user})).deleted

    async def clear(self, user: str | None = None) -> int:
        """Deletes every memory of the tenant, or of one person; how many there were."""
        params = {"confirm": True, "user": user}
        return (await self._wire.ask(Deleted, "DELETE", self.path, params=params)).deleted

    async def stats(self, user: str | None = None) -> Stats:
        return await self._wire.ask(Stats, "GET", f"{self.path}/stats", params={"user": user})

    async def export(self, user: str | None = None) -> Export:
        return await self._wire.ask(Export, "GET", f"{self.path}/export", params={"user": user})

    async def _one(self, method: str, memory_id: str, **more: Any) -> Memory:
        async with self._wire.open(method, self._of(memory_id), **more) as answer:
            found = decoded(Memory, await answer.read(), f"{method} {memory_id}")
            return replace(found, etag=answer.headers.get("ETag", ""))


class Facts(_Batch):
    path = f"{API}/facts"

    def list(self, **filters: Unpack[FactFilters]) -> Listing[Memory]:
        """The surest first."""
        return Listing(self._wire, self.path, Page[Memory], filters)


class Episodes(_Batch):
    path = f"{API}/episodes"

    def list(self, **filters: Unpack[EpisodeFilters]) -> Listing[Episode]:
        return Listing(self._wire, self.path, Page[Episode], filters)

    async def get(self, episode_id: str, user: str | None = None) -> WholeEpisode:
        return await self._wire.ask(WholeEpisode, "GET", self._of(episode_id), params={"user": user})


class Procedures(_Batch):
    path = f"{API}/procedures"

    def list(self, **filters: Unpack[ProcedureFilters]) -> Listing[Procedure]:
        return Listing(self._wire, self.path, Page[Procedure], filters)


class Users(_Batch):
    """To delete one is to forget a person, with all that they said."""

    path = f"{API}/memory-users"

    def list(self, **filters: Unpack[UserFilters]) -> Listing[User]:
        """The last seen first."""
        return Listing(self._wire, self.path, Page[User], filters)


class Events(_Part):
    path = f"{API}/events"

    def list(self, **filters: Unpack[EventFilters]) -> Listing[Event]:
        return Listing(self._wire, self.path, Page[Event], filters)

    async def stats(self, **filters: Unpack[EventCounts]) -> EventStats:
        return await self._wire.ask(EventStats, "GET", f"{self.path}/stats", params=filters)


class Checkpoints(_Part):
    path = f"{API}/checkpoints"

    def list(self, **filters: Unpack[CheckpointFilters]) -> Listing[Checkpoint]:
        return Listing(self._wire, self.path, Page[Checkpoint], filters)

    async def get(self, checkpoint_id: str) -> WholeCheckpoint:
        return await self._wire.ask(WholeCheckpoint, "GET", self._of(checkpoint_id))

    async def roll_back(self, checkpoint_id: str) -> int:
        """How many messages, said behind the point, were removed."""
        return (await self._wire.ask(dict[str, int], "POST", f"{self._of(checkpoint_id)}/rollback"))["removed"]

    async def resume(self, checkpoint_id: str) -> Resumed:
        """A new conversation that goes on from there."""
        return await self._wire.ask(Resumed, "POST", f"{self._of(checkpoint_id)}/resume")

    async def delete(self, ids: Iterable[str]) -> int:
        """Removes those turns from their conversations; how many there were."""
        body = {"ids": list(ids)}
        return (await self._wire.ask(Deleted, "POST", f"{self.path}/batch-delete", body=body)).deleted
