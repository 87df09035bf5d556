"""`chat-chat doctor`: is everything there that the bot needs, and if not, what to do."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from redis.exceptions import RedisError

from config.extras import install
from config.settings import Settings, SettingsError
from config.tenant_files import read_tenant
from config.tenants import LineChannel, TelegramChannel, Tenant, Tenants
from config.vault import key_id
from gateway import assembly, encryption
from gateway.adapters.line_tokens import LineTokens
from gateway.backup.files import IN_DATABASE
from gateway.channel_states import ChannelStates
from gateway.doctor_redis import topology
from gateway.errors import ChannelBroken, SendFault
from gateway.ledger import Ledger
from gateway.processes import use_redis
from gateway.redis_server import EmbeddedRedisFault
from memory.bounded import bounded
from memory.errors import LongTermUnavailable
from memory.redis_client import tls_trouble

TIMEOUT = aiohttp.ClientTimeout(total=10, connect=5)
_AT_ONCE = 16  # questions to platforms and models
_REDIS_HANGS = 5.0  # seconds for a Redis that takes connections and answers none, in all


@dataclass(frozen=True, slots=True)
class Finding:
    well: bool
    what: str
    remedy: str = ""
    answers: bool = True  # False: who was asked is away

    def __str__(self) -> str:
        return f"{'ok   ' if self.well else 'WRONG'}  {self.what}" + (f": {self.remedy}" if self.remedy else "")


async def examine(settings: Settings) -> list[Finding]:
    with bounded(_REDIS_HANGS):
        return await _examined(settings)


async def _examined(settings: Settings) -> list[Finding]:
    redis = await _redis(settings)
    findings = [redis, _folder(settings.data_dir), *_encryption(settings), *await _longterm(settings)]
    tenants = Tenants(settings)
    tenants.load()
    findings += _files(settings, tenants) + _secrets(settings, tenants)
    async with aiohttp.ClientSession(timeout=TIMEOUT) as http:
        findings += [finding async for finding in _models(settings, tenants, http)]
        findings += await _together(
            _channel(settings, tenant, name, channel, http)
            for tenant in tenants.all()
            for name, channel in tenant.channels.items()
            if isinstance(channel, LineChannel | TelegramChannel)
        )
    if redis.answers:  # of one that is away nothing is known, which is not that nothing is wrong
        findings += [finding async for finding in _states(settings, tenants)]
    return findings


async def _redis(settings: Settings) -> Finding:
    kind = "Redis at REDIS_URL" if settings.redis_url else "embedded Redis"
    try:
        with use_redis(settings) as (url, _):
            client = assembly.inbox_client(settings, url)
            try:
                told, wrong = await topology(settings, client)
            except (RedisError, OSError) as error:
                asked = ": it has to speak TLS, as rediss asks for" if url.startswith("rediss") else ""
                remedy = tls_trouble(error) or f"start it, or correct REDIS_URL{asked}"
                return Finding(False, f"{kind} does not answer ({type(error).__name__})", remedy, answers=False)
            finally:
                await client.aclose()
    except EmbeddedRedisFault as error:
        return Finding(False, f"{kind} can't be started", str(error), answers=False)
    if wrong:
        return Finding(False, f"{kind}, {told}", "; ".join(wrong))
    return Finding(True, f"{kind} answers and keeps what it acknowledges", told)


async def _longterm(settings: Settings) -> list[Finding]:
    if settings.longterm_url is None:
        return []
    try:
        from memory.postgres.database import Database
    except ImportError:
        remedy = f"install it: {install('postgres')}"
        return [Finding(False, "LONGTERM_URL is set and the PostgreSQL driver is missing", remedy)]
    database = Database(settings.longterm_url)
    try:
        trouble = await database.examine()
    except LongTermUnavailable as error:
        return [Finding(False, str(error), "start it, or correct LONGTERM_URL")]
    finally:
        await database.close()
    where = "PostgreSQL at LONGTERM_URL"
    if trouble:
        return [Finding(False, f"{where} {trouble}")]
    found = [Finding(True, f"{where} answers and has the tables of this version")]
    if left := [name for name in sorted(IN_DATABASE) if (settings.data_dir / name).is_dir()]:
        remedy = "once they are copied (`chat-chat longterm copy`, with --small all but transcripts) remove them"
        found.append(Finding(True, f"{', '.join(left)} in DATA_DIR are read no more, but from PostgreSQL", remedy))
    return found


def _encryption(settings: Settings) -> list[Finding]:
    try:
        encryption.check(settings)
    except SettingsError as error:
        return [Finding(False, str(error))]
    except OSError:  # of the folder, which has a line of its own
        return []
    if not settings.encryption_key:
        return []
    beside = "what Redis holds is its operator's to encrypt"
    if settings.longterm_url:
        beside = "what Redis and PostgreSQL hold is their operator's to encrypt"
    how = "are encrypted" if settings.encrypt_at_rest else "are encrypted for tenants that ask for it"
    return [Finding(True, f"files with people's words {how}, key {key_id(settings.encryption_key[0])}; {beside}")]


def _folder(path: Path) -> Finding:
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as probe:
            probe.write(b"x")
            os.fsync(probe.fileno())
    except OSError as error:
        return Finding(
            False,
            f"the folder {path} can't be written ({error.strerror})",
            "let this user write there, or set DATA_DIR",
        )
    return Finding(True, f"the folder {path} can be written")


def _files(settings: Settings, tenants: Tenants) -> list[Finding]:
    found = tenants.status()
    if not found:
        folder = settings.config_dir / "tenants"
        return [Finding(False, f"no tenant file in {folder}", "`chat-chat tenants new my-shop` writes one")]
    return [
        Finding(row.state == "ok", f"tenant {row.id}", "" if row.state == "ok" else "; ".join(map(str, row.errors)))
        for row in found
    ]


def _secrets(settings: Settings, tenants: Tenants) -> list[Finding]:
    """Which secrets the tenants' files name, and where each comes from; never what it is."""
    findings = []
    for row in tenants.status():
        reading = read_tenant(row.file, settings)
        for found in reading.secrets.values():
            findings.append(Finding(True, f"tenant {row.id}, secret {found.name}", f"from {found.where}"))
        for name in sorted(reading.missing):
            place = settings.config_dir / "secrets" / name
            remedy = f"set it in the environment, or write it to {place}"
            findings.append(Finding(False, f"tenant {row.id}, secret {name} is missing", remedy))
    return findings


