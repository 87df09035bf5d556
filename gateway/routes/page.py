"""The web chat's page, what it is made of, and what it asks for beside `/chat`."""

from __future__ import annotations

import gzip
import hashlib
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast
from urllib.parse import urlencode

import orjson
from fastapi import APIRouter, HTTPException, Query, Request, Response
from jinja2 import Environment, FileSystemLoader
from pydantic import BaseModel

from config.tenants import Tenant
from gateway.buttons import suggested_by
from gateway.chat import Caller, Chat, channel_of
from gateway.inbox.base import event_of
from gateway.media import LARGEST
from gateway.media_types import suffix_of, type_of
from gateway.messages import InboundMessage, Kind
from gateway.routes.bodies import read
from gateway.routes.chat import Callers, Routes, streamed
from gateway.routes.page_texts import sayings
from gateway.routes.problems import problems
from gateway.routes.sse import EVENT_SCHEMA, EventStream
from gateway.routes.visitors import web_channel
from gateway.texts import Tongue
from gateway.web_log import STREAMED, Entry, place_of
from memory import keys
from memory.canonical import canonical
from memory.errors import LongTermUnavailable
from memory.keys import DEFAULT_AGENT, MAIN, ConversationRef
from memory.memory_manager import MemoryManager
from memory.models import Message

FILES = Path(__file__).resolve().parent.parent / "web"
SHOWN = 60  # messages that a page begins with

_LANGUAGES: tuple[tuple[Tongue, str], ...] = (("th", "ไทย"), ("en", "English"))
_KEPT = {"fresh": "public, max-age=31536000, immutable", "else": "public, max-age=300"}


class Line(BaseModel):
    """One message of the history. `request` is the one it said or answered, `staff`: a person of the shop wrote it."""

    role: str
    message: str
    timestamp: str
    request: str
    staff: bool


class History(BaseModel):
    """What was said, oldest first, and the place from which the conversation's events go on. `welcome` and
    `suggestions` are for whoever has said nothing yet."""

    items: list[Line]
    last_event_id: str
    welcome: str
    suggestions: list[dict[str, str]]


class Static:
    """The page's files, whole and compressed in memory, each under a name that changes with its content."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = cache(self._load)

    def link(self, name: str) -> str:
        return f"/web/static/{self._version()}/{name}"

    def answer(self, name: str, request: Request, *, kept: str = "else") -> Response:
        """Raises HTTPException 404."""
        try:
            plain, small, kind = self._read(name)
        except OSError:
            raise HTTPException(404, "There is no such file") from None
        headers = {"Cache-Control": _KEPT[kept], "Vary": "Accept-Encoding", "X-Content-Type-Options": "nosniff"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(small, headers=headers | {"Content-Encoding": "gzip"}, media_type=kind)
        return Response(plain, headers=headers, media_type=kind)

    def _load(self, name: str) -> tuple[bytes, bytes, str]:
        if not re.fullmatch(r"(?:vendor/)?[a-z0-9-]+\.(?:css|js|mjs)", name):
            raise FileNotFoundError(name)
        data = (self._folder / name).read_bytes()
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return data, gzip.compress(data, 9), kind

    @cache  # noqa: B019 - one a process
    def _version(self) -> str:
        """One for all: the files name each other."""
        files = sorted(self._folder.rglob("*.*s"))
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def router(
    chat: Chat,
    callers: Callers,
    manager: MemoryManager,
    tenants: Callable[[], Iterable[Tenant]],
    tenant_of: Callable[[str], Tenant | None],
) -> APIRouter:
    routes = APIRouter(tags=["Web chat"])
    static = Static(FILES)
    pages = Environment(loader=FileSystemLoader(FILES), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    does = Routes(chat)

    @routes.get("/", summary="The web chat", include_in_schema=False)
    async def page(request: Request, tenant: str = "", embed: str = "", lang: str = "") -> Response:
        shops = sorted((one for one in tenants() if web_channel(one)), key=lambda one: (one.name, one.id))
        found = tenant_of(tenant) if tenant else shops[0] if len(shops) == 1 else None
        channel = web_channel(found)
        if found is None or channel is None:
            language = _language(None, lang, request)
            status = 404 if tenant else 200
            body = pages.get_template("shops.html").render(
                lang=language, shops=[] if tenant else shops, shared=shared_names(shops), asked=tenant,
                say=sayings(language), static=static.link,
            )  # fmt: skip
            return Response(body, status, _headers(()), "text/html")
        language = _language(found, lang, request)
        say = sayings(language)
        body = pages.get_template("chat.html").render(
            lang=language,
            languages=_LANGUAGES if found.language == "auto" else (),
            name=found.name,
            tenant=found.id,
            embedded=bool(embed),
            say=say,
            texts=orjson.dumps(say).decode(),
            static=static.link,
            link=lambda code: f"/?{urlencode({'tenant': found.id, 'lang': code} | ({'embed': 1} if embed else {}))}",
        )
        return Response(body, headers=_headers(channel.allowed_origins), media_type="text/html")

    @routes.get("/web/widget.js", include_in_schema=False)
    async def widget(request: Request) -> Response:
        return static.answer("widget.js", request)

    @routes.get("/web/static/{version}/{name:path}", include_in_schema=False)
    async def file(version: str, name: str, request: Request) -> Response:
        return static.answer(name, request, kept="fresh")

    @routes.get("/web/{tenant}/history", response_model=History, responses=problems(401, 403, 404, 503))
    async def history(tenant: str, request: Request, lang: str = "") -> History:
        """The visitor's own conversation, for a page that was loaded again."""
        caller = _visitor(callers, request, tenant)
        talk = await chat.talk(caller, user=None, agent=None, conversation=MAIN)
        try:
            person = await canonical(manager.longterm, tenant, talk.ref.user)
            said = await manager.transcripts.tail(ConversationRef(tenant, person), SHOWN)
        except LongTermUnavailable:
            raise HTTPException(503, "What was said can't be read just now", {"Retry-After": "5"}) from None
        channel = channel_of(caller.tenant)
        items = [line for one in said if (line := _line(one, channel)) is not None]
        async with chat.follower(talk) as follower:
            kept = await follower.everything()
        shop, language = caller.tenant, _language(caller.tenant, lang, request)
        return History(
            items=items,
            last_event_id=_place(kept, items),
            welcome="" if items else shop.reply("welcome", language),
            suggestions=[{"label": one.label, "text": one.text} for one in suggested_by(shop.agents[DEFAULT_AGENT])],
        )

    @routes.post(
        "/web/{tenant}/pictures",
        response_class=EventStream,
        responses=problems(401, 403, 404, 413, 415, 422, 429, 503)
        | {200: {"content": {"text/event-stream": {"schema": EVENT_SCHEMA}}}},
        openapi_extra={"requestBody": {"required": True, "content": {"image/*": {}}}},
    )
    async def picture(tenant: str, request: Request, caption: Annotated[str, Query(max_length=1000)] = "") -> Response:
        """A visitor shows a picture: its bytes are the body. The answer comes as with `/chat`."""
        caller = _visitor(callers, request, tenant)
        talk = await chat.talk(caller, user=None, agent=None, conversation=MAIN)
        data = await read(request, LARGEST[Kind.IMAGE])
        mime = type_of(Kind.IMAGE, data, "", "")
        if mime is None:
            raise HTTPException(415, "This is no picture: JPEG, PNG, WebP and GIF are taken")
        named = f"{STREAMED}{secrets.token_hex(16)}"
        try:
            await manager.media.save(
                tenant, talk.ref.user, _file_of(channel_of(caller.tenant), named), suffix_of(mime), data
            )
        except LongTermUnavailable:
            raise HTTPException(503, "The picture can't be kept just now", {"Retry-After": "5"}) from None
        return await streamed(does, talk, caption, {"X-Conversation-Id": MAIN}, request=named, kind=Kind.IMAGE)

    return routes


