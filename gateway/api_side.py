"""All of the HTTP side but webhooks, put together: the API, what people and programs say over the web, the pages.

Loading this takes longer than all that webhooks need, which are taken meanwhile (`front_door`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.settings import Settings
from config.tenants import Tenants, TenantStatus
from gateway.assembly import Clock, prices_of
from gateway.audit import AuditLog
from gateway.blocked import Blocked
from gateway.board import Board
from gateway.broadcasts.desk import Desk
from gateway.broadcasts.gauges import BroadcastGauges
from gateway.broadcasts.store import BroadcastStore
from gateway.budgets import Budgets
from gateway.channel_gauges import ChannelGauges
from gateway.channel_states import ChannelStates
from gateway.dead_letters import DeadLetters
from gateway.errors import InboxUnavailable
from gateway.forgetting import Forgetting
from gateway.inbox.away import SafeInbox
from gateway.inbox.base import Inbox
from gateway.intake import Intake
from gateway.key_ring import KeyRing
from gateway.ledger import Ledger, Month
from gateway.metrics import Metrics
from gateway.page_desk import PageDesk
from gateway.queue_gauges import QueueGauges
from gateway.ratings import Ratings
from gateway.reach import Reach
from gateway.routes import admin, admin_talks, api, audit, broadcasts, events, knowledge, memory, shop
from gateway.routes.admin_person import Parts
from gateway.routes.auth import Keys
from gateway.spending_counters import SpendingCounters
from gateway.staff_tasks import StaffTasks
from gateway.taught import Taught
from gateway.timings import TimingHistograms, Timings
from gateway.web_log import LocalLog
from gateway.web_side import WebSide
from memory.keys import shared
from memory.memory_manager import MemoryManager

if TYPE_CHECKING:
    from gateway.trying import Trying

_WRITTEN, _WRITTEN_FOR = shared("ready"), 60  # seconds


class ApiSide:
    """`application` is ASGI's; `known` tells whether a key of ours stands in an Authorization header. May be made in a
    thread."""

    def __init__(
        self,
        settings: Settings,
        tenants: Tenants,
        client: Redis,
        inbox: Inbox,
        safe: SafeInbox,
        manager: MemoryManager,
        intake: Intake,
        blocked: Blocked,
        admin_key: str,
        desk: Desk,
        metrics: Metrics,
        states: ChannelStates,
        ledger: Ledger,
        budgets: Budgets,
        own: Timings,
        local: LocalLog,
        clock: Clock,
        spool_holds: int,
    ) -> None:
        gauges = ChannelGauges(metrics.registry, tenants, states, ledger)
        spent = SpendingCounters(metrics.registry, tenants, client, clock)
        told = BroadcastGauges(metrics.registry, tenants, BroadcastStore(settings.data_dir))
        queue = QueueGauges(metrics.registry, inbox, client, tenants.status)
        timings = TimingHistograms(metrics.registry, client, own)
        board = Board(client)
        ring = KeyRing(manager.lists)
        keys = Keys(admin_key, tenants.all, ring)
        self._web = web = WebSide(settings, tenants, client, manager, intake, keys, admin_key, local, clock)

        async def ready() -> dict[str, Any]:
            try:
                async with asyncio.timeout(2):
                    depth = await inbox.depth()
                    await client.set(_WRITTEN, b"", ex=_WRITTEN_FOR)  # one whose disk or memory is full still reads
            except (InboxUnavailable, RedisError, OSError) as error:
                spooled = {"spooled": await safe.spooled(), "spool_holds": spool_holds}
                state = "degraded" if await safe.keeps_more() else "down"
                return {"status": state, "redis": str(error) or "no answer", **spooled}
            waiting = {"ready": depth.ready, "due": depth.due, "leased": depth.leased, "dead": depth.dead}
            channels = await gauges.troubled()
            return {"status": "ok", "queue": waiting, "tenants": len(tenants.all()), "channels": channels}

        async def months(ids: Iterable[str]) -> dict[tuple[str, str], Month]:
            return await ledger.all(filter(None, map(tenants.get, ids)))

        async def measure() -> None:
            await gauges.measure()
            await spent.measure()
            await queue.measure()
            await told.measure()
            await timings.measure()

        forget = Forgetting(manager, inbox, client, settings.data_dir)
        audit_log = AuditLog(settings.data_dir)

        async def described(row: TenantStatus) -> dict[str, Any]:
            return (await api.described([row], states.of, months, spent.of))[0]

        @cache
        def trying() -> Trying:
            from gateway.preview import Previews
            from gateway.trying import Trying

            return Trying(web.chat, web.wire, Previews(settings, manager, clock), prices_of(settings))

        application = api.build(
            keys=keys,
            metrics=metrics,
            ready=ready,
            statuses=tenants.status,
            states=states.of,
            months=months,
            spent=spent.of,
            measure=measure,
            version=version("chat-chat"),
            routers=[
                *web.routers,
                memory.router(keys, manager, clock),
                knowledge.router(keys, manager, forget),
                events.router(keys, manager),
                audit.router(keys, audit_log),
                broadcasts.router(keys, desk),
                shop.router(keys, StaffTasks(client, clock), budgets),
                admin.router(
                    admin_key=admin_key,
                    keys=keys,
                    ring=ring,
                    manager=manager,
                    client=client,
                    forget=forget,
                    letters=DeadLetters(client, inbox),
                    person=Parts(settings, blocked, Reach(client)),
                    talks=admin_talks.Parts(board, PageDesk(inbox, board), Ratings(settings.data_dir), web.wire),
                    taught=Taught(settings.data_dir),
                    trying=trying,
                    statuses=tenants.status,
                    described=described,
                    public_url=settings.public_url,
                    clock=clock,
                ),
            ],
        )
        self.application = web.around(audit.Auditing(application, keys, audit_log, clock))
        self.known = web.known

    async def close(self) -> None:
        await self._web.close()
