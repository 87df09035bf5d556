"""A worker and the clean-up, put together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.settings import Settings
from config.tenants import Tenant, Tenants
from gateway.adapters.base import Received
from gateway.adapters.telegram import TelegramReceiver
from gateway.assembly import Clock, audiences_of, inbox_client, memory_of, prices_of, senders_of, turn_of, utc_now
from gateway.blocked import Blocked
from gateway.bot_ids import BotIds
from gateway.bot_names import BotNames
from gateway.budgets import Budgets
from gateway.channel_states import ChannelStates, Trouble
from gateway.dead_letters import DeadLetters
from gateway.errors import GatewayFault
from gateway.inbox.opening import inbox_of
from gateway.intake import Intake
from gateway.ledger import Ledger
from gateway.messages import InboundMessage
from gateway.metrics import Metrics
from gateway.room import Room
from gateway.spans import NO_SPANS, Spans
from gateway.spending import Spending
from gateway.tally import Tally
from gateway.timings import Timings
from memory.errors import MemoryFault
from processors.loading import loaded

if TYPE_CHECKING:
    from gateway.cleanup import Cleanup
    from gateway.patience import Times
    from gateway.restored import Restored

log = logging.getLogger(__name__)

ALIVE = "cc:workers"  # who is alive: worker → time of the last heartbeat, seconds since 1970
ENDING = 5.0  # seconds for what goes on beside the turns, once they have ended
GONE_AFTER = 15.0  # seconds without a heartbeat


@asynccontextmanager
async def work(
    settings: Settings,
    tenants: Tenants,
    redis_url: str,
    *,
    concurrency: int = 64,
    lease: float = 10.0,
    times: Times | None = None,
    probe_every: float = 300.0,
    clock: Clock = utc_now,
    spans: Spans = NO_SPANS,
) -> AsyncIterator[Callable[[asyncio.Event], Coroutine[Any, Any, None]]]:
    """A worker, as what runs it until an event is set: turns, the Telegram bots it polls, and every `probe_every`
    seconds (0: never) a look at each channel."""
    from gateway.adapters.line_sender import LineSender
    from gateway.adapters.telegram_polling import poll
    from gateway.adapters.telegram_sender import TelegramSender
    from gateway.adapters.terminal import TerminalSender
    from gateway.adapters.web import WebSender
    from gateway.board import Board
    from gateway.broadcasts.costs import Costs
    from gateway.broadcasts.runner import Runner
    from gateway.broadcasts.store import BroadcastStore
    from gateway.command_menu import CommandMenus
    from gateway.forgetting import Forgetting
    from gateway.inbox.spool import Spool
    from gateway.live import Live
    from gateway.pollers import Offsets, Pollers
    from gateway.probes import Probes
    from gateway.restored import Restored
    from gateway.web_log import RedisLog
    from gateway.worker import Worker
    from processors.rules import default_rules

    async with AsyncExitStack() as stack:
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        client = inbox_client(settings, redis_url)
        inbox = inbox_of(settings, client, name, lease=lease)
        stack.push_async_callback(inbox.close)
        prices = prices_of(settings)
        spending = Spending(tenants.get, clock, prices)
        live = Live(client)
        budgets = Budgets(client, tenants.get, prices, clock)
        stack.push_async_callback(budgets.close)
        manager = memory_of(
            settings,
            tenants,
            redis_url,
            spending=spending,
            budgets=budgets,
            changed=live.remembered,
            clock=clock,
        )
        stack.push_async_callback(manager.close)
        senders = senders_of(settings, stack, inbox)
        senders["terminal"] = TerminalSender(client)
        senders["web"] = WebSender(RedisLog(client))
        timings = Timings(spans)
        timings.senders(senders)
        timings.stores(inbox, manager)
        stack.push_async_callback(live.close)
        board = Board(client, manager.which_forgotten)
        stack.push_async_callback(board.close)
        tally = Tally(tenants.get, clock)
        spending.also = tally.used
        states = ChannelStates(client)
        line, telegram = senders["line"], senders["telegram"]
        assert isinstance(line, LineSender)
        assert isinstance(telegram, TelegramSender)
        ledger = Ledger(client, line.recipients, clock)
        room = Room(concurrency, lease)
        turn = turn_of(
            *(settings, tenants, inbox, manager, senders, states, stack, {"line": line}),
            client=client,
            ledger=ledger,
            spending=spending,
            budgets=budgets,
            timings=timings,
            times=times,
            room=room,
            live=live,
            watching=[board, tally],
            clock=clock,
        )
        metrics = Metrics()
        blocked = Blocked(manager.lists)
        await asyncio.to_thread(manager.lists.begin)
        intake = Intake(inbox, metrics, blocked, live.arrived, spans)
        offsets, names = Offsets(client), BotNames(client, tenants)

        async def alive() -> None:
            pipe: Any = client.pipeline(transaction=False)
            pipe.zadd(ALIVE, {name: time.time()}).zremrangebyscore(ALIVE, 0, time.time() - 3600).expire(ALIVE, 3600)
            uncounted = spending.into(pipe), tally.into(pipe), timings.into(pipe), ledger.into(pipe)
            try:
                await pipe.execute()
            except RedisError:  # the heartbeat itself says when Redis is away
                for back in uncounted:
                    back()

        async def poll_bot(tenant: Tenant, channel: str, stop: asyncio.Event) -> None:
            async def handle(messages: Sequence[InboundMessage]) -> None:
                # It goes on while the rest of the tenant's file changes.
                now = tenants.get(tenant.id) or tenant
                await intake.keep(now, channel, Received(tuple(messages)))

            async def rival(why: str | None) -> None:
                if why is None:
                    await states.well(tenant.id, channel, Trouble.RIVAL)
                else:
                    await states.met(tenant.id, channel, Trouble.RIVAL, why)

            receiver = TelegramReceiver(names.of)
            count = partial(intake.count, tenant, channel)
            await poll(
                *(tenant, channel, telegram, handle, stop),
                offset_store=offsets,
                receiver=receiver,
                count=count,
                rival=rival,
            )

        where = settings.public_url
        probes = Probes(
            *(client, tenants, states, BotIds(client, tenants), ledger, line, telegram, where), every=probe_every
        )
        pollers = Pollers(client, tenants, poll_bot)
        broadcasts = Runner(
            client,
            tenants,
            BroadcastStore(settings.data_dir),
            audiences_of(settings, manager, client),
            Costs(ledger),
            states,
            inbox,
            manager,
            clock,
        )
        worker = Worker(
            inbox,
            timings.turns(turn),
            room=room,
            lease=lease,
            grace=settings.shutdown_grace,
            on_alive=alive,
        )

        forget = Forgetting(manager, inbox, client, settings.data_dir)
        restored = Restored(manager, forget, client, inbox, Spool(settings.data_dir / "spool", vault=manager.vault))

        default_rules()  # every message needs them

        async def run(stop: asyncio.Event) -> None:
            live.begin()
            warming = asyncio.create_task(_warm(tenants, senders))

            async def after_warming(work: Coroutine[Any, Any, None]) -> None:
                """What is in no hurry would load an SDK of its own while the first customer waits for theirs."""
                try:
                    await asyncio.wait({warming})
                except asyncio.CancelledError:
                    work.close()
                    raise
                await work

            def shops() -> list[str]:
                return [tenant.id for tenant in tenants.all()]

            beside = [
                warming,
                asyncio.create_task(after_warming(names.learn(telegram.username, stop))),
                asyncio.create_task(names.watch(stop)),
                asyncio.create_task(manager.saving.keep_trying()),
                asyncio.create_task(after_warming(broadcasts.run(stop))),
                asyncio.create_task(after_warming(manager.library.watch(shops, stop))),
                asyncio.create_task(after_warming(CommandMenus(client, tenants, telegram.call).watch(stop))),
            ]
            if probe_every:
                beside.append(asyncio.create_task(after_warming(probes.run(stop))))
            polling = asyncio.create_task(pollers.run(stop), name="pollers")
            try:
                await _forget_again(restored)
                await worker.run(stop)
            finally:
                stop.set()
                for task in beside:
                    task.cancel()
                await asyncio.wait({polling, *beside}, timeout=ENDING)  # a shutdown waits for nothing for ever
                await alive()
                with contextlib.suppress(RedisError):
                    await client.zrem(ALIVE, name)

        yield run


async def _forget_again(restored: Restored) -> None:
    """Before anything is answered."""
    try:
        await restored.forget_again()
    except (MemoryFault, GatewayFault, RedisError) as error:
        log.error("whether a backup brought somebody back who was forgotten is looked for later: %s", error)


async def _warm(tenants: Tenants, senders: Mapping[str, Any]) -> None:
    """Loads the SDKs that the tenants need before the first answer is waited for, one after the other: two at once
    would both be late. The first is the one that every answer of a model needs."""
    from processors.ways import load_sdk

    if any(tenant.llm.api_key for tenant in tenants.all()):
        await loaded(load_sdk)
    used = {channel.platform for tenant in tenants.all() for channel in tenant.channels.values()}
    for platform in sorted(used & {"line", "telegram"}):
        await senders[platform].warm()
    await loaded(lambda: import_module("gateway.rendering.markdown"))  # for the first answer that has marks


async def any_worker(client: Redis) -> bool:
    """Whether a worker had a heartbeat lately."""
    return bool(await client.zcount(ALIVE, time.time() - GONE_AFTER, "+inf"))


@asynccontextmanager
async def tidy(
    settings: Settings, tenants: Tenants, redis_url: str, *, clock: Clock = utc_now
) -> AsyncIterator[Cleanup]:
    """The clean-up, for `chat-chat cleanup` and the schedule of `run`."""
    from gateway.audit import AuditLog
    from gateway.cleanup import Cleanup
    from gateway.departed import Departed
    from gateway.forgetting import Forgetting
    from gateway.inbox.spool import Spool
    from gateway.restored import Forgotten, Restored

    client = inbox_client(settings, redis_url)
    budgets = Budgets(client, tenants.get, prices_of(settings), clock)
    manager = memory_of(settings, tenants, redis_url, budgets=budgets, clock=clock)
    inbox = inbox_of(settings, client, "cleanup")
    try:
        spool, departed = Spool(settings.data_dir / "spool", vault=manager.vault), Departed(settings.data_dir)
        forget = Forgetting(manager, inbox, client, settings.data_dir)
        forgotten = Forgotten(
            manager, Restored(manager, forget, client, inbox, spool), client, ours=settings.redis_url is None
        )
        yield Cleanup(
            client,
            tenants,
            manager,
            DeadLetters(client, inbox),
            spool,
            departed,
            forgotten,
            AuditLog(settings.data_dir),
            clock,
        )
    finally:
        await manager.close()
        await budgets.close()
        await inbox.close()
