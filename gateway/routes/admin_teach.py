"""`/admin/<tenant>/teach`: answers and rules that staff teach, and what they say messages really meant."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.settings import Settings
from config.tenants import Tenant
from gateway.routes.admin_page import Pages, ours, see, with_
from gateway.routes.admin_session import Staff
from gateway.routes.admin_talks import LINES
from gateway.routes.lists import place_of
from gateway.taught import Taught
from gateway.training import Training
from memory.keys import ConversationRef, understanding_dir
from memory.memory_manager import MemoryManager
from memory.models import Message
from processors import corrections, local
from processors.models import Band, EventType, floor, iso

LONGEST = 4000  # characters of an answer
_SHOWN = 20  # corrections


def router(
    pages: Pages,
    manager: MemoryManager,
    taught: Taught,
    settings: Settings,
    client: Redis,
    clock: Callable[[], datetime],
) -> APIRouter:
    routes = APIRouter(route_class=pages.route_class())
    sessions, training = pages.sessions, Training(settings, client, clock)

    @routes.get("/admin/{tenant}/teach")
    async def teach(request: Request, tenant: str, ref: str = "", message: str = "", question: str = "") -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        asked, answer = await _said(shop, ref, message) if ref else (question[:LONGEST], "")
        return await _page(request, staff, shop, asked, answer, ref)

    @routes.post("/admin/{tenant}/teach")
    async def act(request: Request, tenant: str) -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        form = await sessions.form(request, staff)
        do, _, about = form.one("do").partition(":")
        path = f"/admin/{shop.id}/teach"
        if do == "remove":
            if form.one("sure") != "1":
                return pages.confirm(
                    request, staff, shop, tab="teach", what="taught", do=form.one("do"), go="delete", action=path,
                    back=path,
                )  # fmt: skip
            if not taught.remove(shop.id, about):
                raise HTTPException(404, "There is no such answer")
            return see(with_(path, done="deleted", n=1))
        questions, answer = form.one("questions")[:LONGEST], form.one("answer")[:LONGEST]
        rule = form.one("rule").strip()[:LONGEST]
        if do == "answer":
            try:
                taught.add(shop.id, questions.splitlines(), answer, clock())
            except ValueError:
                return await _page(request, staff, shop, questions, answer, "", wrong="teach_wrong")
            return see(with_(path, done="taughtanswer"))
        if do != "rule":
            raise HTTPException(400, "There is nothing of that name to do")
        try:
            await manager.teach(shop.id, rule)
        except ValueError:
            return await _page(request, staff, shop, questions, answer, "", rule=rule, wrong="no_rule")
        return see(with_(path, done="taught"))

    @routes.post("/admin/{tenant}/corrections")
    async def correct(request: Request, tenant: str) -> Response:
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        form = await sessions.form(request, staff)
        words, kind, asked = form.one("words").strip()[:2000], form.one("type"), form.one("band")
        if not words or kind not in tuple(EventType):
            raise HTTPException(422, "It takes words and a type")
        importance = floor(Band(asked)) + 0.1 if asked in tuple(Band) else None
        said = corrections.Correction(words, EventType(kind), importance, form.one("user")[:512], iso(clock()))
        await asyncio.to_thread(corrections.add, _folder(shop), said, manager.vault.of(shop.id))
        return see(with_(ours(form.one("back"), f"/admin/{shop.id}/teach"), done="corrected"))

    @routes.post("/admin/{tenant}/teach/train")
    async def train(request: Request, tenant: str) -> Response:
        """In the background; the page says how it goes."""
        staff = await sessions.staff(request)
        shop = sessions.tenant(staff, tenant)
        await sessions.form(request, staff)
        if not local.installed():
            raise HTTPException(503, "Training takes the extra `local`")
        begun = await training.begin(shop.id, staff.key)
        return see(f"{with_(f'/admin/{shop.id}/teach', done='training' if begun else 'trainingbusy')}#training")

    async def _page(
        request: Request, staff: Staff, shop: Tenant, questions: str, answer: str, ref: str, **more: Any
    ) -> Response:
        every = await asyncio.to_thread(corrections.read, _folder(shop), manager.vault.of(shop.id))
        trained = (_folder(shop) / corrections.CLASSIFIER).exists()
        try:
            state = await training.state(shop.id)
        except RedisError:
            state = None
        return pages.render(
            request, "teach.html", staff, shop, tab="teach", questions=questions, answer=answer, ref=ref,
            listed=taught.of(shop.id), corrections=every[: -_SHOWN - 1 : -1], corrected=len(every), trained=trained,
            training=state, can_train=local.installed(),
            in_file=len(shop.faq) - len(taught.of(shop.id)), longest=LONGEST,
            **({"rule": "", "wrong": ""} | more),
        )  # fmt: skip

    async def _said(shop: Tenant, ref: str, message_id: str) -> tuple[str, str]:
        """An answer of a conversation, and what the customer had asked before it."""
        place = place_of(ref, 3)
        if place is None or not all(isinstance(part, str) and part for part in place):
            raise HTTPException(404, "There is no such conversation")
        lines = await manager.transcripts.tail(ConversationRef(shop.id, *place), LINES[-1])
        at = next((n for n, line in enumerate(lines) if line.get("message_id") == message_id), None)
        if at is None:
            raise HTTPException(404, "There is no such answer")
        return _asked(lines[:at]), lines[at]["message"]

    def _folder(shop: Tenant) -> Path:
        return understanding_dir(settings.data_dir / "understanding", shop.id)

    return routes


def _asked(before: Sequence[Message]) -> str:
    return next((line["message"] for line in reversed(before) if line["role"] == "user"), "")
