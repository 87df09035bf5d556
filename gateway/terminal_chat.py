"""`chat-chat chat`: a person at a keyboard, or lines from a pipe, through the same inbox and turn as everybody else."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import click
from redis.exceptions import RedisError

from config.settings import Settings
from config.tenants import Tenant, Tenants
from gateway import app, assembly, logs
from gateway.adapters import terminal
from gateway.cli import Failed, in_loop
from gateway.inbox.opening import inbox_of
from gateway.intake import policy_for
from gateway.live import Live
from gateway.messages import MAX_TEXT, InboundMessage
from gateway.processes import use_redis
from gateway.rendering import render_terminal
from memory import keys

PATIENCE = 180.0  # seconds for one answer


def talk(tenant_id: str, user: str, agent: str) -> int:
    settings = Settings.from_env()
    keys.escape(user)
    logging_ = logs.setup("ERROR", "console")
    logging.getLogger("config").setLevel(logging.CRITICAL)  # another shop's mistakes are not for this screen
    try:
        with use_redis(settings) as (url, server):

            async def main() -> int:
                tenants = Tenants(settings)
                tenants.load()
                tenant = _find(tenants, tenant_id, agent)
                async with AsyncExitStack() as stack:
                    terminal_ = _Terminal(settings, tenants, tenant, url, user, agent, stack)
                    if server:
                        stop = asyncio.Event()
                        watching = asyncio.create_task(server.supervise(stop))
                        stack.callback(stop.set)
                        stack.callback(watching.cancel)
                    return await terminal_.run()

            return in_loop(main())
    finally:
        logging_.close()


def _find(tenants: Tenants, tenant_id: str, agent: str) -> Tenant:
    tenant = tenants.get(tenant_id)
    if tenant is None:
        known = ", ".join(one.id for one in tenants.all())
        hint = (
            f"there are: {known}); see `chat-chat tenants check`"
            if known
            else "none); `chat-chat tenants new` makes one"
        )
        raise Failed(f"there is no tenant {tenant_id!r} that works ({hint}")
    if tenant.agent(agent) is None:
        raise Failed(f"tenant {tenant_id} has no agent {agent!r} (it has: {', '.join(tenant.agents)})")
    return tenant


class _Terminal:
    def __init__(
        self,
        settings: Settings,
        tenants: Tenants,
        tenant: Tenant,
        url: str,
        user: str,
        agent: str,
        stack: AsyncExitStack,
    ) -> None:
        self._settings = settings
        self._tenants = tenants
        self._tenant = tenant
        self._url = url
        self._user = user
        self._agent = keys.agent_name(agent)
        self._stack = stack
        self._client = assembly.inbox_client(settings, url)
        self._inbox = inbox_of(settings, self._client, "terminal")
        self._live = Live(self._client)
        self._chat = uuid.uuid4().hex  # answers come to this terminal, not to another one of the same user
        self._own_worker = False
        self._interactive = sys.stdin.isatty() and sys.stdout.isatty()

    async def run(self) -> int:
        self._stack.push_async_callback(self._inbox.close)
        self._stack.push_async_callback(self._live.close)
        if self._interactive:
            click.echo(f"{self._tenant.name}. Type a message; /help shows the commands, Ctrl-D ends.\n")
        answers = terminal.answers(self._client, self._tenant.id, self._chat)
        async for line in self._lines():
            if not line.strip():
                continue
            await self._ensure_worker()
            await self._say(line)
            if not await self._hear(answers):
                click.echo("chat-chat: no answer came; `chat-chat doctor` may tell why", err=True)
                return 1
        return 0

    async def _lines(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        while True:
            if self._interactive:
                click.echo("> ", nl=False)
            # Undecodable bytes are replaced: a pipe may hold anything.
            raw = await loop.run_in_executor(None, sys.stdin.buffer.readline)
            if not raw:
                if self._interactive:
                    click.echo()
                return
            yield raw.decode("utf-8", "replace").rstrip("\r\n")

    async def _say(self, line: str) -> None:
        now = time.time()
        message = InboundMessage(
            tenant=self._tenant.id,
            channel="terminal",
            platform="terminal",
            event_id=uuid.uuid4().hex,
            user_id=f"terminal:{self._user}",
            chat_id=self._chat,
            text=line[:MAX_TEXT],
            sent_at=now,
            received_at=now,
            agent=self._agent,
        )
        await self._inbox.put([(message, policy_for(self._tenant, message))])
        self._live.arrived(self._tenant, message)

    async def _hear(self, answers: AsyncIterator[terminal.Line | None]) -> bool:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                line = await anext(answers)
            except RedisError:  # the server is being started again
                await asyncio.sleep(0.2)
                answers = terminal.answers(self._client, self._tenant.id, self._chat)
                continue
            if line is None:
                await self._ensure_worker()
                continue
            width = shutil.get_terminal_size().columns if self._interactive else None
            click.echo(render_terminal(line.text, width, self._interactive))
            if self._interactive and line.quick_replies:
                click.echo("  " + "  ".join(f"[{reply.label}]" for reply in line.quick_replies))
            click.echo()
            return True
        return False

    async def _ensure_worker(self) -> None:
        """A worker in this process when there is no other: the terminal works without `chat-chat run`."""
        if self._own_worker or await app.any_worker(self._client):
            return
        self._own_worker = True
        run = await self._stack.enter_async_context(app.work(self._settings, self._tenants, self._url, concurrency=8))
        stop = asyncio.Event()
        working = asyncio.create_task(run(stop))

        async def end() -> None:
            stop.set()
            await working

        self._stack.push_async_callback(end)
