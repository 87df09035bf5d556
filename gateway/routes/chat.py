"""`POST /chat`: one message and its answer, whole or as it grows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Header, HTTPException, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from config.tenants import Tenant
from gateway.chat import (
    HEARTBEAT,
    Caller,
    Chat,
    NobodyNamed,
    NoSuchAgent,
    NoSuchConversation,
    NothingKept,
    Shown,
    Talk,
    Unheard,
)
from gateway.errors import InboxUnavailable
from gateway.messages import Sticker, Tokens
from gateway.rendering.text import visible
from gateway.routes.auth import Keys
from gateway.routes.bodies import parsed, takes
from gateway.routes.known import one_tenant
from gateway.routes.problems import problems
from gateway.routes.sse import ALIVE, EVENT_SCHEMA, RETRY, EventStream, event, over
from gateway.routes.visitors import Visitors, check_origin, web_channel
from gateway.web_log import Entry, Follower
from memory.errors import LongTermUnavailable

CONVERSATION = r"^[A-Za-z0-9_-]{1,128}$"

STREAM = (
    "id: s-5f0c…\n\n"
    'retry: 1000\nid: 1793000300123-0\nevent: delta\ndata: {"text":"At "}\n\n'
    'id: 1793000300153-0\nevent: delta\ndata: {"text":"nine."}\n\n'
    "id: 1793000300160-0\nevent: done\n"
    'data: {"conversation_id":"sQ3…","usage":{"prompt_tokens":412,"completion_tokens":4,"total_tokens":416}}\n\n'
)

# The message is kept, and whoever sends it again says it twice, as OpenAI's clients do by themselves but for this.
SAID = {"X-Should-Retry": "false"}

ConversationId = Annotated[str, StringConstraints(pattern=CONVERSATION)]


class ChatRequest(BaseModel):
    """What somebody says to the bot."""

    model_config = ConfigDict(extra="ignore")

    message: Annotated[str, StringConstraints(min_length=1)] = Field(description="at most 20 000 characters are read")
    tenant: str | None = Field(None, description="may be left out with a tenant's own key, or a visitor's token")
    user: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = Field(
        None, description="who speaks, by your own name for them; left out: somebody known by the conversation alone"
    )
    agent: str | None = Field(None, description="`default` if left out")
    stream: bool = Field(False, description="the answer as server-sent events, while it grows")
    conversation_id: ConversationId | None = Field(
        None, description="to go on with one, or begin one by a name of your own; left out: a new one"
    )


class ChatReply(BaseModel):
    """The answer, in Markdown. `model` and `provider` are null where no language model was asked."""

    reply: str
    conversation_id: str
    model: str | None
    provider: str | None


class Callers:
    """Whoever may use the chat: keys, and visitors of a web chat."""

    def __init__(
        self,
        keys: Keys,
        visitors: Visitors,
        tenant_of: Callable[[str], Tenant | None],
        public_url: str | None,
    ) -> None:
        self._keys = keys
        self._visitors = visitors
        self._tenant_of = tenant_of
        self._public_url = public_url

    def known(self, request: Request) -> None:
        """Raises 401, before anything else is looked at."""
        if self._visitor(request) is None:
            self._keys.opens(request)

    def caller(self, request: Request, tenant: str | None) -> Caller:
        """Raises 401; 404 for another's tenant; 422 for the admin key that names none, and for whoever names two; 403
        for a site that may not."""
        tenant = one_tenant(request, tenant)
        if (visitor := self._visitor(request)) is not None:
            found = self._tenant_of(visitor.tenant)
            channel = web_channel(found)
            if found is None or channel is None or tenant not in (None, visitor.tenant):
                raise HTTPException(404, "There is no such tenant")
            check_origin(request, channel, self._public_url)
            return Caller(found, f"visitor:{visitor.id}", visitor.id)
        return Caller(self._keys.tenant(request, tenant), self._keys.owner(request))

    def _visitor(self, request: Request) -> Any:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return self._visitors.read(token.strip()) if scheme.lower() == "bearer" else None


@dataclass(frozen=True, slots=True)
class Routes:
    """What the routes of this file do; OpenAI's form of the same is built on it too."""

    chat: Chat

    async def talk(self, caller: Caller, request: ChatRequest) -> Talk:
        if not visible(request.message):
            raise HTTPException(422, "message: is empty")
        if caller.visitor is not None and request.user is not None:
            raise HTTPException(422, "user: a visitor is who the token says")
        try:
            return await self.chat.talk(
                caller,
                user=request.user,
                agent=request.agent,
                conversation=request.conversation_id,
                said=request.message,
            )
        except NoSuchAgent:
            raise no_agent(caller) from None
        except NoSuchConversation:
            raise HTTPException(404, "There is no such conversation") from None
        except NobodyNamed:
            raise HTTPException(422, "user: the main conversation is a person's, so say whose") from None
        except LongTermUnavailable:
            raise unavailable() from None

    async def say(self, talk: Talk, message: str, *, streamed: bool, **more: Any) -> str:
        try:
            return await self.chat.say(talk, message, streamed=streamed, **more)
        except InboxUnavailable:
            raise unavailable() from None
        except Unheard:
            raise HTTPException(403, "The shop does not hear this person") from None

    async def whole(self, talk: Talk, message: str, scope: Any) -> Entry:
        """The answer when it is there. Raises what stands in its place."""
        async with self.chat.follower(talk) as follower:
            request = await self.say(talk, message, streamed=False)
            answering = asyncio.create_task(self._end(follower, talk, request))
            closing = asyncio.create_task(over(scope))
            try:
                await asyncio.wait({answering, closing}, return_when=asyncio.FIRST_COMPLETED)
                if answering.done():
                    return answering.result()
            finally:
                for task in (answering, closing):
                    task.cancel()
                await asyncio.gather(answering, closing, return_exceptions=True)
        raise HTTPException(503, "We are closing; the answer comes into the conversation", {"Retry-After": "5"} | SAID)

    async def _end(self, follower: Follower, talk: Talk, request: str) -> Entry:
        async with aclosing(self.chat.answer(follower, talk, request)) as answer:  # type: ignore[type-var]
            async for shown in answer:
                if shown is not None and shown.kind == "done" and shown.entry is not None:
                    return shown.entry
                if shown is not None and shown.kind == "error":
                    raise refused(shown)
        raise unavailable()


