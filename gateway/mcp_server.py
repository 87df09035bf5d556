"""The memory's tools over the Model Context Protocol, by the official SDK (extra `mcp`), on stdio and over HTTP.

The key fixes the tenant: a shop's own key opens that shop; the admin key opens the one that the operator names, with
`--tenant` or the header `X-Tenant`. The user is an argument of each call, within that tenant. What is remembered here
holds for that user alone, as what a model notes down in a chat does.
"""

from __future__ import annotations

import asyncio
import copy
import signal
from collections.abc import Collection
from contextlib import nullcontext
from importlib.metadata import version
from typing import Any

import mcp_types as types
import orjson
import uvicorn
from fastapi import HTTPException
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from config.settings import Settings
from config.tenants import Tenants
from gateway.admin_key import admin_key
from gateway.assembly import memory_of
from gateway.key_ring import KeyRing
from gateway.routes.auth import Keys
from gateway.routes.problems import problem
from gateway.tools import SPECIFICATIONS, MemoryTools
from memory.errors import MemoryFault
from memory.keys import ConversationRef, escape
from memory.memory_manager import MemoryManager
from processors.llm import ToolCall
from processors.pii import Kind

TENANT_HEADER = "x-tenant"
_TENANT = "chat_chat.tenant"  # in the scope of a request: whose tenant its key opens
_USER = {"type": "string", "minLength": 1, "description": "canonical id: line:U4af…, telegram:12345"}
_CHANNELS = ["line", "telegram", "web", "terminal"]
_IDENTIFY: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "user": _USER,
        "channel": {"type": "string", "enum": _CHANNELS, "description": "in place of user, with user_id"},
        "user_id": {"type": ["string", "integer"], "description": "who that is on the channel"},
        "display_name": {"type": "string"},
    },
}


def tools() -> list[types.Tool]:
    """`recall` and `remember` as the model has them in a chat, with the user; and `identify_user`."""
    found = []
    for spec in SPECIFICATIONS:
        function = copy.deepcopy(spec["function"])
        schema = function["parameters"]
        schema["properties"] = {"user": _USER, **schema["properties"]}
        schema["required"] = ["user", *schema.get("required", ())]
        if function["name"] == "recall":
            schema["properties"]["min_confidence"] = {"type": "number", "minimum": 0, "maximum": 1}
        found.append(types.Tool(name=function["name"], description=function["description"], input_schema=schema))
    description = "Who somebody is and what is known of them; takes in whoever is new. user_context says it in words."
    return [*found, types.Tool(name="identify_user", description=description, input_schema=_IDENTIFY)]


def server_of(manager: MemoryManager, tenants: Tenants, tenant: str | None = None) -> Server[Any]:
    """`tenant`: the one of a connection that has no requests of its own; over HTTP each request's key says it."""

    async def listed(_: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools())

    async def called(
        context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        shop = context.request.scope[_TENANT] if context.request is not None else tenant
        if shop is None:
            return _answer("error: no key has opened a tenant")
        given = dict(params.arguments or {})
        if params.name == "identify_user":
            return await _identify(manager, shop, given)
        user = given.pop("user", None)
        if not isinstance(user, str) or ":" not in user:
            return _answer(f"error: {params.name} needs 'user', a canonical id such as telegram:12345")
        return _answer(await _call(manager, _mask(tenants, shop), shop, user, params.name, given))

    return Server("chat-chat", version=version("chat-chat"), on_list_tools=listed, on_call_tool=called)


async def over_stdio(settings: Settings, key: str, tenant: str | None) -> None:
    """Until the other side closes. Raises ValueError for a key that opens nothing."""
    tenants = _loaded(settings)
    manager = memory_of(settings, tenants, settings.redis_url)
    try:
        try:
            shop = _keys(settings, tenants, manager).tenant(_request(key), tenant)
        except HTTPException as error:
            raise ValueError(str(error.detail)) from error
        server = server_of(manager, tenants, shop.id)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        await manager.close()


async def over_http(settings: Settings, host: str, port: int) -> None:
    """Serves `/mcp` until it is told to stop."""
    tenants = _loaded(settings)
    manager = memory_of(settings, tenants, settings.redis_url)
    app = server_of(manager, tenants).streamable_http_app(stateless_http=True, json_response=True, host=host)
    await asyncio.to_thread(manager.lists.begin)
    guarded = Guard(app, _keys(settings, tenants, manager))
    config = uvicorn.Config(guarded, host=host, port=port, log_config=None, access_log=False, server_header=False)
    server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # type: ignore[method-assign, assignment]  # it would kill itself before the end
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, setattr, server, "should_exit", True)
    try:
        await server.serve()
    finally:
        await manager.close()


