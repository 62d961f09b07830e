"""Every page, in both themes and at both widths: no violation that axe-core knows, and nothing that
is wider than the window."""

from __future__ import annotations

import pytest
import pytest_asyncio
from harness.asking import Asking
from harness.browser import NARROW, WIDE, overflow_px, violations, window
from playwright.async_api import Browser, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = {
    "/": "Overview",
    "/tasks": "Tasks",
    "/tasks?status=parked&since=1h": "Tasks",
    "/parked": "Parked",
    "/nowhere": "Not found",
}
"""Addresses, each with the heading of its page."""


@pytest_asyncio.fixture(loop_scope="session")
async def furnished(api: Asking) -> None:
    """The live system has something to show in every state."""
    for fate in ("fine", "refused", "stuck"):
        await api.settled("order", {"fate": fate})
    await api.submit("refund", {"amount": 500})


@pytest.mark.usefixtures("furnished")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
async def test_pages_are_accessible_and_fit(browser: Browser, site, width: int, theme: str) -> None:
    async with window(browser, site.url, token=site.token, width=width, theme=theme) as page:
        for address, heading in PAGES.items():
            await page.goto(address)
            await expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
            await expect(page.locator("[aria-busy], .skeleton")).to_have_count(0)
            assert await violations(page) == [], address
            assert await overflow_px(page) == 0, address


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_signing_in_is_accessible(browser: Browser, site, theme: str) -> None:
    async with window(browser, site.url, width=NARROW, theme=theme) as page:
        await page.goto("/")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert await violations(page) == []
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Keyboard shortcuts").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await violations(page) == []
