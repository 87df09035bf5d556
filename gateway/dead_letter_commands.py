"""What `chat-chat dead-letters` does."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from config.settings import Settings
from config.tenants import Tenants
from gateway import assembly
from gateway.cli import Failed
from gateway.cli.common import doubt
from gateway.dead_letters import DeadLetter, DeadLetters
from gateway.inbox.opening import inbox_of
from gateway.intake import policy_for
from gateway.patience import answers_in
from gateway.processes import use_redis
from memory.keys import check_tenant
from processors.models import iso

_ID = re.compile(r"[0-9]{1,19}(?:-[0-9]{1,19})?")


@asynccontextmanager
async def _letters(settings: Settings) -> AsyncIterator[DeadLetters]:
    with use_redis(settings) as (url, _):
        client = assembly.inbox_client(settings, url)
        inbox = inbox_of(settings, client, "operator")
        try:
            yield DeadLetters(client, inbox)
        finally:
            await inbox.close()


def _loaded(settings: Settings) -> Tenants:
    tenants = Tenants(settings)
    tenants.load()
    return tenants


async def list_letters(settings: Settings, tenant: str | None) -> list[str]:
    async with _letters(settings) as letters:
        names = [check_tenant(tenant)] if tenant else sorted(await letters.tenants())
        found = [letter for name in names for letter in await letters.list(name)]
    if not found:
        return [f"no dead letters{doubt(settings, tenant) if tenant else ''}"]
    return [
        f"{letter.id}  {iso(letter.at)}  {letter.tenant}  {letter.message.user_id}  "
        f"{letter.tries} tries  {letter.reason}"
        for letter in found
    ]


async def show_letter(settings: Settings, tenant: str, id_: str) -> str:
    async with _letters(settings) as letters:
        letter = await _one(letters, tenant, id_)
    message = msgspec.json.format(msgspec.json.encode(letter.message), indent=2).decode()
    earlier = [f"\nan earlier answer that was to go with it: {answer.text}" for answer in answers_in(letter.carried)]
    return (
        f"{letter.id}  {iso(letter.at)}\nconversation: {letter.conversation}\ntries: {letter.tries}\n"
        f"reason: {letter.reason}\nmessage: {message}{''.join(earlier)}"
    )


async def retry_letters(settings: Settings, tenant: str, ids: Sequence[str]) -> str:
    """All of them where no id is given, the oldest first so that they keep their order."""
    shop = _loaded(settings).get(tenant)
    if shop is None:
        raise Failed(f"there is no tenant {tenant!r} that works: nobody could answer; see `chat-chat tenants check`")
    async with _letters(settings) as letters:
        chosen = [await _one(letters, tenant, id_) for id_ in ids] if ids else await letters.list(tenant, 10_000)
        for letter in sorted(chosen, key=lambda one: _order(one.id)):
            await letters.retry(letter, policy_for(shop, letter.message))
    return f"{len(chosen)} put back into the queue"


async def drop_letters(settings: Settings, tenant: str, ids: Sequence[str]) -> str:
    check_tenant(tenant)
    async with _letters(settings) as letters:
        chosen = [_checked(id_) for id_ in ids] or [letter.id for letter in await letters.list(tenant, 10_000)]
        dropped = await letters.drop(tenant, chosen) if chosen else 0
    return f"{dropped} dropped"


async def _one(letters: DeadLetters, tenant: str, id_: str) -> DeadLetter:
    check_tenant(tenant)
    letter = await letters.get(tenant, _checked(id_))
    if letter is None:
        raise Failed(f"tenant {tenant} has no dead letter {id_}: `chat-chat dead-letters list --tenant {tenant}`")
    return letter


def _checked(id_: str) -> str:
    if not _ID.fullmatch(id_):
        raise Failed(f"{id_[:80]!r} is no dead letter's id: `chat-chat dead-letters list` shows them")
    return id_


def _order(id_: str) -> tuple[int, int]:
    time, _, number = id_.partition("-")
    return int(time), int(number or 0)
