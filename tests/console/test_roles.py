"""What each role is offered: who one is stands on every page, and no act that would be refused."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from harness.asking import Asking
from harness.browser import NARROW, flaws, window
from playwright.async_api import Browser, Locator, Page, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")

LOOK_ONLY = "view has role view, which may look at this but not act on it."


@pytest_asyncio.fixture(loop_scope="session")
async def looker(browser: Browser, site) -> AsyncIterator[Page]:
    async with window(browser, site.url, token=site.token_of("view")) as page:
        yield page


def acts(page: Page) -> Locator:
    """Buttons that change something, by their words."""
    words = re.compile("Cancel|Retry|Resume|Settle|Pause|Approve|Reject|Fork|Move|Signal")
    return page.get_by_role("main").get_by_role("button", name=words)


async def test_who_one_is_stands_beside_every_page(browser: Browser, site, page: Page) -> None:
    await page.goto("/tasks")
    who = page.get_by_role("group", name="Signed in as")
    await expect(who).to_have_text("consoleoperate")
    async with window(browser, site.url, token=site.token_of("view"), width=NARROW) as narrow:
        await narrow.goto("/tasks")
        await expect(narrow.get_by_role("group", name="Signed in as")).to_be_hidden()
        await narrow.get_by_role("button", name="Menu").click()
        await expect(narrow.get_by_role("group", name="Signed in as")).to_have_text("viewview")
        assert await flaws(narrow) == []


async def test_role_view_is_offered_no_act_and_told_why(looker: Page, api: Asking) -> None:
    task = await api.settled("order", {"fate": "stuck"})
    for path in (f"/tasks/{task}?step=notify", "/tasks", "/parked", "/agents"):
        await looker.goto(path)
        await expect(looker.get_by_text(LOOK_ONLY)).to_be_visible()
        if path == "/parked":
            await expect(looker.get_by_role("link", name="order / notify").first).to_be_visible()
        if path == "/agents":
            shop = looker.get_by_role("region", name="shop", exact=True)
            await expect(shop).to_contain_text("In flight")
        await expect(acts(looker)).to_have_count(0)
    await looker.goto("/tasks")
    await expect(looker.get_by_role("checkbox", name="Select all")).to_have_count(0)
    assert await flaws(looker) == []


async def test_role_operate_is_offered_what_role_view_is_not(
    browser: Browser, site, api: Asking
) -> None:
    task = await api.settled("order", {"fate": "stuck"})
    async with window(browser, site.url, token=site.token_of("operate")) as page:
        await page.goto(f"/tasks/{task}?step=notify")
        head = page.locator(".page-head")
        await expect(head.get_by_role("button", name="Resume")).to_be_visible()
        await expect(page.get_by_text("but not act on it")).to_have_count(0)
        await page.goto("/tasks")
        await expect(page.get_by_role("checkbox", name="Select all on this page")).to_be_visible()
        await page.goto("/agents")
        await expect(page.get_by_role("button", name="Pause shop")).to_be_visible()


async def test_role_submit_begins_at_its_tasks_and_may_cancel_them(browser: Browser, site) -> None:
    async with window(browser, site.url, token=site.token_of("submit")) as page:
        await page.goto("/")
        await expect(page.get_by_role("heading", name="Tasks", level=1)).to_be_visible()
        places = page.get_by_label("Pages", exact=True)
        await expect(places.get_by_role("link", name="Parked")).to_be_visible()
        await expect(places.get_by_role("link", name="Overview")).to_be_hidden()
        await expect(places.get_by_role("link", name="Dead letters")).to_be_hidden()
        made = await page.request.post(
            "/api/submit",
            data={"saga": "waiting"},
            headers={"Authorization": f"Bearer {site.token_of('submit')}"},
        )
        await page.goto(f"/tasks/{(await made.json())['task']}")
        head = page.locator(".page-head")
        await expect(head.get_by_role("button", name="Cancel")).to_be_visible()
        await expect(head.get_by_role("button")).to_have_count(2)  # and the one that copies the id


async def test_another_token_is_another_person(page: Page, site) -> None:
    await page.goto("/tasks")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("group", name="Signed in as")).to_be_hidden()
    await page.get_by_label("Token").fill(site.token_of("view"))
    await page.keyboard.press("Enter")
    await expect(page.get_by_text(LOOK_ONLY)).to_be_visible()


async def test_while_nobody_knows_the_role_all_is_offered_and_the_coordinator_refuses(
    looker: Page, api: Asking
) -> None:
    task = await api.settled("order", {"fate": "stuck"})
    await looker.route("**/api/whoami", lambda route: route.abort())
    await looker.goto(f"/tasks/{task}")
    await looker.locator(".page-head").get_by_role("button", name="Resume").click()
    dialog = looker.get_by_role("dialog")
    await dialog.get_by_role("button", name="Resume").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("'resume' needs 'operate'")
