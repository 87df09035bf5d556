"""Ids that were merged lead to the one that stands for them now."""

from __future__ import annotations

from memory.models import LongTermMemory
from memory.protocols import LongTerm

_HOPS = 10


async def resolved(longterm: LongTerm, tenant: str, user: str) -> tuple[str, LongTermMemory | None]:
    """Who stands for this id now, itself or whom it was merged into, and what is known. Raises LongTermUnavailable."""
    for _ in range(_HOPS):
        memory = await longterm.load(tenant, user)
        if memory is None or memory.person is None or memory.person.merged_into is None:
            break
        user = memory.person.merged_into
    return user, memory


async def canonical(longterm: LongTerm, tenant: str, user: str) -> str:
    return (await resolved(longterm, tenant, user))[0]


async def all_ids(longterm: LongTerm, tenant: str, user: str) -> list[str]:
    """Every id of the person: the one that stands for them first, then those that were merged into it."""
    first, memory = await resolved(longterm, tenant, user)
    parts = memory.person.parts if memory and memory.person else {}
    return list(dict.fromkeys([first, user, *parts]))
