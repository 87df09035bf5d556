"""The HTTP side, put together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from config.settings import Settings
from config.tenants import Tenants, TenantStatus
from gateway.adapters.line import LineReceiver
from gateway.adapters.telegram import TelegramReceiver
from gateway.assembly import Clock, broadcast_desk, inbox_client, memory_of, prices_of, senders_of, turn_of, utc_now
from gateway.blocked import Blocked
from gateway.bot_ids import BotIds
from gateway.bot_names import BotNames
from gateway.channel_gauges import ChannelGauges
from gateway.channel_states import ChannelStates
from gateway.errors import InboxUnavailable
from gateway.http_limits import Guard
from gateway.inbox.away import RECENT, SafeInbox
from gateway.inbox.base import Inbox
from gateway.inbox.opening import inbox_of
from gateway.inbox.spool import MOST, Spool
from gateway.intake import Intake
from gateway.key_ring import KeyRing
from gateway.ledger import Ledger, Month
from gateway.metrics import Metrics
from gateway.queue_gauges import QueueGauges
from gateway.routes.sse import ABORT, CLOSING
from gateway.routes.webhooks import Receive, Scope, Send, Webhooks
from gateway.spans import NO_SPANS, Spans
from gateway.spending_counters import SpendingCounters
from gateway.timings import TimingHistograms, Timings

if TYPE_CHECKING:
    from gateway.trying import Trying
    from gateway.turn import Turn


class Door:
    """The HTTP side: webhooks take the short way, everything else goes to the API."""

    def __init__(
        self, webhooks: Webhooks, api: Any, known: Callable[[str], bool] = lambda key: False, **more: bool
    ) -> None:
        """`known` and `more` as Guard has them."""
        self._webhooks = webhooks
        self.at_once = webhooks.at_once  # what the server offers first of a webhook that came whole
        self._api = api
        self._guard = Guard(self._route, known, **more)
        self.closing = asyncio.Event()  # streams that have no end of their own end then

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/webhooks/"):
            await self._webhooks(scope, receive, send)
            return
        # The server's own way to end a connection whose other side no longer reads.
        transport = getattr(getattr(send, "__self__", None), "transport", None)
        scope = {**scope, ABORT: getattr(transport, "abort", None), CLOSING: self.closing}
        await self._guard(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and len(scope["path"]) > 1 and scope["path"].endswith("/"):
            scope = {**scope, "path": scope["path"].rstrip("/")}
        await self._api(scope, receive, send)


@asynccontextmanager
async def door(
    settings: Settings,
    tenants: Tenants,
    redis_url: str,
    admin_key: str,
    *,
    clock: Clock = utc_now,
    spool_holds: int = MOST,
    recent: float = RECENT,
    spans: Spans = NO_SPANS,
) -> AsyncIterator[Door]:
    """The ASGI application of `serve`. It loads no platform's SDK as long as the inbox can be reached. `spool_holds`
    messages at the most while it can't; see SafeInbox for `recent`."""
    from gateway.adapters.web import WebSender
    from gateway.audit import AuditLog
    from gateway.board import Board
    from gateway.broadcasts.gauges import BroadcastGauges
    from gateway.broadcasts.store import BroadcastStore
    from gateway.budgets import Budgets
    from gateway.dead_letters import DeadLetters
    from gateway.fallback import Fallback
    from gateway.forgetting import Forgetting
    from gateway.live import Live
    from gateway.page_desk import PageDesk
    from gateway.ratings import Ratings
    from gateway.reach import Reach
    from gateway.routes import admin, admin_talks, api, audit, broadcasts, events, knowledge, memory, shop
    from gateway.routes.admin_person import Parts
    from gateway.routes.auth import Keys
    from gateway.staff_tasks import StaffTasks
    from gateway.taught import Taught
    from gateway.web_log import LocalLog
    from gateway.web_side import WebSide

    client = inbox_client(settings, redis_url)
    inbox = inbox_of(settings, client, "serve")
    live = Live(client)
    live.begin()
    budgets = Budgets(client, tenants.get, prices_of(settings), clock)
    manager = memory_of(settings, tenants, redis_url, budgets=budgets, changed=live.remembered, clock=clock)
    metrics = Metrics()
    names, states = BotNames(client, tenants), ChannelStates(client)
    bot_ids, ledger = BotIds(client, tenants), Ledger(client, clock=clock)
    gauges = ChannelGauges(metrics.registry, tenants, states, ledger)
    spent = SpendingCounters(metrics.registry, tenants, client)
    told = BroadcastGauges(metrics.registry, tenants, BroadcastStore(settings.data_dir))
    queue = QueueGauges(metrics.registry, inbox, client, tenants.status)
    own = Timings(spans)
    own.stores(inbox, manager)
    timings = TimingHistograms(metrics.registry, client, own)

    local = LocalLog()

    def turn_over(own: Inbox, stack: AsyncExitStack) -> Turn:
        minimal = memory_of(settings, tenants, None, clock=clock)
        stack.push_async_callback(minimal.close)
        senders = senders_of(settings, stack) | {"web": WebSender(local)}
        return turn_of(settings, tenants, own, minimal, senders, states, stack, {}, clock=clock)

    fallback = Fallback(turn_over, settings.shutdown_grace)
    spool = Spool(settings.data_dir / "spool", spool_holds, manager.vault)
    safe = SafeInbox(inbox, spool, fallback.take, manager.rejoin, recent=recent)

    async def ready() -> dict[str, Any]:
        try:
            async with asyncio.timeout(2):
                depth = await inbox.depth()
        except (InboxUnavailable, TimeoutError) as error:
            spooled = {"spooled": await safe.spooled(), "spool_holds": spool_holds}
            state = "degraded" if spooled["spooled"] < spool_holds else "down"
            return {"status": state, "redis": str(error) or "no answer", **spooled}
        waiting = {"ready": depth.ready, "due": depth.due, "leased": depth.leased, "dead": depth.dead}
        channels = await gauges.troubled()
        return {"status": "ok", "queue": waiting, "tenants": len(tenants.all()), "channels": channels}

    async def months(ids: Iterable[str]) -> dict[tuple[str, str], Month]:
        return await ledger.all(filter(None, map(tenants.get, ids)))

    board = Board(client)
    ring = KeyRing(manager.lists)
    blocked = Blocked(manager.lists)
    await asyncio.to_thread(manager.lists.begin)
    intake, keys = Intake(safe, metrics, blocked, live.arrived, spans), Keys(admin_key, tenants.all, ring)
    web = WebSide(settings, tenants, client, manager, intake, keys, admin_key, local, clock)

    async def measure() -> None:
        await gauges.measure()
        await spent.measure()
        await queue.measure()
        await told.measure()
        await timings.measure()

    webhooks = Webhooks(
        tenant_of=tenants.get,
        receivers={"line": LineReceiver(), "telegram": TelegramReceiver(names.of)},
        intake=intake,
        put_soon=safe.put_soon if spans is NO_SPANS else None,
        metrics=metrics,
        bot_ids=bot_ids,
        states=states,
        clock=time.time if clock is utc_now else lambda: clock().timestamp(),
    )
    forget = Forgetting(manager, inbox, client, settings.data_dir)
    audit_log = AuditLog(settings.data_dir)

    async def described(row: TenantStatus) -> dict[str, Any]:
        return (await api.described([row], states.of, months, spent.of))[0]

    @cache
    def trying() -> Trying:
        from gateway.preview import Previews
        from gateway.trying import Trying

        return Trying(web.chat, web.wire, Previews(settings, manager, clock), prices_of(settings))

    desks = AsyncExitStack()
    desk = await desks.enter_async_context(broadcast_desk(settings, manager, client, clock))
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
    audited = audit.Auditing(application, keys, audit_log, clock)
    stop = asyncio.Event()
    beside = [asyncio.create_task(one.watch(stop)) for one in (safe, names, bot_ids)]
    try:
        https = (settings.public_url or "").startswith("https://")
        yield Door(webhooks, web.around(audited), web.known, proxied=settings.tls_proxy, https=https)
    finally:
        stop.set()
        await web.close()
        await live.close()
        await desks.aclose()
        await fallback.close()
        await asyncio.gather(*beside)
        await manager.close()
        await budgets.close()
        await inbox.close()
