"""Plays a script through the whole pipeline: the real inbox, worker and turn, over data of its own that is thrown away.

The clock is the script's, so that business hours and what happens "two days later" come out the same every time.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import orjson

from config.settings import Settings
from config.tenant_files import read_tenant
from config.tenants import LLM, Tenant, TenantError, Tenants, TenantStatus
from gateway import app, assembly
from gateway.adapters import terminal
from gateway.inbox.redis import RedisInbox
from gateway.intake import policy_for
from gateway.live import channel_key
from gateway.messages import InboundMessage
from gateway.rendering import render_terminal
from gateway.simulation.script import Script, TurnOf
from gateway.simulation.stub import KEY, Stub
from memory.knowledge import line as as_line

PATIENCE = 120.0  # seconds for one turn
_LOOKS = 20  # of 50 ms each, for what a turn understood once it is over; a command tells nothing
_SESSION_ENDS = timedelta(minutes=5)  # after it is over, when the clean-up comes by


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one turn. `type` and `importance` are None for what is no message to understand, as commands."""

    turn: TurnOf
    at: datetime  # the shop's own time
    answer: str = ""
    buttons: tuple[str, ...] = ()
    type: str | None = None
    importance: float | None = None
    learnt: tuple[str, ...] = ()  # what is known of the customer since this turn
    known: tuple[str, ...] = ()  # all that is known
    asked: int = 0  # answers asked of the stubbed model
    unscripted: bool = False  # it was asked, and the script had no words for it


class OneTenant(Tenants):
    """A register with the tenant that is played with."""

    def __init__(self, settings: Settings, tenant: Tenant, file: Path) -> None:
        super().__init__(settings)
        self._tenant, self._file = tenant, file
        self._serving[tenant.id] = tenant

    def all(self) -> list[Tenant]:
        return [self._tenant]

    def status(self) -> list[TenantStatus]:
        return [TenantStatus(self._tenant.id, self._file, "ok")]


def tenant_of(script_file: Path, named: str, settings: Settings) -> tuple[Tenant, Path, Path]:
    """The tenant that a script names, its file and its config folder. Secrets that are missing are made up: nothing is
    sent anywhere. Raises TenantError."""
    beside = (script_file.parent / named).resolve()
    file = beside if beside.suffix == ".yaml" else settings.config_dir / "tenants" / f"{named}.yaml"
    root = settings.config_dir
    if file is beside and not file.is_relative_to(root.resolve() / "tenants"):
        root = file.parent.parent if file.parent.name == "tenants" else file.parent
    given = replace(settings, config_dir=root)
    reading = read_tenant(file, given)
    if reading.missing:
        made_up = dict.fromkeys(reading.missing, "simulated:simulated")
        reading = read_tenant(file, replace(given, variables={**settings.variables, **made_up}))
    if reading.tenant is None:
        raise TenantError(reading.mistakes)
    return reading.tenant, file, root


def prepared(tenant: Tenant, stub: Stub | None, real: bool) -> Tenant:
    """The tenant for a play: no waiting for further messages, and the model that is asked."""
    behaviour = tenant.behaviour.model_copy(update={"debounce_ms": 0, "debounce_max_ms": 0, "rate_limit_per_minute": 0})
    changed: dict[str, Any] = {"behaviour": behaviour}
    if not real:
        llm = {"api_key": KEY, "base_url": stub.url} if stub else {}
        changed["llm"] = LLM.model_validate(llm)
        # What is not an answer is left to the rules: a script says what the model answers, and no more.
        changed["understanding"] = tenant.understanding.model_copy(update={"policy": "never"})
        changed["memory"] = tenant.memory.model_copy(update={"extract_every": 0})
        quiet = {"rewrite": "rules"}
        changed["agents"] = {name: agent.model_copy(update=quiet) for name, agent in tenant.agents.items()}
    return tenant.model_copy(update=changed)


class Clock:
    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


@asynccontextmanager
async def staged(
    script: Script, tenant: Tenant, file: Path, settings: Settings, url: str, stub: Stub | None
) -> AsyncIterator[Stage]:
    """`settings` with a data folder, and `url` with a server, that are thrown away."""
    clock = Clock(script.at.replace(tzinfo=ZoneInfo(tenant.timezone)).astimezone(UTC))
    tenants = OneTenant(settings, tenant, file)
    async with AsyncExitStack() as stack:
        client = assembly.inbox_client(settings, url)
        inbox = RedisInbox(client, "simulation")
        stack.push_async_callback(inbox.close)
        manager = assembly.memory_of(settings, tenants, url, clock=clock)
        stack.push_async_callback(manager.close)
        run = await stack.enter_async_context(app.work(settings, tenants, url, probe_every=0, clock=clock))
        stop = asyncio.Event()
        working = asyncio.create_task(run(stop))
        told = client.pubsub()
        await told.subscribe(channel_key(tenant.id))
        try:
            yield Stage(script, tenant, tenants, settings, url, stub, clock, client, inbox, manager, told)
        finally:
            stop.set()
            await working
            await told.aclose()  # type: ignore[no-untyped-call]


