"""`/admin/<tenant>/talks`: conversations as they go on, and what staff do in them."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response

from config.tenants import Tenant, TenantStatus
from gateway.board import Board, Entry, Row
from gateway.dead_letters import DeadLetters
from gateway.page_desk import CLOSED, PageDesk, ref_of
from gateway.ratings import Ratings
from gateway.routes.admin_lists import names
from gateway.routes.admin_page import Pages, picked, see, with_
from gateway.routes.admin_session import Form
from gateway.routes.admin_shop import USER
from gateway.routes.lists import cursor_of, place_of
from gateway.routes.live import Reader
from gateway.routes.sse import ALIVE, EventStream, event
from gateway.staff_desk import UNTIL
from gateway.wire import Wire
from memory import keys
from memory.errors import MemoryFault
from memory.keys import ConversationRef
from memory.memory_manager import MemoryManager
from memory.models import Message, ShortTermMemory
from processors.models import EventType, band

A_PAGE = 30
LINES = (100, 300, 1000)  # of a conversation: at first, and each time that older ones are asked for
LONGEST = 4000  # characters of an answer
SHOWS = ("needs", "unread")
_SEEN_WITHIN = 2.0  # seconds that a deed is waited for, so that the page shows it


@dataclass(frozen=True, slots=True)
class Parts:
    board: Board
    desk: PageDesk
    ratings: Ratings
    wire: Wire


@dataclass(frozen=True, slots=True)
class _Talk:
    """A line of the list: the last words, who said them and when."""

    ref: str
    entry: Entry
    unread: bool
    line: Message | None


def router(
    pages: Pages,
    manager: MemoryManager,
    parts: Parts,
    letters: DeadLetters,
    statuses: Callable[[], list[TenantStatus]],
    described: Callable[[TenantStatus], Awaitable[dict[str, Any]]],
    clock: Callable[[], datetime],
) -> APIRouter:
    routes = APIRouter(route_class=pages.route_class())
    sessions, board = pages.sessions, parts.board

    @routes.get("/admin/{tenant}/talks")
    async def listed(request: Request, tenant: str, cursor: str = "") -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        show = picked(request.query_params, "show", SHOWS)
        rows = [row for row in await board.rows(shop.id) if row.entry.customer.user_id != USER]
        counts = {"": len(rows), "needs": sum(r.entry.needs for r in rows), "unread": sum(r.unread for r in rows)}
        chosen = [row for row in rows if show == "" or (row.entry.needs if show == "needs" else row.unread)]
        place = place_of(cursor, 2)
        rest = [row for row in chosen if place is None or row.place < (int(place[0]), str(place[1]))]
        page = rest[:A_PAGE]
        talks = await asyncio.gather(*(_talk(shop, row) for row in page))
        return pages.render(
            request, "talks.html", staff, shop, tab="talks", talks=talks, show=show, counts=counts, cursor=cursor,
            next_cursor=cursor_of(*page[-1].place) if len(rest) > A_PAGE else None,
            names=await _names(shop.id, page),
        )  # fmt: skip

    @routes.get("/admin/{tenant}/talk")
    async def one(request: Request, tenant: str, ref: str = "") -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        where = _ref(shop, ref)
        entry = await board.entry(where)
        many = _many(request.query_params.get("lines", ""))
        said = await manager.transcripts.tail(where, many + 1)
        lines = [line for line in said[-many:] if line["message"]]
        memory = await manager.longterm.load(shop.id, where.user)
        if entry is None and memory is None and not lines:
            raise HTTPException(404, "Nothing is known of this conversation")
        if entry is not None:
            await board.read(where, entry)
        session = await _session(where)
        way = await _way(shop, entry) if entry is not None else {"how": "gone", "month": None}
        return pages.render(
            request,
            "conversation.html",
            staff,
            shop,
            tab="talks",
            ref=ref,
            user=where.user,
            conversation=where.conversation,
            name=memory.person.display_name if memory and memory.person else None,
            lines=lines,
            many=many,
            more=next((one for one in LINES if one > many), 0) if len(said) > many else 0,
            entry=entry,
            held=bool(entry and entry.held),
            until=session.variables.get(UNTIL) if session else None,
            way=way,
            closed=way["how"] in CLOSED,
            longest=LONGEST,
            event=secrets.token_urlsafe(9),
            ratings=parts.ratings.of(shop.id, where.user),
            understood={
                event.event_id: (event.event_type.value, band(event.importance_score).value)
                for event in (memory.events if memory else ())
            },
            types=tuple(one.value for one in EventType),
            undelivered=[
                letter for letter in await letters.list(shop.id, 50) if letter.conversation == keys.session(where)
            ],
        )

    @routes.post("/admin/{tenant}/talk")
    async def act(request: Request, tenant: str) -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        form = await sessions.form(request, staff)
        where = _ref(shop, form.one("ref"))
        do, _, about = form.one("do").partition(":")
        back = with_(f"/admin/{shop.id}/talk", ref=form.one("ref"), lines=_many(form.one("lines")))
        if do in ("good", "bad", "unrated"):
            rating: Any = None if do == "unrated" else do
            parts.ratings.rate(shop.id, where.user, about[:300], rating, clock())
            return see(f"{with_(back, done='rated')}#m-{about[:300]}")
        entry = await board.entry(where)
        if entry is None:
            raise HTTPException(404, "This customer has not written yet")
        return see(with_(back, done=await _do(shop, where, entry, do, form)))

    @routes.get("/admin/{tenant}/live")
    async def live(request: Request, tenant: str, user: str = "") -> Response:
        """A word whenever something happens in the tenant, or with that user: what it is the page then asks for."""
        shop = sessions.tenant(await sessions.staff(request), tenant)
        reader = await Reader(parts.wire, shop.id, None).__aenter__()
        return EventStream(_pings(reader, user), ended=reader.__aexit__, endless=True)

    async def _do(shop: Tenant, where: ConversationRef, entry: Entry, do: str, form: Form) -> str:
        """Returns what was done, for the page to say."""
        name = f"{form.one('event')[:40]}:{do}"
        if do == "take":
            await parts.desk.take(shop, entry, name, clock())
            await _until(where, lambda seen: seen.held)
            return "taken"
        if do == "back":
            await parts.desk.give_back(shop, entry, name, clock())
            await _until(where, lambda seen: not seen.held and not seen.wanted)
            return "givenback"
        words = form.one("text").strip()
        if do != "answer" or not words:
            raise HTTPException(400 if do != "answer" else 422, "There is nothing of that name to do")
        if len(words) > LONGEST:
            raise HTTPException(413, f"At most {LONGEST} characters")
        if (await _way(shop, entry))["how"] in CLOSED:
            raise HTTPException(409, "Nothing can be sent to this customer now")
        await parts.desk.answer(shop, entry, words, name, clock())
        await _until(where, lambda seen: seen.told > entry.told)
        return "sent"

    async def _until(where: ConversationRef, holds: Callable[[Entry], bool]) -> None:
        """Until a worker has done it, or for a moment: it is done all the same."""
        for _ in range(int(_SEEN_WITHIN / 0.05)):
            seen = await board.entry(where)
            if seen is not None and holds(seen):
                return
            await asyncio.sleep(0.05)

    async def _way(shop: Tenant, entry: Entry) -> dict[str, Any]:
        """`how` an answer gets there (see PageDesk.way), and the `month` of a LINE channel."""
        row = next((one for one in statuses() if one.id == shop.id), None)
        told = await described(row) if row is not None else {"channels": []}
        channel: dict[str, Any] = next((one for one in told["channels"] if one["name"] == entry.customer.channel), {})
        return {"how": await parts.desk.way(shop, entry, channel.get("state", "ok")), "month": channel.get("month")}

    async def _talk(shop: Tenant, row: Row) -> _Talk:
        where = ref_of(shop, row.entry)
        session = await _session(where)
        lines: Sequence[Message] = [*session.carried, *session.history][-1:] if session else []
        if not lines:
            lines = await manager.transcripts.tail(where, 1)
        return _Talk(cursor_of(*row.entry.ref), row.entry, row.unread, lines[0] if lines else None)

    async def _session(where: ConversationRef) -> ShortTermMemory | None:
        try:
            return await manager.sessions.load(where)
        except MemoryFault:
            return None

    async def _names(tenant: str, rows: Sequence[Row]) -> dict[str, str]:
        try:
            return await names(manager, tenant, {row.entry.customer.user_id for row in rows})
        except MemoryFault:
            return {}  # while the index is made: ids will do

    return routes


async def _pings(reader: Reader, user: str) -> AsyncGenerator[bytes, None]:
    while True:
        told = await reader.next()
        if told is None:
            yield ALIVE
        elif user in ("", told["data"].get("user_id")):
            yield event("changed", {})


def _many(asked: str) -> int:
    return next((one for one in LINES if str(one) == asked), LINES[0])


def _ref(shop: Tenant, ref: str) -> ConversationRef:
    place = place_of(ref, 3)
    if place is None or not all(isinstance(part, str) and part for part in place):
        raise HTTPException(404, "There is no such conversation")
    return ConversationRef(shop.id, *place)
