"""`chat-chat webhooks set` and `info`: under which address each platform calls us."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from config.settings import Settings
from config.tenants import LineChannel, TelegramChannel, Tenant
from gateway.adapters.line_sender import LineSender
from gateway.adapters.parsing import EMPTY, integer, string
from gateway.adapters.telegram import UPDATES
from gateway.adapters.telegram_sender import TelegramSender
from gateway.errors import SendFault

TELEGRAM_CONNECTIONS = 40  # at a time, from Telegram to one bot's webhook
_LONGEST_LINE_URL = 500
_AT_ONCE = 8  # channels


@dataclass(frozen=True, slots=True)
class WebhookState:
    """One channel's webhook. `url` is what the platform has registered, None for none; `note` says what is wrong and
    how to mend it, or what is worth knowing."""

    tenant: str
    channel: str
    platform: str
    url: str | None
    ok: bool
    note: str = ""

    def __str__(self) -> str:
        said = ": ".join(filter(None, (self.url or "no webhook", self.note)))
        return f"{self.tenant}/{self.channel} ({self.platform}): {said}"


NONE = "no channel is on LINE or Telegram yet: the tenant's file shows where their tokens go (`chat-chat tenants list`)"


async def set_webhooks(settings: Settings, tenants: Iterable[Tenant]) -> list[tuple[bool, str]]:
    """Registers every channel, and says how each ended: well or not, and a line about it."""
    async with _platforms(settings) as (line, telegram):
        states = await register(tenants, settings.public_url, line, telegram)
        return [(state.ok, str(state)) for state in states] or [(True, NONE)]


async def webhook_info(settings: Settings, tenants: Iterable[Tenant]) -> list[tuple[bool, str]]:
    """What the platforms have registered for every channel: well or not, and a line about it."""
    async with _platforms(settings) as (line, telegram):
        states = await inspect(tenants, settings.public_url, line, telegram)
        return [(state.ok, str(state)) for state in states] or [(True, NONE)]


@asynccontextmanager
async def _platforms(settings: Settings) -> AsyncIterator[tuple[LineSender, TelegramSender]]:
    line, telegram = LineSender(settings), TelegramSender(settings)
    try:
        yield line, telegram
    finally:
        await line.close()
        await telegram.close()


def webhook_url(public_url: str, tenant: Tenant, channel: str) -> str:
    """The address under which we take a channel's webhooks."""
    return f"{public_url.rstrip('/')}/webhooks/{tenant.channels[channel].platform}/{tenant.id}/{channel}"


async def register(
    tenants: Iterable[Tenant], public_url: str | None, line: LineSender, telegram: TelegramSender
) -> list[WebhookState]:
    """Registers every LINE and Telegram channel's webhook, and removes that of Telegram channels with `mode: polling`;
    tells how each ended. One channel's failure does not keep the others from being registered."""

    async def one(tenant: Tenant, name: str) -> WebhookState:
        channel = tenant.channels[name]
        if isinstance(channel, TelegramChannel):
            return await _set_telegram(tenant, name, channel, public_url, telegram)
        return await _set_line(tenant, name, public_url, line)

    return await _each(tenants, one)


async def inspect(
    tenants: Iterable[Tenant], public_url: str | None, line: LineSender, telegram: TelegramSender
) -> list[WebhookState]:
    """What the platforms have registered for every LINE and Telegram channel, compared with `public_url` where
    that is known."""

    async def one(tenant: Tenant, name: str) -> WebhookState:
        return await look(tenant, name, public_url, line, telegram)

    return await _each(tenants, one)


