"""The page Tasks: narrowed by the address, page by page, live, and acting on many at once."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any
from uuid import uuid4

import pytest
from harness.asking import Asking
from playwright.async_api import Locator, Page, Route, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE_ROWS = 50


def rows(page: Page) -> Locator:
    return page.locator("tbody tr:not(.row-loading)")


def row(page: Page, task: str) -> Locator:
    return rows(page).filter(has=page.locator(f"a[href='/tasks/{task}']"))


async def submit_many(api: Asking, count: int, **attributes: str) -> list[str]:
    """Hand in `count` orders that end well, and wait until the last has; answers their ids."""
    order = {"saga": "order", "input": {"fate": "fine"}, "attributes": attributes}
    outcomes = (await api.act("submit.many", tasks=[order] * count))["outcomes"]
    tasks = [str(outcome["receipt"]["task"]) for outcome in outcomes]
    for task in tasks:
        await api.read("get", task=task, wait_s=5)
    return tasks


async def test_a_task_is_listed_with_what_became_of_it(page: Page, api: Asking, site: Any) -> None:
    task = await api.settled("order", {"fate": "refused"})
    await page.goto("/tasks")
    found = row(page, task)
    await expect(found).to_contain_text("Compensated")
    await expect(found).to_contain_text("order v1")
    await found.click()
    await expect(page).to_have_url(f"{site.url}/tasks/{task}")


async def test_rows_change_and_come_by_themselves(page: Page, api: Asking) -> None:
    await page.goto("/tasks")
    await expect(page.get_by_text("Live", exact=True)).to_be_visible()
    task = await api.submit("refund", {"amount": 40})
    await expect(row(page, task)).to_contain_text("Running")
    await api.act("cancel", task=task)
    await expect(row(page, task)).to_contain_text("Compensated")


async def test_rows_stay_where_they_are_while_somebody_works_with_them(
    page: Page, api: Asking
) -> None:
    before = await api.submit("waiting", {})
    await page.goto("/tasks")
    await row(page, before).get_by_role("checkbox").check()
    after = await api.submit("waiting", {})
    newer = page.get_by_role("button", name="1 newer")
    await expect(newer).to_be_visible()
    await expect(row(page, after)).to_have_count(0)
    await page.keyboard.press(".")
    await expect(row(page, after)).to_be_visible()
    await expect(row(page, before).get_by_role("checkbox")).to_be_checked()


async def test_what_comes_below_a_task_with_an_id_of_its_own_is_newer_too(
    page: Page, api: Asking
) -> None:
    own = await api.submit("waiting", {}, task=f"ffffffff{str(uuid4())[8:]}")
    before = await api.submit("waiting", {})
    await page.goto("/tasks")
    await row(page, before).get_by_role("checkbox").check()
    after = await api.submit("waiting", {})
    await expect(page.get_by_role("button", name="1 newer")).to_be_visible()
    await page.keyboard.press(".")
    await expect(row(page, after)).to_be_visible()
    await expect(row(page, own)).to_be_visible()


async def test_what_happens_before_the_stream_is_open_is_not_missed(
    page: Page, api: Asking
) -> None:
    held, go_on = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        held.set()
        await go_on.wait()
        await route.continue_()

    before = await api.submit("waiting", {})
    await page.route("**/api/feed*", late)
    await page.goto("/tasks")
    await expect(row(page, before)).to_be_visible()
    await held.wait()
    after = await api.submit("waiting", {})
    go_on.set()
    await expect(row(page, after)).to_be_visible()


async def test_filters_are_in_the_address_and_come_back_with_it(
    page: Page, api: Asking, site: Any
) -> None:
    ended = await api.settled("order", {"fate": "fine"}, attributes={"tint": "blue"})
    stuck = await api.settled("order", {"fate": "stuck"}, attributes={"tint": "blue"})
    await page.goto("/tasks")
    await page.get_by_label("Attribute").fill("tint=blue")
    await expect(page).to_have_url(re.compile(r"\?attribute=tint%3Dblue$"))
    await expect(rows(page)).to_have_count(2)
    await page.get_by_text("Parked", exact=True).last.scroll_into_view_if_needed()
    await page.locator(".chip", has_text="Parked").click()
    await expect(rows(page)).to_have_count(1)
    await expect(row(page, stuck)).to_be_visible()
    await page.reload()
    await expect(row(page, stuck)).to_be_visible()
    await expect(page.get_by_label("Attribute")).to_have_value("tint=blue")
    await page.go_back()
    await expect(row(page, ended)).to_be_visible()
    await page.get_by_role("button", name="Clear").click()
    await expect(page).to_have_url(f"{site.url}/tasks")


async def test_narrowed_by_saga_owner_and_time(page: Page, api: Asking) -> None:
    await api.submit("refund", {"amount": 30})
    await page.goto("/tasks")
    await page.get_by_label("Saga").select_option("refund")
    await page.get_by_label("Created").select_option("Last hour")
    await expect(page).to_have_url(re.compile(r"saga=refund.*since=1h"))
    await expect(rows(page).first).to_contain_text("refund")
    await page.get_by_label("Created").select_option("Between …")
    await page.get_by_label("To", exact=True).fill("2020-01-01T00:00:00")
    await expect(page.get_by_text("No task matches")).to_be_visible()
    await page.goto("/tasks?owner=nobody")
    await expect(page.get_by_text("No task matches")).to_be_visible()
    await page.get_by_role("link", name="All tasks").click()
    await expect(rows(page).first).to_be_visible()


async def test_narrowed_by_an_agent(page: Page, api: Asking) -> None:
    task = await api.submit("waiting", {})
    await page.goto("/tasks?agent=absent")
    await expect(row(page, task)).to_be_visible()
    await expect(rows(page).filter(has_text="order")).to_have_count(0)


async def test_pages_follow_each_other_and_back_returns(page: Page, api: Asking) -> None:
    await submit_many(api, PAGE_ROWS + 5, lot="paged")
    await page.goto("/tasks?attribute=lot=paged")
    await expect(rows(page)).to_have_count(PAGE_ROWS)
    first = await rows(page).first.inner_text()
    await page.get_by_role("button", name="Older").click()
    await expect(rows(page)).to_have_count(5)
    await expect(page.get_by_text(re.compile("^51 . 55, newest first"))).to_be_visible()
    await expect(page.get_by_role("button", name="Older")).to_be_disabled()
    await page.get_by_role("button", name="Newer", exact=True).click()
    await expect(rows(page)).to_have_count(PAGE_ROWS)
    assert await rows(page).first.inner_text() == first


async def test_chosen_tasks_are_cancelled_with_a_note(page: Page, api: Asking) -> None:
    tasks = [await api.submit("waiting", {}, attributes={"lot": "chosen"}) for _ in range(3)]
    await page.goto("/tasks?attribute=lot=chosen")
    for task in tasks[:2]:
        await row(page, task).get_by_role("checkbox").check()
    await expect(page.get_by_text("2 chosen")).to_be_visible()
    await page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Note").fill("not wanted any more")
    await dialog.get_by_role("button", name="Cancel 2 tasks").click()
    await expect(dialog).to_contain_text("2 tasks cancelled.")
    await dialog.get_by_role("button", name="Close").last.click()
    await expect(row(page, tasks[0])).to_contain_text("Compensat")
    await expect(row(page, tasks[2])).to_contain_text("Running")
    assert "not wanted any more" in json.dumps(await api.read("history", task=tasks[0]))


async def test_all_that_match_are_cancelled_after_a_dry_run(page: Page, api: Asking) -> None:
    ended = await submit_many(api, 3, lot="swept")
    tasks = [await api.submit("waiting", {}, attributes={"lot": "swept"}) for _ in range(2)]
    await page.goto("/tasks?attribute=lot=swept&status=running&status=succeeded&status=compensated")
    await expect(rows(page)).to_have_count(5)
    await page.get_by_role("button", name="All that match the filter").click()
    await page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("2 tasks would be cancelled of 5 that match.")
    await expect(dialog).to_contain_text("3 tasks would be refused:")
    await dialog.get_by_role("button", name="Cancel 2 tasks").click()
    await expect(dialog).to_contain_text("2 tasks cancelled.")
    await dialog.get_by_role("button", name="Close").last.click()
    await expect(row(page, tasks[0])).to_contain_text("Compensat")
    await expect(row(page, ended[0])).to_contain_text("Succeeded")


async def test_acts_on_many_are_not_offered_for_everything_there_is(page: Page) -> None:
    await page.goto("/tasks")
    await expect(rows(page).first).to_be_visible()
    await expect(page.get_by_role("button", name="All that match the filter")).to_be_hidden()
    await expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_hidden()


async def test_rows_are_walked_through_chosen_and_opened_with_keys(
    page: Page, api: Asking, site: Any
) -> None:
    older, newer = [await api.submit("waiting", {}, attributes={"lot": "keys"}) for _ in range(2)]
    await page.goto("/tasks?attribute=lot=keys")
    await expect(rows(page)).to_have_count(2)
    await page.keyboard.press("j")
    await page.keyboard.press("x")
    await expect(row(page, newer).get_by_role("checkbox")).to_be_checked()
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{site.url}/tasks/{older}")


async def test_on_a_narrow_screen_rows_are_cards(page: Page, api: Asking) -> None:
    task = await api.settled("order", {"fate": "stuck"})
    await page.set_viewport_size({"width": 360, "height": 800})
    await page.goto("/tasks?status=parked")
    card = row(page, task)
    await expect(card).to_contain_text("the mail server is down")
    box = await card.bounding_box()
    assert box is not None
    assert box["height"] > 100
    await rows(page).last.get_by_role("checkbox").check()
    await expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_in_viewport()
    await page.get_by_role("button", name="Choose none").click()
    await page.get_by_role("button", name="Filters (1)").click()
    await expect(page.get_by_label("Owner")).to_be_visible()
