"""Sagas: the list, a saga's diagram and list of steps, its versions, and counts by status."""

from __future__ import annotations

import json
import re

import pytest
import pytest_asyncio
from harness.asking import asking
from harness.browser import flaws
from headway.sagas import Saga
from playwright.async_api import Page, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")


def versioned(version: int) -> Saga:
    saga = Saga("versioned", version=version).step("look", "shop.reserve", read_only=True)
    if version > 1:
        saga.approval("agree", after="look", when="input.fate == 'slow'")
        saga.step("end", "shop.notify", after="agree", pivot=True)
    return saga


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def two_versions(site) -> None:
    """A saga with two versions, and one task of each."""
    async with asking(site.url, site.token) as api:
        for version in (1, 2):
            await api.act("saga.register", **json.loads(versioned(version).define().to_json()))
            await api.submit("versioned", {"fate": "slow"}, version=version)


async def test_the_list_leads_to_a_saga(page: Page) -> None:
    await page.goto("/sagas")
    row = page.get_by_role("row", name=re.compile("^versioned"))
    await expect(row).to_contain_text("2")
    await row.get_by_role("link", name="versioned").click()
    await expect(page.get_by_role("heading", name="versioned", level=1)).to_be_visible()
    await expect(page.get_by_role("heading", name="Steps of version 2")).to_be_visible()


async def test_tasks_are_counted_by_status_and_each_count_leads_to_them(page: Page) -> None:
    await page.goto("/sagas/versioned")
    about = page.get_by_role("region", name="About the saga")
    await expect(about.get_by_role("link", name="1 succeeded")).to_be_visible()
    await expect(about.get_by_role("link", name="1 running")).to_be_visible()
    await about.get_by_role("link", name="1 running").click()
    await expect(page).to_have_url(re.compile(r"/tasks\?saga=versioned&status=running$"))


async def test_the_diagram_shows_steps_conditions_and_the_point_of_no_return(page: Page) -> None:
    await page.goto("/sagas/versioned")
    await expect(page.get_by_role("img", name="3 steps. The list has their order.")).to_be_visible()
    agree = page.locator(".node[data-step=agree]")
    await expect(agree).to_contain_text("if input.fate == 'slow'")
    await expect(page.locator(".node[data-step=end] .node-flag")).to_have_count(1)
    await expect(page.locator(".edge")).to_have_count(2)


async def test_the_list_of_steps_tells_all_that_the_diagram_shows(page: Page) -> None:
    await page.goto("/sagas/versioned")
    await page.get_by_role("radiogroup", name="saga").get_by_text("List").click()
    steps = page.locator(".step-list > li")
    await expect(steps).to_have_count(3)
    await expect(steps.nth(1)).to_contain_text("waits for a person's approval")
    await expect(steps.nth(1)).to_contain_text("input.fate == 'slow'")
    await expect(steps.nth(2)).to_contain_text("point of no return")
    await expect(steps.nth(2)).to_contain_text("up to 5 times")


async def test_another_version_is_looked_at_by_its_address(page: Page) -> None:
    await page.goto("/sagas/versioned")
    await page.get_by_role("link", name="Version 1").click()
    await expect(page).to_have_url(re.compile(r"\?version=1$"))
    await expect(page.get_by_role("heading", name="Steps of version 1")).to_be_visible()
    await expect(page.locator(".node")).to_have_count(1)
    await page.go_back()
    await expect(page.locator(".node")).to_have_count(3)


async def test_a_saga_that_is_not_there_says_so(page: Page) -> None:
    await page.goto("/sagas/nobody")
    await expect(page.get_by_text("There is no saga nobody")).to_be_visible()


async def test_without_any_saga_it_says_how_to_register_one(page: Page) -> None:
    await page.route("**/api/saga.list*", lambda route: route.fulfill(json={"sagas": []}))
    await page.goto("/sagas")
    await expect(page.get_by_text("No saga is registered")).to_be_visible()
    await expect(page.get_by_text("headway saga register")).to_be_visible()


@pytest.mark.parametrize("view", ["Diagram", "List", "JSON"])
async def test_a_saga_is_accessible_and_fits(page: Page, view: str) -> None:
    await page.goto("/sagas/versioned")
    await page.get_by_role("radiogroup", name="saga").get_by_text(view).click()
    await expect(page.locator("[aria-busy], .skeleton")).to_have_count(0)
    assert await flaws(page) == []


async def test_the_list_of_sagas_is_accessible_and_fits(page: Page) -> None:
    await page.goto("/sagas")
    await expect(page.get_by_role("link", name="versioned")).to_be_visible()
    assert await flaws(page) == []
