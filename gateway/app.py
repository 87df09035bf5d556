"""The one place where objects are put together."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from config.settings import Settings
from config.tenants import Tenant, Tenants
from gateway.adapters.base import Received, Sender
from gateway.adapters.line import LineReceiver
from gateway.adapters.telegram import TelegramReceiver
from gateway.bot_ids import BotIds
from gateway.bot_names import BotNames
from gateway.channel_gauges import ChannelGauges
from gateway.channel_states import ChannelStates
from gateway.dead_letters import DeadLetters
from gateway.errors import InboxUnavailable
from gateway.inbox.away import RECENT, SafeInbox
from gateway.inbox.base import Inbox
from gateway.inbox.redis import RedisInbox
from gateway.inbox.spool import MOST, Spool
from gateway.intake import Intake
from gateway.ledger import Ledger, Month
from gateway.messages import InboundMessage
from gateway.metrics import Metrics
from gateway.routes.webhooks import Receive, Scope, Send, Webhooks
from memory.config import MemoryConfig, MemoryRules
from memory.keys import DEFAULT_AGENT
from memory.redis_client import connect

if TYPE_CHECKING:
    from gateway.cleanup import Cleanup
    from gateway.media import Fetcher
    from gateway.patience import Holder, Times
    from gateway.turn import Turn
    from memory.memory_manager import MemoryManager

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]  # aware times

ALIVE = "cc:workers"  # who is alive: worker → time of the last heartbeat, seconds since 1970
ENDING = 5.0  # seconds for what goes on beside the turns, once they have ended
GONE_AFTER = 15.0  # seconds without a heartbeat


def utc_now() -> datetime:
    return datetime.now(UTC)


def memory_config(settings: Settings, redis_url: str | None) -> MemoryConfig:
    return MemoryConfig(
        redis_url=redis_url,
        redis_cluster=settings.redis_cluster,
        sm_ttl=settings.memory_ttl_min * 60,
        max_turns=settings.memory_max_turns,
        max_conversations=settings.memory_max_conversations,
        lm_base_path=settings.data_dir / "longterm",
        lm_compression=settings.lm_compression,
        max_events_per_user=settings.lm_max_events,
        event_retention_days=settings.lm_retention_days,
        importance_threshold=settings.importance_threshold,
        transcripts_path=settings.data_dir / "transcripts",
        openrouter_api_key=settings.openrouter_api_key,
        openrouter_model=settings.openrouter_model,
        openrouter_base_url=settings.openrouter_base_url,
    )


def inbox_client(settings: Settings, redis_url: str) -> Redis:
    """Without the library's own retries: what may be repeated after a lost answer, the inbox decides."""
    return connect(redis_url, cluster=settings.redis_cluster, retries=0)


