"""`chat-chat doctor` against platforms that refuse: which secrets are missing, which tokens are, and what to do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from config.settings import Settings
from gateway import doctor
from tests.house import LINE_SECRET, LINE_TOKEN, LLM_KEY, TELEGRAM_TOKEN
from tests.standins.line import LineStandIn
from tests.standins.openrouter import OpenRouterStandIn
from tests.standins.telegram import TelegramStandIn


def line(secret: str, token: str) -> dict[str, str]:
    return {"platform": "line", "channel_secret": secret, "channel_access_token": token}


def telegram(token: str) -> dict[str, str]:
    return {"platform": "telegram", "bot_token": token, "mode": "polling"}


async def test_missing_secrets_and_refused_tokens_are_told_and_none_is_shown(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    (config / "tenants").mkdir(parents=True)
    (config / "secrets").mkdir()
    (config / "secrets" / "GOOD_TOKEN").write_text(LINE_TOKEN + "\n")
    (tmp_path / "mounted").write_text(TELEGRAM_TOKEN)
    own = {"api_key": "${OWN_KEY}"}
    shops = {
        "good": {"channels": {"l": line("${GOOD_SECRET}", "${GOOD_TOKEN}"), "t": telegram("${GOOD_BOT}")}, "llm": own},
        "lacking": {"channels": {"l": line("${*_SECRET}", "${*_TOKEN}")}},
        "refused": {"channels": {"l": line(LINE_SECRET, "a-token-of-before"), "t": telegram("1:revoked")}},
    }
    for name, shop in shops.items():
        (config / "tenants" / f"{name}.yaml").write_text(yaml.safe_dump({"name": name} | shop))
    async with (
        LineStandIn() as line_,
        TelegramStandIn((TELEGRAM_TOKEN,)) as telegram_,
        OpenRouterStandIn((LLM_KEY,)) as llm,
    ):
        settings = Settings(
            redis_url=redis_url,
            data_dir=tmp_path / "data",
            config_dir=config,
            line_api_base=line_.url,
            telegram_api_base=telegram_.url,
            openrouter_base_url=llm.url,
            openrouter_api_key=LLM_KEY,
            variables={
                "GOOD_SECRET": LINE_SECRET,
                "GOOD_BOT_FILE": str(tmp_path / "mounted"),
                "OWN_KEY": "sk-or-revoked",
                "LACKING_SECRET": "x",
            },
        )
        lines = [str(finding).replace(str(tmp_path), "…") for finding in await doctor.examine(settings)]
    told = [one for one in lines if "tenant" in one or "LLM" in one]
    assert told == [
        "ok     tenant good",
        "WRONG  tenant lacking: …/config/tenants/lacking.yaml:3:27: channels.l.channel_access_token: tenant lacking "
        "needs the variable LACKING_TOKEN, which is not set — set LACKING_TOKEN in the environment, or write it to "
        "…/config/secrets/LACKING_TOKEN",
        "ok     tenant refused",
        "ok     tenant good, secret GOOD_TOKEN: from …/config/secrets/GOOD_TOKEN",
        "ok     tenant good, secret GOOD_SECRET: from the environment",
        "ok     tenant good, secret GOOD_BOT: from …/mounted",
        "ok     tenant good, secret OWN_KEY: from the environment",
        "ok     tenant lacking, secret LACKING_SECRET: from the environment",
        "WRONG  tenant lacking, secret LACKING_TOKEN is missing: set it in the environment, or write it to "
        "…/config/secrets/LACKING_TOKEN",
        "ok     the LLM endpoint takes the key (OPENROUTER_API_KEY)",
        "WRONG  the LLM key is refused (llm.api_key of tenant good): copy it again, or make a new one",
        "ok     tenant good, channel l: the line token works",
        "ok     tenant good, channel t: the telegram token works",
        "WRONG  tenant refused, channel l: the line token is refused: issue a new channel access token in the LINE "
        "Developers console, or correct id and secret",
        "WRONG  tenant refused, channel t: the telegram token is refused: copy the token from BotFather again",
        "ok     tenant good, channel l: 0 free replies, 0 paid pushes this month; quota: no limit known",
        "ok     tenant refused, channel l: 0 free replies, 0 paid pushes this month; quota: no limit known",
    ]
    shown = "\n".join(lines)
    assert [
        s for s in (LINE_SECRET, LINE_TOKEN, TELEGRAM_TOKEN, LLM_KEY, "sk-or-revoked", "revoked") if f" {s}" in shown
    ] == []


@pytest.mark.parametrize("away", ["its server does not answer", "its folder can't be made"])
async def test_where_redis_is_away_the_rest_is_told_and_nothing_of_what_redis_would_know(
    away: str, tmp_path: Path
) -> None:
    tenants = tmp_path / "config" / "tenants"
    tenants.mkdir(parents=True)
    (tenants / "shop.yaml").write_text(yaml.safe_dump({"name": "Shop", "channels": {"l": line("a" * 32, "b" * 40)}}))
    file = tmp_path / "file"
    file.touch()
    url = "unix:///nowhere/redis.sock" if away.startswith("its server") else None
    settings = Settings(
        redis_url=url,
        data_dir=file if url is None else tmp_path / "data",
        config_dir=tmp_path / "config",
        line_api_base="http://127.0.0.1:9",
    )
    findings = await doctor.examine(settings)
    assert (findings[0].well, "edis" in findings[0].what) == (False, True)
    assert "ok     tenant shop" in map(str, findings)
    assert not [finding for finding in findings if "this month" in finding.what]


async def test_who_does_not_answer_is_waited_for_beside_the_others(tmp_path: Path, redis_url: str) -> None:
    tenants = tmp_path / "config" / "tenants"
    tenants.mkdir(parents=True)
    bots = {f"t{number}": telegram(f"{number}:{'a' * 35}") for number in range(1, 5)}
    (tenants / "shop.yaml").write_text(yaml.safe_dump({"name": "Shop", "channels": bots}))
    all_asked = asyncio.Barrier(len(bots))

    async def hang(_: web.Request) -> web.Response:
        async with asyncio.timeout(5):
            await all_asked.wait()
        return web.json_response({"ok": True, "result": {}})

    app = web.Application()
    app.router.add_get("/{bot}/getMe", hang)
    async with TestServer(app) as server:
        settings = Settings(
            redis_url=redis_url,
            data_dir=tmp_path / "data",
            config_dir=tmp_path / "config",
            telegram_api_base=str(server.make_url("")).rstrip("/"),
        )
        told = [str(finding) for finding in await doctor.examine(settings)]
    assert [one for one in told if "token" in one] == [
        f"ok     tenant shop, channel {name}: the telegram token works" for name in bots
    ]
