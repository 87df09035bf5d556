"""`chat-chat webhooks set` and `info` against local platforms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from config.settings import Settings
from config.tenants import Tenant
from gateway.adapters.line_sender import LineSender
from gateway.adapters.telegram import UPDATES
from gateway.adapters.telegram_sender import TelegramSender
from gateway.errors import SendRetry
from gateway.webhook_setup import inspect, register, set_webhooks, webhook_info
from tests.standins import Fault, LineStandIn, TelegramStandIn

PUBLIC = "https://shop.example.com"
HOOK, POLLED = "1000001:webhook-bot", "1000002:polled-bot"


def shop(**channels: dict[str, Any]) -> Tenant:
    return Tenant.model_validate({"id": "shop", "name": "Shop", "channels": channels})


LINE = {"platform": "line", "channel_secret": "line-secret-1", "channel_access_token": "line-token-1"}
TELEGRAM = {"platform": "telegram", "bot_token": HOOK, "webhook_secret": "hook-secret"}
POLLING = {"platform": "telegram", "bot_token": POLLED, "mode": "polling"}


class Platforms:
    def __init__(self, line_api: LineStandIn, telegram_api: TelegramStandIn) -> None:
        self.line_api, self.telegram_api = line_api, telegram_api
        self.line = LineSender(Settings(line_api_base=line_api.url))
        self.telegram = TelegramSender(Settings(telegram_api_base=telegram_api.url))

    async def set(self, tenant: Tenant, public: str | None = PUBLIC) -> list[tuple[str, str | None, bool, str]]:
        states = await register([tenant], public, self.line, self.telegram)
        return [(state.channel, state.url, state.ok, state.note) for state in states]

    async def info(self, tenant: Tenant, public: str | None = PUBLIC) -> list[tuple[str, str | None, bool, str]]:
        states = await inspect([tenant], public, self.line, self.telegram)
        return [(state.channel, state.url, state.ok, state.note) for state in states]


@pytest.fixture
async def platforms(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Platforms]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with LineStandIn() as line_api, TelegramStandIn((HOOK, POLLED)) as telegram_api:
        both = Platforms(line_api, telegram_api)
        yield both
        await both.line.close()
        await both.telegram.close()


def line_calls_us(success: bool) -> Fault:
    body = {"success": success, "timestamp": "2026-11-01T00:00:00.000Z", "statusCode": 200 if success else 404}
    reason = {"reason": "OK" if success else "ERROR_STATUS_CODE", "detail": "200" if success else "404"}
    return Fault(200, {**body, **reason}, on="/webhook/test")


async def test_each_channel_is_registered_under_its_own_address(platforms: Platforms) -> None:
    tenant = shop(line=LINE, tg=TELEGRAM, web={"platform": "web"})
    platforms.line_api.next(line_calls_us(True))
    done = [
        ("line", f"{PUBLIC}/webhooks/line/shop/line", True, ""),
        ("tg", f"{PUBLIC}/webhooks/telegram/shop/tg", True, ""),
    ]
    assert await platforms.set(tenant) == done
    assert await platforms.info(tenant) == done
    bot = platforms.telegram_api.bots[HOOK]
    assert bot.webhook["secret_token"] == "hook-secret"
    assert bot.allowed == list(UPDATES)


async def test_a_webhook_that_line_can_not_call_is_told(platforms: Platforms) -> None:
    platforms.line_api.next(line_calls_us(False))
    ((_, url, ok, note),) = await platforms.set(shop(line=LINE))
    assert (url, ok) == (f"{PUBLIC}/webhooks/line/shop/line", False)
    assert note == "registered, but LINE's test call failed: ERROR_STATUS_CODE (404)"


async def test_a_polled_bot_s_webhook_is_removed(platforms: Platforms) -> None:
    bot = platforms.telegram_api.bots[POLLED]
    await platforms.telegram.call(shop(tg=POLLING), "tg", "setWebhook", {"url": "https://old.example.com/"})
    ((_, url, ok, note),) = await platforms.info(shop(tg=POLLING))
    assert (url, ok) == ("https://old.example.com/", False)
    assert "chat-chat webhooks set" in note
    assert await platforms.set(shop(tg=POLLING)) == [("tg", None, True, "polled, no webhook needed")]
    assert bot.webhook["url"] == ""


async def test_what_is_not_registered_or_elsewhere_is_told_with_the_remedy(platforms: Platforms) -> None:
    tenant = shop(line=LINE, tg=TELEGRAM)
    missing = "no address is registered: run `chat-chat webhooks set`"
    assert await platforms.info(tenant) == [("line", None, False, missing), ("tg", None, False, missing)]
    platforms.line_api.next(line_calls_us(True))
    await platforms.set(tenant)
    elsewhere = "registered for another address: run `chat-chat webhooks set`"
    assert [note for *_, note in await platforms.info(tenant, "https://new.example.com")] == [elsewhere, elsewhere]
    assert [ok for _, _, ok, _ in await platforms.info(tenant, None)] == [True, True]


async def test_a_platform_that_hangs_takes_its_time_once_and_not_with_each_channel() -> None:
    both = asyncio.Barrier(2)

    class Hanging:
        async def webhook(self, tenant: Tenant, name: str) -> tuple[str, bool]:
            await both.wait()  # until the other is asked as well
            raise SendRetry("No answer from LINE")

    line: Any = Hanging()
    async with asyncio.timeout(20):
        states = await inspect([shop(one=LINE, web={"platform": "web"}, two=LINE)], PUBLIC, line, line)
    assert [(one.channel, one.ok, one.note) for one in states] == [
        ("one", False, "No answer from LINE"),
        ("two", False, "No answer from LINE"),
    ]


async def test_one_channel_s_failure_leaves_the_others_alone(platforms: Platforms) -> None:
    revoked = {**LINE, "channel_access_token": "revoked-token"}
    states = await platforms.set(shop(line=revoked, tg=TELEGRAM))
    assert [(channel, ok) for channel, _, ok, _ in states] == [("line", False), ("tg", True)]
    assert "401" in states[0][3]
    assert "revoked-token" not in states[0][3]


@pytest.mark.parametrize("public", [None, "http://localhost:8080", "https://" + "a" * 500 + ".example.com"])
async def test_an_address_that_no_platform_calls_is_not_registered(platforms: Platforms, public: str | None) -> None:
    states = await platforms.set(shop(line=LINE, tg=TELEGRAM), public)
    assert [(channel, ok) for channel, _, ok, _ in states] == [("line", False), ("tg", False)]
    assert platforms.line_api.calls == platforms.telegram_api.calls == []


async def test_the_commands_say_a_line_a_channel(platforms: Platforms) -> None:
    settings = Settings(
        line_api_base=platforms.line_api.url, telegram_api_base=platforms.telegram_api.url, public_url=PUBLIC
    )
    platforms.line_api.next(line_calls_us(True))
    lines = [
        (True, f"shop/line (line): {PUBLIC}/webhooks/line/shop/line"),
        (True, "shop/tg (telegram): no webhook: polled, no webhook needed"),
    ]
    tenants = [shop(line=LINE, tg=POLLING)]
    assert await set_webhooks(settings, tenants) == lines
    assert await webhook_info(settings, tenants) == lines


async def test_a_tenant_with_nothing_to_register_is_told_so() -> None:
    web = shop(web={"platform": "web"})
    told = "no channel is on LINE or Telegram yet: the tenant's file shows where their tokens go"
    for command in (set_webhooks, webhook_info):
        assert await command(Settings(public_url=PUBLIC), [web]) == [(True, f"{told} (`chat-chat tenants list`)")]