class Door:
    """The HTTP side: webhooks take the short way, everything else goes to the API."""

    def __init__(self, webhooks: Webhooks, api: Any) -> None:
        self._webhooks = webhooks
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/webhooks/"):
            await self._webhooks(scope, receive, send)
        else:
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
) -> AsyncIterator[Door]:
    """The ASGI application of `serve`. It loads no platform's SDK as long as the inbox can be reached. `spool_holds`
    messages at the most while it can't; see SafeInbox for `recent`."""
    from gateway.fallback import Fallback
    from gateway.routes import api
    from gateway.routes.auth import Keys

    client = inbox_client(settings, redis_url)
    inbox = RedisInbox(client, "serve")
    manager = memory_of(settings, tenants, redis_url, clock=clock)
    metrics = Metrics()
    names, states = BotNames(client, tenants), ChannelStates(client)
    bot_ids, ledger = BotIds(client, tenants), Ledger(client, clock=clock)
    gauges = ChannelGauges(metrics.registry, tenants, states, ledger)

    def turn_over(own: Inbox, stack: AsyncExitStack) -> Turn:
        minimal = memory_of(settings, tenants, None, clock=clock)
        stack.push_async_callback(minimal.close)
        senders = senders_of(settings, stack)
        return turn_of(settings, tenants, own, minimal, senders, states, stack, {}, clock=clock)

    fallback = Fallback(turn_over, settings.shutdown_grace)
    spool = Spool(settings.data_dir / "spool", spool_holds)
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

    webhooks = Webhooks(
        tenant_of=tenants.get,
        receivers={"line": LineReceiver(), "telegram": TelegramReceiver(names.of)},
        intake=Intake(safe, metrics),
        metrics=metrics,
        bot_ids=bot_ids,
        states=states,
        clock=lambda: clock().timestamp(),
    )
    application = api.build(
        keys=Keys(admin_key, tenants.all),
        metrics=metrics,
        ready=ready,
        statuses=tenants.status,
        states=states.of,
        months=months,
        measure=gauges.measure,
        version=version("chat-chat"),
    )
    stop = asyncio.Event()
    beside = [asyncio.create_task(one.watch(stop)) for one in (safe, names, bot_ids)]
    try:
        yield Door(webhooks, application)
    finally:
        stop.set()
        await fallback.close()
        await asyncio.gather(*beside)
        await manager.close()
        await inbox.close()


def rules_of(tenants: Tenants, config: MemoryConfig) -> Callable[[str], MemoryRules]:
    """A tenant's own rules for its sessions; the environment's for one that is not configured."""

    def rules(tenant_id: str) -> MemoryRules:
        tenant = tenants.get(tenant_id)
        if tenant is None:
            return config.rules
        own = tenant.memory
        return MemoryRules(
            sm_ttl=own.sm_ttl,
            max_turns=own.max_turns,
            importance_threshold=own.importance_threshold,
            max_events_per_user=own.max_events_per_user,
            event_retention_days=own.event_retention_days,
        )

    return rules


def memory_of(settings: Settings, tenants: Tenants, redis_url: str | None, *, clock: Clock = utc_now) -> MemoryManager:
    """Over Redis, or with sessions in this process where no URL is given."""
    from memory.memory_manager import MemoryManager
    from memory.parts import reader
    from processors.llm import Access
    from processors.openrouter import OpenRouter

    config = memory_config(settings, redis_url)
    model = OpenRouter()

    def model_of(tenant_id: str) -> tuple[OpenRouter, Access]:
        from gateway.responder import access_of  # when a session ends; the HTTP side never does

        tenant = tenants.get(tenant_id)
        agent = tenant.agent(DEFAULT_AGENT) if tenant else None
        access = access_of(tenant, agent) if tenant and agent else Access(api_key=None)
        return model, access

    return MemoryManager(
        config, rules=rules_of(tenants, config), read_session=reader(model_of), model=model, clock=clock
    )


def senders_of(settings: Settings, stack: AsyncExitStack) -> dict[str, Sender]:
    """The platforms' senders; their SDKs are loaded when first used."""
    from gateway.adapters.line_sender import LineSender
    from gateway.adapters.telegram_sender import TelegramSender

    senders: dict[str, Sender] = {"line": LineSender(settings), "telegram": TelegramSender(settings)}
    for sender in senders.values():
        stack.push_async_callback(sender.close)
    return senders


def fetchers_of(settings: Settings, senders: Mapping[str, Sender]) -> dict[str, Fetcher]:
    """The ways to what customers send besides words, where the platform's sender is at hand."""
    from gateway.adapters.downloads import LineContent, TelegramFiles
    from gateway.adapters.line_sender import LineSender
    from gateway.adapters.telegram_sender import TelegramSender

    fetchers: dict[str, Fetcher] = {}
    if isinstance(line := senders.get("line"), LineSender):
        fetchers["line"] = LineContent(settings, line)
    if isinstance(telegram := senders.get("telegram"), TelegramSender):
        fetchers["telegram"] = TelegramFiles(settings, telegram)
    return fetchers


