"""Ids that were merged lead to the one that stands for them now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from memory.errors import LongTermUnavailable
from memory.models import Changes, LongTermMemory
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


async def resolved_with_shared(
    longterm: LongTerm, tenant: str, user: str
) -> tuple[str, LongTermMemory | None, LongTermMemory | None]:
    """`resolved`, and what belongs to the tenant. Raises LongTermUnavailable."""
    memory, shared = await longterm.load_with_shared(tenant, user)
    if memory is not None and memory.person is not None and memory.person.merged_into is not None:
        user, memory = await resolved(longterm, tenant, memory.person.merged_into)
    return user, memory, shared


async def canonical(longterm: LongTerm, tenant: str, user: str) -> str:
    return (await resolved(longterm, tenant, user))[0]


async def change_theirs(
    longterm: LongTerm,
    tenant: str,
    user: str,
    decide: Callable[[LongTermMemory], Changes],
    *,
    since: datetime | None = None,
    ahead: bool = False,
) -> None:
    """LongTerm.change of who stands for this id at that moment: what is said while two ids become one is not written to
    the one that nobody looks at any more. `decide` is called as it is there, with `ahead` too; not at all where
    the person was forgotten after `since`, when what is to be written was said."""
    whose = user
    for _ in range(_HOPS):
        left: list[str] = []

        def still(memory: LongTermMemory, left: list[str] = left) -> Changes:
            left.clear()
            if memory.person is not None and memory.person.merged_into is not None:
                left.append(memory.person.merged_into)
                return Changes()
            if since is not None and (at := longterm.forgotten_at(tenant, memory.user_id)) and at > since:
                return Changes()
            return decide(memory)

        await longterm.change(tenant, whose, still, ahead=ahead)
        if not left:
            return
        whose = left[-1]
    raise LongTermUnavailable("the person's ids are being merged all the time")


async def all_ids(longterm: LongTerm, tenant: str, user: str) -> list[str]:
    """Every id of the person: the one that stands for them first, then those that were merged into it."""
    first, memory = await resolved(longterm, tenant, user)
    return list(dict.fromkeys([first, user, *merged_ids(memory)]))


def merged_ids(memory: LongTermMemory | None) -> list[str]:
    """The ids that were merged into this one, also by way of others."""
    person = memory.person if memory else None
    return list(_ids(person.parts)) if person else []


def _ids(parts: Mapping[str, Any]) -> Iterator[str]:
    for name, part in parts.items():
        yield name
        person = (part.get("memory") or {}).get("person") or {}
        yield from _ids(person.get("parts") or {})