class Stage:
    def __init__(
        self,
        script: Script,
        tenant: Tenant,
        tenants: Tenants,
        settings: Settings,
        url: str,
        stub: Stub | None,
        clock: Clock,
        client: Any,
        inbox: RedisInbox,
        manager: Any,
        told: Any,
    ) -> None:
        self._script, self._tenant, self._tenants = script, tenant, tenants
        self._settings, self._url, self._stub, self._clock = settings, url, stub, clock
        self._client, self._inbox, self._manager, self._told = client, inbox, manager, told
        self._known: dict[str, set[str]] = {}

    async def turn(self, turn: TurnOf) -> Seen:
        await self._pass(turn.wait or timedelta(minutes=1))
        user = f"terminal:{turn.by or self._script.customer}"
        if self._stub:
            self._stub.says = turn.model if turn.model is not None else self._script.model
            self._stub.asked = 0
        await self._say(user, turn.say)
        await self._quiet()
        answer, buttons = await self._heard(user)
        event = await self._understood()
        known = await self._known_of(user)
        before = self._known.get(user, set())
        self._known[user] = set(known)
        asked = self._stub.asked if self._stub else 0
        return Seen(
            turn,
            self._clock.now.astimezone(ZoneInfo(self._tenant.timezone)),
            answer,
            buttons,
            event.get("event_type"),
            event.get("importance_score"),
            tuple(one for one in known if one not in before),
            tuple(known),
            asked,
            bool(asked and self._stub and self._stub.says is None),
        )

    async def _pass(self, span: timedelta) -> None:
        """Time goes by; a session that ends meanwhile is put into memory, as the clean-up does."""
        ttl = timedelta(seconds=self._tenant.memory.sm_ttl)
        back = self._clock.now + span
        if ttl and span > ttl:
            self._clock.now += min(span, ttl + _SESSION_ENDS)
            async with app.tidy(self._settings, self._tenants, self._url, clock=self._clock) as cleanup:
                await cleanup.run()
        self._clock.now = back

    async def _say(self, user: str, text: str) -> None:
        now = self._clock.now.timestamp()
        message = InboundMessage(
            tenant=self._tenant.id,
            channel="terminal",
            platform="terminal",
            event_id=uuid.uuid4().hex,
            user_id=user,
            chat_id=user,
            text=text,
            sent_at=now,
            received_at=now,
        )
        await self._inbox.put([(message, policy_for(self._tenant, message))])

    async def _quiet(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while True:
                depth = await self._inbox.depth()
                if not (depth.ready or depth.due or depth.leased):
                    return
                await asyncio.sleep(0.01)

    async def _heard(self, user: str) -> tuple[str, tuple[str, ...]]:
        texts: list[str] = []
        buttons: list[str] = []
        while raw := await self._client.lpop(terminal.list_key(self._tenant.id, user)):
            said = msgspec.json.decode(raw, type=terminal.Line)
            texts.append(render_terminal(said.text, None, False))
            buttons += [reply.label for reply in said.quick_replies]
        return "\n".join(texts), tuple(buttons)

    async def _understood(self) -> dict[str, Any]:
        """What the turn told of its message; {}: nothing. An answer is told together with it."""
        left = _LOOKS  # counted and not timed: a busy machine is late with both sides
        while left > 0:
            left -= 1
            news = await self._told.get_message(ignore_subscribe_messages=True, timeout=0.05)
            for kind, data in _told(news):
                if kind == "event":
                    return data
                if kind == "message" and data.get("role") == "bot":
                    left = min(left, 4)
        return {}

    async def _known_of(self, user: str) -> Sequence[str]:
        memory = await self._manager.longterm.load(self._tenant.id, user)
        if memory is None:
            return ()
        facts = [as_line(fact) for fact in memory.facts if fact.current]
        return [*facts, *(f"({one.outcome}) {one.text}" for one in memory.episodes)]


def _told(news: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(one["kind"], one["data"]) for one in orjson.loads(news["data"])] if news else []