def turn_of(
    settings: Settings,
    tenants: Tenants,
    inbox: Inbox,
    manager: MemoryManager,
    senders: Mapping[str, Sender],
    states: ChannelStates,
    stack: AsyncExitStack,
    holders: Mapping[str, Holder],
    *,
    client: Redis | None = None,
    ledger: Ledger | None = None,
    times: Times | None = None,
    clock: Clock = utc_now,
) -> Turn:
    from gateway.commands import Commands
    from gateway.events import Events
    from gateway.forgetting import Forgetting
    from gateway.media import Media
    from gateway.patience import Presses, Times
    from gateway.per_tenant import PerTenant
    from gateway.rate_limit import RateLimit
    from gateway.reach import Reach
    from gateway.responder import Responder
    from gateway.staff_desk import StaffDesk
    from gateway.takeover import Takeover
    from gateway.turn import Turn
    from processors.event_processor import EventProcessor
    from processors.hearing import Hearing
    from processors.models import EventType
    from processors.openrouter import OpenRouter

    model = OpenRouter()
    stack.push_async_callback(model.close)
    processors = PerTenant(
        lambda tenant: EventProcessor(
            llm=model,
            keywords={EventType(kind): words for kind, words in tenant.keywords.items()},
            timezone=tenant.timezone,
        )
    )
    desk = StaffDesk(inbox, client, states)
    responder = Responder(model, processors)
    reach = Reach(client) if client else None
    events = Events(manager, processors, reach)
    hearing = Hearing()
    fetchers = fetchers_of(settings, senders)
    stack.push_async_callback(hearing.close)
    for fetcher in fetchers.values():
        stack.push_async_callback(fetcher.close)
    turn = Turn(
        tenant_of=tenants.get,
        inbox=inbox,
        senders=senders,
        states=states,
        responder=responder,
        processors=processors,
        events=events,
        media=Media(fetchers, manager.media, hearing),
        settlers=[
            desk,
            events,
            *([RateLimit(client)] if client else []),
            Presses(),
            Takeover(desk, processors, responder),
            Commands(manager, Forgetting(manager, inbox, client)),
        ],
        holders=holders,
        ledger=ledger,
        reach=reach,
        times=times or Times(),
        manager=manager,
        enable_memory=settings.enable_memory,
        clock=clock,
    )
    stack.push_async_callback(turn.close)
    return turn


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
) -> AsyncIterator[Callable[[asyncio.Event], Coroutine[Any, Any, None]]]:
    """A worker, as what runs it until an event is set: turns, the Telegram bots it polls, and every `probe_every`
    seconds (0: never) a look at each channel."""
    from gateway.adapters.line_sender import LineSender
    from gateway.adapters.telegram_polling import poll
    from gateway.adapters.telegram_sender import TelegramSender
    from gateway.adapters.terminal import TerminalSender
    from gateway.command_menu import CommandMenus
    from gateway.pollers import Offsets, Pollers
    from gateway.probes import Probes
    from gateway.worker import Worker

    async with AsyncExitStack() as stack:
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        client = inbox_client(settings, redis_url)
        inbox = RedisInbox(client, name, lease=lease)
        stack.push_async_callback(inbox.close)
        manager = memory_of(settings, tenants, redis_url, clock=clock)
        stack.push_async_callback(manager.close)
        senders = senders_of(settings, stack)
        senders["terminal"] = TerminalSender(client)
        states = ChannelStates(client)
        line, telegram = senders["line"], senders["telegram"]
        assert isinstance(line, LineSender)
        assert isinstance(telegram, TelegramSender)
        ledger = Ledger(client, line.recipients, clock)
        turn = turn_of(
            *(settings, tenants, inbox, manager, senders, states, stack, {"line": line}),
            client=client,
            ledger=ledger,
            times=times,
            clock=clock,
        )
        metrics = Metrics()
        intake, offsets, names = Intake(inbox, metrics), Offsets(client), BotNames(client, tenants)

        async def alive() -> None:
            pipe: Any = client.pipeline(transaction=False)
            pipe.zadd(ALIVE, {name: time.time()}).zremrangebyscore(ALIVE, 0, time.time() - 3600).expire(ALIVE, 3600)
            with contextlib.suppress(RedisError):  # the heartbeat itself says when Redis is away
                await pipe.execute()

        async def poll_bot(tenant: Tenant, channel: str, stop: asyncio.Event) -> None:
            async def handle(messages: Sequence[InboundMessage]) -> None:
                await intake.keep(tenant, channel, Received(tuple(messages)))

            receiver = TelegramReceiver(names.of)
            count = partial(intake.count, tenant, channel)
            await poll(tenant, channel, telegram, handle, stop, offset_store=offsets, receiver=receiver, count=count)

        where = settings.public_url
        probes = Probes(
            *(client, tenants, states, BotIds(client, tenants), ledger, line, telegram, where), every=probe_every
        )
        pollers = Pollers(client, tenants, poll_bot)
        worker = Worker(
            inbox, turn, concurrency=concurrency, lease=lease, grace=settings.shutdown_grace, on_alive=alive
        )

        async def run(stop: asyncio.Event) -> None:
            warming = asyncio.create_task(_warm(tenants, senders))

            async def after_warming(work: Coroutine[Any, Any, None]) -> None:
                """What is in no hurry would load an SDK of its own while the first customer waits for theirs."""
                try:
                    await asyncio.wait({warming})
                except asyncio.CancelledError:
                    work.close()
                    raise
                await work

            beside = [
                warming,
                asyncio.create_task(after_warming(names.learn(telegram.username, stop))),
                asyncio.create_task(names.watch(stop)),
                asyncio.create_task(manager.saving.keep_trying()),
                asyncio.create_task(after_warming(CommandMenus(client, tenants, telegram.call).watch(stop))),
            ]
            if probe_every:
                beside.append(asyncio.create_task(probes.run(stop)))
            polling = asyncio.create_task(pollers.run(stop), name="pollers")
            try:
                await worker.run(stop)
            finally:
                stop.set()
                for task in beside:
                    task.cancel()
                await asyncio.wait({polling, *beside}, timeout=ENDING)  # a shutdown waits for nothing for ever
                with contextlib.suppress(RedisError):
                    await client.zrem(ALIVE, name)

        yield run