def shared_names(shops: Iterable[Tenant]) -> set[str]:
    """Names that more than one of these has, so that their ids have to tell them apart."""
    return {name for name, count in Counter(shop.name for shop in shops).items() if count > 1}


def _visitor(callers: Callers, request: Request, tenant: str) -> Caller:
    """Raises 401 for whoever is no visitor, 404 for another shop's."""
    callers.known(request)
    caller = callers.caller(request, tenant)
    if caller.visitor is None:
        raise HTTPException(401, "This is for visitors: a token of theirs is needed", {"WWW-Authenticate": "Bearer"})
    return caller


def _file_of(channel: str, request: str) -> str:
    """Under which name the turn looks for what a message brought."""
    empty: Any = ""
    message = InboundMessage(
        tenant=empty, channel=channel, platform="web", event_id=request, user_id=empty, chat_id=empty
    )
    return event_of(message)


def _line(one: Message, channel: str) -> Line | None:
    if not one["message"].strip():
        return None
    named = one.get("message_id", "").removeprefix("re:")
    own, _, request = named.partition(":")
    return Line(
        role=one["role"],
        message=one["message"],
        timestamp=one.get("timestamp", ""),
        request=request if own == keys.escape(channel) else "",
        staff=one.get("metadata", {}).get("by") == "staff",
    )


def _place(kept: Sequence[tuple[str, Entry]], items: Sequence[Line]) -> str:
    """The event after which everything is news to whoever has read these lines."""
    requests = {one.request for one in items if one.request}
    staff = {one.message for one in items if one.staff}
    known = [
        entry_id
        for entry_id, entry in kept
        if entry.request in requests or (entry.kind == "told" and entry.text in staff)
    ]
    return max(known, key=place_of, default="0-0")


def _language(tenant: Tenant | None, wanted: str, request: Request) -> Tongue:
    """The shop's where it has one, else as asked, else the browser's first of ours; Thai where it says nothing."""
    if tenant is not None and tenant.language != "auto":
        return tenant.language
    if wanted in ("th", "en"):
        return cast(Tongue, wanted)
    accepted = [one.strip()[:2].lower() for one in request.headers.get("accept-language", "").split(",")]
    return next((cast(Tongue, one) for one in accepted if one in ("th", "en")), "en" if any(accepted) else "th")


def _headers(origins: Sequence[str]) -> dict[str, str]:
    """No script but ours; frames on the sites that the shop allows."""
    framed_by = " ".join(("'self'", *origins))
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' https: data: blob:; "
        f"base-uri 'none'; form-action 'none'; frame-ancestors {framed_by}"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
        "Cache-Control": "no-cache",
        "Vary": "Accept-Language",
    }