class Guard:
    """Lets nobody in without a key, and notes whose tenant it opens."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            try:
                named = set(request.headers.getlist(TENANT_HEADER))
                tenant = self._keys.tenant(request, next(iter(named), None))
                if len(named) > 1:
                    raise HTTPException(422, "X-Tenant: two different ones are named, and only one can be meant")
            except HTTPException as error:
                detail = str(error.detail).replace("?tenant=…", "X-Tenant: …")
                await problem(error.status_code, detail, dict(error.headers or {}))(scope, receive, send)
                return
            except MemoryFault as error:
                await problem(503, str(error.__doc__), {"Retry-After": "5"})(scope, receive, send)
                return
            scope = {**scope, _TENANT: tenant.id}
        await self._app(scope, receive, send)


def _mask(tenants: Tenants, tenant: str) -> Collection[Kind]:
    """What the shop does not want written down."""
    shop = tenants.get(tenant)
    return shop.privacy.mask if shop else ()


async def _call(
    manager: MemoryManager, mask: Collection[Kind], tenant: str, user: str, name: str, given: dict[str, Any]
) -> str:
    sure = given.pop("min_confidence", 0.5) if name == "recall" else 0.5
    if not isinstance(sure, int | float) or isinstance(sure, bool) or not 0 <= sure <= 1:
        return "error: min_confidence is a number from 0 to 1"
    try:
        escape(user)
        toolbox = MemoryTools(manager, ConversationRef(tenant, user), "mcp", mask=mask, min_confidence=float(sure))
        return await toolbox.call(ToolCall("mcp", name, orjson.dumps(given).decode()))
    except (ValueError, TypeError) as error:
        return f"error: {error}"


async def _identify(manager: MemoryManager, tenant: str, given: dict[str, Any]) -> types.CallToolResult:
    if strange := sorted(set(given) - set(_IDENTIFY["properties"])):
        return _answer(f"error: identify_user has no {strange[0][:40]!r}, but {', '.join(_IDENTIFY['properties'])}")
    if wrong := _wrong(given):
        return _answer(f"error: {wrong}")
    name = given.pop("display_name", None)
    trigger = {"user_id": given["user"]} if "user" in given else given
    try:
        found = await manager.identify_user(tenant, trigger, display_name=name)
    except ValueError as error:
        return _answer(f"error: {error}")
    except MemoryFault:
        return _answer("error: the memory can't be reached now")
    text = types.TextContent(type="text", text=orjson.dumps(found).decode())
    return types.CallToolResult(content=[text], structured_content=found)


def _wrong(given: dict[str, Any]) -> str:
    """What a call of `identify_user` can't mean; "": it means somebody."""
    if "user" in given and (beside := sorted({"channel", "user_id"} & set(given))):
        return f"user is the whole id, such as line:U4af…: give it without {beside[0]}, or channel and user_id alone"
    if "user" not in given and given.get("channel") not in (None, *_CHANNELS):
        return f"there is no channel {str(given['channel'])[:40]!r}; use {', '.join(_CHANNELS)}"
    if not isinstance(given.get("display_name"), str | None):
        return "display_name is a text"
    return ""


def _answer(text: str) -> types.CallToolResult:
    failed = text.startswith("error: ")
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)


def _loaded(settings: Settings) -> Tenants:
    tenants = Tenants(settings)
    tenants.load()
    return tenants


def _keys(settings: Settings, tenants: Tenants, manager: MemoryManager) -> Keys:
    return Keys(admin_key(settings.admin_api_key, settings.data_dir)[0], tenants.all, KeyRing(manager.lists))


def _request(key: str) -> Request:
    """As a call that may change things: `remember` does."""
    header = (b"authorization", f"Bearer {key}".encode("latin-1", "replace"))
    return Request({"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": [header]})
