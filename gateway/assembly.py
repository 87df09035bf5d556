"""The parts that processes are put together from: memory, senders, the turn."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from redis.asyncio import Redis

from config.settings import Settings
from config.tenants import Tenant, Tenants
from gateway import encryption
from gateway.adapters.base import Sender
from gateway.channel_states import ChannelStates
from gateway.inbox.base import Inbox
from gateway.ledger import Ledger
from memory.config import MemoryConfig, MemoryRules
from memory.keys import DEFAULT_AGENT, understanding_dir
from memory.recall.entry import Entry
from memory.redis_client import connect

if TYPE_CHECKING:
    from config.vault import Vault
    from gateway.adapters.line_sender import LineSender
    from gateway.broadcasts.audience import Audiences
    from gateway.broadcasts.desk import Desk
    from gateway.budgets import Budgets
    from gateway.hooks import Watcher
    from gateway.live import Live
    from gateway.media import Fetcher
    from gateway.patience import Holder, Times
    from gateway.room import Room
    from gateway.spending import Spending
    from gateway.timings import Timings
    from gateway.turn import Turn
    from memory.memory_manager import MemoryManager
    from processors.llm import ChatModel
    from processors.pii import Kind
    from processors.prices import Prices

Clock = Callable[[], datetime]  # aware times


utc_now: Clock = partial(datetime.now, UTC)


def memory_config(settings: Settings, redis_url: str | None) -> MemoryConfig:
    return MemoryConfig(
        redis_url=redis_url,
        redis_cluster=settings.redis_cluster,
        sm_ttl=settings.memory_ttl_min * 60,
        max_turns=settings.memory_max_turns,
        max_conversations=settings.memory_max_conversations,
        lm_base_path=settings.data_dir / "longterm",
        longterm_url=settings.longterm_url,
        lm_compression=settings.lm_compression,
        max_events_per_user=settings.lm_max_events,
        event_retention_days=settings.lm_retention_days,
        importance_threshold=settings.importance_threshold,
        transcripts_path=settings.data_dir / "transcripts",
        openrouter_api_key=settings.openrouter_api_key,
        openrouter_model=settings.openrouter_model,
        openrouter_base_url=settings.openrouter_base_url,
        embeddings=settings.embeddings,
        knowledge_path=settings.config_dir / "knowledge",
        encryption_keys=settings.encryption_key,
        encrypt=settings.encrypt_at_rest,
    )


def inbox_client(settings: Settings, redis_url: str) -> Redis:
    """Without the library's own retries: what may be repeated after a lost answer, the inbox decides."""
    return connect(redis_url, cluster=settings.redis_cluster, retries=0)


def rules_of(tenants: Tenants, config: MemoryConfig) -> Callable[[str], MemoryRules]:
    """A tenant's own rules for its sessions; the environment's for one that is not configured. While its file can't be
    read, nobody knows how long it keeps events: then none is removed."""

    made: dict[str, tuple[Tenant, MemoryRules]] = {}  # asked for several times a turn

    def rules(tenant_id: str) -> MemoryRules:
        tenant = tenants.get(tenant_id)
        if (held := made.get(tenant_id)) is not None and held[0] is tenant:
            return held[1]
        made.pop(tenant_id, None)
        if tenant is None:
            unread = any(status.id == tenant_id for status in tenants.status())
            keep_all = {"max_events_per_user": 1_000_000_000, "event_retention_days": 36_500}
            return config.rules.model_copy(update=keep_all if unread else {})
        own = tenant.memory
        now = MemoryRules(
            sm_ttl=own.sm_ttl,
            max_turns=own.max_turns,
            importance_threshold=own.importance_threshold,
            max_events_per_user=own.max_events_per_user,
            event_retention_days=own.event_retention_days,
            encrypt=config.encrypt if tenant.privacy.encrypt is None else tenant.privacy.encrypt,
        )
        made[tenant_id] = tenant, now
        return now

    return rules


def vault_of(settings: Settings, tenants: Tenants) -> Vault:
    """For files outside the memory; a MemoryManager has the same. Raises SettingsError where it can't open what is
    there."""
    from memory.parts import make_vault

    encryption.check(settings)
    config = memory_config(settings, None)
    return make_vault(config, rules_of(tenants, config))


def shielded(model: ChatModel, tenants: Tenants) -> ChatModel:
    """The model, which is not told what a tenant withholds."""
    from processors.shielded import Shielded

    def withheld(tenant_id: str) -> Collection[Kind]:
        tenant = tenants.get(tenant_id)
        return tenant.privacy.withhold if tenant else ()

    return Shielded(model, withheld)


