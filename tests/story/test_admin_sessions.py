"""Who may use the admin page: cookies that were forged, kept too long or stolen, forms of other sites and tenants."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import orjson

from gateway.key_ring import KeyRing
from memory.lists import FileLists
from tests.api_side import ADMIN_KEY, SHOP_KEY, Api, api_side

COOKIE = "chat_chat_staff"


@asynccontextmanager
async def browser(home: Api, key: str | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(home.url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        if key is not None:
            async with http.post("/admin/sign-in", data={"key": key}, allow_redirects=False) as answer:
                assert answer.status == 303
        yield http


async def seen(http: aiohttp.ClientSession, path: str, **more: str) -> tuple[int, str]:
    """Status, and where it leads."""
    async with http.get(path, allow_redirects=False, headers=more) as answer:
        return answer.status, answer.headers.get("Location", "").partition("?")[0]


async def sent(http: aiohttp.ClientSession, path: str, fields: dict[str, str], **headers: str) -> int:
    async with http.post(path, data=fields, headers=headers, allow_redirects=False) as answer:
        return answer.status


async def token(http: aiohttp.ClientSession) -> str:
    async with http.get("/memories/shop/facts") as answer:
        return (await answer.text()).partition('name="csrf" value="')[2].partition('"')[0]


async def test_a_cookie_is_worth_what_was_signed_and_no_more(tmp_path: Path, redis_url: str) -> None:
    async with api_side(tmp_path, redis_url) as home, browser(home, SHOP_KEY) as http:
        assert await seen(http, "/memories/shop/facts") == (200, "")
        assert (await seen(http, "/memories/other/facts"))[0] == 404
        assert (await seen(http, "/memories/nobody/facts"))[0] == 404
        (cookie,) = [one.value for one in http.cookie_jar if one.key == COOKIE]
        version, body, signature = cookie.split(".")
        claims = orjson.loads(base64.urlsafe_b64decode(body + "=="))
        everything = base64.urlsafe_b64encode(orjson.dumps(claims | {"t": None, "k": "admin"})).rstrip(b"=").decode()
        for forged in (
            f"{version}.{everything}.{signature}",
            f"{version}.{body}.",
            f"v1.{body}.{signature}x",
            "ก",
            ".",
        ):
            headers = {"Cookie": f"{COOKIE}={forged}"}
            async with browser(home) as stranger:
                assert await seen(stranger, "/memories/shop/facts", **headers) == (303, "/admin"), forged


async def test_a_session_ends_with_time_with_its_key_and_with_the_log_out(tmp_path: Path, redis_url: str) -> None:
    moment = [datetime(2026, 11, 28, 9, tzinfo=UTC)]
    async with api_side(tmp_path, redis_url, clock=lambda: moment[0]) as home:
        ring = KeyRing(FileLists(home.settings.data_dir))
        made, key = ring.make("shop", "till", moment[0])
        async with browser(home, key) as http, browser(home, SHOP_KEY) as other, browser(home, ADMIN_KEY) as admin:
            for one in (http, other, admin):
                assert await seen(one, "/memories/shop/facts") == (200, "")
            ring.revoke("shop", made.id)
            assert await seen(http, "/memories/shop/facts") == (303, "/admin")

            stolen = {"Cookie": f"{COOKIE}={next(one.value for one in other.cookie_jar if one.key == COOKIE)}"}
            assert await sent(other, "/admin/sign-out", {"csrf": await token(other)}) == 303
            async with browser(home) as thief:
                assert await seen(thief, "/memories/shop/facts", **stolen) == (303, "/admin")

            moment[0] += timedelta(hours=12, seconds=1)
            assert await seen(admin, "/memories/shop/facts") == (303, "/admin")


async def test_a_form_changes_something_only_with_its_sessions_token_and_from_here(
    tmp_path: Path, redis_url: str
) -> None:
    async with api_side(tmp_path, redis_url) as home:
        await home.manager.remember("shop", "line:U1", text="likes tea")
        async with browser(home, SHOP_KEY) as http, browser(home, ADMIN_KEY) as admin:
            clear = {"do": "clear", "name": "shop", "sure": "1"}
            mine, anothers = await token(http), await token(admin)
            for fields, headers in (
                (clear, {}),
                (clear | {"csrf": anothers}, {}),
                (clear | {"csrf": "ก"}, {}),
                (clear | {"csrf": mine}, {"Origin": "https://elsewhere.test"}),
                (clear | {"csrf": mine}, {"Sec-Fetch-Site": "cross-site"}),
            ):
                assert await sent(http, "/memories/shop/facts", fields, **headers) == 403
                assert (await home.get("/api/v1/memory"))["total"] == 1
            # Another tenant's page takes nothing from this shop's people, token or not.
            assert await sent(http, "/memories/other/facts", clear | {"csrf": mine}) == 404
            assert await sent(http, "/memories/shop/facts", clear | {"csrf": mine}) == 303
            assert (await home.get("/api/v1/memory"))["total"] == 0


async def test_nobody_is_sent_to_another_site(tmp_path: Path, redis_url: str) -> None:
    async with api_side(tmp_path, redis_url) as home, browser(home) as http:
        for back in (
            "https://a.test",
            "//a.test",
            "/\\a.test",
            "/memories\\@a.test",
            "/memories/../../\n//a",
            "javascript:1",
        ):
            fields = {"key": SHOP_KEY, "back": back}
            async with http.post("/admin/sign-in", data=fields, allow_redirects=False) as answer:
                assert answer.headers["Location"] == "/memories"
        async with http.get("/admin", params={"back": "/memories/shop/users?q=a"}, allow_redirects=False) as answer:
            assert answer.headers["Location"] == "/memories/shop/users?q=a"


async def test_the_cookie_is_for_https_alone_where_the_browser_came_over_it(tmp_path: Path, redis_url: str) -> None:
    async with api_side(tmp_path, redis_url) as home, browser(home) as http:
        for headers, secure in (({}, False), ({"X-Forwarded-Proto": "https"}, True)):
            async with http.post(
                "/admin/sign-in", data={"key": SHOP_KEY}, headers=headers, allow_redirects=False
            ) as answer:
                cookie = answer.headers["Set-Cookie"].lower()
                assert ("secure" in cookie, "httponly" in cookie, "samesite=strict" in cookie) == (secure, True, True)


async def test_what_is_no_address_of_ours_is_a_page_and_no_fault(tmp_path: Path, redis_url: str) -> None:
    async with api_side(tmp_path, redis_url) as home, browser(home, SHOP_KEY) as http:
        for path, status in {
            "/memories/shop/facts?cursor=x": 422,
            "/memories/shop/facts?cursor=WzEsMiwzLDRd": 422,
            "/memories/shop/facts?type=x&since=x&until=9999-12-31&since=0001-01-01&sort=x&p=x&q=%00%ff": 200,
            "/memories/shop/users?q=" + "x" * 5000: 200,
            "/memories/shop/events?user=%00&importance=critical&stats=1": 200,
            "/memories/shop/nothing": 404,
            "/memories/shop/person?user=line:nobody": 404,
            "/memories/shop/person": 404,
            "/memories/shop/episode?ref=x": 422,
            "/admin/shop/nothing": 404,
        }.items():
            assert (await seen(http, path))[0] == status, path
