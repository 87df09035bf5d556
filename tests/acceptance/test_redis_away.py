"""An external Redis that is killed, stopped or never there, seen from the webhook's side."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.acceptance.processes import (
    RedisServer,
    Stage,
    line_event,
    line_request,
    stage,
    telegram_update,
    until,
)
from tests.api_side import SHOP_KEY, Api, api_side

pytestmark = pytest.mark.slow

ANN, BEE = "U" + "a" * 32, "U" + "b" * 32


async def sign_in(api: Api) -> dict[str, str]:
    """The headers of who has signed in to the shop's pages."""
    async with api.http.post(f"{api.url}/admin/sign-in", data={"key": SHOP_KEY}, allow_redirects=False) as entered:
        return {"Cookie": entered.headers["Set-Cookie"].partition(";")[0]}


def spooled(s: Stage) -> list[str]:
    folder = s.data / "spool"
    return sorted(one.suffix for one in folder.glob("*-*")) if folder.is_dir() else []


async def home(s: Stage) -> None:
    """Until the spool is empty and nothing waits."""

    async def empty() -> bool:
        return spooled(s) == []

    await until(empty)
    await s.quiet()


async def test_while_redis_is_away_messages_are_kept_answered_and_known_afterwards(
    tmp_path: Path, server: RedisServer
) -> None:
    async with stage(tmp_path, redis_url=server.url) as s:
        _, url = await s.serve()
        await s.worker()
        assert await s.line_says(url, line_event(BEE, "hello")) == 200
        await until(lambda: s.line_shows(BEE))
        await server.kill()
        event = line_event(ANN, "is there tea")
        await s.slow_model(2)
        assert await s.line_says(url, event) == 200
        assert spooled(s) == [".json"]
        await until(lambda: s.line_shows(ANN))
        assert await s.line_shows(ANN) == ["echo: is there tea"]
        await server.start()
        await home(s)
        assert await s.line_says(url, {**event, "deliveryContext": {"isRedelivery": True}}) == 200
        assert await s.line_says(url, line_event(ANN, "and coffee")) == 200

        async def both() -> bool:
            return len(await s.line_shows(ANN)) == 2

        await until(both)
        await s.quiet()
        assert await s.line_shows(ANN) == ["echo: is there tea", "echo: and coffee"]


async def test_without_redis_from_the_start_messages_are_answered(tmp_path: Path, server: RedisServer) -> None:
    await server.kill()
    async with stage(tmp_path, redis_url=server.url) as s:
        _, url = await s.serve()
        assert await s.telegram_says(url, telegram_update(7, "is there tea", 1)) == 200
        await until(lambda: s.telegram_shows(7))
        await server.start()
        await s.worker()
        await home(s)
        assert await s.telegram_shows(7) == ["echo: is there tea"]


async def test_what_can_be_kept_nowhere_is_refused_with_the_time_to_wait(tmp_path: Path, server: RedisServer) -> None:
    await server.kill()
    async with stage(tmp_path, redis_url=server.url) as s:
        s.data.mkdir(exist_ok=True)
        (s.data / "spool").write_text("a file where the folder should be")
        _, url = await s.serve()
        body, headers = line_request(line_event(ANN, "is there tea"))
        status, answered = await s.post(f"{url}/webhooks/line/shop/line-main", body, headers)
        assert (status, answered.get("Retry-After")) == (503, "5")


async def test_what_serve_had_begun_to_answer_when_it_was_killed_is_answered_when_redis_is_back(
    tmp_path: Path, server: RedisServer
) -> None:
    async with stage(tmp_path, redis_url=server.url) as s:
        serve, url = await s.serve()
        await server.kill()
        await s.slow_model(60)
        assert await s.line_says(url, line_event(ANN, "is there tea")) == 200
        await s.asked()
        await serve.kill()
        assert spooled(s) == [".json"]
        await server.start()
        await s.serve()
        await s.worker()
        await until(lambda: s.line_shows(ANN))
        await home(s)
        assert await s.line_shows(ANN) == ["echo: is there tea"]


@pytest.mark.parametrize("way", ["reply", "push"])
async def test_an_answer_that_went_out_before_serve_was_killed_is_not_given_again(
    tmp_path: Path, server: RedisServer, way: str
) -> None:
    async with stage(tmp_path, redis_url=server.url) as s:
        serve, url = await s.serve()
        await server.kill()
        await s.script("line", faults=[{"delay": 30, "landed": True, "on": f"/{way}"}])
        event = line_event(ANN, "is there tea")
        if way == "push":
            del event["replyToken"]
        assert await s.line_says(url, event) == 200
        await until(lambda: s.line_shows(ANN))  # LINE has it, serve has not heard so
        await serve.kill()
        await server.start()
        await s.serve()
        await s.worker()
        await home(s)
        assert await s.line_shows(ANN) == ["echo: is there tea"]


