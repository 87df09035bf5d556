"""What `chat-chat tasks` does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from config.settings import Settings
from gateway import assembly
from gateway.cli import Failed
from gateway.cli.common import doubt
from gateway.processes import use_redis
from gateway.staff_tasks import StaffTasks, Task
from memory.keys import check_tenant


@asynccontextmanager
async def _tasks(settings: Settings) -> AsyncIterator[StaffTasks]:
    with use_redis(settings) as (url, _):
        client = assembly.inbox_client(settings, url)
        try:
            yield StaffTasks(client)
        finally:
            await client.aclose()


async def listed(settings: Settings, tenant: str) -> list[str]:
    async with _tasks(settings) as tasks:
        found = await tasks.all(check_tenant(tenant))
    return [line for task in found for line in _lines(task)] or [f"nobody waits for an answer{doubt(settings, tenant)}"]


async def done(settings: Settings, tenant: str, task_id: str) -> str:
    async with _tasks(settings) as tasks:
        if not await tasks.done(check_tenant(tenant), task_id):
            raise Failed(f"there is no task {task_id!r}: see `chat-chat tasks list --tenant {tenant}`")
    return f"{task_id} is done"


def _lines(task: Task) -> list[str]:
    who = f"{task.name} ({task.user_id})" if task.name else task.user_id
    return [f"{task.id}  {task.since}  {task.channel}  {_plain(who)}", *(f"    {_plain(one)}" for one in task.said)]


def _plain(words: str) -> str:
    """A customer's words can't steer the terminal."""
    return "".join(char if char.isprintable() else " " for char in words)
