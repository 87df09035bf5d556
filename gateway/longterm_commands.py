"""What `chat-chat migrate` and `chat-chat longterm` do."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from config.settings import Settings
from config.tenants import Tenants
from gateway import assembly
from gateway.cli import Failed
from memory.conversation_files import ConversationFiles
from memory.copying import Copy, Outcome, Whole, copy_said
from memory.keys import check_tenant
from memory.lists import FileLists
from memory.long_term.json_files import JsonFiles
from memory.protocols import Transcripts
from memory.small import Small
from memory.transcripts import TranscriptFiles

Progress = AbstractContextManager[Callable[[int, int], None]]


class Stores(NamedTuple):
    people: Whole
    said: Transcripts
    small: Whole


_PASSES = 10  # over one tenant; who is still written after these is copied when the writers stand still


def migrate(settings: Settings, url: str | None) -> list[str]:
    """The database at `url`, else at LONGTERM_URL, gets the tables of this version."""
    from memory.postgres.migrate import migrate

    where = url or settings.longterm_url
    if where is None:
        raise Failed("LONGTERM_URL is unset: long-term memory is JSON files, which need no migration")
    return [f"taken: {step}" for step in migrate(where)] or ["the database has everything that this version needs"]


async def copy(
    settings: Settings,
    source: str,
    target: str,
    tenant: str | None,
    anew: bool,
    progress: Callable[[str], Progress],
    *,
    small_alone: bool = False,
) -> tuple[list[str], bool]:
    """Lines that tell what came of it, and whether all of it is the same on both sides; `progress` gives a bar. With
    `small_alone` no people and nothing that was said."""
    if source == target:
        raise Failed("--from and --to are the same")
    pair = hashlib.sha256(f"{_place(source)} {_place(target)}".encode()).hexdigest()[:16]
    notes = settings.data_dir / "copied" / f"{pair}.jsonl"
    async with stores(settings, source) as from_, stores(settings, target) as to:
        if small_alone:
            lines, whole = await _copy_small(from_, to, notes, tenant, progress, anew)
        else:
            lines, whole = await copy_stores(from_, to, notes, tenant, progress, anew=anew)
    if whole:
        lines.append("All of it is the same on both sides. What is written from now on is copied by the next call.")
    return lines or ["there is nothing to copy"], whole


async def copy_stores(
    source: Stores,
    target: Stores,
    notes: Path,
    tenant: str | None,
    progress: Callable[[str], Progress],
    *,
    anew: bool = False,
    said: bool = True,
) -> tuple[list[str], bool]:
    """As `copy`; without `said` people alone."""
    (from_, talks, _), (to, to_talks, _) = source, target
    lines, whole = [], True
    copying = Copy(from_, to, notes, anew=anew)
    known = {*await from_.tenants(), *await talks.tenants()}
    for one in [check_tenant(tenant)] if tenant else sorted(known):
        for number in range(1, _PASSES + 1):
            with progress(f"{one}, pass {number}") as told:
                if not await copying.once(one, told):
                    break
        messages = 0
        if said:
            with progress(f"{one}, what was said") as told:
                messages = await copy_said(talks, to_talks, one, told, await from_.stamps(one))
        with progress(f"{one}, compared") as told:
            outcome = await copying.compare(one, told)
        lines += _told(one, outcome)
        if said:
            lines.append(f"{one}: {messages} messages of transcripts added or removed")
        whole &= outcome.whole
    if said:
        more, same = await _copy_small(source, target, notes, tenant, progress, anew)
        lines, whole = lines + more, whole and same
    return lines, whole


async def _copy_small(
    source: Stores, target: Stores, notes: Path, tenant: str | None, progress: Callable[[str], Progress], anew: bool
) -> tuple[list[str], bool]:
    """Short lists and opened conversations."""
    lines, whole = [], True
    copying = Copy(source.small, target.small, _beside(notes), anew=anew)
    for one in [check_tenant(tenant)] if tenant else await source.small.tenants():
        with progress(f"{one}, keys, blocked people, opened conversations") as told:
            for _ in range(_PASSES):
                if not await copying.once(one, told):
                    break
            outcome = await copying.compare(one, told)
        if outcome != Outcome(hash=outcome.hash):
            lines += _told(one, outcome, " lists and opened conversations")
        whole &= outcome.whole
    return lines, whole


def drop_notes(notes: Path) -> None:
    """Of a copy that is made once."""
    for one in (notes, _beside(notes)):
        one.unlink(missing_ok=True)


def _beside(notes: Path) -> Path:
    return notes.with_name(f"{notes.name}.small")


def _told(tenant: str, outcome: Outcome, what: str = "") -> list[str]:
    lines = [f"{tenant}: {outcome.people}{what} copied and compared, sha256 {outcome.hash[:16]}"]
    if outcome.changed:
        lines.append(f"{tenant}: {outcome.changed} were written meanwhile: stop the workers and call this again")
    if outcome.missing:
        lines.append(f"{tenant}: {outcome.missing} are not there any more: call this again with --anew")
    for kind, users in (
        ("are there otherwise than they were copied", outcome.different),
        ("are there alone", outcome.unknown),
    ):
        if users:
            named = ", ".join(user or "the tenant itself" for user in users[:5])
            lines.append(f"{tenant}: {len(users)} {kind}: {named}{' …' if len(users) > 5 else ''}")
    return lines


def _place(where: str) -> str:
    return where if where.startswith("postgresql://") else str(Path(where).resolve())


@asynccontextmanager
async def stores(settings: Settings, where: str) -> AsyncIterator[Stores]:
    """A URL, or a folder of JSON files, what DATA_DIR/longterm is, with `transcripts` beside it."""
    now = datetime.now(UTC)
    tenants = Tenants(settings)
    tenants.load()
    rules = assembly.rules_of(tenants, assembly.memory_config(settings, None))
    if not where.startswith("postgresql://"):
        if "://" in where:
            raise Failed(f"{where.partition('://')[0]}:// is not known: give postgresql://… or a folder of JSON files")
        vault = assembly.vault_of(settings, tenants)
        store = JsonFiles(
            where,
            compression=settings.lm_compression,
            retention=lambda one: rules(one).retention,
            clock=lambda: now,
            vault=vault,
        )
        beside = Path(where).parent
        small = Small(FileLists(beside), ConversationFiles(beside / "conversations", vault))
        yield Stores(store, TranscriptFiles(beside / "transcripts", vault=vault), small)
        return
    from memory.postgres.conversations import PostgresConversations
    from memory.postgres.database import Database
    from memory.postgres.lists import PostgresLists
    from memory.postgres.said import PostgresTranscripts
    from memory.postgres.store import PostgresLongTerm

    database = Database(where)
    rows = PostgresLongTerm(database, retention=lambda one: rules(one).retention, cache_entries=0)
    lists = PostgresLists(where)
    try:
        yield Stores(rows, PostgresTranscripts(database), Small(lists, PostgresConversations(database, trusted=0)))
    finally:
        await asyncio.to_thread(lists.close)
        await rows.close()