def memory_of(
    settings: Settings,
    tenants: Tenants,
    redis_url: str | None,
    *,
    spending: Spending | None = None,
    budgets: Budgets | None = None,
    changed: Callable[[str, str], None] | None = None,
    clock: Clock = utc_now,
) -> MemoryManager:
    """Over Redis, or with sessions in this process where no URL is given."""
    from gateway.budgets import Budgets
    from gateway.meanings import Meanings
    from gateway.per_tenant import PerTenant
    from memory.memory_manager import MemoryManager
    from memory.parts import reader
    from processors.llm import Access
    from processors.openrouter import OpenRouter

    encryption.check(settings)
    config = memory_config(settings, redis_url)
    model = OpenRouter(on_usage=spending.used if spending else None)

    budgets = budgets or Budgets(None, tenants.get, prices_of(settings), clock)
    asked = shielded(kept_to_limits(model, budgets), tenants)

    def access(tenant: Tenant) -> Access:
        from gateway.responder import access_of  # when a session ends; the HTTP side never does

        agent = tenant.agent(DEFAULT_AGENT)
        return replace(access_of(tenant, agent) if agent else Access(api_key=None), purpose="remember")

    remembering = PerTenant(access)

    def model_of(tenant_id: str) -> tuple[ChatModel, Access]:
        tenant = tenants.get(tenant_id)
        return asked, remembering.of(tenant) if tenant else Access(api_key=None, purpose="remember")

    return MemoryManager(
        config,
        rules=rules_of(tenants, config),
        read_session=reader(model_of),
        model=model,
        embeddings=Meanings(settings, tenants, budgets, spending.used if spending else None),
        listed=canned_answers(tenants),
        changed=changed,
        clock=clock,
    )


def canned_answers(tenants: Tenants) -> Callable[[str], Sequence[Entry]]:
    """A tenant's own answers, as the search finds them."""
    from gateway.per_tenant import PerTenant

    def made(tenant: Tenant) -> list[Entry]:
        out = []
        for number, one in enumerate(tenant.faq):
            answer = "\n".join(dict.fromkeys(filter(None, (one.answer.th, one.answer.en))))
            text = f"{one.questions[0]}\n{answer}"
            out.append(Entry(f"q_{number}", "faq", text, " ".join((*one.questions, answer)), 0.9))
        return out

    kept = PerTenant(made)

    def listed(tenant_id: str) -> Sequence[Entry]:
        tenant = tenants.get(tenant_id)
        return kept.of(tenant) if tenant else ()

    return listed


def prices_of(settings: Settings) -> Prices:
    from processors.prices import Prices

    return Prices(settings.config_dir / "prices.yaml")


def kept_to_limits(model: ChatModel, budgets: Budgets) -> ChatModel:
    """The model with what each tenant allows: other models in order, as long as its budget lasts."""
    from gateway.budgets import Budgeted
    from processors.fallbacks import WithFallbacks

    return Budgeted(WithFallbacks(model), budgets)


def senders_of(settings: Settings, stack: AsyncExitStack, inbox: Inbox | None = None) -> dict[str, Sender]:
    """The platforms' senders; their SDKs are loaded when first used. With the inbox, which keeps the pace, answers are
    shown while they grow."""
    from gateway.adapters.line_sender import LineSender
    from gateway.adapters.telegram_sender import TelegramSender

    telegram = TelegramSender(settings, may_pass=inbox.may_pass if inbox else None)
    senders: dict[str, Sender] = {"line": LineSender(settings), "telegram": telegram}
    for sender in senders.values():
        stack.push_async_callback(sender.close)
    return senders


def fetchers_of(settings: Settings, senders: Mapping[str, Sender]) -> dict[str, Fetcher]:
    """The ways to what customers send besides words, where the platform's sender is at hand."""
    from gateway.adapters.downloads import LineContent, TelegramFiles
    from gateway.adapters.line_sender import LineSender
    from gateway.adapters.telegram_sender import TelegramSender
    from gateway.adapters.web import WebUploads

    fetchers: dict[str, Fetcher] = {"web": WebUploads()}
    if isinstance(line := senders.get("line"), LineSender):
        fetchers["line"] = LineContent(settings, line)
    if isinstance(telegram := senders.get("telegram"), TelegramSender):
        fetchers["telegram"] = TelegramFiles(settings, telegram)
    return fetchers


def audiences_of(settings: Settings, manager: MemoryManager, client: Redis) -> Audiences:
    from gateway.blocked import Blocked, OptedOut
    from gateway.board import Board
    from gateway.broadcasts.audience import Audiences
    from gateway.reach import Reach

    return Audiences(manager, Board(client), Reach(client), Blocked(manager.lists), OptedOut(manager.lists))