async def _models(settings: Settings, tenants: Tenants, http: aiohttp.ClientSession) -> AsyncIterator[Finding]:
    """The environment's key, and every one that a tenant brings."""
    keys: dict[tuple[str, str], list[str]] = {}
    if settings.openrouter_api_key:
        keys[settings.openrouter_base_url, settings.openrouter_api_key] = ["OPENROUTER_API_KEY"]
    without = [tenant.id for tenant in tenants.all() if not tenant.llm.api_key]
    if without or not (keys or tenants.all()):
        whose = f" for {', '.join(without)}" if without else ""
        # The environment's key never goes to an endpoint of a tenant's own.
        brings = "llm.api_key in the tenant's file" if keys else "OPENROUTER_API_KEY, or a tenant's own llm.api_key,"
        yield Finding(True, f"no LLM key{whose}", f"FAQ and rules answer; {brings} brings the model in")
    for tenant in tenants.all():
        if tenant.llm.api_key:
            users = keys.setdefault((tenant.llm.base_url, tenant.llm.api_key.get_secret_value()), [])
            if "OPENROUTER_API_KEY" not in users:
                users.append(f"llm.api_key of tenant {tenant.id}")
    for finding in await _together(_model(base, key, ", ".join(users), http) for (base, key), users in keys.items()):
        yield finding