async def test_a_stopped_redis_holds_no_webhook_up_and_doubles_nothing(tmp_path: Path, server: RedisServer) -> None:
    async with stage(tmp_path, redis_url=server.url) as s:
        _, url = await s.serve()
        await s.worker()
        assert server.running is not None
        server.running.pause()
        for user in (ANN, BEE):
            assert await s.line_says(url, line_event(user, "is there tea")) == 200
        server.running.resume()
        await until(lambda: s.line_shows(ANN))
        await until(lambda: s.line_shows(BEE))
        await home(s)
        assert await s.line_shows(ANN) == ["echo: is there tea"]
        assert await s.line_shows(BEE) == ["echo: is there tea"]


@pytest.mark.parametrize("how", ["killed", "stopped"])
async def test_what_was_sent_when_redis_went_away_is_sent_once(tmp_path: Path, server: RedisServer, how: str) -> None:
    """Telegram knows no repeat: what it took has to be on record when Redis is back, also where that was away for
    longer than a lease lasts and others wait to take over."""
    async with stage(tmp_path, redis_url=server.url) as s:
        _, url = await s.serve()
        workers = [await s.start("worker"), await s.start("worker")]
        await s.take_part(workers, 180.0)
        await s.script("telegram", faults=[{"delay": 2, "landed": True, "on": "/sendMessage"}])
        assert await s.telegram_says(url, telegram_update(7, "is there tea", 1)) == 200
        await until(lambda: s.telegram_shows(7))  # Telegram has it, the worker has not heard so
        if how == "killed":
            await server.kill()
            await asyncio.sleep(4)
            await server.start()
        else:
            assert server.running is not None
            server.running.pause()
            await asyncio.sleep(12)
            server.running.resume()
        await s.quiet()
        assert await s.telegram_shows(7) == ["echo: is there tea"]


async def test_a_redis_that_stood_still_costs_no_worker_what_it_has_in_hand(
    tmp_path: Path, server: RedisServer
) -> None:
    async with stage(tmp_path, redis_url=server.url) as s:
        _, url = await s.serve()
        workers = [await s.start("worker"), await s.start("worker")]
        await s.take_part(workers, 180.0)
        await s.slow_model(15)
        assert await s.telegram_says(url, telegram_update(7, "is there tea", 1)) == 200
        await s.asked()
        assert server.running is not None
        server.running.pause()
        await asyncio.sleep(12)
        server.running.resume()
        await until(lambda: s.telegram_shows(7))
        await s.quiet()
        assert len([call for call in await s.calls("llm_control") if "/chat/completions" in call["path"]]) == 1


async def test_a_redis_that_hangs_is_waited_for_once_and_not_with_every_call(
    tmp_path: Path, server: RedisServer
) -> None:
    async with api_side(tmp_path, server.url) as api:
        signed_in = await sign_in(api)
        assert server.running is not None
        server.running.pause()
        try:
            for page, status in (("overview", 503), ("status", 200), ("teach", 200), ("talks", 503)):
                async with (
                    asyncio.timeout(10),
                    api.http.get(f"{api.url}/admin/shop/{page}", headers=signed_in) as shown,
                ):
                    assert shown.status == status
                    assert '<nav class="side"' in await shown.text()
            async with asyncio.timeout(10):
                assert (await api.ask_whole("GET", "/api/v1/budget"))[0] == 200  # no limit, nothing to ask
                assert (await api.ask("GET", "/api/v1/tasks"))[0] == 503
                assert (await api.ask("GET", "/api/v1/tenants"))[0] == 200
        finally:
            server.running.resume()


async def test_what_is_not_there_is_told_beside_the_shops_menu_to_whom_it_is_theirs(
    tmp_path: Path, server: RedisServer
) -> None:
    async with api_side(tmp_path, server.url) as api:
        signed_in = await sign_in(api)
        asked = {
            "/admin/shop/nothing": True,
            "/admin/shop": True,
            "/memories/shop/nothing": True,
            "/memories/shop/users/web:nobody": True,
            "/admin/other/overview": False,
            "/admin/nobody/overview": False,
        }
        for path, menu in asked.items():
            async with api.http.get(api.url + path, headers=signed_in) as shown:
                text = await shown.text()
                assert (path, shown.status, '<nav class="side"' in text) == (path, 404, menu)
                assert "Other" not in text
            async with api.http.get(api.url + path, allow_redirects=False) as shown:
                assert (path, shown.status) == (path, 303)
