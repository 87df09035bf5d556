"""Conversations that people opened by name: who owns each, what it is called. What was said in them stands in the
transcripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from memory import keys
from memory.keys import ConversationRef
from memory.surrogates import without_surrogates
from processors.models import iso


@dataclass(frozen=True, slots=True)
class Conversation:
    """`owner` is whoever opened it and alone may use it: `admin`, `key:…` or `visitor:…`."""

    tenant: str
    id: str
    user: str  # canonical
    owner: str
    name: str
    created_at: datetime  # aware
    used_at: datetime  # when anything was last said in it
    agent: str = keys.DEFAULT_AGENT

    @property
    def ref(self) -> ConversationRef:
        return ConversationRef(self.tenant, self.user, self.agent, self.id)


class Conversations(Protocol):
    """Raises LongTermUnavailable where they can't be read or written."""

    async def open(self, new: Conversation) -> Conversation:
        """The one that stands there by this id, whoever's it is; else `new`, kept from now on."""
        ...

    async def put(self, one: Conversation) -> None:
        """In the place of whatever stands there by this id."""
        ...

    async def get(self, tenant: str, id_: str) -> Conversation | None: ...

    async def used(self, tenant: str, id_: str, now: datetime) -> None:
        """Said again within a minute it may go unnoted."""
        ...

    async def rename(self, tenant: str, id_: str, name: str) -> Conversation | None:
        """None: there is none by this id."""
        ...

    async def all(self, tenant: str) -> list[Conversation]:
        """The last used first."""
        ...

    async def remove(self, tenant: str, id_: str) -> bool: ...

    async def forget(self, tenant: str, user: str) -> int:
        """How many were removed."""
        ...

    async def prune(self, tenant: str, before: datetime) -> int:
        """Removes those that were last used before; how many."""
        ...

    async def tenants(self) -> list[str]: ...


def used_ms(one: Conversation) -> int:
    """Milliseconds since 1970, the same from every store."""
    return round(one.used_at.timestamp() * 1000)


def record_of(one: Conversation) -> dict[str, Any]:
    """As it is kept, but for when it was last used."""
    return {
        "conversationId": one.id,
        "memoryName": without_surrogates(one.name),
        "createTime": iso(one.created_at),
        "user_id": without_surrogates(one.user),
        "agent": one.agent,
        "owner": one.owner,
    }


def conversation_of(record: Mapping[str, Any], tenant: str, name: str, used_at: datetime) -> Conversation:
    """From a record and the name (`keys.escape`) that it is kept by. Raises ValueError, KeyError, TypeError for what is
    no such record."""
    created = datetime.fromisoformat(record["createTime"])
    return Conversation(
        tenant=tenant,
        id=keys.unescape(name) or str(record["conversationId"]),
        user=str(record["user_id"]),
        owner=str(record["owner"]),
        name=str(record["memoryName"]),
        created_at=created if created.tzinfo else created.replace(tzinfo=UTC),
        used_at=used_at,
        agent=str(record.get("agent") or keys.DEFAULT_AGENT),
    )