def router(chat: Chat, callers: Callers) -> APIRouter:
    routes = APIRouter(tags=["Chat"])
    does = Routes(chat)

    @routes.post(
        "/chat",
        summary="Say something, get the answer",
        response_model=ChatReply,
        responses=problems(400, 401, 403, 404, 413, 422, 429, 503, 504)
        | {200: {"content": {"text/event-stream": {"schema": EVENT_SCHEMA, "example": STREAM}}}},
        openapi_extra=takes(
            ChatRequest,
            a_question={"message": "What time do you open?", "tenant": "demo"},
            streamed={"message": "What time do you open?", "tenant": "demo", "user": "ann", "stream": True},
        ),
    )
    async def post(
        request: Request,
        last_event_id: Annotated[str | None, Header(description="with `stream`: the rest of an earlier answer")] = None,
    ) -> Response:
        """With `stream` the answer comes as `text/event-stream`: `delta {"text"}` whenever there is more of it (with
        `"replace": true` the text stands in place of all before), then `done {"conversation_id", "usage"}`, or `error
        {"title", "status"}`. Who was cut off asks again with `Last-Event-ID` and the `conversation_id`: the message is
        not said again, and the rest follows. `X-Conversation-Id` names the conversation."""
        callers.known(request)
        asked = await parsed(request, ChatRequest)
        caller = callers.caller(request, asked.tenant)
        if last_event_id is not None and asked.conversation_id is not None:
            return await resumed(chat, caller, asked.conversation_id, asked.user, asked.agent, last_event_id)
        talk = await does.talk(caller, asked)
        headers = {"X-Conversation-Id": talk.ref.conversation}
        if asked.stream:
            return await streamed(does, talk, asked.message, headers)
        entry = await does.whole(talk, asked.message, request.scope)
        reply: dict[str, Any] = ChatReply(
            reply=text_of(entry),
            conversation_id=talk.ref.conversation,
            model=entry.model,
            provider=entry.provider,
        ).model_dump()
        return JSONResponse(reply | extras(caller, entry), headers=headers)

    @routes.get(
        "/chat/{conversation_id}/events",
        summary="What happens in a conversation",
        response_class=EventStream,
        responses=problems(401, 403, 404, 410, 422, 503)
        | {200: {"content": {"text/event-stream": {"schema": EVENT_SCHEMA}}}},
    )
    async def events(
        request: Request,
        conversation_id: Annotated[str, Path(pattern=CONVERSATION)],
        tenant: str | None = None,
        user: str | None = None,
        agent: Annotated[str | None, Query(description="left out: the one with whom it was begun")] = None,
        last_event_id: Annotated[str | None, Header()] = None,
        rest: Annotated[bool, Query(description="the rest of the answer at `Last-Event-ID`, and no more")] = False,
    ) -> Response:
        """Follows a conversation from now on (or from `Last-Event-ID`), whoever speaks in it: `said {"request",
        "text"}` for the person's own words, `delta`, `done` and `error` with their `request`, and `told {"text"}` for
        what nobody asked for just now, such as words of the shop's people."""
        callers.known(request)
        caller = callers.caller(request, tenant)
        if rest:
            return await resumed(chat, caller, conversation_id, user, agent, last_event_id or "")
        talk = await find(chat, caller, conversation_id, user, agent)
        follower = await chat.follower(talk).__aenter__()
        first = await chat.after(follower, last_event_id) if last_event_id else []
        headers = {"X-Conversation-Id": conversation_id}
        return EventStream(_followed(follower, talk, first), headers, ended=follower.__aexit__, endless=True)

    return routes


