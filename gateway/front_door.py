"""The HTTP side, put together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from config.settings import Settings
from config.tenants import Tenants
from gateway.adapters.line import LineReceiver
from gateway.adapters.telegram import TelegramReceiver
from gateway.assembly import Clock, broadcast_desk, inbox_client, memory_of, prices_of, senders_of, turn_of, utc_now
from gateway.blocked import Blocked
from gateway.bot_ids import BotIds
from gateway.bot_names import BotNames
from gateway.channel_states import ChannelStates
from gateway.http_limits import ABORT, CLOSING, FOR_PROGRAMS, HEAD_ALONE, Guard
from gateway.inbox.away import RECENT, SafeInbox
from gateway.inbox.base import Inbox
from gateway.inbox.opening import inbox_of
from gateway.inbox.spool import MOST, Spool
from gateway.intake import Intake
from gateway.ledger import Ledger
from gateway.metrics import Metrics
from gateway.routes.webhooks import RETRY_AFTER, Receive, Scope, Send, Webhooks
from gateway.spans import NO_SPANS, Spans
from gateway.timings import Timings
from memory.bounded import bounded
from processors.loading import loaded

if TYPE_CHECKING:
    from gateway.api_side import ApiSide
    from gateway.turn import Turn


IN_ALL = 3.0  # seconds that one request waits for a Redis that hangs, however much it asks of it
KNOWN_AWAY = 0.5  # seconds, where that was noticed before

Known = Callable[[str], bool]  # whether a key of ours, or a visitor's token, stands in an Authorization header


class Door:
    """The HTTP side: webhooks take the short way, everything else goes to the API. Webhooks are taken while that is
    still being made; what else is asked for meanwhile waits for it."""

    def __init__(
        self,
        webhooks: Webhooks,
        making: asyncio.Task[tuple[Any, Known]],
        away: Callable[[], bool] = lambda: False,
        **more: bool,
    ) -> None:
        """`making` gives the API, and `known` as Guard has it, and `more`; `away` tells whether Redis was found so."""
        self._webhooks = webhooks
        self._away = away
        self.at_once = webhooks.at_once  # what the server offers first of a webhook that came whole
        self._making = making
        self._api: Any = None
        self._known: Known = lambda key: False
        self._guard = Guard(self._route, lambda key: self._known(key), **more)
        self.closing = asyncio.Event()  # streams that have no end of their own end then

    async def whole(self) -> None:
        """Until everything is answered. Raises what the API could not be made for."""
        self._api, self._known = await asyncio.shield(self._making)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/webhooks/"):
            await self._webhooks(scope, receive, send)
            return
        if self._api is None and not await self._came():
            await _not_here(scope["type"], send)
            return
        # The server's own way to end a connection whose other side no longer reads.
        transport = getattr(getattr(send, "__self__", None), "transport", None)
        scope = {**scope, ABORT: getattr(transport, "abort", None), CLOSING: self.closing}
        with bounded(KNOWN_AWAY if self._away() else IN_ALL):
            await self._guard(scope, receive, send)

    async def _came(self) -> bool:
        """Waits for the API; False when it can't be made, or when the process ends before."""
        whole, closing = asyncio.create_task(self.whole()), asyncio.create_task(self.closing.wait())
        try:
            await asyncio.wait({whole, closing}, return_when=asyncio.FIRST_COMPLETED)
            return whole.done() and not whole.cancelled() and whole.exception() is None
        finally:
            whole.cancel()
            closing.cancel()

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and len(scope["path"]) > 1 and scope["path"].endswith("/"):
            scope = {**scope, "path": scope["path"].rstrip("/")}
        if scope["type"] == "http" and scope["method"] == "HEAD":  # the server itself sends no body then
            scope = {**scope, "method": "GET", HEAD_ALONE: True}
        await self._api(scope, receive, send)


async def _not_here(kind: str, send: Send) -> None:
    if kind == "websocket":
        await send({"type": "websocket.close", "code": 1013})  # try again later
        return
    headers = [(b"content-length", b"0"), (b"retry-after", b"%d" % RETRY_AFTER), *FOR_PROGRAMS]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


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
    from gateway.budgets import Budgets
    from gateway.fallback import Fallback
    from gateway.live import Live
    from gateway.web_log import LocalLog

    client = inbox_client(settings, redis_url)
    inbox = inbox_of(settings, client, "serve")
    live = Live(client)
    live.begin()
    budgets = Budgets(client, tenants.get, prices_of(settings), clock)
    manager = memory_of(settings, tenants, redis_url, budgets=budgets, changed=live.remembered, clock=clock)
    metrics = Metrics()
    names, states = BotNames(client, tenants), ChannelStates(client)
    bot_ids, ledger = BotIds(client, tenants), Ledger(client, clock=clock)
    own = Timings(spans)
    own.stores(inbox, manager)

    local = LocalLog()

    def turn_over(own: Inbox, stack: AsyncExitStack) -> Turn:
        minimal = memory_of(settings, tenants, None, clock=clock)
        stack.push_async_callback(minimal.close)
        senders = senders_of(settings, stack) | {"web": WebSender(local)}
        return turn_of(settings, tenants, own, minimal, senders, states, stack, {}, clock=clock)

    fallback = Fallback(turn_over, settings.shutdown_grace)
    spool = Spool(settings.data_dir / "spool", spool_holds, manager.vault)
    safe = SafeInbox(inbox, spool, fallback.take, manager.rejoin, recent=recent)

    blocked = Blocked(manager.lists)
    await asyncio.to_thread(manager.lists.begin)
    intake = Intake(safe, metrics, blocked, live.arrived, spans)
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
    things = AsyncExitStack()

    async def made() -> tuple[Any, Known]:
        def load() -> type[ApiSide]:
            from gateway.api_side import ApiSide

            return ApiSide

        make = await loaded(load)
        desk = await things.enter_async_context(broadcast_desk(settings, manager, client, clock))
        side = await loaded(
            partial(
                make,
                *(settings, tenants, client, inbox, safe, manager, intake, blocked, admin_key, desk),
                *(metrics, states, ledger, budgets, own, local, clock, spool_holds),
            )
        )
        things.push_async_callback(side.close)
        return side.application, side.known

    making = asyncio.create_task(made(), name="the API")
    stop = asyncio.Event()
    beside = [asyncio.create_task(one.watch(stop)) for one in (safe, names, bot_ids)]
    try:
        https = (settings.public_url or "").startswith("https://")
        yield Door(webhooks, making, lambda: safe.away, proxied=settings.tls_proxy, https=https)
    finally:
        stop.set()
        making.cancel()
        await asyncio.wait({making})
        await things.aclose()
        await live.close()
        await fallback.close()
        await asyncio.gather(*beside)
        await manager.close()
        await budgets.close()
        await inbox.close()
