"""The page Overview: figures of now, charts of the last hour, and where they lead."""

from __future__ import annotations

import re
from typing import Any

import pytest
from harness.asking import Asking
from harness.eventually import eventually
from playwright.async_api import Locator, Page, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")


def figure(page: Page, name: str) -> Locator:
    return page.locator(f"[data-figure={name}] .figure-value")


async def test_figures_tell_what_just_happened(page: Page, api: Asking) -> None:
    await page.goto("/")
    await expect(figure(page, "agents")).to_have_text(re.compile("[1-9]"))
    before = int(await figure(page, "parked").inner_text())
    await api.settled("order", {"fate": "stuck"})
    await expect(figure(page, "parked")).to_have_text(str(before + 1))
    await expect(figure(page, "settled")).not_to_have_text("0")
    await expect(figure(page, "failures")).not_to_have_text("0")
    badge = page.get_by_label("Pages", exact=True).get_by_role("link", name="Parked")
    await expect(badge).to_contain_text("wait for a person", timeout=15_000)


async def test_as_much_waits_for_a_person_as_the_queue_lists(page: Page, api: Asking) -> None:
    await api.settled("order", {"fate": "stuck"})
    await api.submit("refund", {"amount": 77})  # waits for the approval of a step
    for amount in (500, 5_000):  # a call whose end nobody knows, and one that waits for approval
        task = await api.submit("refund", {"amount": amount})
        await api.act("approve", task=task, step="agree")

    async def kinds() -> bool:
        found = {each["kind"] for each in await queue(api)}
        return found == {"parked", "approval", "gate", "unsettled"}

    await eventually(kinds, 15)
    await page.goto("/")
    await expect(figure(page, "parked")).to_have_text(str(len(await queue(api))))


async def queue(api: Asking) -> list[dict[str, Any]]:
    """All that waits for a person."""
    found, cursor = [], None
    while not found or cursor:
        more = await api.read("parked", limit=500, **({"cursor": cursor} if cursor else {}))
        found += more["waiting"]
        cursor = more["cursor"]
    return found


async def test_a_figure_and_a_status_lead_to_their_tasks(page: Page) -> None:
    await page.goto("/")
    await page.locator("[data-figure=running]").click()
    await expect(page).to_have_url(re.compile(r"/tasks\?status=running&status=compensating$"))
    await page.go_back()
    await page.locator(".shares").get_by_role("link", name="Compensated").click()
    await expect(page.get_by_role("checkbox", name="Compensated")).to_be_checked()


async def test_the_newest_that_wait_for_a_person_are_named(page: Page, api: Asking) -> None:
    task = await api.submit("refund", {"amount": 77})
    await page.goto("/")
    waiting = page.locator(f".brief a[href='/tasks/{task}']")
    await expect(waiting).to_have_text("refund / agree")


async def test_a_chart_is_read_with_the_arrow_keys(page: Page, api: Asking) -> None:
    await api.settled("order", {"fate": "fine"})
    await page.goto("/")
    chart = page.get_by_role("slider", name="Settled tasks, by minute")
    await expect(chart).to_have_attribute("aria-valuemax", "59")
    await chart.focus()
    await page.keyboard.press("Home")
    await expect(chart).to_have_attribute("aria-valuenow", "0")
    await expect(chart).to_have_attribute(
        "aria-valuetext", re.compile(r"^\d\d:\d\d: Succeeded \d+, Compensated \d+, Parked \d+")
    )
    await page.keyboard.press("ArrowRight")
    await expect(chart).to_have_attribute("aria-valuenow", "1")


async def test_nothing_moves_when_the_figures_come(page: Page) -> None:
    await page.add_init_script(
        """window.shift = 0;
        new PerformanceObserver((list) => {
          for (const each of list.getEntries()) window.shift += each.value;
        }).observe({ type: "layout-shift", buffered: true });"""
    )
    await page.goto("/")
    await expect(figure(page, "agents")).to_have_text(re.compile("[1-9]"))
    assert await page.evaluate("window.shift") < 0.01