async def streamed(does: Routes, talk: Talk, message: str, headers: dict[str, str], **more: Any) -> EventStream:
    """The message is in the inbox when it returns: what goes wrong before is a problem document. `more` as with
    `Chat.say`."""
    follower = does.chat.follower(talk)
    await follower.__aenter__()
    try:
        request = await does.say(talk, message, streamed=True, **more)
    except BaseException:
        await follower.__aexit__()
        raise
    pieces = _pieces(does.chat.answer(follower, talk, request), talk, request)
    return EventStream(pieces, headers, lambda: does.chat.gone(talk, request), follower.__aexit__)


async def resumed(
    chat: Chat, caller: Caller, conversation: str, user: str | None, agent: str | None, last_id: str
) -> Response:
    talk = await find(chat, caller, conversation, user, agent)
    follower = chat.follower(talk)
    await follower.__aenter__()
    try:
        found = await chat.rest(follower, talk, last_id)
    except NothingKept:
        await follower.__aexit__()
        raise HTTPException(410, "Nothing of that answer is kept any more") from None
    except BaseException:
        await follower.__aexit__()
        raise
    if found is None:
        await follower.__aexit__()
        return Response(status_code=204)
    request, answer = found
    here = await chat.stay(talk, request)
    headers = {"X-Conversation-Id": talk.ref.conversation}
    return EventStream(_pieces(answer, talk), headers, lambda: chat.gone(talk, request, here), follower.__aexit__)


