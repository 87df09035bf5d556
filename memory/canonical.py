"""Ids that were merged lead to the one that stands for them now."""

from __future__ import annotations

from memory.protocols import LongTerm

_HOPS = 10


async def canonical(longterm: LongTerm, tenant: str, user: str) -> str:
    """The id itself, or the one it was merged into. Raises LongTermUnavailable."""
    for _ in range(_HOPS):
        memory = await longterm.load(tenant, user)
        if memory is None or memory.person is None or memory.person.merged_into is None:
            break
        user = memory.person.merged_into
    return user


async def all_ids(longterm: LongTerm, tenant: str, user: str) -> list[str]:
    """Every id of the person: the one that stands for them first, then those that were merged into it."""
    first = await canonical(longterm, tenant, user)
    memory = await longterm.load(tenant, first)
    parts = memory.person.parts if memory and memory.person else {}
    return list(dict.fromkeys([first, user, *parts]))
