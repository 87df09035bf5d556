"""Who looked at whose data over HTTP, on the page, by a command and in the chat: noted, and to be read."""

from __future__ import annotations

import base64
from pathlib import Path

from gateway import memory_commands
from gateway.audit import AuditLog
from gateway.routes.auth import name_of
from tests.api_side import ADMIN_KEY, SHOP_KEY, api_side
from tests.house import house, shop
from tests.story.test_admin_sessions import COOKIE, browser

ANN = "web:ann"


async def test_each_look_at_somebodys_data_is_noted_and_nothing_else(tmp_path: Path, redis_url: str) -> None:
    async with api_side(tmp_path, redis_url) as api, browser(api, SHOP_KEY) as staff:
        await api.manager.remember("shop", ANN, text="likes pistachio")
        own = name_of(SHOP_KEY)
        assert (await api.ask("GET", f"/api/v1/memory?user={ANN}"))[0] == 200
        held = (await api.get(f"/api/v1/memory?user={ANN}"))["items"][0]["id"]
        assert (await api.ask("PATCH", f"/api/v1/memory/{held}?user={ANN}", json={"text": "likes nuts"}))[0] == 200
        assert (await api.ask("GET", "/api/v1/memory/export?tenant=shop", key=ADMIN_KEY))[0] == 200
        assert (await api.ask("GET", f"/api/v1/memory?user={ANN}&tenant=other"))[0] == 404  # nothing was seen
        assert (await api.ask("GET", "/api/v1/tenants"))[0] == 200
        claims = base64.urlsafe_b64encode(b'{"id": "x", "k": "admin", "t": null, "until": 9999999999}').decode()
        for forged in (f"v1.{claims.rstrip('=')}.x", "v1.!.x", "v1.e30.x", "..", "v1.W10.x"):
            async with (
                browser(api) as stranger,
                stranger.get(
                    f"/memories/shop/person?user={ANN}", headers={"Cookie": f"{COOKIE}={forged}"}, allow_redirects=False
                ) as answer,
            ):
                assert answer.status == 303  # to sign in: nothing was seen, nor is it noted
        async with staff.get(f"/memories/shop/person?user={ANN}") as answer:
            assert answer.status == 200
        assert (await api.ask("POST", "/api/v1/memory-users/batch-delete", json={"ids": [ANN]}))[0] == 200
        await memory_commands.export(api.settings, "shop", None)
        log = AuditLog(api.settings.data_dir)
        seen = [(one.who, one.did, one.by) for one in reversed(list(log.of("shop")))]
        assert sorted(seen) == sorted(
            [
                (own, "read", "GET /api/v1/memory"),
                (own, "read", "GET /api/v1/memory"),
                (own, "change", "PATCH /api/v1/memory/{memory_id}"),
                ("admin", "export", "GET /api/v1/memory/export"),
                (own, "read", "GET /memories/{tenant}/person"),
                (own, "delete", "POST /api/v1/memory-users/batch-delete"),
                ("command", "export", "memory export"),
            ]
        )
        assert list(log.of("other")) == []
        assert len(list(log.of("shop", ANN))) == 4
        page = await api.get(f"/api/v1/audit?user={ANN}&limit=3")
        assert ([one["did"] for one in page["items"]], page["total"]) == (["read", "change", "read"], 4)
        rest = await api.get(f"/api/v1/audit?user={ANN}&limit=3&cursor={page['next_cursor']}")
        assert ([one["did"] for one in rest["items"]], rest["next_cursor"]) == (["read"], None)
        assert "pistachio" not in str(page)


async def test_what_customers_ask_for_themselves_is_noted_too(tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": shop(language="en")}) as home:
        for words in ("I am allergic to nuts", "/mydata", "/forget", "/forget yes"):
            await home.telegram_says(4242, words)
            await home.quiet()
        log = AuditLog(home.settings.data_dir)
        seen = [(one.who, one.did, one.by) for one in reversed(list(log.of("shop", "telegram:4242")))]
        assert seen == [("customer", "export", "/mydata"), ("customer", "delete", "/forget")]
