"""The web chat as a visitor has it: in a browser, on a phone, in another shop's site."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.house import LLM_KEY, House, house, shop

expect.set_options(timeout=20_000)
PHONE: Any = {"width": 390, "height": 780}
# One red dot.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


def web_shop(origins: tuple[str, ...] = (), **sections: Any) -> dict[str, Any]:
    return shop("ร้านทดสอบ", channels={"web": {"platform": "web", "allowed_origins": list(origins)}}, **sections)


@asynccontextmanager
async def visitor(browser: Browser, home: House, **options: Any) -> AsyncIterator[tuple[Page, list[str]]]:
    """A page in a browser of its own, and what went wrong in it."""
    context: BrowserContext = await browser.new_context(**({"viewport": PHONE, "locale": "en-GB"} | options))
    page = await context.new_page()
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    await page.goto(f"{home.url}/")
    await expect(page.locator(".bubble").first).to_be_visible()
    yield page, wrong
    await context.close()


async def says(page: Page, words: str) -> None:
    await page.fill("#words", words)
    await page.keyboard.press("Enter")


async def shown(page: Page) -> list[str]:
    """The bubbles' texts, once what was said last has its whole answer."""
    await expect(page.locator(".bubble").last).not_to_have_class(re.compile(r"\bown\b"))
    await expect(page.locator("[aria-busy]")).to_have_count(0)
    return [text.strip() for text in await page.locator(".bubble").all_inner_texts()]