async def _warm(tenants: Tenants, senders: Mapping[str, Any]) -> None:
    """Loads the SDKs that the tenants need before the first answer is waited for, one after the other: two at once
    would both be late. The first is the one that every answer of a model needs."""
    if any(tenant.llm.api_key for tenant in tenants.all()):
        await asyncio.to_thread(_load_model_sdk)
    used = {channel.platform for tenant in tenants.all() for channel in tenant.channels.values()}
    for platform in sorted(used & {"line", "telegram"}):
        await senders[platform].warm()


def _load_model_sdk() -> None:
    import openai  # noqa: F401


async def any_worker(client: Redis) -> bool:
    """Whether a worker had a heartbeat lately."""
    return bool(await client.zcount(ALIVE, time.time() - GONE_AFTER, "+inf"))


@asynccontextmanager
async def tidy(
    settings: Settings, tenants: Tenants, redis_url: str, *, clock: Clock = utc_now
) -> AsyncIterator[Cleanup]:
    """The clean-up, for `chat-chat cleanup` and the schedule of `run`."""
    from gateway.cleanup import Cleanup

    client = inbox_client(settings, redis_url)
    manager = memory_of(settings, tenants, redis_url, clock=clock)
    inbox = RedisInbox(client, "cleanup")
    try:
        yield Cleanup(client, tenants, manager, DeadLetters(client, inbox))
    finally:
        await manager.close()
        await inbox.close()