@asynccontextmanager
async def broadcast_desk(
    settings: Settings, manager: MemoryManager, client: Redis, clock: Clock = utc_now
) -> AsyncIterator[Desk]:
    """What staff do with broadcasts. LINE's half is loaded when its quota is first asked for."""
    from gateway.broadcasts.costs import Costs
    from gateway.broadcasts.desk import Desk
    from gateway.broadcasts.store import BroadcastStore

    line: LineSender | None = None

    async def quota(tenant: Tenant, channel: str) -> tuple[int | None, int] | None:
        nonlocal line
        if line is None:
            from gateway.adapters.line_sender import LineSender

            line = LineSender(settings)
        return await line.quota(tenant, channel)

    costs = Costs(Ledger(client, clock=clock), quota)
    try:
        yield Desk(BroadcastStore(settings.data_dir), audiences_of(settings, manager, client), costs, clock)
    finally:
        if line is not None:
            await line.close()


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
    spending: Spending | None = None,
    budgets: Budgets | None = None,
    timings: Timings | None = None,
    times: Times | None = None,
    room: Room | None = None,
    live: Live | None = None,
    watching: Sequence[Watcher] = (),
    clock: Clock = utc_now,
) -> Turn:
    from gateway.adapters.line_sender import LineSender
    from gateway.after_hours import AfterHours
    from gateway.asking_staff import AskStaff
    from gateway.audit import AuditLog
    from gateway.blocked import OptedOut
    from gateway.broadcasts.delivery import Deliveries
    from gateway.broadcasts.store import BroadcastStore
    from gateway.budgets import Budgets
    from gateway.commands import Commands
    from gateway.dead_letters import DeadLetters
    from gateway.events import Events
    from gateway.forgetting import Forgetting
    from gateway.hooks import History, Hooks, installed
    from gateway.linking import Linking
    from gateway.media import Media
    from gateway.members import Members
    from gateway.metered import MeteredHearing
    from gateway.names import Names
    from gateway.patience import Presses, Times
    from gateway.per_tenant import PerTenant
    from gateway.rate_limit import RateLimit
    from gateway.rating import Rating
    from gateway.reach import Reach
    from gateway.responder import Responder
    from gateway.routing import Routing
    from gateway.staff_desk import StaffDesk
    from gateway.staff_tasks import StaffTasks
    from gateway.takeover import Takeover
    from gateway.turn import Turn
    from processors.event_processor import EventProcessor
    from processors.models import EventType
    from processors.openrouter import OpenRouter

    client_of_model = OpenRouter(on_usage=spending.used if spending else None)
    stack.push_async_callback(client_of_model.close)
    budgets = budgets or Budgets(client, tenants.get, prices_of(settings), clock)
    timed = timings.model(client_of_model) if timings else client_of_model
    model = shielded(kept_to_limits(timed, budgets), tenants)
    processors = PerTenant(
        lambda tenant: EventProcessor(
            llm=model,
            keywords={EventType(kind): words for kind, words in tenant.keywords.items()},
            timezone=tenant.timezone,
            products=tenant.products,
            own=understanding_dir(settings.data_dir / "understanding", tenant.id),
            safe=manager.vault.of(tenant.id),
            on_understood=partial(spending.understood, tenant.id) if spending else None,
        )
    )
    desk = StaffDesk(inbox, client, states)
    budgets.told = desk.budget_spent
    responder = Responder(model, processors, manager.library)
    tasks = StaffTasks(client, clock) if client else None
    after_hours = AfterHours(responder, desk, tasks)
    reach = Reach(client) if client else None
    line = senders.get("line")
    members = Members(client, line.member) if client and isinstance(line, LineSender) else None
    letters = DeadLetters(client, inbox) if client else None
    events = Events(manager, processors, reach, members, letters)
    data = settings.data_dir
    hearing = MeteredHearing(budgets, spending.used if spending else None)
    fetchers = fetchers_of(settings, senders)
    stack.push_async_callback(hearing.close)
    for fetcher in fetchers.values():
        stack.push_async_callback(fetcher.close)
    hooks = installed()
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
            *([Linking(manager, inbox, client)] if client else []),
            Deliveries(BroadcastStore(data), manager, states, reach, OptedOut(manager.lists), AuditLog(data)),
            desk,
            events,
            *([RateLimit(client)] if client else []),
            Presses(),
            Takeover(desk, processors, responder, after_hours),
            Rating(manager),
            Commands(manager, Forgetting(manager, inbox, client, settings.data_dir), AuditLog(settings.data_dir)),
        ],
        holders=holders,
        hooks=Hooks(History(manager.transcripts, unread=not hooks), hooks, [*([live] if live else []), *watching]),
        after_hours=after_hours,
        routing=Routing(model),
        ask_staff=AskStaff(desk, tasks, manager.unanswered),
        ledger=ledger,
        reach=reach,
        names=Names(manager, client, line.profile if isinstance(line, LineSender) else None),
        times=times or Times(),
        room=room,
        manager=manager,
        enable_memory=settings.enable_memory,
        clock=clock,
        seconds=time.time if clock is utc_now else None,
    )
    stack.push_async_callback(turn.close)
    return turn