async def test_a_conversation_survives_a_reload_and_is_seen_in_a_second_tab(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    tenants = {"shop": web_shop(faq=[{"questions": ["When do you open?"], "answer": "At **nine**, every day."}])}
    async with house(tmp_path, redis_url, tenants) as home, visitor(browser, home) as (page, wrong):
        await says(page, "When do you open?")
        await expect(page.locator(".bubble strong")).to_have_text("nine")
        before = (await shown(page))[1:]
        assert before == ["When do you open?", "At nine, every day."]
        await home.quiet()
        await page.reload()
        await expect(page.locator(".bubble")).to_have_count(2)
        assert await shown(page) == before

        second = await page.context.new_page()
        await second.goto(f"{home.url}/?lang=en")
        await expect(second.locator(".bubble")).to_have_count(2)
        await says(second, "when do you open")
        await expect(second.locator(".bubble")).to_have_count(4)
        await page.bring_to_front()
        await expect(page.locator(".bubble")).to_have_count(4)
        assert await shown(page) == await shown(second)
        assert wrong == []


async def test_the_answer_is_read_while_it_grows(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    async with (
        house(tmp_path, redis_url, {"shop": web_shop(understanding={"policy": "never"})}, llm_key=LLM_KEY) as home,
        visitor(browser, home) as (page, wrong),
    ):
        home.llm.chunk, home.llm.pace = 4, 0.1
        home.llm.answers("One two three four five six seven eight nine ten")
        await says(page, "Count to ten")
        growing = page.locator('.bubble[aria-busy="true"]')
        await expect(growing).to_contain_text("One two")
        assert "ten" not in await growing.inner_text()
        assert (await shown(page))[-1] == "One two three four five six seven eight nine ten"
        assert wrong == []


async def test_markup_of_strangers_is_shown_and_not_run(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    answer = (
        "<img src=x onerror=alert(1)><script>alert(2)</script> [go](javascript:alert(3)) "
        "[ok](https://shop.example/a) ![dot](http://shop.example/a.png) <b>bold</b>"
    )
    own = {"default": {"instructions": "The menu is at https://shop.example/a."}}
    tenants = {"shop": web_shop(understanding={"policy": "never"}, agents=own)}
    async with (
        house(tmp_path, redis_url, tenants, llm_key=LLM_KEY) as home,
        visitor(browser, home) as (page, wrong),
    ):
        dialogs: list[str] = []
        page.on("dialog", lambda one: dialogs.append(one.message))
        home.llm.answers(answer)
        await says(page, "<img src=x onerror=alert(0)>")
        told = await shown(page)
        assert told[1] == "<img src=x onerror=alert(0)>"
        assert "<script>alert(2)</script>" in told[2]
        assert "<b>bold</b>" in told[2]
        assert await page.locator(".bubble img, .bubble script, .bubble b").count() == 0
        links = await page.locator(".bubble a").evaluate_all("links => links.map(one => one.href)")
        assert links == ["https://shop.example/a"]
        assert dialogs == []
        assert wrong == []


async def test_a_picture_is_shown_to_a_model_that_can_see(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    tenants = {"shop": web_shop(agents={"default": {"vision": True}}, understanding={"policy": "never"})}
    async with (
        house(tmp_path, redis_url, tenants, llm_key=LLM_KEY) as home,
        visitor(browser, home) as (page, wrong),
    ):
        home.llm.answers("A red dot.")
        await page.fill("#words", "What is this?")
        await page.set_input_files("#picture", {"name": "dot.png", "mimeType": "image/png", "buffer": PNG})
        await expect(page.locator(".bubble.own img")).to_be_visible()
        await expect(page.locator(".bubble").last).to_have_text("A red dot.")
        assert (await shown(page))[-2:] == ["What is this?", "A red dot."]
        asked = str(home.llm.requests[-1]["messages"])
        assert base64.b64encode(PNG).decode() in asked
        assert wrong == []


async def test_what_is_no_picture_is_refused_in_words(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": web_shop()}) as home, visitor(browser, home) as (page, _):
        await page.set_input_files("#picture", {"name": "a.png", "mimeType": "image/png", "buffer": b"no picture"})
        await expect(page.locator("#state")).to_have_text("That didn't work. Please try again.")
        await expect(page.locator(".bubble.own")).to_have_class("bubble own failed")


async def test_buttons_say_their_words(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    faq = [{"questions": ["When do you open?"], "answer": "At nine."}]
    agents = {"default": {"suggestions": ["When do you open?"]}}
    tenants = {"shop": web_shop(agents=agents, faq=faq)}
    async with house(tmp_path, redis_url, tenants) as home, visitor(browser, home) as (page, wrong):
        await page.get_by_role("button", name="When do you open?").click()
        await expect(page.locator(".bubble")).to_have_count(3)
        assert (await shown(page))[1:] == ["When do you open?", "At nine."]
        assert wrong == []


async def test_the_keyboard_alone_does_and_a_screen_reader_is_told(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    tenants = {"shop": web_shop(faq=[{"questions": ["hours"], "answer": "At nine."}])}
    async with (
        house(tmp_path, redis_url, tenants) as home,
        visitor(browser, home, bypass_csp=True, locale="th-TH") as (page, wrong),
    ):
        await page.keyboard.type("hours")  # the field has the focus from the start
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.press("Backspace")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.locator(".bubble")).to_have_count(3)
        assert (await shown(page))[-1] == "At nine."
        assert await page.get_by_role("log").get_attribute("aria-live") == "polite"
        assert await page.locator("html").get_attribute("lang") == "th"
        for colours in ("light", "dark"):
            await page.emulate_media(color_scheme=colours)
            found = await Axe().run(page)
            assert [one["id"] for one in found.response["violations"]] == []
        assert wrong == []


@pytest.mark.parametrize("width", [320, 390, 1280])
async def test_no_width_makes_it_scroll_sideways(browser: Browser, tmp_path: Path, redis_url: str, width: int) -> None:
    long = "ก" * 400 + " " + "w" * 400 + "\n\n|a|b|\n|-|-|\n|" + "x" * 200 + "|y|\n\n`" + "z" * 300 + "`"
    async with (
        house(tmp_path, redis_url, {"shop": web_shop(understanding={"policy": "never"})}, llm_key=LLM_KEY) as home,
        visitor(browser, home, viewport={"width": width, "height": 700}) as (page, wrong),
    ):
        home.llm.answers(long)
        await says(page, "h" * 500)
        await shown(page)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        wide = "[...document.querySelectorAll('#log, #log *')].filter(one => one.scrollWidth > one.clientWidth + 1)"
        shapes = "one => `${one.tagName} ${one.scrollWidth} ${one.clientWidth} ${getComputedStyle(one).overflowX}`"
        found = await page.evaluate(f"{wide}.map({shapes})")
        assert [one for one in found if one.endswith("visible") and " 0 " not in one] == []
        assert await page.evaluate("(log => log.scrollWidth <= log.clientWidth)(document.getElementById('log'))")
        assert wrong == []


async def test_a_shops_own_site_shows_the_chat_and_another_site_may_not(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    faq = [{"questions": ["hours"], "answer": "At nine."}]
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def page(_: web.Request) -> web.Response:
        body = f"<!doctype html><html lang=en><title>Shop</title>{await ready}</html>"
        return web.Response(text=body, content_type="text/html")

    application = web.Application()
    application.router.add_get("/", page)
    runner = web.AppRunner(application)
    await runner.setup()
    own, other = web.TCPSite(runner, "127.0.0.1", 0), web.TCPSite(runner, "127.0.0.1", 0)
    await own.start()
    await other.start()
    addresses = [f"http://localhost:{port}" for _, port in runner.addresses]
    tenants = {"shop": web_shop((addresses[0],), faq=faq)}
    try:
        async with house(tmp_path, redis_url, tenants) as home:
            ready.set_result(f'<script src="{home.url}/web/widget.js" data-tenant="shop" async></script>')
            context = await browser.new_context(locale="en-GB", viewport={"width": 1000, "height": 800})
            tab = await context.new_page()
            await tab.goto(addresses[0])
            await tab.get_by_role("button", name="Chat with us").click()
            chat = tab.frame_locator("iframe")
            await expect(chat.locator(".bubble")).to_have_count(1)
            await chat.locator("#words").fill("hours")
            await chat.locator("#words").press("Enter")
            await expect(chat.locator(".bubble")).to_have_count(3)
            await expect(chat.locator(".bubble").last).to_have_text("At nine.")
            await chat.locator("#words").press("Escape")
            await expect(tab.locator("iframe")).to_be_hidden()

            refused = await context.new_page()
            await refused.goto(addresses[1])
            await refused.get_by_role("button", name="Chat with us").click()
            await expect(refused.frame_locator("iframe").locator("#words")).to_have_count(0)
            await context.close()
    finally:
        await runner.cleanup()


async def test_the_api_is_read_on_one_page_that_loads_nothing_else(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": web_shop()}) as home:
        page = await browser.new_page(viewport=PHONE)
        wrong: list[str] = []
        asked: list[str] = []
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("request", lambda one: asked.append(one.url))
        await page.goto(f"{home.url}/docs")
        await page.locator("summary", has_text="/api/v1/facts").first.click()
        await expect(page.get_by_role("row", name="cursor").first).to_be_visible()
        assert await page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "flex"
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert {one for one in asked if not one.startswith("data:")} == {f"{home.url}/docs"}
        found = await Axe().run(page)
        assert found.response["violations"] == [], found.generate_report()
        assert wrong == []
        await page.close()


async def test_one_page_lists_the_shops_when_there_are_several(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    tenants = {"one": web_shop(), "two": web_shop(), "three": shop(channels={})}
    async with house(tmp_path, redis_url, tenants) as home:
        page = await browser.new_page()
        await page.goto(f"{home.url}/")
        assert await page.locator("main a").count() == 2
        await page.locator("main a").first.click()
        await expect(page.locator(".bubble")).to_have_count(1)
        answer = await page.goto(f"{home.url}/?tenant=three")
        assert answer is not None
        assert answer.status == 404
        await page.goto(f"{home.url}/?tenant=mistyped&lang=en")  # and not that there is no shop
        told = "No shop has its chat at this address. Please check the address."
        await expect(page.locator("main")).to_have_text(told)
        await page.close()


async def test_a_lost_connection_loses_no_words(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    tenants = {"shop": web_shop(faq=[{"questions": ["hours"], "answer": "At nine."}])}
    async with house(tmp_path, redis_url, tenants) as home, visitor(browser, home) as (page, _):
        await page.context.set_offline(True)
        await says(page, "hours")
        told = "That didn't work. Please try again."  # not that it is being tried: the visitor has to
        await expect(page.locator("#state")).to_have_text(told)
        await expect(page.locator("#words")).to_have_value("hours")  # nothing that was written is lost
        await page.context.set_offline(False)
        await page.locator("#words").press("Enter")
        await expect(page.locator(".bubble").last).to_have_text("At nine.")
        assert (await shown(page)).count("At nine.") == 1
