"""`/api/memories`: conversations, by name."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Request
from pydantic import BaseModel, Field, StringConstraints
from redis.exceptions import RedisError

from gateway.chat import Caller
from gateway.routes.auth import ADMIN
from gateway.routes.bodies import parsed, takes
from gateway.routes.chat import CONVERSATION, Callers, ConversationId
from gateway.routes.lists import Cursor, Limit, Page, cursor_of, place_of
from gateway.routes.problems import problems
from gateway.web_log import RedisLog
from memory import keys
from memory.conversations import Conversation
from memory.errors import MemoryFault
from memory.keys import DEFAULT_AGENT, MAIN, ConversationRef
from memory.memory_manager import MemoryManager
from memory.models import Message
from processors.models import iso

Name = Annotated[str, StringConstraints(max_length=200)]
WHOSE = "of which tenant; only the admin key has to say"


class MemoryUpsert(BaseModel):
    """A conversation to be made, or named anew."""

    conversationId: ConversationId | None = Field(None, description="left out: a new one, by an id of ours")
    memoryName: Name | None = Field(None, description="left out: the name stays as it is")
    user: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    agent: str | None = None


class MemoryName(BaseModel):
    conversationId: ConversationId
    memoryName: Name


class MemoryMessage(BaseModel):
    messageType: str = Field(description="USER or ASSISTANT")
    content: str
    metadata: dict[str, Any]
    timestamp: str


class Memory(BaseModel):
    conversationId: str
    memoryName: str
    createTime: str
    messages: list[MemoryMessage]


class Removed(BaseModel):
    deleted: int = Field(description="conversations")
    messages: int
    sessions: int


def router(manager: MemoryManager, callers: Callers, shown: RedisLog, clock: Callable[[], datetime]) -> APIRouter:
    routes = APIRouter(prefix="/api/memories", tags=["Conversations"])
    store, talks = manager.conversations, manager.talks
    wrong = problems(401, 403, 404, 422, 503)

    def caller_of(request: Request, tenant: str | None) -> Caller:
        callers.known(request)
        return callers.caller(request, tenant)

    async def find(caller: Caller, conversation: str, user: str | None = None) -> Conversation:
        """Raises 404 for what is not there, and for what is another's."""
        if conversation == MAIN:
            person = f"visitor:{caller.visitor}" if caller.visitor else user
            if person is None:
                raise HTTPException(422, "user: the main conversation is a person's, so say whose")
            first = next(iter(await talks.said(caller.tenant.id, f"web:{person}", MAIN)), None)
            begun = datetime.fromisoformat(first["timestamp"]) if first and "timestamp" in first else clock()
            return Conversation(caller.tenant.id, MAIN, f"web:{person}", caller.owner, "", begun, begun)
        found = await store.get(caller.tenant.id, conversation)
        if found is None or not _may(caller, found) or (user is not None and found.user != f"web:{user}"):
            raise HTTPException(404, "There is no such conversation")
        return found

    @routes.post(
        "",
        summary="Make a conversation, or name it anew",
        response_model=Memory,
        responses=wrong | problems(400, 413),
        openapi_extra=takes(
            MemoryUpsert,
            a_new_one={"memoryName": "Orders"},
            by_a_name_of_your_own={"conversationId": "order-17", "memoryName": "Order 17", "user": "ann"},
        ),
    )
    async def upsert(request: Request, tenant: Annotated[str | None, Query(description=WHOSE)] = None) -> Memory:
        callers.known(request)
        asked = await parsed(request, MemoryUpsert)
        caller = callers.caller(request, tenant)
        if asked.agent is not None and caller.tenant.agent(asked.agent) is None:
            raise HTTPException(404, "There is no such agent")
        if asked.conversationId == MAIN:
            raise HTTPException(422, "conversationId: the main conversation is always there, and has no name")
        now = clock()
        conversation = asked.conversationId or secrets.token_urlsafe(18)
        user = f"visitor:{caller.visitor}" if caller.visitor else asked.user or f"anonymous:{conversation}"
        new = Conversation(
            tenant=caller.tenant.id,
            id=conversation,
            user=f"web:{user}",
            owner=caller.owner,
            name=asked.memoryName or "",
            created_at=now,
            used_at=now,
            agent=keys.agent_name(asked.agent or DEFAULT_AGENT),
        )
        with kept():
            known = await store.open(new)
            if not _may(caller, known) or (asked.user is not None and known.user != new.user):
                raise HTTPException(404, "There is no such conversation")
            if asked.memoryName is not None and known.name != asked.memoryName:
                known = await store.rename(known.tenant, known.id, asked.memoryName) or known
            return _memory(known, await talks.said(known.tenant, known.user, known.id))

    @routes.put(
        "",
        summary="Name a conversation anew",
        response_model=Memory,
        responses=wrong | problems(400, 413),
        openapi_extra=takes(MemoryName, a_name={"conversationId": "order-17", "memoryName": "Order 17, paid"}),
    )
    async def rename(request: Request, tenant: Annotated[str | None, Query(description=WHOSE)] = None) -> Memory:
        """Its messages stay as they are."""
        callers.known(request)
        asked = await parsed(request, MemoryName)
        caller = callers.caller(request, tenant)
        with kept():
            found = await find(caller, asked.conversationId)
            renamed = await store.rename(found.tenant, found.id, asked.memoryName)
            if renamed is None:
                raise HTTPException(404, "There is no such conversation")
            return _memory(renamed, await talks.said(found.tenant, found.user, found.id))

    @routes.get("", summary="Conversations, the last used first", response_model=Page[Memory], responses=wrong)
    async def listed(
        request: Request,
        limit: Limit = 50,
        cursor: Cursor = "",
        tenant: Annotated[str | None, Query(description=WHOSE)] = None,
        user: Annotated[str | None, Query(description="of this person alone")] = None,
        q: Annotated[str, Query(description="words in the name or in what was said")] = "",
    ) -> Page[Memory]:
        caller = caller_of(request, tenant)
        place = place_of(cursor, 2)
        with kept():
            found = [one for one in await store.all(caller.tenant.id) if _may(caller, one)]
            if user is not None:
                found = [one for one in found if one.user == f"web:{user}"]
            if words := q.casefold().split():
                found = [one for one in found if await _speaks_of(manager, one, words)]
            rest = [one for one in found if place is None or _place(one) < (str(place[0]), str(place[1]))]
            page = rest[:limit]
            items = [_memory(one, await talks.said(one.tenant, one.user, one.id)) for one in page]
        following = cursor_of(*_place(page[-1])) if len(rest) > limit else None
        return Page(items=items, next_cursor=following, total=len(found))

    @routes.get("/single", summary="One conversation", response_model=Memory, responses=wrong)
    async def single(
        request: Request,
        conversationId: Annotated[str, Query(pattern=CONVERSATION)],
        tenant: Annotated[str | None, Query(description=WHOSE)] = None,
        user: Annotated[str | None, Query(description="whose main conversation")] = None,
    ) -> Memory:
        caller = caller_of(request, tenant)
        with kept():
            found = await find(caller, conversationId, user)
            return _memory(found, await talks.said(found.tenant, found.user, found.id))

    @routes.delete(
        "/{conversationId}",
        summary="Remove a conversation: its messages, session and checkpoints",
        response_model=Removed,
        responses=wrong,
    )
    async def remove(
        request: Request,
        conversationId: Annotated[str, Path(pattern=CONVERSATION)],
        tenant: Annotated[str | None, Query(description=WHOSE)] = None,
        user: Annotated[str | None, Query(description="whose main conversation")] = None,
    ) -> Removed:
        """What was learned of the person from it stays: see `/api/v1/memory`."""
        caller = caller_of(request, tenant)
        with kept():
            found = await find(caller, conversationId, user)
            gone = await talks.clear(found.tenant, found.user, found.id, [found.agent])
            await shown.forget(keys.session(ConversationRef(found.tenant, found.user, found.agent, found.id)))
            removed = found.id != MAIN and await store.remove(found.tenant, found.id)
        return Removed(deleted=int(removed or found.id == MAIN), **gone)

    return routes


