"""What `chat-chat backup` and `restore` do: settings in, lines to print out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from config.settings import Settings
from config.tenants import Tenants
from gateway import longterm_commands
from gateway.admin_key import KEY_FILE
from gateway.app import any_worker
from gateway.assembly import inbox_client, memory_of
from gateway.backup import files
from gateway.backup.keyspace import Keyspace, Record, read, write
from gateway.cli.common import Failed
from gateway.forgetting import Forgetting
from gateway.inbox.base import event_of
from gateway.inbox.opening import inbox_of
from gateway.inbox.redis import RedisInbox
from gateway.inbox.spool import Spool
from gateway.longterm_commands import Stores, copy_stores, drop_notes
from gateway.messages import InboundMessage
from gateway.processes import use_redis
from gateway.restored import Restored
from memory.canonical import all_ids
from memory.long_term.document import empty
from memory.memory_manager import MemoryManager
from processors.models import iso

Bar = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]

FORMAT = 1
ABOUT, KEYS, NOTES = "backup.json", "redis.gz", ".copied"
_BATCH = 200  # records


async def backup(settings: Settings, to: Path, bar: Bar) -> list[str]:
    """Everything into a new folder. In the order in which messages go: the spool, Redis, long-term memory, so that
    what moves on meanwhile is in two places rather than in none; a restore knows it by its id."""
    data = settings.data_dir
    _make_room(data, to)
    made_at = iso(datetime.now(UTC))
    with use_redis(settings) as (url, _):
        with bar("spool") as progress:
            files.save(data, to, ["spool"], progress)
        records = await _save_redis(settings, url, to / KEYS, bar)
    own = frozenset({"spool", *(files.IN_DATABASE if settings.longterm_url else [])})
    with bar("files") as progress:
        files.save(data, to, files.kept_in(data, files.ELSEWHERE | own), progress)
    async with (
        longterm_commands.stores(settings, _longterm(settings)) as source,
        longterm_commands.stores(settings, str(to / "longterm")) as target,
    ):
        said = settings.longterm_url is not None
        lines, whole = await copy_stores(source, target, to / NOTES, None, bar, anew=True, said=said)
    drop_notes(to / NOTES)
    about = {"format": FORMAT, "made_at": made_at, "records": records, "longterm": lines}
    (to / ABOUT).write_bytes(orjson.dumps(about, option=orjson.OPT_INDENT_2))
    with bar("sums") as progress:
        number = files.seal(to, progress)
    if not whole:  # somebody wrote at each pass: what is in there is whole, and a moment older
        lines.append("Somebody wrote all the time: of these people the last moments are not in it.")
    return [f"{to}: {records} records of Redis", *lines, f"{number} files, their sums in {to / files.SUMS}"]


async def restore(settings: Settings, source: Path, over: bool, bar: Bar) -> tuple[list[str], bool]:
    """A backup in the place of nothing, or with `over` of everything that is here. Lines, and whether all is there."""
    with bar("checked") as progress:
        files.check(source, progress)
    about = orjson.loads((source / ABOUT).read_bytes())
    if about["format"] > FORMAT:
        raise Failed(f"{source} was made by a newer version: update first")
    with use_redis(settings) as (url, server):
        if server is not None and not server.owner:
            raise Failed("chat-chat runs on this DATA_DIR: stop it first")
        client = inbox_client(settings, url)
        keyspace = Keyspace(client, cluster=settings.redis_cluster)
        try:
            if await any_worker(client):
                raise Failed("a worker runs, or did half a minute ago: stop serve and worker first")
            async with longterm_commands.stores(settings, _longterm(settings)) as target:
                if over:
                    await keyspace.clear()
                    files.clear(settings.data_dir)
                else:
                    await _refuse_over(settings, keyspace, target)
                lines, whole = await _put_back(settings, source, keyspace, target, bar)
            lines += await _begin_again(settings, url, client, _conversations(source / KEYS))
        finally:
            await client.aclose()
    return [f"put back what was kept at {about['made_at']}", *lines], whole


# -- steps ------------------------------------------------------------------------------------------------------------


def _make_room(data: Path, to: Path) -> None:
    if to.exists() and any(to.iterdir()):
        raise Failed(f"{to} is not empty: give each backup a folder of its own")
    if to.resolve().is_relative_to(data.resolve()):
        raise Failed(f"{to} lies in DATA_DIR: choose another disk, or at least another folder")
    to.mkdir(parents=True, exist_ok=True, mode=0o700)


def _longterm(settings: Settings) -> str:
    return settings.longterm_url or str(settings.data_dir / "longterm")


async def _save_redis(settings: Settings, url: str, path: Path, bar: Bar) -> int:
    client = inbox_client(settings, url)
    number = 0
    write([], path)
    try:
        with bar("Redis") as progress:
            async for records in Keyspace(client, cluster=settings.redis_cluster).records():
                write(records, path)
                number += len(records)
                progress(number, number)
    finally:
        await client.aclose()
    return number


async def _refuse_over(settings: Settings, keyspace: Keyspace, target: Stores) -> None:
    there = [
        *(["Redis"] if await keyspace.any() else []),
        *files.kept_in(settings.data_dir, files.ELSEWHERE | files.STAYS | {KEY_FILE}),
        *(["long-term memory"] if await target.people.tenants() else []),
    ]
    if there:
        raise Failed(f"there is something already ({', '.join(there)}): --over puts the backup in its place")


async def _put_back(
    settings: Settings, source: Path, keyspace: Keyspace, target: Stores, bar: Bar
) -> tuple[list[str], bool]:
    names = files.kept_in(source, files.ELSEWHERE | {ABOUT, KEYS, files.SUMS})
    if settings.longterm_url:
        names = [one for one in names if one not in files.IN_DATABASE]
    with bar("files") as progress:
        number = files.put(source, settings.data_dir, names, progress)
    async with longterm_commands.stores(settings, str(source / "longterm")) as kept:
        await _leave_only(kept, target)
        notes = settings.data_dir / "copied" / "restore.jsonl"
        said = settings.longterm_url is not None
        lines, whole = await copy_stores(kept, target, notes, None, bar, anew=True, said=said)
        drop_notes(notes)
    wrong, records = 0, 0
    with bar("Redis") as progress:
        for some in _batches(read(source / KEYS)):
            wrong += len(await keyspace.put(some))
            records += len(some)
            progress(records, records)
    if wrong:
        lines.append(f"{wrong} keys of Redis are not as they were: does anything else write there?")
    return [*lines, f"{number} files, {records} records of Redis, read again and compared"], whole and not wrong


async def _leave_only(kept: Stores, target: Stores) -> None:
    """Whoever is in the target alone goes."""
    for tenant in await target.people.tenants():
        known = await kept.people.stamps(tenant)
        for user in {*await target.people.stamps(tenant), *await target.said.users(tenant)} - known.keys():
            if user:
                await target.people.forget(tenant, user)
                await target.said.forget(tenant, user)
            else:
                await target.people.put(tenant, user, empty(tenant, user))
    for tenant in await target.small.tenants():
        for name in (await target.small.stamps(tenant)).keys() - await kept.small.stamps(tenant):
            await target.small.forget(tenant, name)


async def _begin_again(settings: Settings, url: str, client: Any, conversations: Iterable[str]) -> list[str]:
    """What waited waits again, but for what was answered while the backup was made; who was forgotten since is."""
    tenants = Tenants(settings)
    tenants.load()
    manager, inbox = memory_of(settings, tenants, url), inbox_of(settings, client, "restore")
    try:
        waiting = 0
        shops = set()
        for name in conversations:
            waiting += await inbox.revive(name)
            shops.add(name.split(":")[1])
        for tenant in sorted(shops):
            waiting -= await _drop_answered(manager, inbox, tenant)
        forget = Forgetting(manager, inbox, client, settings.data_dir)
        again = Restored(manager, forget, client, inbox, Spool(settings.data_dir / "spool"))
        forgotten = await again.forget_again()
    finally:
        await manager.close()
        await inbox.close()
    return [f"{waiting} messages wait to be answered; {forgotten} people had been forgotten and stay so"]


async def _drop_answered(manager: MemoryManager, inbox: RedisInbox, tenant: str) -> int:
    """What stands in the transcripts was answered; how many such messages waited."""
    waiting: dict[str, set[str]] = defaultdict(set)

    def look(message: InboundMessage) -> bool:
        waiting[message.user_id].add(event_of(message))
        return False

    await inbox.forget(tenant, look)
    said: dict[str, set[str]] = {}
    for user in waiting:
        ids = {user, *await all_ids(manager.longterm, tenant, user)}
        lines = [line for one in ids for line in await manager.transcripts.everything(tenant, one)]
        said[user] = {str(line.get("message_id")) for line in lines}
    return await inbox.forget(tenant, lambda message: event_of(message) in said.get(message.user_id, ()))


def _conversations(path: Path) -> list[str]:
    return list(dict.fromkeys(name for one in read(path) if (name := one.conversation)))


def _batches(records: Iterable[Record]) -> Iterable[Sequence[Record]]:
    some: list[Record] = []
    for one in records:
        some.append(one)
        if len(some) >= _BATCH:
            yield some
            some = []
    if some:
        yield some
