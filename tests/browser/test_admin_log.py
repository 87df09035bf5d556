"""The admin page's access log, and a classifier trained from it."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Browser, expect

from gateway.audit import AuditLog
from memory.keys import understanding_dir
from processors import corrections, local
from processors.models import EventType
from tests.browser.test_admin import NOW, back_office, memory, own_shop
from tests.house import house

ANN = "line:U" + "7" * 32


async def test_the_access_log_is_filtered_and_paged_and_shows_no_other_shops(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home:
        log = AuditLog(home.settings.data_dir)
        for number in range(40):
            log.note(
                "shop", NOW, "admin", "read", f"GET /api/v1/memory {number}", user=ANN if number % 8 == 0 else None
            )
        log.note("other", NOW, "admin", "export", "GET /api/v1/memory/export")
        log.note("shop", NOW, "<img src=x onerror=alert(1)>\u202e", "export", "<script>alert(2)</script>")
        async with back_office(browser, home, java_script_enabled=False) as (page, wrong):
            await page.goto(f"{home.url}/admin/shop/audit?did=read&who=admin")
            rows = page.locator("#results .row code").filter(has_text="GET /api/v1/memory")
            seen = await rows.all_inner_texts()
            log.note("shop", NOW, "admin", "read", "GET /api/v1/memory new")  # moves no line to another page
            await page.get_by_role("link", name="Next").click()
            seen += await rows.all_inner_texts()
            assert seen == [f"GET /api/v1/memory {number}" for number in range(39, -1, -1)]
            await page.goto(f"{home.url}/admin/shop/audit?user={ANN}")
            await expect(page.locator("#results .row")).to_have_count(5)
            assert ANN not in await page.locator("#results").inner_html()
            await page.goto(f"{home.url}/admin/shop/audit?did=export")
            await expect(page.locator("#results .row code")).to_have_text(["<script>alert(2)</script>"])
            assert (await page.request.get(f"{home.url}/admin/other/audit")).status == 404
            assert wrong == []


async def test_a_classifier_is_trained_beside_the_work_and_what_came_of_it_is_told(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    async with house(tmp_path, redis_url, {"shop": own_shop()}) as home:
        folder = understanding_dir(home.settings.data_dir / "understanding", "shop")
        async with memory(home) as manager, back_office(browser, home) as (page, wrong):
            said = corrections.Correction("bear suit ready", EventType.TRANSACTION, None, "", NOW.isoformat())
            corrections.add(folder, said, manager.vault.of("shop"))
            await page.goto(f"{home.url}/admin/shop/teach")
            if not local.installed():
                await expect(page.locator("#training")).to_contain_text(".[local]")
                return
            await page.get_by_role("button", name="Train").click()
            await expect(page.locator("#training")).to_contain_text("Being trained")
            csrf = await page.locator("[name=csrf]").first.get_attribute("value")
            again = await page.request.post(f"{home.url}/admin/shop/teach/train", form={"csrf": csrf or ""})
            assert "done=trainingbusy" in again.url  # one at a time
            assert wrong == []
