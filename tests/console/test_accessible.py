"""Every page, in both themes and at both widths: no violation that axe-core knows, and nothing that
is wider than the window."""

from __future__ import annotations

import re
from typing import Any

import pytest
import pytest_asyncio
from harness.asking import Asking
from harness.browser import HEIGHT, NARROW, WIDE, flaws, overflow_px, window
from playwright.async_api import Browser, Page, Route, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGES = {
    "/": "Overview",
    "/tasks": "Tasks",
    "/tasks?status=parked&since=between&owner=nobody": "Tasks",
    "/parked": "Parked",
    "/tasks/a/b": "Not found",
}
"""Addresses, each with the heading of its page."""


@pytest_asyncio.fixture(loop_scope="session")
async def furnished(api: Asking) -> None:
    """The live system has something to show in every state."""
    for fate in ("fine", "refused", "stuck"):
        await api.settled("order", {"fate": fate})
    await api.submit("refund", {"amount": 500})


@pytest.mark.usefixtures("furnished")
@pytest.mark.parametrize(("address", "heading"), PAGES.items())
async def test_pages_are_accessible_and_fit(page: Page, address: str, heading: str) -> None:
    await page.goto(address)
    await expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
    await expect(page.locator("[aria-busy], .skeleton")).to_have_count(0)
    assert await flaws(page) == []


@pytest.mark.usefixtures("furnished")
async def test_acting_on_many_is_accessible(page: Page) -> None:
    await page.goto("/tasks?saga=refund")
    await page.locator("tbody input").first.check()
    await page.get_by_role("button", name="Cancel", exact=True).click()
    await expect(page.get_by_role("dialog")).to_contain_text("would be cancelled")
    assert await flaws(page) == []


@pytest.mark.usefixtures("furnished")
async def test_acting_on_what_waits_is_accessible(page: Page) -> None:
    await page.goto("/parked")
    await page.get_by_role("button", name="Settle").first.click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await flaws(page) == []


async def test_a_problem_is_accessible(page: Page) -> None:
    await page.route("**/api/parked?**", lambda route: route.abort())
    await page.goto("/parked")
    await expect(page.get_by_role("alert")).to_be_visible()
    assert await flaws(page) == []


WORDS = {
    "long": "W" * 4_000,
    "markup": '<img src=x onerror="window.ran=1"><script>window.ran=1</script>' * 20,
    "from the right": "\u202e\u05e9\u05dc\u05d5\u05dd \u202dx\u2066\u2067" * 100,
}


@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
async def test_what_others_say_is_text_and_fits_whatever_it_is(
    page: Page, api: Asking, words: str
) -> None:
    task = await api.settled("order", {"fate": "stuck"}, attributes={"note": words[:250]})

    async def told(route: Route) -> None:
        answer = await route.fetch()
        body = await answer.json()
        for each in (body, *body.get("waiting", []), *body.get("tasks", [])):
            each["reason"] = f"step 'notify': Refused: {words}"
        await route.fulfill(response=answer, json=body)

    await page.route(re.compile("/api/(get|list|parked)"), told)
    for address in ("/parked", "/tasks", f"/tasks/{task}"):
        await page.goto(address)
        await expect(page.get_by_text("step 'notify': Refused: ").first).to_be_visible()
        await expect(page.locator("[aria-busy], .skeleton")).to_have_count(0)
        for width in (WIDE, NARROW):
            await page.set_viewport_size({"width": width, "height": HEIGHT})
            assert await overflow_px(page) == 0, (address, width)
        assert await page.evaluate("window.ran") is None
    rows = page.locator(".queue-item, .table tbody tr")
    for address in ("/parked", "/tasks"):
        await page.goto(address)
        await expect(rows.first).to_be_visible()
        tallest = await rows.evaluate_all("(rows) => Math.max(...rows.map((r) => r.clientHeight))")
        assert tallest < HEIGHT / 2, (address, tallest)


async def test_signing_in_and_the_list_of_keys_are_accessible(browser: Browser, site: Any) -> None:
    async with window(browser, site.url) as page:
        await page.goto("/")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        assert await flaws(page) == []
        await page.get_by_role("button", name="Keyboard shortcuts").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await flaws(page) == []
