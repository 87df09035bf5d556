"""`/memories/<tenant>/person`: one person on one page, and what the bot would know of them now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Request, Response

from config.settings import Settings
from config.tenants import Tenant
from gateway.blocked import Blocked
from gateway.reach import Reach
from gateway.routes.admin_lists import ref_of
from gateway.routes.admin_page import Pages, deed, see, with_
from gateway.routes.admin_session import Staff
from gateway.routes.knowledge import Forget
from gateway.routes.lists import cursor_of, place_of
from memory.canonical import all_ids
from memory.facts import visible
from memory.keys import DEFAULT_AGENT, MAIN, is_group
from memory.long_term.document import dump, plain
from memory.memory_manager import MemoryManager
from memory.models import LongTermMemory
from memory.person import new as new_person
from processors.models import MemoryEvent, iso

A_STRETCH = 40  # lines of the timeline at once
_WORDS = 2000  # characters of a message to be tried
_HITS = 12
_PREFERENCES = 40


@dataclass(frozen=True, slots=True)
class Parts:
    """What a person's page needs beside memory."""

    settings: Settings
    blocked: Blocked
    reach: Reach


@dataclass(frozen=True, slots=True)
class Line:
    """Of a timeline. `at` ISO 8601; `kind` is fact, event or episode, `id` its own; `badge` its type or outcome; `ref`
    names an episode in links; `key` and `value` are a fact's."""

    at: str
    kind: str
    id: str
    text: str
    badge: str
    ref: str = ""
    key: str = ""
    value: Any = None

    @property
    def place(self) -> tuple[str, str, str]:
        """What was learned of a message has the message's own time: that alone would not tell two lines apart."""
        return self.at, self.kind, self.id


