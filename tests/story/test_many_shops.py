"""27 shops in one house: a change of one file touches that shop alone, and nobody in the middle of a talk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import Settings
from config.tenants import Tenant, Tenants
from gateway import pollers
from gateway.assembly import inbox_client
from gateway.errors import ChannelBroken
from gateway.pollers import Pollers
from tests.house import LLM_KEY, House, house, shop
from tests.standins.line_model import LineChannel

ANN = "U" + "a" * 32
BEE = "U" + "b" * 32
MANY = 27


def names() -> list[str]:
    return [f"shop-{number:02}" for number in range(1, MANY + 1)]


def account(name: str) -> LineChannel:
    return LineChannel(token=f"token-{name}", secret=f"secret-{name}", user_id=f"U{name:x>32}", channel_id=name)


def one(name: str, answer: str) -> dict[str, Any]:
    line = {"platform": "line", "channel_secret": f"secret-{name}", "channel_access_token": f"token-{name}"}
    return shop(name, channels={"line-main": line}, faq=[{"questions": ["What time do you open?"], "answer": answer}])


async def asks(home: House, name: str, user: str) -> int:
    event = home.line.text_event(user, "What time do you open?")
    return await home.line.deliver(home.line_hook(name), event, channel=account(name))


async def test_of_27_shops_one_that_breaks_is_the_only_one_to_notice(tmp_path: Path, redis_url: str) -> None:
    shops = {name: one(name, f"At nine, says {name}.") for name in names()}
    accounts = tuple(map(account, names()))
    async with house(tmp_path, redis_url, shops, line_channels=accounts) as home:
        changes: list[str] = []
        home.tenants.on_change(lambda tenant, old, new: changes.append(tenant))
        before = {name: home.tenants.get(name) for name in names()}
        stop = asyncio.Event()
        watching = asyncio.create_task(home.tenants.watch(stop))
        folder = tmp_path / "config" / "tenants"
        (folder / "shop-07.yaml").write_text("name: Broken\nchannels: [\n")
        (folder / "shop-08.yaml").write_text(yaml.safe_dump(one("shop-08", "At ten, says shop-08.")))

        async def states() -> dict[str, str]:
            return {status.id: status.state for status in home.tenants.status()}

        await home.until(states, lambda found: found["shop-07"] == "stale")
        await home.until(states, lambda _: changes == ["shop-08"])
        assert [name for name in names() if home.tenants.get(name) is not before[name]] == ["shop-08"]
        assert list((await states()).values()).count("ok") == MANY - 1
        # Each of them is asked by a customer of its own, the broken one as well: its last good file goes on serving.
        users = {name: f"U{number:032x}" for number, name in enumerate(names())}
        assert [await asks(home, name, users[name]) for name in names()] == [200] * MANY
        await home.quiet()
        said = {name: home.line_shows(users[name]) for name in names()}
        assert said == {name: [f"At {'ten' if name == 'shop-08' else 'nine'}, says {name}."] for name in names()}
        # One that goes stops alone.
        (folder / "shop-09.yaml").unlink()
        await home.until(states, lambda found: "shop-09" not in found)
        assert [await asks(home, name, users[name]) for name in ("shop-08", "shop-09", "shop-10")] == [200, 404, 200]
        stop.set()
        await watching


async def test_a_talk_in_hand_ends_with_the_settings_it_began_with(tmp_path: Path, redis_url: str) -> None:
    def with_rules(rules: str) -> dict[str, Any]:
        return shop(agents={"default": {"instructions": rules}}, understanding={"policy": "never"})

    async with house(tmp_path, redis_url, {"shop": with_rules("OLD RULES")}, llm_key=LLM_KEY) as home:
        asked, go = asyncio.Event(), asyncio.Event()

        async def speak(request: dict[str, Any]) -> str:
            asked.set()
            await go.wait()
            return "new" if "NEW RULES" in str(request["messages"]) else "old"

        home.llm.answers(speak)
        assert await home.line_says(ANN, "tell me about your plans") == 200
        await asyncio.wait_for(asked.wait(), 60)
        stop = asyncio.Event()
        watching = asyncio.create_task(home.tenants.watch(stop))
        file = tmp_path / "config" / "tenants" / "shop.yaml"
        file.write_text(yaml.safe_dump(with_rules("NEW RULES")))

        async def rules() -> str:
            tenant = home.tenants.get("shop")
            return tenant.agents["default"].instructions if tenant else ""

        await home.until(rules, lambda found: found == "NEW RULES")
        go.set()
        await home.line.until(lambda: home.line_shows(ANN) == ["old"])
        assert await home.line_says(BEE, "tell me about your plans") == 200
        await home.line.until(lambda: home.line_shows(BEE) == ["new"])
        stop.set()
        await watching


async def test_a_bot_whose_token_was_mended_is_polled_at_once(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pollers, "EVERY", 0.02)
    folder = tmp_path / "tenants"
    folder.mkdir()

    def write(token: str) -> None:
        bot = {"platform": "telegram", "bot_token": f"1000:{token}", "mode": "polling"}
        (folder / "shop.yaml").write_text(yaml.safe_dump({"name": "Shop", "channels": {"bot": bot}}))

    async def poll(tenant: Tenant, channel: str, stop: asyncio.Event) -> None:
        token = tenant.channels[channel].bot_token.get_secret_value()  # type: ignore[union-attr]
        begun.append(token)
        if token == "1000:wrong":
            raise ChannelBroken("Telegram answered 401: Unauthorized")
        await stop.wait()

    write("wrong")
    tenants = Tenants(Settings(config_dir=tmp_path))
    tenants.load()
    begun: list[str] = []
    client = inbox_client(Settings(), redis_url)
    stop = asyncio.Event()
    polling = asyncio.create_task(Pollers(client, tenants, poll).run(stop))
    async with asyncio.timeout(30):
        while not begun:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)  # it is looked at ten times more, and waits
        write("right")
        tenants.load()
        while len(begun) < 2:
            await asyncio.sleep(0.02)
    assert begun == ["1000:wrong", "1000:right"]
    stop.set()
    await polling
    await client.aclose()


async def test_only_a_bot_that_changed_itself_is_polled_anew(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pollers, "LEASE", 300.0)  # a busy machine loses none
    folder = tmp_path / "tenants"
    folder.mkdir()

    def write(name: str, shown: str, token: str = "") -> None:
        bot = {"platform": "telegram", "bot_token": f"1000:{name}{token}", "mode": "polling"}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"name": shown, "channels": {"bot": bot}}))

    for name in names():
        write(name, name)
    tenants = Tenants(Settings(config_dir=tmp_path))
    tenants.load()
    begun: list[tuple[str, str]] = []
    ended: list[str] = []

    async def poll(tenant: Tenant, channel: str, stop: asyncio.Event) -> None:
        begun.append((tenant.id, tenant.name))
        try:
            await stop.wait()
        finally:
            ended.append(tenant.id)

    client = inbox_client(Settings(), redis_url)
    stop = asyncio.Event()
    polling = asyncio.create_task(Pollers(client, tenants, poll).run(stop))
    async with asyncio.timeout(60):
        while len(begun) < MANY:
            await asyncio.sleep(0.02)
        write("shop-03", "Another bot", "-new")
        write("shop-04", "What the bot does not look at")
        (folder / "shop-05.yaml").unlink()
        (folder / "shop-07.yaml").write_text("name: [broken\n")
        tenants.load()
        while len(begun) < MANY + 1 or len(ended) < 2:
            await asyncio.sleep(0.02)
    assert (begun[MANY:], sorted(ended)) == ([("shop-03", "Another bot")], ["shop-03", "shop-05"])
    stop.set()
    await polling
    await client.aclose()
