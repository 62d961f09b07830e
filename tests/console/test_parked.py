"""The page Parked: all that waits for a person, with its reason, and each act that is open."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness.asking import Asking
from playwright.async_api import Locator, Page, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")


def item(page: Page, task: str, kind: str) -> Locator:
    waiting = page.locator(".queue-item").filter(has=page.locator(f"a[href='/tasks/{task}']"))
    return waiting.filter(has=page.get_by_text(kind, exact=True))


async def decide(page: Page, waiting: Locator, word: str, action: str, note: str) -> None:
    """Press a button of the queue, give a note, and say yes."""
    await waiting.get_by_role("button", name=word, exact=True).click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Note").fill(note)
    await dialog.get_by_role("button", name=action, exact=True).click()
    await expect(dialog).to_be_hidden()


async def notes(api: Asking, task: str) -> str:
    """All of a task's history, in which notes are."""
    return json.dumps(await api.read("history", task=task))


async def test_a_parked_task_is_there_with_its_reason_and_comes_by_itself(
    page: Page, api: Asking
) -> None:
    await page.goto("/parked")
    task = await api.settled("order", {"fate": "stuck"})
    waiting = item(page, task, "Parked")
    await expect(waiting).to_contain_text("the mail server is down")
    await expect(waiting).to_contain_text("order / notify")
    await expect(waiting.locator("time")).to_have_text("now")
    words = await waiting.get_by_role("button").all_inner_texts()
    assert words == ["Retry", "Resume", "Settle"]


async def test_a_stuck_step_is_tried_again_with_a_note(page: Page, api: Asking) -> None:
    task = await api.settled("order", {"fate": "stuck"})
    await page.goto("/parked")
    await decide(page, item(page, task, "Parked"), "Retry", "Try again", "the line is mended")
    await expect(page.get_by_label("Notes")).to_contain_text("Retry: done.")
    assert "the line is mended" in await notes(api, task)


async def test_settling_states_how_a_step_ended_and_takes_the_task_from_the_queue(
    page: Page, api: Asking
) -> None:
    task = await api.settled("order", {"fate": "stuck"})
    await page.goto("/parked")
    waiting = item(page, task, "Parked")
    await waiting.get_by_role("button", name="Settle").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("radio", name="It happened").check()
    await dialog.get_by_label("Note").fill("told by telephone")
    await dialog.get_by_role("button", name="Settle", exact=True).click()
    await expect(waiting).to_have_count(0)
    assert await api.status(task) == "succeeded"


@pytest.mark.parametrize("word", ["Approve", "Reject"])
async def test_an_approval_is_given_or_refused(page: Page, api: Asking, word: str) -> None:
    task = await api.submit("refund", {"amount": 50})
    await page.goto("/parked")
    waiting = item(page, task, "Approval of a step")
    await decide(page, waiting, word, word, "as agreed")
    await expect(waiting).to_have_count(0)
    assert "as agreed" in await notes(api, task)


async def test_a_call_that_needs_approval_shows_its_arguments(page: Page, api: Asking) -> None:
    task = await api.submit("refund", {"amount": 2_000})
    await api.act("approve", task=task, step="agree")
    await page.goto("/parked")
    waiting = item(page, task, "Approval of a call")
    await expect(waiting).to_contain_text("tool unlock")
    await expect(waiting).to_contain_text("2000")
    await decide(page, waiting, "Approve", "Approve", "known customer")
    await expect(waiting).to_have_count(0)


async def test_a_call_of_which_nobody_knows_is_settled_and_the_task_resumed(
    page: Page, api: Asking
) -> None:
    task = await api.submit("refund", {"amount": 500})
    await api.act("approve", task=task, step="agree")
    await page.goto("/parked")
    call = item(page, task, "Unknown outcome")
    await call.get_by_role("button", name="Settle").click()
    dialog = page.get_by_role("dialog", name="Did the call of pay happen?")
    await dialog.get_by_role("radio", name="It happened").check()
    await dialog.get_by_label("Its result").fill('"paid"')
    await dialog.get_by_role("button", name="Settle", exact=True).click()
    await expect(call).to_have_count(0)
    await decide(page, item(page, task, "Parked"), "Resume", "Resume", "it was paid")
    await expect(item(page, task, "Parked")).to_have_count(0)


async def test_acts_are_open_even_if_a_timeline_cannot_be_told(page: Page, api: Asking) -> None:
    task = await api.settled("order", {"fate": "stuck"})
    await page.route(
        "**/api/timeline?**",
        lambda route: route.fulfill(status=409, body='{"title": "no", "detail": "not whole"}'),
    )
    await page.goto("/parked")
    await decide(page, item(page, task, "Parked"), "Retry", "Try again", "all the same")
    assert "all the same" in await notes(api, task)


async def test_closing_the_dialog_does_nothing_and_gives_the_focus_back(
    page: Page, api: Asking
) -> None:
    task = await api.submit("refund", {"amount": 60})
    await page.goto("/parked")
    button = item(page, task, "Approval of a step").get_by_role("button", name="Reject")
    await button.click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(button).to_be_focused()
    assert await api.status(task) == "running"


async def test_the_queue_is_narrowed_to_a_saga_by_the_address(
    page: Page, api: Asking, site: Any
) -> None:
    await api.settled("order", {"fate": "stuck"})
    await api.submit("refund", {"amount": 70})
    await page.goto("/parked")
    await page.get_by_label("Saga").select_option("order")
    await expect(page).to_have_url(f"{site.url}/parked?saga=order")
    await expect(page.locator(".queue-link").first).to_contain_text("order")
    await expect(page.get_by_text("refund /")).to_have_count(0)
    await page.goto("/parked?saga=waiting")
    await expect(page.get_by_text("Nothing waits here")).to_be_visible()


async def test_the_queue_is_walked_through_with_keys(page: Page, api: Asking) -> None:
    first, second = [await api.submit("refund", {"amount": 80 + n}) for n in range(2)]
    await page.goto("/parked?saga=refund")
    await expect(item(page, second, "Approval of a step")).to_be_visible()
    await page.keyboard.press("j")
    await expect(page.locator(".queue-link").nth(0)).to_be_focused()
    await page.keyboard.press("j")
    await expect(page.locator(".queue-link").nth(1)).to_be_focused()
    await page.keyboard.press("k")
    await expect(page.locator(".queue-link").nth(0)).to_be_focused()
    assert first != second