async def _together(questions: Iterable[Coroutine[Any, Any, Finding]]) -> list[Finding]:
    """In their order; who does not answer is waited for beside the others."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def asked(question: Coroutine[Any, Any, Finding]) -> Finding:
        async with room:
            return await question

    return await asyncio.gather(*map(asked, questions))


async def _model(base: str, key: str, of: str, http: aiohttp.ClientSession) -> Finding:
    headers = {"Authorization": f"Bearer {key}"}
    status = await _status(http, f"{base}/key", headers)  # OpenRouter's /models asks for no key
    if status == 404:  # another endpoint of the same kind
        status = await _status(http, f"{base}/models", headers)
    if status == 200:
        return Finding(True, f"the LLM endpoint takes the key ({of})")
    where = "OPENROUTER_BASE_URL" if of == "OPENROUTER_API_KEY" else "llm.base_url in the tenant's file"
    if status in (401, 403):
        return Finding(False, f"the LLM key is refused ({of})", "copy it again, or make a new one")
    return Finding(False, f"the LLM endpoint {_said(status)} ({of})", f"check {where} and the network")


async def _channel(
    settings: Settings, tenant: Tenant, name: str, channel: LineChannel | TelegramChannel, http: aiohttp.ClientSession
) -> Finding:
    where = f"tenant {tenant.id}, channel {name}"
    if isinstance(channel, LineChannel):
        status = await _line_status(settings, channel, http)
        remedy = "issue a new channel access token in the LINE Developers console, or correct id and secret"
    else:
        status = await _status(
            http, f"{settings.telegram_api_base}/bot{channel.bot_token.get_secret_value()}/getMe", {}
        )
        remedy = "copy the token from BotFather again"
    if status == 200:
        return Finding(True, f"{where}: the {channel.platform} token works")
    if status in (401, 404):
        return Finding(False, f"{where}: the {channel.platform} token is refused", remedy)
    return Finding(False, f"{where}: {channel.platform} {_said(status)}", "check the network and try again")


async def _line_status(settings: Settings, channel: LineChannel, http: aiohttp.ClientSession) -> int | None:
    """As `_status`, with the token that the channel speaks with; 401 where none can be had."""
    tokens = LineTokens(settings.line_api_base)
    status: int | None = 401
    try:
        for _ in range(2):
            token = await tokens.of(channel)
            url = f"{settings.line_api_base}/v2/bot/info"
            status = await _status(http, url, {"Authorization": f"Bearer {token}"})
            if status != 401 or not tokens.refused(channel, token):
                break
    except ChannelBroken:
        return 401
    except SendFault:
        return None
    return status


async def _states(settings: Settings, tenants: Tenants) -> AsyncIterator[Finding]:
    """What the running bot met or found lately, and what each LINE channel's month has cost."""
    with use_redis(settings) as (url, _):
        client = assembly.inbox_client(settings, url)
        try:
            channels = [(tenant.id, name) for tenant in tenants.all() for name in tenant.channels]
            for (tenant, name), state in (await ChannelStates(client).of(channels)).items():
                yield Finding(False, f"tenant {tenant}, channel {name}: {state.trouble.value}", state.why)
            for (tenant, name), month in (await Ledger(client).all(tenants.all())).items():
                quota = "no limit known" if month.limit is None else f"{month.used} of {month.limit} used"
                spent = f"{month.free} free replies, {month.paid} paid pushes this month; quota: {quota}"
                yield Finding(not month.nearly_spent, f"tenant {tenant}, channel {name}: {spent}")
        finally:
            await client.aclose()


async def _status(http: aiohttp.ClientSession, url: str, headers: dict[str, str]) -> int | None:
    """The HTTP status; None when no answer came. The URL may hold a token, so errors are not passed on."""
    try:
        async with http.get(url, headers=headers, allow_redirects=False) as response:
            return response.status
    except (aiohttp.ClientError, TimeoutError):
        return None


def _said(status: int | None) -> str:
    return "does not answer" if status is None else f"answers with {status}"