async def find(chat: Chat, caller: Caller, conversation: str, user: str | None, agent: str | None) -> Talk:
    try:
        return await chat.known(caller, conversation, user, agent)
    except NoSuchAgent:
        raise no_agent(caller) from None
    except NoSuchConversation:
        raise HTTPException(404, "There is no such conversation") from None
    except LongTermUnavailable:
        raise unavailable() from None


async def _pieces(answer: AsyncIterator[Shown | None], talk: Talk, request: str = "") -> AsyncGenerator[bytes, None]:
    if request:
        yield f"id: {request}\n\n".encode()  # no event: where to go on from for whoever is cut off before the first
    retry = RETRY
    async for shown in answer:
        if shown is None:
            yield ALIVE
            continue
        for piece in told(shown, talk.caller, talk.ref.conversation):
            yield retry + piece
            retry = b""


async def _followed(follower: Follower, talk: Talk, first: list[tuple[str, Entry]]) -> AsyncGenerator[bytes, None]:
    watches: dict[str, str] = {}  # of the answers that grow just now
    while True:
        found = first.pop(0) if first else await follower.next(HEARTBEAT)
        if found is None:
            yield ALIVE
            continue
        entry_id, entry = found
        data: dict[str, Any] = {"request": entry.request}
        match entry.kind:
            case "said" | "told":
                data["text"] = text_of(entry)
            case "delta":
                anew = entry.anew or watches.get(entry.request, entry.watch) != entry.watch
                watches[entry.request] = entry.watch
                data |= {"text": entry.text} | ({"replace": True} if anew else {})
            case "done":
                watches.pop(entry.request, None)
                data |= {"text": text_of(entry), "usage": usage(entry.tokens)} | extras(talk.caller, entry)
            case "error":
                data |= failed(entry.status)
        yield event(entry.kind, data, entry_id)


def told(shown: Shown, caller: Caller, conversation: str) -> list[bytes]:
    """One step of an answer as events."""
    if shown.kind == "delta":
        more: dict[str, Any] = {"replace": True} if shown.anew else {}
        return [event("delta", {"text": shown.text} | more, shown.id)]
    if shown.kind == "error" or shown.entry is None:
        return [event("error", failed(shown.status), shown.id)]
    beside = extras(caller, shown.entry)
    end = event("done", {"conversation_id": conversation, "usage": usage(shown.entry.tokens)}, shown.id)
    return [event("extras", beside), end] if beside else [end]


def text_of(entry: Entry) -> str:
    """The words, and what goes with them as links."""
    links = [f"[sticker {one.package}/{one.id}]" if isinstance(one, Sticker) else one.link for one in entry.media]
    return "\n\n".join(part for part in (entry.text, *links) if part)


def extras(caller: Caller, entry: Entry) -> dict[str, Any]:
    """Buttons and pictures, for the web chat's own page."""
    if caller.visitor is None or not (entry.quick_replies or entry.media):
        return {}
    return {
        "quick_replies": [{"label": one.label, "text": one.text} for one in entry.quick_replies],
        "media": msgspec.to_builtins(entry.media),
    }


def usage(tokens: Tokens) -> dict[str, int]:
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
    }


def failed(status: int) -> dict[str, Any]:
    return {"title": HTTPStatus(status).phrase, "status": status}


def refused(shown: Shown) -> HTTPException:
    if shown.status == 504:
        return HTTPException(504, "No answer came in time; it may still come into the conversation", SAID)
    why = shown.entry.text if shown.entry and shown.entry.text else HTTPStatus(shown.status).phrase
    return HTTPException(shown.status, why, {"Retry-After": "60"} if shown.status == 429 else None)


def no_agent(caller: Caller) -> HTTPException:
    """Visitors are not told how a shop is set up."""
    known = "" if caller.visitor is not None else f"; there are {', '.join(sorted(caller.tenant.agents))}"
    return HTTPException(404, f"There is no such agent{known}")


def unavailable() -> HTTPException:
    return HTTPException(503, "The message can't be kept just now; try again", {"Retry-After": "5"})
