"""`/api/v1/facts`, `/episodes`, `/procedures` and `/memory-users`: listed, and deleted in batches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from redis.exceptions import RedisError

from config.tenants import Tenant
from gateway.errors import InboxUnavailable
from gateway.routes.auth import Keys
from gateway.routes.bodies import parsed, takes
from gateway.routes.filters import Since, Until, User, Words, following, going, utc, whom
from gateway.routes.lists import Cursor, Limit, Page
from gateway.routes.memory import Sort, page_of, wanted_facts
from gateway.routes.memory_models import (
    Batch,
    Deleted,
    Episode,
    Memory,
    MemoryType,
    MemoryUser,
    Procedure,
    WholeEpisode,
)
from gateway.routes.problems import problems
from memory.episodes import Outcome
from memory.facts import Priority, Scope
from memory.listing import Wanted
from memory.long_term.document import plain
from memory.memory_manager import MemoryManager
from memory.procedures import ProcedureType

Forget = Callable[[str, str], Awaitable[dict[str, Any]]]  # a person is forgotten; the receipt

_BATCH = takes(Batch, two={"ids": ["f_ddd8da9125bbe84fee00", "f_ff8b44ed037694772e24"]})
_PEOPLE = takes(Batch, a_person={"ids": ["line:U4af"]})
_REFUSED = problems(401, 404, 422, 503)
_BAD = problems(400, 409, 413)


def router(keys: Keys, manager: MemoryManager, forget: Forget) -> APIRouter:
    routes = APIRouter(prefix="/api/v1", tags=["memory"], responses=_REFUSED)

    @routes.get("/facts", summary="Facts, the surest first")
    async def facts(
        limit: Limit = 50,
        cursor: Cursor = "",
        type: Annotated[list[MemoryType], Query(description="any of these; both names of a type work")] = [],  # noqa: B006
        priority: Annotated[list[Priority], Query(description="any of these")] = [],  # noqa: B006
        scope: Annotated[Scope | None, Query(description="`session`: what holds in live sessions alone")] = None,
        user: User = None,
        q: Words = "",
        min_confidence: Annotated[float, Query(ge=0, le=1)] = 0.0,
        sort: Annotated[Sort | None, Query(description="the greatest first; else `confidence`")] = None,
        superseded: Annotated[bool, Query(description="also what gave way to something else")] = False,
        tenant: Tenant = Depends(keys.tenant),
    ) -> Page[Memory]:
        wanted = wanted_facts(type, priority, scope, q, superseded=superseded, confidence=min_confidence or None)
        by = sort or (None if q else "confidence")
        return await page_of(manager, tenant.id, limit, cursor, user, by, wanted=wanted)

    @routes.post(
        "/facts/batch-delete", summary="Deletes facts, wherever they are kept", openapi_extra=_BATCH, responses=_BAD
    )
    async def delete_facts(request: Request, tenant: Tenant = Depends(keys.tenant)) -> Deleted:
        asked = await parsed(request, Batch)
        return Deleted(deleted=await manager.curation.delete_facts(tenant.id, asked.ids, asked.user))

    @routes.get("/episodes", summary="Sessions that ended, the newest first")
    async def episodes(
        limit: Limit = 50,
        cursor: Cursor = "",
        user: User = None,
        agent: Annotated[str | None, Query(max_length=128)] = None,
        outcome: Annotated[list[Outcome], Query(description="any of these")] = [],  # noqa: B006
        since: Since = None,
        until: Until = None,
        q: Words = "",
        tenant: Tenant = Depends(keys.tenant),
    ) -> Page[Episode]:
        who = await whom(manager, tenant.id, user)
        wanted = Wanted(user=who, q=q, agent=agent, outcomes=tuple(outcome), since=utc(since), until=utc(until))
        listed = await manager.catalog.page(
            tenant.id, "episodes", wanted, limit=limit, **going("episodes", cursor, None, q)
        )
        items = [Episode.model_validate(record) for record in listed.records]
        return Page(items=items, next_cursor=following(listed), total=listed.total)

    @routes.get("/episodes/{episode_id}", summary="One session, with what was said", responses=problems(409))
    async def episode(
        episode_id: Annotated[str, Path(min_length=1, max_length=512)],
        user: User = None,
        tenant: Tenant = Depends(keys.tenant),
    ) -> WholeEpisode:
        found = await manager.curation.episode(tenant.id, episode_id, user)
        if found is None:
            raise HTTPException(404, "There is no such episode")
        whose, one = found
        counts = {"messages": len(one.conversation), "tool_calls": len(one.actions)}
        return WholeEpisode.model_validate({**plain(one), "user_id": whose or None, **counts})

    @routes.post("/episodes/batch-delete", summary="Deletes episodes", openapi_extra=_BATCH, responses=_BAD)
    async def delete_episodes(request: Request, tenant: Tenant = Depends(keys.tenant)) -> Deleted:
        asked = await parsed(request, Batch)
        return Deleted(deleted=await manager.curation.delete_episodes(tenant.id, asked.ids, asked.user))

    @routes.get("/procedures", summary="How things are done here, the newest first")
    async def procedures(
        limit: Limit = 50,
        cursor: Cursor = "",
        type: Annotated[list[ProcedureType], Query(description="any of these")] = [],  # noqa: B006
        q: Words = "",
        tenant: Tenant = Depends(keys.tenant),
    ) -> Page[Procedure]:
        wanted = Wanted(q=q, types=tuple(one.value for one in type))
        listed = await manager.catalog.page(
            tenant.id, "procedures", wanted, limit=limit, **going("procedures", cursor, None, q)
        )
        items = [Procedure.model_validate(record) for record in listed.records]
        return Page(items=items, next_cursor=following(listed), total=listed.total)

    @routes.post("/procedures/batch-delete", summary="Deletes procedures", openapi_extra=_BATCH, responses=_BAD)
    async def delete_procedures(request: Request, tenant: Tenant = Depends(keys.tenant)) -> Deleted:
        asked = await parsed(request, Batch)
        return Deleted(deleted=await manager.curation.delete_procedures(tenant.id, set(asked.ids)))

    @routes.get("/memory-users", summary="People over all channels, the last seen first")
    async def people(
        limit: Limit = 50,
        cursor: Cursor = "",
        user: User = None,
        since: Since = None,
        until: Until = None,
        q: Annotated[str, Query(max_length=200, description="in a name or an id")] = "",
        tenant: Tenant = Depends(keys.tenant),
    ) -> Page[MemoryUser]:
        who = await whom(manager, tenant.id, user)
        wanted = Wanted(user=who, q=q, since=utc(since), until=utc(until))
        listed = await manager.catalog.page(tenant.id, "users", wanted, limit=limit, **going("users", cursor, None, q))
        items = [MemoryUser.model_validate({"id": record["user_id"], **record}) for record in listed.records]
        return Page(items=items, next_cursor=following(listed), total=listed.total)

    @routes.post(
        "/memory-users/batch-delete",
        summary="Forgets people, wherever they are kept",
        openapi_extra=_PEOPLE,
        responses=_BAD,
    )
    async def forget_people(request: Request, tenant: Tenant = Depends(keys.tenant)) -> Deleted:
        """With all that they said, under every id that was merged into theirs."""
        asked = await parsed(request, Batch)
        done = 0
        try:
            for one in dict.fromkeys(asked.ids):
                receipt = await forget(tenant.id, one)
                done += any(isinstance(count, int) and count > 0 for count in receipt.values())
        except (RedisError, InboxUnavailable):
            raise HTTPException(503, "Redis can't be reached: ask again", {"Retry-After": "5"}) from None
        return Deleted(deleted=done)

    return routes
