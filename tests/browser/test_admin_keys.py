"""The admin page for somebody who has no mouse."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from playwright.async_api import Browser, Page

from memory.models import Changes
from memory.person import new as new_person
from tests.browser.test_admin import DESK, NOW, back_office, known, memory, own_shop
from tests.house import house

# What has the focus: its name, and whether one sees that it has it.
FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none';
  if (!one.dataset.place) one.dataset.place = String(document.querySelectorAll('[data-place]').length + 1);
  const name = (one.getAttribute('aria-label') || one.innerText || one.name || one.id || one.tagName).trim();
  return [one.tagName, one.dataset.place, name.slice(0, 60), seen];
}"""
REACHABLE = """() => [...document.querySelectorAll(
  'a[href], button:not([disabled]), input:not([type=hidden]):not([disabled]), select, textarea, summary, [tabindex="0"]'
)].filter(one => one.checkVisibility({ visibilityProperty: true }) && !one.closest('[inert]')).length"""


async def walked(page: Page) -> list[tuple[str, str, str, bool]]:
    """Everything that Tab leads to, from the top of the page until it comes round."""
    await page.evaluate("() => { document.activeElement?.blur(); scrollTo(0, 0) }")
    found: list[tuple[str, str, str, bool]] = []
    for _ in range(200):
        await page.keyboard.press("Tab")
        tag, place, name, seen = await page.evaluate(FOCUSED)
        if tag == "BODY" or any(place == one[1] for one in found):
            break
        found.append((tag, place, name, seen))
    return found


async def test_every_page_is_walked_by_keys_alone(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    user = "line:U" + "1" * 32
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home, memory(home) as manager:
        told = [
            known(user, "likes oolong", key="likes", value="oolong", type="preference"),
            known(user, "Lives in Trang"),
        ]
        await manager.longterm.change("shop", user, lambda _: Changes(facts=told, person=new_person(user, NOW, "Ann")))
        person = f"/memories/shop/person?user={quote(user, safe='')}"
        pages = [f"/memories/shop/{tab}" for tab in ("facts", "events", "users")]
        pages += [person, *(f"/admin/shop/{one}" for one in ("talks", "overview", "teach", "keys", "status", "audit"))]
        async with back_office(browser, home, viewport=DESK) as (page, wrong):
            for path in pages:
                await page.goto(home.url + path)
                found = await walked(page)
                assert found[0][2] == "Skip to content", (path, found[:3])
                assert [one for one in found if not one[3]] == [], path
                assert len(found) >= await page.evaluate(REACHABLE), (path, found)
            # The skip link leads past the menu.
            await page.goto(f"{home.url}/memories/shop/facts")
            await page.evaluate("() => document.activeElement?.blur()")
            await page.keyboard.press("Tab")
            await page.keyboard.press("Enter")
            await page.keyboard.press("Tab")
            assert await page.evaluate("() => document.activeElement.closest('main') !== null")
            assert wrong == []
