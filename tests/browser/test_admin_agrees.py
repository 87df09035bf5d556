"""What the admin page and the web chat's list say agrees with itself: figures, shops, stretches, what was sent."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from playwright.async_api import Browser, expect
from redis.asyncio import Redis

from gateway.ledger import Ledger
from gateway.routes.lists import cursor_of
from memory.keys import ConversationRef
from memory.models import Changes, Message
from processors.models import EventType, MemoryEvent, iso
from tests.browser.test_admin import NOW, back_office, known, memory, own_shop
from tests.house import ADMIN_KEY, house, shop

USER = "line:U" + "1" * 32


async def test_no_more_came_in_twelve_weeks_than_is_known(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home, memory(home) as manager:
        for size in ("S", "M", "L"):  # each gives way to the next
            await manager.remember("shop", USER, text=f"size: {size}", key="size", value=size)
        await manager.remember("shop", USER, text="Lives in Phuket")
        async with back_office(browser, home) as (page, _):
            await expect(page.locator(".stats .figure b")).to_have_text("2")
            assert await page.locator(".stats figcaption b").inner_text() == "2"


async def test_shops_of_one_name_are_told_apart_by_their_ids(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    web = {"web": {"platform": "web"}}
    tenants = {one: shop("ร้านกาแฟ", channels=web) for one in ("ari", "siam")} | {"spa": shop("Spa", channels=web)}
    async with house(tmp_path, redis_url, tenants) as home, back_office(browser, home, ADMIN_KEY) as (page, wrong):
        for path, title in (("siam", "Facts · ร้านกาแฟ (siam)"), ("spa", "Facts · Spa")):
            await page.goto(f"{home.url}/memories/{path}/facts")
            assert await page.title() == title
        assert await page.locator(".brand small").count() == 0
        await page.goto(f"{home.url}/memories/siam/facts")
        assert await page.locator(".brand").inner_text() == "ร\nร้านกาแฟ\nsiam"
        await page.goto(f"{home.url}/")
        assert await page.locator(".shops a").all_inner_texts() == ["Spa", "ร้านกาแฟ\nari", "ร้านกาแฟ\nsiam"]
        assert wrong == []


async def test_a_lines_pushes_are_one_figure_on_every_page(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home, back_office(browser, home) as (page, _):
        client = Redis.from_url(home.redis_url)
        tenant = home.tenants.get("shop")
        assert tenant is not None
        await Ledger(client).note_quota(tenant, "line-main", 300, 12)  # by others too: we pushed nothing
        await client.aclose()
        await page.goto(f"{home.url}/admin/shop/status")
        await expect(page.locator(".rows").get_by_text("12 pushes / 300")).to_be_visible()
        await page.goto(f"{home.url}/admin/shop/overview")
        await expect(page.locator(".meter").get_by_text("12 / 300")).to_be_visible()


async def test_a_timeline_leaves_out_nothing_that_has_one_time(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    """A message and what was learned of it have one time, and those of a flood, too."""
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home, memory(home) as manager:
        told = [
            known(USER, f"fact {n}", key=f"key {n}", value=n, now=NOW - timedelta(minutes=n // 30)) for n in range(45)
        ]
        heard = [
            MemoryEvent(
                event_type=EventType.INQUIRY,
                payload={"original_message": f"message {n}"},
                importance_score=0.6,
                timestamp=NOW - timedelta(minutes=n // 30),
            )
            for n in range(45)
        ]
        await manager.longterm.change("shop", USER, lambda _: Changes(facts=told, events=heard))
        async with back_office(browser, home) as (page, _):
            await page.goto(f"{home.url}/memories/shop/person?user={USER}")
            seen = await page.locator(".line p").all_inner_texts()
            while await page.get_by_role("link", name="Older").count():
                before = page.url
                await page.get_by_role("link", name="Older").click()
                await page.wait_for_url(lambda url, before=before: url != before)
                seen += await page.locator(".line p").all_inner_texts()
            assert sorted(seen) == sorted(f"{kind} {n}" for kind in ("fact", "message") for n in range(45))


async def test_what_was_sent_is_not_offered_again_to_whoever_goes_back(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home:
        assert await home.telegram_says(77, "hello") == 200
        await home.telegram.until(lambda: len(home.telegram_shows(77)) == 1)
        async with back_office(browser, home) as (page, _):
            await page.goto(f"{home.url}/admin/shop/talks")
            await page.locator("ul.talks a").click()
            await page.fill("#text", "มาแล้วค่ะ")
            await page.get_by_role("button", name="Take over and send").click()
            await expect(page.locator("#lines .staff p")).to_have_text("มาแล้วค่ะ")
            await page.go_back()
            await expect(page.locator("#lines .staff p")).to_have_text("มาแล้วค่ะ")
            await expect(page.locator("#text")).to_have_value("")
            await page.fill("#text", "not yet sent")
            await page.goto(f"{home.url}/admin/shop/talks")
            await page.go_back()
            await expect(page.locator("#text")).to_have_value("not yet sent")


async def test_a_long_talk_can_be_read_from_its_beginning(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home, memory(home) as manager:
        said = [
            Message(role="bot" if n % 2 else "user", message=f"line {n}", timestamp=iso(NOW), message_id=f"m:{n}")
            for n in range(140)
        ]
        await manager.transcripts.append(ConversationRef("shop", USER), said)
        async with back_office(browser, home) as (page, wrong):
            await page.goto(f"{home.url}/admin/shop/talk?ref={cursor_of(USER, 'default', 'main')}")
            assert await page.locator("#lines p").first.inner_text() == "line 40"
            await page.get_by_role("link", name="Older").click()
            await expect(page.locator("#lines p").first).to_have_text("line 0")
            assert await page.locator("#lines p").count() == 140
            assert await page.get_by_role("link", name="Older").count() == 0
            await page.get_by_role("button", name="A good answer").first.click()  # what is done there leads back there
            await expect(page.locator(".tool.on")).to_have_count(1)
            assert await page.locator("#lines p").count() == 140
            await page.locator("#lines").get_by_role("link", name="Teach").first.click()
            await expect(page.locator("#questions")).to_have_value("line 0")
            assert wrong == []
