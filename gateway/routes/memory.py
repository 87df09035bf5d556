"""`/api/v1/memory`: what is known for good, looked through and mended by staff."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, HTTPException, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from config.tenants import Tenant
from gateway.routes.auth import Keys
from gateway.routes.bodies import parsed, takes
from gateway.routes.filters import User, Words, following, going, whom
from gateway.routes.lists import Cursor, Limit, Page
from gateway.routes.memory_models import Deleted, Memory, MemoryType, Mend, Stats, shown_memory
from gateway.routes.problems import problems
from memory import in_sessions
from memory.curation import Held, tag
from memory.facts import Priority, Scope, fact_type
from memory.listing import Wanted
from memory.long_term.document import dump, plain
from memory.memory_manager import MemoryManager
from processors.models import iso

Sort = Literal["created", "confidence", "used", "priority"]
MemoryId = Annotated[str, Path(min_length=1, max_length=512)]
_REFUSED = problems(401, 404, 422, 503)


def router(keys: Keys, manager: MemoryManager, clock: Callable[[], datetime]) -> APIRouter:
    routes = APIRouter(prefix="/api/v1/memory", tags=["memory"], responses=_REFUSED)

    @routes.get("", summary="Memories, newest first")
    async def list_memories(
        limit: Limit = 50,
        cursor: Cursor = "",
        type: Annotated[list[MemoryType], Query(description="any of these; both names of a type work")] = [],  # noqa: B006
        priority: Annotated[list[Priority], Query(description="any of these")] = [],  # noqa: B006
        scope: Annotated[Scope | None, Query(description="`session`: what holds in live sessions alone")] = None,
        user: User = None,
        q: Words = "",
        sort: Annotated[Sort | None, Query(description="the greatest first; else `created`")] = None,
        superseded: Annotated[bool, Query(description="also what gave way to something else")] = False,
        tenant: Tenant = Depends(keys.tenant),
    ) -> Page[Memory]:
        return await page_of(
            manager, tenant.id, limit, cursor, user, sort,
            wanted=wanted_facts(type, priority, scope, q, superseded=superseded),
        )  # fmt: skip

    @routes.get("/stats", summary="How many there are, by type and by priority")
    async def stats(user: User = None, tenant: Tenant = Depends(keys.tenant)) -> Stats:
        counts = await manager.catalog.counts(tenant.id, "facts", Wanted(user=await whom(manager, tenant.id, user)))
        by = counts.by
        return Stats(total=counts.total, by_type=by["type"], by_priority=by["priority"], by_scope=by["scope"])

    @routes.get("/export", summary="All of it as JSON", response_class=StreamingResponse)
    async def export(user: User = None, tenant: Tenant = Depends(keys.tenant)) -> StreamingResponse:
        """`items` are memories, also those that gave way to others; `episodes` and `procedures` beside them. Everything
        that is kept of one person, word by word, is what `chat-chat memory export` gives."""
        whose = await whom(manager, tenant.id, user)
        name = f'attachment; filename="{tenant.id}-memory.json"'
        told = exported(manager, tenant.id, whose, clock())
        return StreamingResponse(told, media_type="application/json", headers={"Content-Disposition": name})

    @routes.get("/{memory_id}", summary="One memory")
    async def one(
        memory_id: MemoryId, response: Response, user: User = None, tenant: Tenant = Depends(keys.tenant)
    ) -> Memory:
        """Its `ETag` is for `If-Match`. 409: several persons have one of this id; say whose with `user`."""
        held = await manager.curation.fact(tenant.id, memory_id, user)
        return _shown(held, response)

    @routes.patch(
        "/{memory_id}",
        summary="Another text or priority",
        openapi_extra=takes(Mend, another_text={"text": "size: L"}, another_priority={"priority": "high"}),
        responses=problems(400, 409, 412, 413),
    )
    async def mend(
        memory_id: MemoryId,
        request: Request,
        response: Response,
        user: User = None,
        if_match: Annotated[str | None, Header(description="the `ETag` that you have seen")] = None,
        tenant: Tenant = Depends(keys.tenant),
    ) -> Memory:
        """Its value follows its text: `size: L` makes the value of `size` L. 412 where `If-Match` does not hold."""
        asked = await parsed(request, Mend)
        held = await manager.curation.mend(
            tenant.id,
            memory_id,
            user,
            text=asked.text or asked.content,
            priority=asked.priority,
            pinned=asked.pinned,
            expected=_matching(if_match) if if_match is not None else None,
        )
        return _shown(held, response)

    @routes.delete("/{memory_id}", summary="Deletes one, wherever it is kept", responses=problems(409))
    async def delete(memory_id: MemoryId, user: User = None, tenant: Tenant = Depends(keys.tenant)) -> Deleted:
        """It is not learned again from the message that told it."""
        done = await manager.curation.delete_facts(tenant.id, [memory_id], user)
        if not done:
            raise HTTPException(404, "There is no such memory")
        return Deleted(deleted=done)

    @routes.delete("", summary="Deletes all of them", responses=problems(400))
    async def clear(
        confirm: Annotated[bool, Query(description="must be true")] = False,
        user: User = None,
        tenant: Tenant = Depends(keys.tenant),
    ) -> Deleted:
        """Of everybody and of the tenant itself, or of one person. What was said stays: `memory-users/batch-delete`
        forgets a person."""
        if not confirm:
            raise HTTPException(400, "This deletes every memory: say confirm=true if that is meant")
        return Deleted(deleted=await manager.curation.clear(tenant.id, user))

    return routes


async def page_of(
    manager: MemoryManager, tenant: str, limit: int, cursor: str, user: str | None, sort: Sort | None, *, wanted: Wanted
) -> Page[Memory]:
    """A page of memories; those of live sessions come from there."""
    on = going("facts", cursor, sort, wanted.q)
    if wanted.scopes == (Scope.SESSION.value,):
        listed = in_sessions.listed(await manager.curation.of_sessions(tenant, user), wanted, limit=limit, **on)
    else:
        who = await whom(manager, tenant, user)
        listed = await manager.catalog.page(tenant, "facts", replace(wanted, user=who), limit=limit, **on)
    items = [Memory.model_validate(shown_memory(record)) for record in listed.records]
    return Page(items=items, next_cursor=following(listed), total=listed.total)


async def exported(manager: MemoryManager, tenant: str, user: str | None, now: datetime) -> AsyncIterator[bytes]:
    """Piece by piece, however many there are; one look at everybody for each list."""
    yield b'{"tenant_id":' + dump(tenant) + b',"exported_at":' + dump(iso(now))
    for name, kind in (("items", "facts"), ("episodes", "episodes"), ("procedures", "procedures")):
        comma = b""
        yield b',"' + name.encode() + b'":['
        async for whose, memory in manager.curation.all_of(tenant, user):
            for record in getattr(memory, kind):
                if kind == "facts" and record.deleted:
                    continue
                told = {**plain(record), "user_id": whose or None}
                yield comma + dump(shown_memory(told) if kind == "facts" else told)
                comma = b",\n"
        yield b"]"
    yield b"}\n"


def _shown(held: Held | None, response: Response) -> Memory:
    if held is None:
        raise HTTPException(404, "There is no such memory")
    response.headers["ETag"] = f'"{tag(held.fact)}"'
    return Memory.model_validate(shown_memory({**plain(held.fact), "user_id": held.user}))


def _matching(if_match: str) -> Callable[[str], bool]:
    """RFC 9110: one of the tags, compared strongly; `*` is whatever there is."""
    tags = {one.strip() for one in if_match.split(",")}
    return lambda known: "*" in tags or f'"{known}"' in tags


def wanted_facts(
    types: list[MemoryType], priorities: list[Priority], scope: Scope | None, q: str, **more: Any
) -> Wanted:
    return Wanted(
        q=q,
        types=tuple({fact_type(one.value).value for one in types}),
        priorities=tuple(one.value for one in priorities),
        scopes=(scope.value,) if scope else (),
        **more,
    )
