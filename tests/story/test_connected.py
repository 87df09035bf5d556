"""Is a channel really connected? What a probe finds, and where an operator sees it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import redis
from pydantic import ValidationError

from config.tenants import Tenant
from gateway import assembly, bot_ids, doctor
from gateway.bot_ids import BotIds
from gateway.channel_states import ChannelStates, Trouble
from gateway.ledger import Ledger
from gateway.probes import Probes
from gateway.webhook_setup import webhook_url
from tests.house import ADMIN_KEY, LINE_SECRET, LINE_TOKEN, House, house, shop
from tests.standins.line_model import LineChannel

ANN = "U" + "a" * 32
FIRST = LineChannel()
SECOND = LineChannel(token="line-token-2", secret="line-secret-2", user_id="U" + "2" * 32, channel_id="1650000002")


def line_shop(channel: LineChannel, **more: Any) -> dict[str, Any]:
    own = {"platform": "line", "channel_secret": channel.secret, "channel_access_token": channel.token} | more
    return shop(channels={"line-main": {name: value for name, value in own.items() if value is not None}})


async def get(home: House, path: str) -> Any:
    headers = {"Authorization": f"Bearer {ADMIN_KEY}"}
    async with aiohttp.ClientSession() as http, http.get(f"{home.url}{path}", headers=headers) as response:
        return await response.text() if path == "/metrics" else await response.json()


async def state_of(home: House, tenant: str = "shop", channel: str = "line-main") -> tuple[str, str | None]:
    rows = (await get(home, "/api/v1/tenants"))["items"]
    row = next(row for row in rows if row["id"] == tenant)
    return next((one["state"], one["detail"]) for one in row["channels"] if one["name"] == channel)


async def probe(
    home: House, tenant: str = "shop", channel: str = "line-main", public: str | None = None
) -> set[Trouble]:
    """What one probe finds, by senders of its own."""
    client = assembly.inbox_client(home.settings, home.redis_url)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.aclose)
        senders = assembly.senders_of(home.settings, stack)
        probes = Probes(
            *(client, home.tenants, ChannelStates(client), BotIds(client, home.tenants), Ledger(client)),
            *(senders["line"], senders["telegram"]),  # type: ignore[arg-type]
            public,
        )
        found = home.tenants.get(tenant)
        assert found is not None
        return set(await probes.probe(found, channel))


async def test_each_channel_is_probed_by_one_of_the_workers_and_again_after_a_while(
    tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, probe_every=0.5) as home:
        await home.line.until(lambda: len(home.line.calls_to("/v2/bot/info")) == 2)
        await home.telegram.until(lambda: len(home.telegram.calls_to("/getMe")) >= 2)
        assert await state_of(home) == ("ok", None)
        assert (await get(home, "/readyz"))["channels"] == {"all": 2, "troubled": 0}


async def test_a_refused_token_is_seen_everywhere(tmp_path: Path, redis_url: str, capsys: Any) -> None:
    wrong = line_shop(replace(FIRST, token="expired"))
    async with house(tmp_path, redis_url, {"shop": wrong}) as home:
        assert await probe(home) == {Trouble.BROKEN}
        state, why = await state_of(home)
        assert (state, "401" in (why or "")) == ("broken", True)
        assert (await get(home, "/readyz"))["channels"] == {"all": 1, "troubled": 1}
        assert 'chatchat_channel_well{channel="line-main",tenant="shop"} 0.0' in await get(home, "/metrics")
        told = [str(finding) for finding in await doctor.examine(home.settings) if not finding.well]
        assert any("channel line-main: broken" in line for line in told)


async def test_a_webhook_that_is_missing_or_anothers_is_found(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": line_shop(FIRST)}) as home:
        assert await probe(home, public=home.url) == {Trouble.WEBHOOK}
        assert (await state_of(home))[0] == "webhook"
        home.line.endpoints[FIRST.channel_id] = "https://elsewhere.example/hook"
        assert await probe(home, public=home.url) == {Trouble.WEBHOOK}
        tenant = home.tenants.get("shop")
        assert tenant is not None
        home.line.endpoints[FIRST.channel_id] = webhook_url(home.url, tenant, "line-main")
        assert await probe(home, public=home.url) == set()
        assert await state_of(home) == ("ok", None)


async def test_a_public_address_that_leads_elsewhere_is_found(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": line_shop(FIRST)}) as home:
        tenant = home.tenants.get("shop")
        assert tenant is not None
        home.line.endpoints[FIRST.channel_id] = webhook_url(home.llm.root, tenant, "line-main")
        assert await probe(home, public=home.llm.root) == {Trouble.CUT_OFF}
        home.line.endpoints[FIRST.channel_id] = webhook_url("http://127.0.0.1:9", tenant, "line-main")
        assert await probe(home, public="http://127.0.0.1:9") == {Trouble.CUT_OFF}


async def test_another_shops_webhooks_are_refused_and_named(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot_ids, "EVERY", 0.05)
    # A token and secret of the first channel, called with the second bot as destination.
    shops = {"shop": line_shop(FIRST), "other": line_shop(SECOND)}
    async with house(tmp_path, redis_url, shops, line_channels=(FIRST, SECOND)) as home:
        await probe(home)
        await probe(home, "other")
        await home.until(lambda: _ids_known(home), lambda known: known)
        await _all_well(home)
        event = home.line.text_event(ANN, "hello")
        mixed = replace(FIRST, user_id=SECOND.user_id)
        assert await home.line.deliver(home.line_hook(), event, channel=mixed) == 403
        assert await state_of(home) == (
            "swapped",
            "webhooks of other/line-main arrive here: its webhook URL is this channel's",
        )
        assert home.line_shows(ANN) == []
        assert 'chatchat_webhooks_refused_total{platform="line",status="403"}' in await get(home, "/metrics")
        # The right one is answered, and all is well again.
        assert await home.line.deliver(home.line_hook(), event) == 200
        await home.line.until(lambda: len(home.line_shows(ANN)) == 1)
        assert await state_of(home) == ("ok", None)


async def test_swapped_urls_are_named_though_their_signature_is_wrong(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bot_ids, "EVERY", 0.05)
    shops = {"shop": line_shop(FIRST), "other": line_shop(SECOND)}
    async with house(tmp_path, redis_url, shops, line_channels=(FIRST, SECOND)) as home:
        await probe(home)
        await probe(home, "other")
        await home.until(lambda: _ids_known(home), lambda known: known)
        await _all_well(home)
        event = home.line.text_event(ANN, "hello")
        assert await home.line.deliver(home.line_hook(), event, channel=SECOND) == 401
        assert (await state_of(home))[0] == "swapped"
        forged = replace(SECOND, secret="nobody's")
        assert await home.line.deliver(home.line_hook("other"), event, channel=forged) == 401
        assert (await state_of(home, "other"))[0] == "ok"


async def _ids_known(home: House) -> bool:
    """A webhook without events has no effect, but a status."""
    swapped = {"shop": replace(FIRST, user_id=SECOND.user_id), "other": replace(SECOND, user_id=FIRST.user_id)}
    statuses = [await home.line.deliver(home.line_hook(name), channel=channel) for name, channel in swapped.items()]
    return statuses == [403, 403]


async def _all_well(home: House) -> None:
    for name, channel in (("shop", FIRST), ("other", SECOND)):
        assert await home.line.deliver(home.line_hook(name), channel=channel) == 200


async def test_a_channel_with_id_and_secret_alone_makes_its_own_tokens(tmp_path: Path, redis_url: str) -> None:
    own = line_shop(FIRST, channel_access_token=None, channel_id=FIRST.channel_id)
    async with house(tmp_path, redis_url, {"shop": own}) as home:
        for number in (1, 2):
            await home.line_says(ANN, "hello")
            await home.line.until(lambda number=number: len(home.line_shows(ANN)) == number)
        assert len(home.line.calls_to("/oauth2/v3/token")) == 1
        home.line._stateless.clear()  # LINE takes it back before its time
        await home.line_says(ANN, "hello")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 3)
        assert len(home.line.calls_to("/oauth2/v3/token")) == 2
        assert all(finding.well for finding in await doctor.examine(home.settings) if "token" in finding.what)


async def test_an_expired_token_is_replaced_where_id_and_secret_are_known(tmp_path: Path, redis_url: str) -> None:
    expired = line_shop(replace(FIRST, token="expired"), channel_id=FIRST.channel_id)
    async with house(tmp_path, redis_url, {"shop": expired}) as home:
        await home.line_says(ANN, "hello")
        await home.line.until(lambda: len(home.line_shows(ANN)) == 1)
        assert [call.answered_status for call in home.line.calls] == [401, 200, 200]


async def test_four_fifths_of_the_quota_are_told_and_counted(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": line_shop(FIRST)}) as home:
        home.line.quota, home.line.used = 100, 79
        assert await probe(home) == set()
        home.line.used = 80
        assert await probe(home) == {Trouble.NEARLY}
        assert await state_of(home) == ("quota_nearly", "80 of the month's 100 pushes are used")
        (row,) = (await get(home, "/api/v1/tenants"))["items"]
        assert row["channels"][0]["month"] == {"free": 0, "paid": 0, "limit": 100, "used": 80}
        assert 'chatchat_line_quota_used{channel="line-main",tenant="shop"} 80.0' in await get(home, "/metrics")
        told = [str(finding) for finding in await doctor.examine(home.settings) if not finding.well]
        assert any("80 of 100 used" in line for line in told)


async def test_a_push_to_a_group_costs_as_many_as_it_has_members(tmp_path: Path, redis_url: str) -> None:
    group = "C" + "c" * 32
    always = line_shop(FIRST) | {"behaviour": {"debounce_ms": 0, "groups": "always"}}
    async with house(tmp_path, redis_url, {"shop": always}) as home:
        home.line.members[group] = 5
        await home.line.deliver(home.line_hook(), home.line.text_event(ANN, "hello", life=-1, group=group))
        await home.line.until(lambda: len(home.line_shows(group)) == 1)
        await home.quiet()
        assert home.line.used == 5
    with redis.Redis.from_url(redis_url) as client:
        (key,) = client.keys("cc:ledger:shop:line-main:*")
        assert client.hgetall(key) == {b"paid": b"5"}


def test_a_line_channel_needs_a_token_or_an_id() -> None:
    channel = {"platform": "line", "channel_secret": LINE_SECRET}
    with pytest.raises(ValidationError, match="channel_access_token"):
        Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {"line": channel}})
    for way in ({"channel_id": "1650000001"}, {"channel_access_token": LINE_TOKEN}):
        Tenant.model_validate({"id": "shop", "name": "Shop", "channels": {"line": channel | way}})