def router(
    pages: Pages, manager: MemoryManager, parts: Parts, forget: Forget, clock: Callable[[], datetime]
) -> APIRouter:
    routes = APIRouter(route_class=pages.route_class())
    sessions = pages.sessions
    previews: list[Any] = []  # made when first asked for: it loads what answering needs

    @routes.get("/memories/{tenant}/person")
    async def person(request: Request, tenant: str, user: str = "") -> Response:
        staff = await sessions.staff(request)
        return await _page(request, staff, sessions.tenant(staff, tenant), user)

    @routes.get("/memories/{tenant}/person/export")
    async def export(request: Request, tenant: str, user: str = "") -> Response:
        shop = sessions.tenant(await sessions.staff(request), tenant)
        value = await manager.export(shop.id, user)
        if value is None:
            raise HTTPException(404, "Nothing is known of this person")
        headers = {"Content-Disposition": f'attachment; filename="{shop.id}-person.json"'}
        return Response(dump(value), headers=headers, media_type="application/json")

    @routes.post("/memories/{tenant}/person")
    async def act(request: Request, tenant: str) -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        form = await sessions.form(request, staff)
        user, do = form.one("user"), form.one("do")
        back = _path(shop.id, user)
        asked_first = do in ("merge", "forget") and form.one("sure") != "1"
        deed(request, "read" if asked_first or do == "know" else "delete" if do == "forget" else "change", [user])
        if do == "know":
            return await _page(request, staff, shop, user, say=form.one("say")[:_WORDS])
        if do == "merge":
            other = form.one("other").strip()
            if not _is_person(other) or not _is_person(user) or other == user:
                return await _page(request, staff, shop, user, other=other)
            if form.one("sure") != "1":
                called = await _called(shop.id, other)
                return pages.confirm(
                    request, staff, shop, tab="users", what="merge", do="merge", go="merge_go", back=back,
                    other=f"{called} ({other})" if called else other, wrong="" if called is not None else "merge_new",
                    action=f"/memories/{shop.id}/person", fields={"user": user, "other": other},
                )  # fmt: skip
            into = await _linked(shop.id, other, user)
            return see(with_(_path(shop.id, into), done="merged"))
        if do == "part":
            try:
                await manager.unlink_user(shop.id, form.one("other"))
            except ValueError as error:
                raise HTTPException(422, str(error)) from None
            return see(with_(back, done="unmerged"))
        if do in ("block", "unblock"):
            ids = await all_ids(manager.longterm, shop.id, user)
            await asyncio.to_thread(parts.blocked.block if do == "block" else parts.blocked.unblock, shop.id, ids)
            return see(with_(back, done=f"{do}ed"))
        if do == "forget":
            if form.one("sure") != "1":
                return pages.confirm(
                    request, staff, shop, tab="users", what="users", do="forget", go="forget", back=back, count=1,
                    action=f"/memories/{shop.id}/person", fields={"user": user},
                )  # fmt: skip
            await forget(shop.id, user)
            return see(with_(f"/memories/{shop.id}/users", done="forgotten", n=1))
        raise HTTPException(400, "There is nothing of that name to do")

    async def _linked(tenant: str, other: str, user: str) -> str:
        try:
            return await manager.link_users(tenant, other, user)
        except ValueError as error:
            raise HTTPException(422, str(error)) from None

    async def _called(tenant: str, user: str) -> str | None:
        """Their name, "" where none is known; None: nothing is known of such a person."""
        memory = await manager.longterm.load(tenant, await manager.knowledge.canonical(tenant, user))
        return ((memory.person and memory.person.display_name) or "") if memory else None

    async def _page(
        request: Request, staff: Staff, shop: Tenant, user: str, *, say: str | None = None, other: str = ""
    ) -> Response:
        """`say`: a message to be tried; `other`: what was given as another's id and is none."""
        if not user:
            raise HTTPException(404, "Nobody is named")
        ids = await all_ids(manager.longterm, shop.id, user)
        memory = await manager.longterm.load(shop.id, ids[0])
        if memory is None:
            raise HTTPException(404, "Nothing is known of this person")
        find = request.query_params.get("find", "").strip()[:200]
        hits = await manager.search(shop.id, ids[0], find, _HITS) if find else []
        before = request.query_params.get("before", "")
        place = place_of(before, 3)
        lines = [one for one in _timeline(memory) if place is None or one.place < tuple(map(str, place))]
        who = memory.person or new_person(ids[0], clock())
        blocked = parts.blocked.of(shop.id)
        return pages.render(
            request,
            "person.html",
            staff,
            shop,
            tab="users",
            user=ids[0],
            person=who,
            name=who.display_name or _text(memory.attributes.get("name")),
            known=memory,
            facts=sum(one.current for one in memory.facts),
            seen=_seen(memory),
            preferences=_preferences(memory),
            lines=lines[:A_STRETCH],
            older=cursor_of(*lines[A_STRETCH - 1].place) if len(lines) > A_STRETCH else "",
            before=before,
            merged=list(ids[1:]),
            unreachable=await _unreachable(shop, ids, memory),
            blocked=not blocked.isdisjoint(ids),
            blocked_by_file=not set(shop.blocked_users).isdisjoint(ids),
            find=find,
            hits=hits,
            words=say,
            other=other,
            preview=await _preview(shop, ids[0], say) if say else None,
            path=_path(shop.id, ids[0]),
            talk=cursor_of(ids[0], DEFAULT_AGENT, MAIN),
        )

    async def _preview(shop: Tenant, user: str, say: str) -> Any:
        from gateway.preview import Previews

        if not previews:
            previews.append(Previews(parts.settings, manager, clock))
        return await previews[0].of(shop, user, say)

    async def _unreachable(shop: Tenant, ids: Sequence[str], memory: LongTermMemory) -> list[str]:
        """The channels on which they left after they were heard last."""
        heard = _seen(memory)
        since = datetime.fromisoformat(heard).timestamp() if heard else 0.0
        gone = []
        for name, channel in shop.channels.items():
            for one in ids:
                platform, _, own = one.partition(":")
                if platform == channel.platform and await parts.reach.gone(
                    shop.id, name, own.removeprefix("group:"), since
                ):
                    gone.append(name)
        return gone

    return routes


def _timeline(memory: LongTermMemory) -> list[Line]:
    """The newest first."""
    user = memory.user_id
    lines = [
        Line(iso(one.timestamp), "event", one.event_id or str(n), _said(one), f"type.{one.event_type}")
        for n, one in enumerate(memory.events)
    ]
    lines += [
        Line(iso(one.ended_at), "episode", one.id, one.text, f"outcome.{one.outcome}", ref_of(user, one.id))
        for one in memory.episodes
    ]
    lines += [
        Line(iso(one.created_at), "fact", one.id, one.text, f"type.{one.type}", key=one.key, value=one.value)
        for one in memory.facts
        if not one.deleted
    ]
    return sorted(lines, key=lambda one: one.place, reverse=True)


def _said(event: MemoryEvent) -> str:
    return _text(event.payload.get("original_message"))


def _preferences(memory: LongTermMemory) -> list[dict[str, Any]]:
    return [plain(one) for one in visible(memory.facts)][:_PREFERENCES]


def _seen(memory: LongTermMemory) -> str:
    times = [*(one.timestamp for one in memory.events), *(one.created_at for one in memory.facts if not one.deleted)]
    if memory.person is not None:
        times.append(memory.person.last_seen_at)
    return iso(max(times)) if times else ""


def _is_person(user: str) -> bool:
    return ":" in user and not is_group(user)


def _path(tenant: str, user: str) -> str:
    return f"/memories/{tenant}/person?{urlencode({'user': user.encode('utf-8', 'replace')})}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