async def _each(tenants: Iterable[Tenant], one: Callable[[Tenant, str], Awaitable[WebhookState]]) -> list[WebhookState]:
    """Of every LINE and Telegram channel, in their order, some at once: a platform that hangs takes its time once and
    not with each of an agency's shops."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def told(tenant: Tenant, name: str) -> WebhookState:
        try:
            async with turns:
                return await one(tenant, name)
        except SendFault as error:
            return WebhookState(tenant.id, name, tenant.channels[name].platform, None, False, str(error))

    asked = [
        told(tenant, name)
        for tenant in tenants
        for name, channel in tenant.channels.items()
        if isinstance(channel, LineChannel | TelegramChannel)
    ]
    return await asyncio.gather(*asked)


async def look(
    tenant: Tenant, name: str, public_url: str | None, line: LineSender, telegram: TelegramSender
) -> WebhookState:
    """What the platform has registered for one LINE or Telegram channel. Raises SendFault."""
    channel = tenant.channels[name]
    if isinstance(channel, TelegramChannel):
        return await _telegram_state(tenant, name, channel, public_url, telegram)
    return await _line_state(tenant, name, public_url, line)


def _unusable(url: str) -> str | None:
    if not url.startswith("https://"):
        return "set PUBLIC_URL to the https address under which the platforms can reach us: they call no other"
    if len(url) > _LONGEST_LINE_URL:
        return f"the address is longer than {_LONGEST_LINE_URL} characters: shorten PUBLIC_URL"
    return None


async def _set_line(tenant: Tenant, name: str, public_url: str | None, line: LineSender) -> WebhookState:
    url = webhook_url(public_url or "", tenant, name)
    if wrong := _unusable(url):
        return WebhookState(tenant.id, name, "line", None, False, wrong)
    await line.set_webhook(tenant, name, url)
    if failure := await line.test_webhook(tenant, name):
        return WebhookState(tenant.id, name, "line", url, False, f"registered, but LINE's test call failed: {failure}")
    return await _line_state(tenant, name, public_url, line)


async def _line_state(tenant: Tenant, name: str, public_url: str | None, line: LineSender) -> WebhookState:
    registered = await line.webhook(tenant, name)
    if registered is None:
        return WebhookState(
            tenant.id, name, "line", None, False, "no address is registered: run `chat-chat webhooks set`"
        )
    url, active = registered
    note = _elsewhere(url, tenant, name, public_url)
    if not note and not active:
        note = 'turn "Use webhook" on in the LINE Developers Console: LINE sends nothing yet'
    return WebhookState(tenant.id, name, "line", url, not note, note)


async def _set_telegram(
    tenant: Tenant, name: str, channel: TelegramChannel, public_url: str | None, telegram: TelegramSender
) -> WebhookState:
    if channel.mode == "polling":
        await telegram.call(tenant, name, "deleteWebhook", {})
        return await _telegram_state(tenant, name, channel, public_url, telegram)
    url = webhook_url(public_url or "", tenant, name)
    if wrong := _unusable(url):
        return WebhookState(tenant.id, name, "telegram", None, False, wrong)
    arguments = {"url": url, "max_connections": TELEGRAM_CONNECTIONS, "allowed_updates": list(UPDATES)}
    if channel.webhook_secret is not None:
        arguments["secret_token"] = channel.webhook_secret.get_secret_value()
    await telegram.call(tenant, name, "setWebhook", arguments)
    return await _telegram_state(tenant, name, channel, public_url, telegram)


async def _telegram_state(
    tenant: Tenant, name: str, channel: TelegramChannel, public_url: str | None, telegram: TelegramSender
) -> WebhookState:
    answer = await telegram.call(tenant, name, "getWebhookInfo", {})
    info = answer if isinstance(answer, dict) else EMPTY
    url = string(info, "url")
    if channel.mode == "polling":
        note = (
            "a webhook keeps it from being polled: run `chat-chat webhooks set`" if url else "polled, no webhook needed"
        )
        return WebhookState(tenant.id, name, "telegram", url, url is None, note)
    if url is None:
        note = "no address is registered: run `chat-chat webhooks set`"
        return WebhookState(tenant.id, name, "telegram", None, False, note)
    if note := _elsewhere(url, tenant, name, public_url):
        return WebhookState(tenant.id, name, "telegram", url, False, note)
    waiting = integer(info, "pending_update_count") or 0
    failure = string(info, "last_error_message")
    if failure and waiting:
        return WebhookState(tenant.id, name, "telegram", url, False, f"{waiting} updates wait: {failure}")
    return WebhookState(tenant.id, name, "telegram", url, True, f"{waiting} updates wait" if waiting else "")


def _elsewhere(url: str, tenant: Tenant, name: str, public_url: str | None) -> str:
    if public_url is None or url == webhook_url(public_url, tenant, name):
        return ""
    return "registered for another address: run `chat-chat webhooks set`"
