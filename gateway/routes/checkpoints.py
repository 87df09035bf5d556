"""`/api/v1/checkpoints`: the points to which conversations can go back."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from config.tenants import Tenant
from gateway.routes.auth import Keys
from gateway.routes.bodies import parsed, takes
from gateway.routes.conversations import kept
from gateway.routes.filters import User
from gateway.routes.lists import LIMIT, Cursor, Limit, Page, cursor_of, place_of
from gateway.routes.problems import problems
from memory.checkpoints import Checkpoint
from memory.conversations import Conversation
from memory.memory_manager import MemoryManager
from memory.models import Message

_SHOWN = 200  # characters of the last words in a list


class Point(BaseModel):
    """Where a conversation stood behind one turn. `messages`: how many had been said."""

    id: str
    user_id: str
    agent: str
    conversation_id: str
    created_at: str
    messages: int
    said: str = Field(description="how the person's words of that turn begin")
    answer: str = Field(description="how the answer to them begins")


class Line(BaseModel):
    role: str
    message: str
    timestamp: str
    message_id: str | None
    metadata: dict[str, Any]


class PointInFull(Point):
    history: list[Line] = Field(description="what had been said, oldest first")


class Ids(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ids: list[str] = Field(max_length=1000)


class Deleted(BaseModel):
    deleted: int


class RolledBack(BaseModel):
    removed: int = Field(description="messages that were said behind the point")


class Resumed(BaseModel):
    conversation_id: str = Field(description="to go on with at `POST /chat`")
    messages: int


def router(manager: MemoryManager, keys: Keys, clock: Callable[[], datetime]) -> APIRouter:
    routes = APIRouter(prefix="/api/v1/checkpoints", tags=["Checkpoints"])
    talks = manager.talks
    wrong = problems(401, 404, 422, 503)

    async def find(tenant: Tenant, checkpoint_id: str) -> tuple[Checkpoint, list[Message]]:
        found = await talks.point(tenant.id, checkpoint_id)
        if found is None:
            raise HTTPException(404, "There is no such checkpoint")
        return found

    @routes.get("", summary="Checkpoints, the newest first", response_model=Page[Point], responses=wrong)
    async def listed(
        limit: Limit = 50,
        cursor: Cursor = "",
        user: User = None,
        agent: str | None = None,
        conversation: str | None = None,
        q: Annotated[str, Query(max_length=200, description="words of that turn")] = "",
        tenant: Tenant = Depends(keys.tenant),
    ) -> Page[Point]:
        place = place_of(cursor, 2)
        with kept():
            found = await talks.points(tenant.id, user, agent, conversation)
        if words := q.casefold().split():
            found = [one for one in found if all(word in _words(one) for word in words)]
        rest = [one for one in found if place is None or (one.at, one.id) < (str(place[0]), str(place[1]))]
        page = rest[:limit]
        following = cursor_of(page[-1].at, page[-1].id) if len(rest) > limit else None
        return Page(items=[shown_point(one) for one in page], next_cursor=following, total=len(found))

    @routes.post(
        "/batch-delete",
        summary="Remove turns from their conversations",
        response_model=Deleted,
        responses=wrong | problems(400, 413),
        openapi_extra=takes(Ids, two_of_them={"ids": ["5b22…", "5b23…"]}),
    )
    async def batch_delete(request: Request, tenant: Tenant = Depends(keys.tenant)) -> Deleted:
        """What the person said and what was answered, up to the checkpoint and behind the one before it."""
        asked = await parsed(request, Ids)
        with kept():
            return Deleted(deleted=await talks.drop(tenant.id, asked.ids))

    @routes.get("/{checkpoint_id}", summary="A conversation at a point", response_model=PointInFull, responses=wrong)
    async def inspect(checkpoint_id: str, tenant: Tenant = Depends(keys.tenant)) -> PointInFull:
        with kept():
            point, said = await find(tenant, checkpoint_id)
        lines = [
            Line(
                role=line["role"],
                message=line["message"],
                timestamp=str(line.get("timestamp") or ""),
                message_id=line.get("message_id"),
                metadata=dict(line.get("metadata") or {}),
            )
            for line in said[-LIMIT:]
        ]
        return PointInFull(**shown_point(point).model_dump(), history=lines)

    @routes.post(
        "/{checkpoint_id}/rollback",
        summary="Go back to a point: what was said behind it is removed",
        response_model=RolledBack,
        responses=wrong,
    )
    async def roll_back(checkpoint_id: str, tenant: Tenant = Depends(keys.tenant)) -> RolledBack:
        """What was learned of the person meanwhile stays."""
        with kept():
            point, _ = await find(tenant, checkpoint_id)
            return RolledBack(removed=await talks.roll_back(point))

    @routes.post(
        "/{checkpoint_id}/resume",
        summary="Go on from a point in a new conversation",
        response_model=Resumed,
        responses=wrong,
    )
    async def resume(request: Request, checkpoint_id: str, tenant: Tenant = Depends(keys.tenant)) -> Resumed:
        """The conversation itself stays as it is. The new one is the same person's, and belongs to this key."""
        with kept():
            point, _ = await find(tenant, checkpoint_id)
            now = clock()
            new = Conversation(
                tenant=tenant.id,
                id=secrets.token_urlsafe(18),
                user=point.ref.user,
                owner=keys.owner(request),
                name=shown_point(point).said[:60],
                created_at=now,
                used_at=now,
                agent=point.ref.agent,
            )
            opened = await manager.conversations.open(new)
            count = await talks.resume(point, opened.ref)
        return Resumed(conversation_id=opened.id, messages=count)

    return routes


def shown_point(one: Checkpoint) -> Point:
    def of(role: str) -> str:
        return "\n".join(line["message"] for line in one.lines if line["role"] == role)[:_SHOWN]

    return Point(
        id=one.id,
        user_id=one.ref.user,
        agent=one.ref.agent,
        conversation_id=one.ref.conversation,
        created_at=one.at,
        messages=one.before + len(one.lines),
        said=of("user"),
        answer=of("bot"),
    )


def _words(one: Checkpoint) -> str:
    return " ".join(line["message"] for line in one.lines).casefold()
