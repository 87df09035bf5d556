"""What `chat-chat memory` does."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from config.settings import Settings
from config.tenants import Tenants
from gateway import assembly
from gateway.audit import AuditLog, Deed
from gateway.cli import Failed
from gateway.cli.common import doubt
from gateway.forgetting import Forgetting
from gateway.inbox.opening import inbox_of
from gateway.processes import use_redis
from memory.errors import MemoryFault, WasForgotten
from memory.keys import check_tenant, is_group
from memory.knowledge import line
from memory.memory_manager import MemoryManager
from processors.llm import LLMUnavailable

Progress = AbstractContextManager[Callable[[int, int], None]]


@asynccontextmanager
async def manager_of(settings: Settings, redis_url: str | None = None) -> AsyncIterator[MemoryManager]:
    """For one command; what goes wrong with it becomes a line."""
    tenants = Tenants(settings)
    tenants.load()
    manager = assembly.memory_of(settings, tenants, redis_url)
    try:
        yield manager
    except (MemoryFault, LLMUnavailable, ValueError) as error:
        raise Failed(str(error)) from error
    finally:
        await manager.close()


def _note(settings: Settings, tenant: str, did: Deed, by: str, user: str | None = None) -> None:
    AuditLog(settings.data_dir).note(tenant, datetime.now(UTC), "command", did, f"memory {by}", user=user)


async def show(settings: Settings, tenant: str, user: str) -> list[str]:
    """Who it is, what holds, what the last sessions were about."""
    _note(settings, tenant, "read", "show", user)
    async with manager_of(settings) as manager:
        check_tenant(tenant)
        memory = await manager.longterm.load(tenant, await manager.knowledge.canonical(tenant, user))
    if memory is None:
        raise Failed(_unknown(settings, tenant, user))
    person = memory.person
    lines = [f"{memory.user_id}" + (f"  {person.display_name}" if person and person.display_name else "")]
    if person and person.identities:
        lines.append("  " + "  ".join(f"{kind}={own}" for kind, own in sorted(person.identities.items())))
    lines += [f"- {line(fact)}  ({fact.type}, {fact.priority})" for fact in memory.facts if fact.current]
    lines += [f"* {one.started_at:%Y-%m-%d %H:%M}  {one.outcome}  {one.text}" for one in memory.episodes[-10:]]
    if memory.history_summary:
        lines.append(memory.history_summary)
    return lines


def _unknown(settings: Settings, tenant: str, user: str) -> str:
    ids = "" if ":" in user else f"; an id names its channel: terminal:{user}, web:{user}, line:U…"
    return f"nothing is known of {user} at {tenant}{ids}{doubt(settings, tenant)}"


async def search(settings: Settings, tenant: str, user: str, query: str, limit: int) -> list[str]:
    _note(settings, tenant, "read", "search", user)
    async with manager_of(settings) as manager:
        hits = await manager.search(tenant, user, query, limit)
    return [f"{hit.score:.2f}  {hit.kind}  {hit.text}" for hit in hits] or [f"nothing found{doubt(settings, tenant)}"]


async def export(settings: Settings, tenant: str, user: str | None) -> list[str]:
    """One line of JSON a person: of all of them where none is named."""
    _note(settings, tenant, "export", "export", user)
    async with manager_of(settings) as manager:
        check_tenant(tenant)
        users = [user] if user else [one async for one in manager.longterm.users(tenant)]
        values: list[dict[str, Any]] = []
        for one in users:
            value = await manager.export(tenant, one)
            if value is not None and all(value["user_id"] != known["user_id"] for known in values):
                values.append(value)
    if user and not values:
        raise Failed(_unknown(settings, tenant, user))
    if not values and (more := doubt(settings, tenant)):
        raise Failed(f"nothing is kept of {tenant}{more}")
    return [orjson.dumps(value).decode() for value in values]


async def import_(settings: Settings, tenant: str, files: Sequence[Path]) -> list[str]:
    _note(settings, tenant, "change", "import")
    done = []
    async with manager_of(settings) as manager:
        check_tenant(tenant)
        for file in files:
            for number, raw in enumerate(file.read_bytes().removeprefix(BOM_UTF8).splitlines(), 1):
                if not raw.strip():
                    continue
                try:
                    done.append(f"{await manager.import_(tenant, orjson.loads(raw))} taken in")
                except WasForgotten as error:
                    done.append(f"{file}, line {number}: {error}")
                except (ValueError, AttributeError) as error:
                    before = f"; the {len(done)} before it stand" if done else ""
                    raise Failed(f"{file}, line {number}: {_wrong(error)}{before}") from error
    return done or ["nothing taken in: there is nothing in it"]


def _wrong(error: Exception) -> str:
    """Without the words of the file, which are somebody's."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


async def link(settings: Settings, tenant: str, user: str, to: str) -> list[str]:
    _note(settings, tenant, "change", "link", user)
    with use_redis(settings) as (url, _):
        async with manager_of(settings, url) as manager:
            for one in (user, to):
                if ":" not in one or is_group(one):
                    raise Failed(f"{one!r} is no person's id: write it as line:U… or telegram:12345")
            into = await manager.link_users(tenant, user, to)
    return [f"{user} leads to {into} from now on"]


async def unlink(settings: Settings, tenant: str, user: str) -> list[str]:
    _note(settings, tenant, "change", "unlink", user)
    async with manager_of(settings) as manager:
        return [f"{user} is parted from {await manager.unlink_user(tenant, user)}"]


async def forget(settings: Settings, tenant: str, user: str) -> list[str]:
    with use_redis(settings) as (url, _):
        _note(settings, tenant, "delete", "forget", user)
        client = assembly.inbox_client(settings, url)
        inbox = inbox_of(settings, client, "operator")
        try:
            async with manager_of(settings, url) as manager:
                receipt = await Forgetting(manager, inbox, client, settings.data_dir)(tenant, user)
        finally:
            await inbox.close()
    lines = [f"{name}: {count}" for name, count in receipt.items()]
    something = any(count for count in receipt.values() if isinstance(count, int))
    return lines if something else [*lines, _unknown(settings, tenant, user)]


async def reindex(settings: Settings, tenant: str | None, progress: Callable[[str], Progress]) -> list[str]:
    """Makes the lists over a tenant, or over every one, anew, and the vectors that find by meaning, where there is what
    makes them; `progress` gives a bar for one."""
    done = []
    async with manager_of(settings) as manager:
        every = await manager.longterm.tenants()
        if tenant and check_tenant(tenant) not in every and (more := doubt(settings, tenant)):
            raise Failed(f"nothing is kept of {tenant}{more}")
        for one in [tenant] if tenant else every:
            with progress(one) as told:
                people = await manager.catalog.refresh(one, anew=True, progress=told)
            with progress(f"{one}, by meaning") as told:
                vectors = await manager.knowledge.reindex(one, anew=True, progress=told)
            done.append(f"{one}: {people} taken in" + (f", {vectors} vectors made" if vectors else ""))
    return done
