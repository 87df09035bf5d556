"""The admin page as a shop's own people use it: on a phone and a desk, in Thai and English."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from gateway import assembly
from gateway.routes.lists import cursor_of
from memory import facts
from memory.episodes import Episode
from memory.keys import ConversationRef
from memory.memory_manager import MemoryManager
from memory.models import Changes
from memory.person import new as new_person
from processors.models import EventType, MemoryEvent
from tests.house import ADMIN_KEY, House, house, shop
from tests.standins.telegram import refusal

expect.set_options(timeout=20_000)
PHONE: Any = {"width": 390, "height": 780}
DESK: Any = {"width": 1280, "height": 860}
SHOP_KEY = "key-of-the-shop-1"
NOW = datetime.now(UTC).replace(microsecond=0)
PAGES = ("facts", "episodes", "procedures", "users", "checkpoints", "events")


def own_shop() -> dict[str, Any]:
    return shop("ร้านทดสอบ", api_keys=[f"sha256:{sha256(SHOP_KEY.encode()).hexdigest()}"])


@asynccontextmanager
async def back_office(
    browser: Browser, home: House, key: str = SHOP_KEY, **options: Any
) -> AsyncIterator[tuple[Page, list[str]]]:
    """A page that is signed in, and what went wrong in it."""
    context = await browser.new_context(**({"viewport": PHONE, "locale": "en-GB"} | options))
    page = await context.new_page()
    wrong: list[str] = []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(f"dialog {dialog.message}"))
    await page.goto(f"{home.url}/memories")
    await page.fill("#key", key)
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/memories/**" if key == SHOP_KEY else "**/memories")
    yield page, wrong
    await context.close()


@asynccontextmanager
async def memory(home: House) -> AsyncIterator[MemoryManager]:
    manager = assembly.memory_of(home.settings, home.tenants, home.redis_url)
    yield manager
    await manager.close()


def known(user: str, text: str, **more: Any) -> facts.Fact:
    return facts.new(**({"now": NOW, "owner": user, "text": text} | more))


async def texts(page: Page) -> list[str]:
    return [text.strip() for text in await page.locator("#results .row .text").all_inner_texts()]


async def test_signing_in_opens_ones_own_shop_and_signing_out_ends_it_for_good(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    tenants = {"shop": own_shop(), "other": shop("Other", channels={})}
    async with house(tmp_path, redis_url, tenants) as home:
        async with back_office(browser, home) as (page, _):
            await page.wait_for_url("**/memories/shop/facts")
            (cookie,) = [one for one in await page.context.cookies() if one.get("name") == "chat_chat_staff"]
            assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
            refused = await page.goto(f"{home.url}/memories/other/facts")
            assert refused is not None
            assert refused.status == 404

            # A form without its token, and one from another site, change nothing.
            for sent in (
                {"form": {"do": "clear", "name": "shop"}},
                {"form": {}, "headers": {"Origin": "https://a.test"}},
            ):
                answer = await page.request.post(f"{home.url}/memories/shop/facts", **sent)
                assert answer.status == 403

            await page.goto(f"{home.url}/memories")
            await page.get_by_role("button", name="Sign out").click()
            await expect(page.locator("#key")).to_be_visible()
            await page.context.add_cookies([{**cookie, "url": home.url, "path": None, "domain": None}])
            await page.goto(f"{home.url}/memories/shop/facts")
            await expect(page.locator("#key")).to_be_visible()

        async with back_office(browser, home, ADMIN_KEY) as (page, wrong):
            await page.get_by_role("link", name="ร้านทดสอบ").click()
            await page.wait_for_url("**/memories/shop/facts")
            assert wrong == []


async def test_wrong_keys_have_to_wait_and_a_right_one_too(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home:
        page = await browser.new_page(locale="en-GB")
        await page.goto(f"{home.url}/admin")
        statuses = []
        for key in ("a", "b", "c", "d", "e", SHOP_KEY):
            answer = await page.request.post(f"{home.url}/admin/sign-in", form={"key": key})
            statuses.append(answer.status)
        assert statuses == [401, 401, 401, 401, 401, 429]
        await page.fill("#key", SHOP_KEY)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_be_visible()
        await page.close()


async def test_a_key_made_on_the_page_opens_the_api_until_it_is_revoked(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    async with (
        house(tmp_path, redis_url, {"shop": own_shop()}) as home,
        back_office(browser, home) as (page, wrong),
    ):
        await page.goto(f"{home.url}/admin/shop/keys")
        await page.fill("#name", "the counter <b>")
        await page.get_by_role("button", name="Make a key").click()
        key = await page.locator("#made").inner_text()

        async def status() -> int:
            asked = {"Authorization": f"Bearer {key}"}
            return (await page.request.get(f"{home.url}/api/v1/memory", headers=asked)).status

        assert await status() == 200
        (kept,) = (tmp_path / "data" / "keys").glob("*.json")
        assert (key in kept.read_text(), kept.stat().st_mode & 0o777) == (False, 0o600)
        await page.get_by_role("button", name="Revoke").click()
        await page.get_by_role("button", name="Revoke").click()
        await expect(page.locator(".toast")).to_contain_text("opens nothing")
        assert await status() == 401
        assert wrong == []


async def test_facts_are_searched_edited_undone_pinned_and_deleted(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    user = "line:U" + "1" * 32
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home, memory(home) as manager:
        told = [
            known(user, "size: M", key="size", value="M", type="preference"),
            known(user, "ชอบกาแฟเย็น", key="likes", value=["กาแฟเย็น"], type="preference"),
            known(user, "Lives in Phuket", now=NOW - timedelta(days=9)),
        ]
        await manager.longterm.change("shop", user, lambda _: Changes(facts=told, person=new_person(user, NOW, "Ann")))
        async with back_office(browser, home) as (page, wrong):
            await page.wait_for_url("**/memories/shop/facts")
            assert set(await texts(page)) == {"size: M", "ชอบกาแฟเย็น", "Lives in Phuket"}
            await page.locator("#q").press_sequentially("กาแฟ")
            await expect(page.locator("#results .row")).to_have_count(1)
            assert await page.evaluate("document.activeElement.id") == "q"
            await page.fill("#q", "")
            await expect(page.locator("#results .row")).to_have_count(3)

            # Back to exactly what it was, its value too.
            await page.get_by_role("link", name="Edit: ชอบกาแฟเย็น").click()
            await page.fill("#text", "ชอบชาเขียว")
            await page.select_option(".editor select", "high")
            await page.get_by_role("button", name="Save").click()
            await expect(page.locator(".toast")).to_contain_text("Saved")
            assert "ชอบชาเขียว" in await texts(page)
            await page.get_by_role("button", name="Undo").click()
            await expect(page.locator(".toast")).to_contain_text("Put back")
            held = await manager.curation.fact("shop", told[1].id, user)
            assert held is not None
            assert held.fact == told[1]

            await page.get_by_role("button", name="Pin: Lives in Phuket").click()
            await expect(page.locator(".badge.pinned")).to_have_count(1)

            await page.locator(".filters summary").click()
            for name, count in (("nobody", 0), ("ann", 3)):
                await page.fill("[name=user]", name)
                await expect(page.locator("#results .row")).to_have_count(count)
            await page.select_option("select[name=type]", "preference")
            await expect(page.locator("#results .row")).to_have_count(2)
            await page.locator("[data-all]").check()
            await page.locator(".bar").get_by_role("button", name="Delete").click()
            await expect(page.get_by_role("heading")).to_have_text("Delete 2 facts?")
            await page.get_by_role("button", name="Delete").click()
            await expect(page.locator(".toast")).to_contain_text("Deleted: 2")
            left = await manager.longterm.load("shop", user)
            assert left is not None
            assert [one.text for one in left.facts if not one.deleted] == ["Lives in Phuket"]
            assert wrong == []


async def test_everything_is_cleared_only_with_the_shops_name(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home, memory(home) as manager:
        await manager.remember("shop", "line:U1", text="likes tea")
        async with back_office(browser, home, viewport=DESK) as (page, wrong):
            for name, count in (("ร้าน", 1), ("ร้านทดสอบ", 0)):
                await page.goto(f"{home.url}/memories/shop/facts")
                await page.get_by_text("More", exact=True).click()
                await page.get_by_role("button", name="Clear all facts").click()
                await page.fill("#name", name)
                await page.get_by_role("button", name="Clear all").click()
                await expect(page.locator(".toast, .warning")).to_be_attached()
                memories = await manager.catalog.page("shop", "facts", facts_wanted())
                assert memories.total == count
            assert wrong == []


def facts_wanted() -> Any:
    from memory.listing import Wanted

    return Wanted()


async def test_a_persons_page_tells_what_the_bot_would_know_merges_and_blocks(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    ann, other = "line:U" + "2" * 32, "telegram:777000111"
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home, memory(home) as manager:
        await manager.identify_user("shop", ann, display_name="Ann")
        await manager.remember("shop", ann, key="allergies", value=["peanuts"], text="allergic to peanuts")
        await manager.remember("shop", other, key="city", value="Phuket", text="lives in Phuket")
        async with back_office(browser, home, viewport=DESK) as (page, wrong):
            await page.goto(f"{home.url}/memories/shop/person?user={quote(ann)}")
            await page.fill("#say", "what can I eat?")
            await page.get_by_role("button", name="Show", exact=True).click()
            told = page.locator(".exact pre")
            await expect(told.last).to_have_text("what can I eat?")
            assert '{"allergies":["peanuts"]}' in " ".join(await told.all_inner_texts())
            await expect(page.get_by_role("row", name="The customer")).to_be_visible()
            assert home.llm.requests == []

            await page.fill("#other", "Bee")
            await page.get_by_role("button", name="Merge").click()
            await expect(page.get_by_role("alert")).to_contain_text("no other person's id")
            await page.fill("#other", "telegram:5")
            await page.get_by_role("button", name="Merge").click()
            await expect(page.get_by_role("alert")).to_contain_text("Nobody has written under this id")
            await page.get_by_role("link", name="Cancel").click()
            await page.fill("#other", other)
            await page.get_by_role("button", name="Merge").click()
            await expect(page.locator("h1")).to_have_text(f"Merge {other} into this person?")
            await expect(page.get_by_role("alert")).to_have_count(0)
            await page.get_by_role("button", name="Merge").click()
            await expect(page.locator(".known")).to_contain_text("lives in Phuket")
            await page.get_by_role("button", name="Part").click()
            await expect(page.locator(".toast")).to_contain_text("Parted")
            await expect(page.locator(".known")).not_to_contain_text("lives in Phuket")

            await page.get_by_role("button", name="Block").click()
            await expect(page.locator(".toast")).to_contain_text("Blocked")
            assert await home.line_says(ann.partition(":")[2], "hello") == 200
            await home.quiet()
            assert home.line_shows(ann.partition(":")[2]) == []
            await page.get_by_role("button", name="Unblock").click()
            await expect(page.locator(".toast")).to_contain_text("Unblocked")
            await home.line_says(ann.partition(":")[2], "hello")
            await home.quiet()
            assert len(home.line_shows(ann.partition(":")[2])) == 1
            assert wrong == []


HOSTILE = (
    "</textarea></ul></main><script>alert(1)</script>",
    "<img src=x onerror=alert(2)> \u202egnp.exe\u2066",
    "a\x00b\x07c\x1b[31m {{ 7 * 7 }} {% raw %}",
    "w" * 19_000,
    "ก" * 2_000 + "\u200f\u0623\u0628",
)


@pytest.mark.parametrize(("width", "locale"), [(390, "th-TH"), (1280, "en-GB")])
async def test_text_of_strangers_is_shown_and_neither_runs_nor_breaks_a_page(
    browser: Browser, tmp_path: Path, redis_url: str, width: int, locale: str
) -> None:
    sender = "U" + "3" * 32
    user, odd = f"line:{sender}", 'line:U"><script>alert(3)</script>\u202e/%00'
    name = "<img src=x onerror=alert(4)>\u202e.pdf"
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home, memory(home) as manager:
        for text in HOSTILE:
            await home.line_says(sender, text)
            await home.quiet()
        home.line.profiles[sender] = {"userId": sender, "displayName": name}
        file = home.line.text_event(sender, "x") | {
            "message": {"type": "file", "id": "90001", "fileName": name, "fileSize": 2}
        }
        assert await home.line.deliver(home.line_hook(), file) == 200
        await home.quiet()
        for one in (user, odd):
            event = MemoryEvent(
                event_type=EventType.COMPLAINT, payload={"original_message": HOSTILE[0] + "w" * 100_000},
                importance_score=0.9, event_id=HOSTILE[1],
            )  # fmt: skip
            episode = Episode(
                id=HOSTILE[1], session_id="s", summary=HOSTILE[1], output=HOSTILE[0], started_at=NOW, ended_at=NOW,
                duration=1, conversation=[{"role": "user", "message": text} for text in HOSTILE],
            )  # fmt: skip
            told = [known(one, text + "w" * 100_000, key=text[:300]) for text in HOSTILE]
            who = new_person(one, NOW, HOSTILE[1]).with_(identities={"line_id": HOSTILE[0]})
            added = Changes(facts=told, events=[event], episodes=[episode], person=who, history_summary=HOSTILE[0])
            await manager.longterm.change("shop", one, lambda _, added=added: added)
        await manager.teach("shop", content=HOSTILE[0], trigger={"goal_contains": [HOSTILE[1]]})
        options = {"viewport": {"width": width, "height": 800}, "locale": locale, "bypass_csp": True}
        options |= {"color_scheme": "dark" if width == PHONE["width"] else "light"}
        async with back_office(browser, home, **options) as (page, wrong):
            odd_id = quote(odd, safe="")
            paths = [f"/memories/shop/{tab}" for tab in PAGES]
            paths += [f"/memories/shop/person?user={quote(one, safe='')}" for one in (user, odd)]
            paths += [f"/memories/shop/facts?user={quote(odd, safe='')}", "/admin/shop/keys", "/admin/shop/status"]
            ref = cursor_of(user, "default", "main")
            last = (await manager.transcripts.tail(ConversationRef("shop", user), 1))[0].get("message_id", "")
            paths += [f"/admin/shop/teach?ref={ref}&message={quote(last)}"]
            paths += [f"/admin/shop/talk?ref={ref}", f"/admin/shop/teach?question={quote(HOSTILE[1])}"]
            paths += [f"/admin/shop/audit?who={quote(HOSTILE[0])}&user={odd_id}", "/admin/shop/audit"]
            paths += ["/admin/shop/talks", "/admin/shop/overview"]
            for path in paths:
                answer = await page.goto(home.url + path)
                assert answer is not None
                assert answer.status == 200, path
                shown = await page.evaluate(
                    "[document.querySelectorAll('main script, main img, main b b').length,"
                    " document.querySelectorAll('main').length,"
                    " document.documentElement.scrollWidth - innerWidth]"
                )
                assert shown[:2] == [0, 1], path
                assert shown[2] <= 0, path
                assert len(await page.content()) < 400_000, path
                # One is enough of pages that differ in whose they are; the last few hold all colours of the other theme
                if odd_id not in path and (width == PHONE["width"] or path in paths[-5:]):
                    found = await Axe().run(page)
                    assert [(one["id"], path, one["nodes"][0]["html"]) for one in found.response["violations"]] == []
            await page.goto(f"{home.url}/memories/shop/episodes")
            await page.locator(".row .text a").first.click()
            await expect(page.locator(".talk li")).to_have_count(len(HOSTILE))
            assert wrong == []


async def test_it_is_read_searched_and_changed_without_scripts(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home, memory(home) as manager:
        for number in range(35):
            await manager.remember("shop", "line:U1", key=f"note {number}", text=f"note number {number}")
        async with back_office(browser, home, java_script_enabled=False) as (page, _):
            await page.wait_for_url("**/memories/shop/facts")
            seen = await texts(page)
            await manager.remember("shop", "line:U2", key="new", text="a new one")  # moves no one to another page
            await page.get_by_role("link", name="Next").click()
            await expect(page.locator(".found")).to_contain_text("Page 2")
            seen += await texts(page)
            assert sorted(seen) == sorted(f"note number {number}" for number in range(35))
            await page.fill("#q", "number 17")
            await page.keyboard.press("Enter")
            await expect(page.locator("#results .row .text")).to_have_text(["note number 17"])
            await page.get_by_role("button", name="Delete: note number 17").click()
            await page.get_by_role("button", name="Delete").click()
            await expect(page.locator(".toast")).to_contain_text("Deleted: 1")

            await home.telegram_says(88, "hello, anybody?")
            await home.quiet()
            await page.goto(f"{home.url}/admin/shop/talks")
            while not await page.locator(".talks a").count():  # the list is written behind the turn
                await page.reload()
            await page.locator(".talks a").click()
            await page.fill("#text", "Yes, me.")
            await page.get_by_role("button", name="Take over and send").click()
            await expect(page.locator(".talk .staff")).to_contain_text("Yes, me.")
            await home.telegram.until(lambda: home.telegram_shows(88)[1:] == ["Yes, me."])


async def test_a_message_nobody_could_answer_is_tried_again(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    async with (
        house(tmp_path, redis_url, {"shop": own_shop()}) as home,
        back_office(browser, home) as (page, wrong),
    ):
        home.telegram.next(replace(refusal(400, "Bad Request: something of theirs"), on="/sendMessage"))
        await home.telegram_says(55, "hello <b>there</b>")
        await home.quiet()
        await page.goto(f"{home.url}/admin/shop/overview?days=7")
        await expect(page.locator(".rows .text")).to_have_text("hello <b>there</b>")
        await page.get_by_role("button", name="Drop").click()
        await expect(page.locator("h1")).to_have_text("Drop this message?")
        await page.get_by_role("link", name="Cancel").click()
        await page.get_by_role("button", name="Try again").click()
        await expect(page.locator(".toast")).to_contain_text("Back in the queue")
        await home.quiet()
        assert len(home.telegram_shows(55)) == 2  # that it went wrong, and now the answer

        # Days are counted with the worker's heartbeat; each chart has its table.
        async def drawn() -> int:
            await page.reload()
            return await page.locator(".chart .uplot").count()

        assert await home.until(drawn, lambda count: count > 0) == await page.locator(".chart details table").count()
        await page.locator(".chart summary").first.click()
        await expect(page.locator(".chart").first.get_by_role("row")).to_have_count(31)

        await page.goto(f"{home.url}/admin/shop/status")
        await page.fill("#say", "do you deliver to Ari?")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator(".tried")).to_contain_text("inquiry")
        await expect(page.locator("#try .talk li").first).to_contain_text("deliver to Ari")
        assert wrong == []


async def test_staff_take_a_conversation_over_answer_once_teach_and_give_it_back(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    ann, bee = "U" + "4" * 32, 66
    own = own_shop() | {"faq": [{"questions": ["do you have oat milk?"], "answer": "We do."}]}
    async with (
        house(tmp_path, redis_url, {"shop": own}) as home,
        back_office(browser, home) as (page, wrong),
    ):
        await home.line_says(ann, "do you have oat milk?")
        await home.telegram_says(bee, "I want to talk to a human")
        await home.quiet()
        await page.goto(f"{home.url}/admin/shop/talks")
        while await page.locator(".talks .row").count() < 2:  # the list is written behind the turn
            await page.reload()
        await page.goto(f"{home.url}/admin/shop/overview")
        await page.get_by_role("link", name="See them").click()
        await expect(page.locator(".talks .row")).to_have_count(1)
        await page.locator(".talks a").click()
        await expect(page.locator(".holder")).to_contain_text("nobody came")

        await page.get_by_role("button", name="Take over", exact=True).click()
        await expect(page.locator(".holder")).to_contain_text("the bot is silent")
        before = len(home.telegram_shows(bee))
        await home.telegram_says(bee, "are you there?")
        await expect(page.locator(".talk li").last).to_contain_text("are you there?")  # without loading the page again
        assert len(home.telegram_shows(bee)) == before
        await page.fill("#text", "Yes, *Bee* here")
        await page.locator("#composer").evaluate("form => form.querySelector('[value=answer]').click()")
        await expect(page.locator(".toast")).to_contain_text("On its way")
        await expect(page.locator(".talk .staff")).to_contain_text("Yes, *Bee* here")
        await home.quiet()
        assert home.telegram_shows(bee)[before:] == ["Yes, *Bee* here"]

        await page.get_by_role("link", name="Teach").last.click()
        await expect(page.locator("#questions")).to_have_value("are you there?")
        await page.get_by_role("button", name="Save").first.click()
        await expect(page.locator(".taught")).to_contain_text("Yes, *Bee* here")
        await page.go_back()
        await page.go_back()
        await page.get_by_role("button", name="Give back to the bot").click()
        await expect(page.locator(".holder")).to_have_text("The bot answers here.")
        home.tenants.load()
        await home.telegram_says(bee, "are you there")
        await home.quiet()
        assert len(home.telegram_shows(bee)) == before + 2

        # On LINE it says what it costs; a message of a minute ago or less is answered by its own token.
        await page.goto(f"{home.url}/admin/shop/talks?show=unread")
        await page.locator(".talks a", has_text="LINE").click()
        await expect(page.locator("#composer")).to_contain_text("LINE push")
        await page.get_by_role("button", name="A bad answer").click()
        await expect(page.get_by_role("button", name="A bad answer")).to_have_attribute("aria-pressed", "true")
        await page.locator(".correct summary").click()
        await page.select_option(".correct [name=type]", "REQUEST")
        await page.locator(".correct").get_by_role("button", name="Save").click()
        await expect(page.locator(".toast")).to_contain_text("Corrected")
        await page.get_by_role("button", name="Take over", exact=True).click()
        await expect(page.locator(".holder")).to_contain_text("the bot is silent")
        await home.line_says(ann, "hello?")
        await expect(page.locator(".talk li").last).to_contain_text("hello?")
        await page.fill("#text", "Oat and soy.")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator(".talk .staff")).to_contain_text("Oat and soy.")
        await home.quiet()
        assert home.line_shows(ann)[-1] == "Oat and soy."
        assert home.line.calls_to("push") == []
        await page.goto(f"{home.url}/admin/shop/teach")
        await expect(page.locator(".known").last).to_contain_text("oat")
        assert wrong == []
