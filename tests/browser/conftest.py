"""A real browser, the system's Chromium; where it is missing the tests are skipped, and fail where CI is set."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

CHROMIUM = shutil.which("chromium")
# It runs as root and in a container, and asks nobody outside for anything.
_QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/browser/" in item.nodeid or item.nodeid.startswith("tests/browser"):
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)  # the browser's


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """One for a file's tests: each opens a context of its own, which shares nothing with others."""
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is missing")
        pytest.skip("chromium is missing")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(_QUIET))
        yield browser
        await browser.close()