def _may(caller: Caller, one: Conversation) -> bool:
    return caller.owner in (ADMIN, one.owner)


async def _speaks_of(manager: MemoryManager, one: Conversation, words: list[str]) -> bool:
    if all(word in one.name.casefold() for word in words):
        return True
    said = await manager.talks.said(one.tenant, one.user, one.id)
    return any(all(word in line["message"].casefold() for word in words) for line in said)


def _place(one: Conversation) -> tuple[str, str]:
    return one.used_at.isoformat(timespec="microseconds"), one.id


def _memory(one: Conversation, said: list[Message]) -> Memory:
    return Memory(
        conversationId=one.id,
        memoryName=one.name,
        createTime=iso(one.created_at),
        messages=[
            MemoryMessage(
                messageType="USER" if line["role"] == "user" else "ASSISTANT",
                content=line["message"],
                metadata=dict(line.get("metadata") or {}) | {"message_id": line.get("message_id")},
                timestamp=str(line.get("timestamp") or ""),
            )
            for line in said
        ],
    )


@contextmanager
def kept() -> Iterator[None]:
    """The edge: a store that is away is a 503."""
    try:
        yield
    except (MemoryFault, RedisError, OSError):
        raise HTTPException(503, "The memory can't be reached just now; try again", {"Retry-After": "5"}) from None
