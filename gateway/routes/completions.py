"""`POST /v1/chat/completions`: the bot behind OpenAI's form, for programs that speak it already.

The conversation's history is ours. Of the messages that a client sends along only the last user's is said; who wants a
conversation to go on names it, or its user.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable
from datetime import datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from gateway.chat import Chat, Shown, Talk
from gateway.rendering.text import visible
from gateway.routes.auth import Keys
from gateway.routes.bodies import parsed, takes
from gateway.routes.chat import Callers, ChatRequest, ConversationId, Routes, failed, text_of, usage
from gateway.routes.problems import problems
from gateway.routes.sse import ALIVE, EVENT_SCHEMA, EventStream
from gateway.web_log import Follower
from memory.keys import DEFAULT_AGENT, MAIN

EXAMPLE = {
    "id": "chatcmpl-5f0c…",
    "object": "chat.completion",
    "created": 1793000300,
    "model": "default",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "At nine."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 412, "completion_tokens": 4, "total_tokens": 416},
}


class Part(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: str
    text: str = ""


class ChatMessage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")

    include_usage: bool = False


class CompletionRequest(BaseModel):
    """What OpenAI's clients send; what is not named here is passed over. `model` names the agent, `default` also for a
    name that is no agent's. `conversation_id` is ours."""

    model_config = ConfigDict(extra="ignore")

    model: str = DEFAULT_AGENT
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    user: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = Field(
        None, description="a person of yours: without a conversation_id their main conversation goes on"
    )
    conversation_id: ConversationId | None = None


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str


class Models(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


def router(chat: Chat, callers: Callers, keys: Keys, clock: Callable[[], datetime]) -> APIRouter:
    routes = APIRouter(prefix="/v1", tags=["OpenAI-compatible"])
    does = Routes(chat)

    @routes.get("/models", summary="The tenant's agents", response_model=Models, responses=problems(401, 404, 422))
    async def models(request: Request, tenant: str | None = None) -> Models:
        found = keys.tenant(request, tenant)
        return Models(data=[Model(id=name, owned_by=found.id) for name in found.agents])

    @routes.get("/models/{model:path}", summary="One of them", response_model=Model, responses=problems(401, 404, 422))
    async def one_model(request: Request, model: str, tenant: str | None = None) -> Model:
        named, _, agent = model.rpartition("/")
        found = keys.tenant(request, _tenant(keys, request, named, tenant))
        if found.agent(agent) is None:
            raise HTTPException(404, f"There is no such agent; there are {', '.join(sorted(found.agents))}")
        return Model(id=model, owned_by=found.id)

    @routes.post(
        "/chat/completions",
        summary="Say something, get the answer, as OpenAI's clients do",
        responses=problems(400, 401, 403, 404, 413, 422, 429, 503, 504)
        | {
            200: {
                "content": {
                    "application/json": {"schema": {"type": "object"}, "example": EXAMPLE},
                    "text/event-stream": {"schema": EVENT_SCHEMA},
                }
            }
        },
        openapi_extra=takes(
            CompletionRequest,
            a_question={"model": "default", "messages": [{"role": "user", "content": "What time do you open?"}]},
        ),
    )
    async def completions(request: Request, tenant: str | None = None) -> Response:
        """The base URL is `…/v1`, the API key a tenant's own, or the admin key with `?tenant=` or with `tenant/` before
        the model's name. `X-Conversation-Id` names the conversation."""
        callers.known(request)
        asked = await parsed(request, CompletionRequest)
        named, _, model = asked.model.rpartition("/")
        caller = callers.caller(request, _tenant(keys, request, named, tenant))
        said = _last(asked.messages)
        agent = model if caller.tenant.agent(model) is not None else DEFAULT_AGENT
        talk = await does.talk(
            caller,
            ChatRequest(
                message=said,
                user=asked.user,
                agent=agent,
                conversation_id=asked.conversation_id or (MAIN if asked.user else None),
            ),
        )
        headers = {"X-Conversation-Id": talk.ref.conversation}
        frame = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(clock().timestamp()),
            "model": asked.model,
        }
        if asked.stream:
            follower = chat.follower(talk)
            await follower.__aenter__()
            try:
                told = await does.say(talk, said, streamed=True)
            except BaseException:
                await follower.__aexit__()
                raise
            counts = asked.stream_options is not None and asked.stream_options.include_usage
            pieces = _pieces(chat, follower, talk, told, frame, counts)
            return EventStream(pieces, headers, lambda: chat.gone(talk, told), follower.__aexit__)
        entry = await does.whole(talk, said, request.scope)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text_of(entry), "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
        more = {"object": "chat.completion", "choices": [choice], "usage": usage(entry.tokens)}
        return JSONResponse(frame | more, headers=headers)

    return routes


async def _pieces(
    chat: Chat, follower: Follower, talk: Talk, request: str, frame: dict[str, Any], counts: bool
) -> AsyncGenerator[bytes, None]:
    def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        data = frame | {"object": "chat.completion.chunk", "choices": [] if delta is None else [choice]} | more
        return b"data: " + orjson.dumps(data) + b"\n\n"

    yield chunk({"role": "assistant", "content": ""})
    async for shown in chat.answer(follower, talk, request):
        if shown is None:
            yield ALIVE
        elif shown.kind == "delta":
            # OpenAI's form knows no taking back: what replaces earlier words comes behind them.
            yield chunk({"content": f"\n\n{shown.text}" if shown.anew else shown.text})
        elif shown.kind == "done" and shown.entry is not None:
            yield chunk({}, "stop")
            if counts:
                yield chunk(None, usage=usage(shown.entry.tokens))
        else:
            yield b"data: " + orjson.dumps({"error": _error(shown)}) + b"\n\n"
    yield b"data: [DONE]\n\n"


def _error(shown: Shown) -> dict[str, Any]:
    told = failed(shown.status)
    return {"message": told["title"], "type": "server_error", "code": told["status"]}


def _tenant(keys: Keys, request: Request, named: str, asked: str | None) -> str | None:
    """With the admin key the tenant may stand before the model; else, and where the address says which tenant and there
    is none of that name, it is a model's own name."""
    if not named or keys.opens(request) is not None or (asked is not None and keys.find(named) is None):
        return asked
    return named


def _last(messages: list[ChatMessage]) -> str:
    """Raises HTTPException 422 where the last message is not a user's with words."""
    last = messages[-1]
    parts = last.content if isinstance(last.content, list) else [Part(type="text", text=last.content or "")]
    said = "\n".join(one.text for one in parts if one.text)
    if last.role != "user" or not visible(said):
        raise HTTPException(422, "messages: the last one has to be a user's, with words")
    return said
