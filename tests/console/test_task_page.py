"""The page of a task: its timeline, diagram, steps, history, and every act on it, done for real."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from harness.asking import Asking
from harness.browser import NARROW, flaws, overflow_px, window
from headway.sagas import Saga
from playwright.async_api import Browser, Page, Route, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")

CUT_OFF = """async () => {
  const { ganttChart } = await import("/console/gantt.js");
  const chart = ganttChart({ choose() {} });
  document.body.append(chart.element);
  const [cut, shown] = [[], new Set()];
  for (let px = 700; px < 1300; px += 25) for (let took = 70; took < 100; took++) {
    chart.element.style.width = `${px}px`;
    const [began_at, settled_at] = [0, took].map((ms) => new Date(ms).toISOString());
    const nothing = { steps: [], marks: [], holds: [], compensations: [] };
    chart.update({ began_at, settled_at, ...nothing }, took, "");
    const end = chart.axis.getBoundingClientRect().right;
    for (const text of chart.axis.querySelectorAll(".gantt-tick-text")) {
      shown.add(text.textContent);
      if (text.getBoundingClientRect().right > end) cut.push([px, took, text.textContent]);
    }
  }
  return [cut, shown.has("+80 ms")];
}"""


async def opened(page: Page, task: str) -> None:
    """The page of a task, once it shows the task."""
    await page.goto(f"/tasks/{task}")
    await expect(page.get_by_role("region", name="Timeline", exact=True)).to_be_visible()


async def expect_status(page: Page, status: str) -> None:
    """The head of the page comes to say so."""
    await expect(page.locator(".page-head .status")).to_have_text(status)


async def acted(page: Page, label: str, fill: dict[str, str] | None = None) -> None:
    """Press an act in the head of the page, fill in its dialog, and send it."""
    await page.locator(".page-head").get_by_role("button", name=label, exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("heading", name="What will happen")).to_be_visible()
    for name, value in (fill or {}).items():
        await dialog.get_by_label(name, exact=True).fill(value)
    await dialog.get_by_label("Note").fill("as agreed")
    await dialog.locator("button[type=submit]").click()
    await expect(dialog).to_be_hidden()


async def test_a_finished_task_shows_its_steps_in_time_and_in_the_diagram(
    page: Page, api: Asking
) -> None:
    task = await api.submit("order", {"fate": "fine"})
    await opened(page, task)
    await expect_status(page, "Succeeded")
    steps = page.locator(".gantt-steps button")
    await expect(steps).to_have_text(["reserve", "ship", "notify"])
    await expect(page.locator(".gantt-plot .outcome-completed")).to_have_count(3)
    await expect(page.locator(".node.status-completed")).to_have_count(3)
    drawing = page.get_by_role("img", name="3 steps: 3 completed")
    await expect(drawing).to_be_visible()


async def test_no_moment_on_the_axis_is_cut_off_at_its_end(page: Page) -> None:
    await page.goto("/")
    assert await page.evaluate(CUT_OFF) == [[], True]


async def test_the_steps_of_the_chart_are_walked_with_arrow_keys(page: Page, api: Asking) -> None:
    task = await api.submit("order", {"fate": "fine"})
    await opened(page, task)
    first = page.get_by_role("button", name="reserve: completed, 1 attempt")
    await first.focus()
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("button", name="ship: completed, 1 attempt")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"\?step=ship$"))
    await expect(page.get_by_role("region", name="ship", exact=True)).to_contain_text("shop.ship")


async def test_the_timeline_is_also_a_table_and_the_saga_a_list(page: Page, api: Asking) -> None:
    task = await api.submit("order", {"fate": "refused"})
    await opened(page, task)
    await expect_status(page, "Compensated")
    await page.get_by_role("radiogroup", name="timeline").get_by_text("Table").click()
    table = page.get_by_role("table", name="The timeline")
    await expect(
        table.get_by_role("row", name=re.compile("ship.*Attempt 1.*Reject"))
    ).to_be_visible()
    await expect(
        table.get_by_role("row", name=re.compile("reserve.*Undo, attempt 1"))
    ).to_be_visible()
    await page.get_by_role("radiogroup", name="saga").get_by_text("List").click()
    await expect(page.locator(".step-list")).to_contain_text("shop.release")
    await expect(page.locator(".step-list")).to_contain_text("point of no return")


async def test_what_was_undone_is_told_in_its_order(page: Page, api: Asking) -> None:
    task = await api.submit("order", {"fate": "refused"})
    await opened(page, task)
    chain = page.locator(".chain")
    await expect(chain).to_contain_text("shop.release undoes shop.reserve")
    await expect(chain).to_contain_text("Compensated")
    await expect(page.locator(".edge-back")).to_have_count(0)  # one step alone has no way back


async def test_a_steps_error_is_shown_and_its_input_result_and_journal_on_demand(
    page: Page, api: Asking
) -> None:
    task = await api.submit("order", {"fate": "stuck"})
    await page.goto(f"/tasks/{task}?step=notify")
    step = page.get_by_role("region", name="notify", exact=True)
    await expect(step).to_contain_text("the mail server is down")
    await step.get_by_text("Input", exact=True).click()
    await expect(step.get_by_label("Input", exact=True)).to_contain_text('"fate": "stuck"')
    await page.locator(".gantt-steps button").get_by_text("reserve").click()
    step = page.get_by_role("region", name="reserve", exact=True)
    await step.get_by_text("Result", exact=True).click()
    await expect(step.get_by_label("Result", exact=True)).to_contain_text('"reserved": 1')
    await step.get_by_text("Journal", exact=True).click()
    await expect(step).to_contain_text("Nothing is written in its journal")


async def test_a_journal_tells_each_call_with_what_it_cost(page: Page, api: Asking) -> None:
    task = await api.submit("refund", {"amount": 5})
    await page.goto(f"/tasks/{task}?step=consult")
    step = page.get_by_role("region", name="consult", exact=True)
    await expect(step.locator(".status-completed")).to_be_visible()
    await step.get_by_text("Journal", exact=True).click()
    await expect(step).to_contain_text("think is called")
    await expect(step).to_contain_text("15 tokens, $0.25")
    await expect(step).to_contain_text("a private answer")


async def test_the_page_goes_along_and_keeps_focus_and_what_is_open(
    page: Page, api: Asking
) -> None:
    task = await api.submit("refund", {"amount": 5})
    await opened(page, task)
    await expect(page.get_by_role("button", name=re.compile("paid: scheduled"))).to_be_visible()
    await page.goto(f"/tasks/{task}?step=consult")
    step = page.get_by_role("region", name="consult", exact=True)
    await step.get_by_text("Journal", exact=True).click()
    await expect(step).to_contain_text("think is called")
    await page.get_by_role("button", name=re.compile("consult: completed")).focus()
    await api.act("signal", task=task, name="paid", id="1", payload=7)
    await expect_status(page, "Succeeded")
    await expect(page.get_by_role("button", name=re.compile("consult: completed"))).to_be_focused()
    await expect(step).to_contain_text("think is called")
    await expect(page.locator(".node.status-completed")).to_have_count(4)


async def test_the_history_has_every_event_and_new_ones_come_to_it(page: Page, api: Asking) -> None:
    task = await api.submit("refund", {"amount": 500})
    await opened(page, task)
    history = page.get_by_role("region", name="History", exact=True)
    await expect(
        history.get_by_role("row", name=re.compile("Attempt dispatched agree"))
    ).to_be_visible()
    await acted(page, "Cancel")
    await expect(history.get_by_role("row", name=re.compile("Task compensated"))).to_be_visible()
    count = len((await api.read("history", task=task))["entries"])
    await expect(history.locator("tbody tr")).to_have_count(count)


async def test_cancel_says_what_is_undone_and_undoes_it(page: Page, api: Asking) -> None:
    task = await api.submit("refund", {"amount": 5})
    await opened(page, task)
    await expect(page.get_by_role("button", name=re.compile("paid: scheduled"))).to_be_visible()
    await page.locator(".page-head").get_by_role("button", name="Cancel").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Not waited for any more: paid.")
    await expect(dialog).to_contain_text("Undone, in this order: consult (shop.cease).")
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    assert await api.status(task) == "running"
    await acted(page, "Cancel")
    await expect_status(page, "Compensated")
    event = await api.last(task, "RecoveryStarted")
    assert event["by"] == "console"
    assert "as agreed" in event["reason"]


async def test_approve_and_reject(page: Page, api: Asking) -> None:
    approved = await api.submit("refund", {"amount": 20})
    await opened(page, approved)
    await acted(page, "Approve")
    await expect(page.get_by_role("button", name=re.compile("agree: completed"))).to_be_visible()
    assert (await api.last(approved, "StepApproved")) | {"reason": ""} == {
        "step": "agree",
        "by": "console",
        "reason": "",
    }
    rejected = await api.submit("refund", {"amount": 20})
    await opened(page, rejected)
    await acted(page, "Reject")
    await expect_status(page, "Compensated")
    assert (await api.last(rejected, "StepRejected"))["reason"] == "as agreed"


async def test_signal(page: Page, api: Asking) -> None:
    task = await api.submit("refund", {"amount": 5})
    await opened(page, task)
    await expect(page.get_by_role("button", name=re.compile("paid: scheduled"))).to_be_visible()
    await acted(page, "Signal", {"Id": "bank-7", "Payload, as JSON": '{"cents": 500}'})
    await expect_status(page, "Succeeded")
    received = await api.last(task, "SignalReceived")
    assert (received["name"], received["id"], received["payload"]) == (
        "paid",
        "bank-7",
        {"cents": 500},
    )


async def test_a_payload_that_is_no_json_is_refused_where_it_was_typed(
    page: Page, api: Asking
) -> None:
    task = await api.submit("refund", {"amount": 5})
    await opened(page, task)
    await page.locator(".page-head").get_by_role("button", name="Signal").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Payload, as JSON", exact=True).fill("bank transfer")
    await dialog.get_by_role("button", name="Send").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Put a text in double quotes.")
    await expect(dialog.get_by_role("button", name="Send")).to_be_enabled()


async def test_retry_and_resume_give_a_stuck_step_another_series(page: Page, api: Asking) -> None:
    task = await api.submit("order", {"fate": "stuck"})
    await opened(page, task)
    await expect_status(page, "Parked")
    await expect(page.locator(".reason")).to_contain_text("the mail server is down")
    await acted(page, "Retry")
    attempts = page.get_by_role("button", name=re.compile("notify: .*2 attempts"))
    await expect(attempts).to_be_visible()
    await expect_status(page, "Parked")
    assert (await api.last(task, "TaskResumed"))["steps"] == ["notify"]
    await acted(page, "Resume")
    await expect(
        page.get_by_role("button", name=re.compile("notify: .*3 attempts"))
    ).to_be_visible()


async def test_settle_takes_a_persons_word(page: Page, api: Asking) -> None:
    task = await api.submit("order", {"fate": "stuck"})
    await opened(page, task)
    await expect_status(page, "Parked")
    step = page.get_by_role("region", name="notify", exact=True)
    await step.get_by_role("button", name="Settle").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label(re.compile("^It happened")).check()
    await dialog.get_by_label("Result, as JSON", exact=True).fill('{"sent": true}')
    await dialog.get_by_label("Note").fill("the mail is in the outbox")
    await dialog.get_by_role("button", name="Settle").click()
    await expect_status(page, "Succeeded")
    settled = await api.last(task, "StepSettled")
    assert (settled["by"], settled["reason"]) == ("console", "the mail is in the outbox")
    assert settled["result"] == {"sent": True}


async def test_a_call_that_waits_is_approved_on_the_page(page: Page, api: Asking) -> None:
    task = await api.submit("refund", {"amount": 5_000})
    await opened(page, task)
    await acted(page, "Approve")
    calls = page.get_by_role("region", name="Calls that wait for a person")
    await expect(calls).to_contain_text("unlock in consult")
    asked = "performance.getEntriesByType('resource').map((each) => each.name)"
    queue = [url for url in await page.evaluate(asked) if "/api/parked?" in url]
    assert {url.partition("?")[2] for url in queue} == {f"task={task}"}  # however many wait
    await expect(calls).to_contain_text("5000")
    await calls.get_by_role("button", name="Approve the call").click()
    await page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("button", name=re.compile("consult: completed"))).to_be_visible()
    await expect(calls).to_be_hidden()


async def test_a_call_of_unknown_outcome_is_settled_on_the_page(page: Page, api: Asking) -> None:
    task = await api.submit("refund", {"amount": 500})
    await opened(page, task)
    await acted(page, "Approve")
    await expect_status(page, "Parked")
    calls = page.get_by_role("region", name="Calls that wait for a person")
    await calls.get_by_role("button", name="Settle the call").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("It happened", exact=True).check()
    await dialog.get_by_label(re.compile("^Its result, as JSON")).fill('"paid by hand"')
    await dialog.get_by_role("button", name="Settle").click()
    await expect(dialog).to_be_hidden()
    await acted(page, "Resume")
    await expect(page.get_by_role("button", name=re.compile("consult: completed"))).to_be_visible()


async def test_fork_leads_to_the_new_task_and_back(page: Page, api: Asking) -> None:
    task = await api.submit("order", {"fate": "stuck"})
    await opened(page, task)
    await page.locator(".page-head").get_by_role("button", name="Fork").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Results that are kept: reserve, ship.")
    await dialog.get_by_label("From").select_option("ship")
    await expect(dialog).to_contain_text("Done again in the new task: ship, notify.")
    await dialog.get_by_label("From").select_option("notify")
    await dialog.get_by_role("button", name="Fork").click()
    await expect(page).not_to_have_url(re.compile(task))
    await expect(page.get_by_role("link", name=task).first).to_be_visible()
    forked = page.url.rpartition("/")[2].partition("?")[0]
    assert (await api.read("get", task=forked))["forked_from"] == task


async def test_move_first_finds_out_whether_it_fits_and_says_why_not(
    page: Page, api: Asking
) -> None:
    for version, first in ((1, "shop.reserve"), (2, "shop.reserve"), (3, "shop.ship")):
        await api.act("saga.register", **moved(version, first))
    task = await api.submit("moved", {"fate": "fine"}, version=1)
    await opened(page, task)
    await page.locator(".page-head").get_by_role("button", name="Move").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("To").select_option("3")
    await dialog.get_by_role("button", name="Move").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("cannot be moved to version 3")
    await dialog.get_by_label("To").select_option("2")
    await dialog.get_by_role("button", name="Move").click()
    await expect(dialog).to_be_hidden()
    await expect(page.get_by_role("link", name="moved, version 2")).to_be_visible()
    assert (await api.last(task, "TaskMoved"))["target"] == 2


def moved(version: int, first: str) -> dict[str, Any]:
    """A saga whose versions 1 and 2 begin alike."""
    saga = Saga("moved", version=version).step("look", first, read_only=True)
    saga.wait("go", after="look")
    if version > 1:
        saga.step("end", "shop.notify", after="go", read_only=True)
    return dict(json.loads(saga.define().to_json()))


async def test_a_refusal_is_shown_in_the_dialog_that_asked(page: Page, api: Asking) -> None:
    task = await api.submit("order", {"fate": "stuck"})
    await opened(page, task)
    await expect_status(page, "Parked")
    await page.locator(".page-head").get_by_role("button", name="Retry").click()
    await api.act("settle", task=task, step="notify", outcome="happened")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Try again").click()
    await expect(dialog.get_by_role("alert")).not_to_be_empty()
    await dialog.get_by_role("button", name="Back").click()
    await expect_status(page, "Succeeded")


async def test_role_view_sees_digests_and_sizes_in_place_of_payloads(
    browser: Browser, site, api: Asking
) -> None:
    task = await api.submit("order", {"fate": "stuck"})
    async with window(browser, site.url, token=site.token_of("view")) as page:
        await page.goto(f"/tasks/{task}?step=reserve")
        await expect_status(page, "Parked")
        step = page.get_by_role("region", name="reserve", exact=True)
        await step.get_by_text("Result", exact=True).click()
        await expect(step).to_contain_text("Not shown to this token's role: 14 bytes, SHA-256")
        await expect(page.locator("main")).not_to_contain_text("the mail server is down")


async def test_the_trace_is_linked_as_the_server_says(page: Page, api: Asking) -> None:
    task = await api.submit("order", {"fate": "fine"})
    trace = task.replace("-", "")
    await opened(page, task)
    await expect(page.get_by_role("link", name=trace)).to_have_count(0)
    told = {"trace_link": "https://traces.example/t/{trace}?from=console"}
    await page.route("**/console/settings.json", lambda route: route.fulfill(json=told))
    await page.reload()
    link = page.get_by_role("link", name=trace)
    await expect(link).to_have_attribute("href", f"https://traces.example/t/{trace}?from=console")


async def test_a_task_of_200_steps_with_50_attempts_each_stays_usable(
    browser: Browser, site, api: Asking
) -> None:
    task = await api.submit("order", {"fate": "stuck"})
    real = await api.read("timeline", task=task)

    async def crowded(route: Route) -> None:
        await route.fulfill(json={**real, **crowd(200, 50)})

    async with window(browser, site.url, token=site.token, width=NARROW) as page:
        await page.route("**/api/timeline*", crowded)
        await opened(page, task)
        await expect(page.locator(".gantt-steps button")).to_have_count(200)
        bars = await page.locator(".gantt-plot .gantt-bar").count()
        assert 200 <= bars <= 3_000, f"{bars} bars are drawn"
        assert await overflow_px(page) == 0
        await page.locator(".gantt-steps button").first.focus()
        await page.keyboard.press("End")
        await expect(page.locator(".gantt-steps button").last).to_be_focused()
        await page.get_by_role("radiogroup", name="timeline").get_by_text("Table").click()
        rows = page.get_by_role("table", name="The timeline").get_by_role("row")
        await expect(rows).to_have_count(1 + 200)
        await page.get_by_role("button", name="Show more of 10000").click()
        await expect(rows).to_have_count(1 + 400)
        assert await overflow_px(page) == 0


def crowd(steps: int, attempts: int) -> dict[str, Any]:
    """A timeline of so many steps, one after the other, each tried so often."""

    def bar(step: int, attempt: int) -> dict[str, Any]:
        began = 10 * step + 0.2 * attempt
        return {
            "kind": "attempt", "phase": "action", "attempt": attempt, "agent": "shop",
            "worker": "", "child": None, "began_at": at(began), "started_at": None,
            "due_at": None, "ended_at": at(began + 0.1), "error": "RuntimeError", "late": False,
            "outcome": "completed" if attempt == attempts else "failed", "reason": "",
            "take_overs": [],
        }  # fmt: skip

    def at(seconds: float) -> str:
        return (datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat()

    names = [f"{number:03}_{'with_a_very_long_name_' * 3}"[:64] for number in range(steps)]
    lines = [
        {
            "name": name, "kind": "action", "action": "shop.reserve", "compensation": None,
            "after": names[max(0, number - 1) : number], "pivot": False, "handed_off_by": "",
            "kept_from": None, "status": "completed",
            "bars": [bar(number, attempt + 1) for attempt in range(attempts)],
        }
        for number, name in enumerate(names)
    ]  # fmt: skip
    ended = at(10 * steps + attempts)
    return {
        "steps": lines, "marks": [], "holds": [], "compensations": [], "status": "succeeded",
        "began_at": at(0), "settled_at": ended, "now": ended,
    }  # fmt: skip


async def test_a_huge_value_is_folded_and_opened_bit_by_bit(page: Page, api: Asking) -> None:
    task = await api.submit("order", {"fate": "fine"})
    rows = [{"n": n, "text": "lorem ipsum " * 20} for n in range(5_000)]

    async def huge(route: Route) -> None:
        answer = await (await route.fetch()).json()
        await route.fulfill(json={**answer, "result": {"rows": rows, "long": "x" * 100_000}})

    await page.route("**/api/step?*", huge)
    await page.goto(f"/tasks/{task}?step=reserve")
    step = page.get_by_role("region", name="reserve", exact=True)
    await step.get_by_text("Result", exact=True).click()
    await step.get_by_text("rows: [ 5000 items ]").click()
    await expect(step.get_by_text("{ 2 fields }")).to_have_count(1 + 100)
    await step.get_by_role("button", name="Show 100 more of 4900").click()
    await expect(step.get_by_text("{ 2 fields }")).to_have_count(1 + 200)
    await expect(step.get_by_role("button", name="Show all 100000 characters")).to_be_visible()


async def test_a_task_that_is_not_there_says_so(page: Page) -> None:
    await page.goto("/tasks/01a22acd-0000-7000-8000-000000000000")
    await expect(page.get_by_role("alert")).to_contain_text("there is no task")


async def test_the_page_of_a_task_is_accessible_and_fits(page: Page, api: Asking) -> None:
    task = await api.submit("order", {"fate": "refused"})
    await opened(page, task)
    await expect_status(page, "Compensated")
    for summary in await page.locator(".on-demand summary").all():
        await summary.click()
    await expect(page.locator("[aria-busy], .skeleton")).to_have_count(0)
    assert await flaws(page) == []
    await page.get_by_role("radiogroup", name="timeline").get_by_text("Table").click()
    await page.get_by_role("radiogroup", name="saga").get_by_text("List").click()
    assert await flaws(page) == []
    await page.locator(".page-head").get_by_role("button", name="Fork").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await flaws(page) == []
