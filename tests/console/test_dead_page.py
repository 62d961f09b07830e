"""Dead letters: the list, the original with its reason, replaying and dropping it."""

from __future__ import annotations

import json
import re
from typing import Any

import nats
import pytest
import pytest_asyncio
from harness.asking import Asking, asking
from harness.browser import flaws
from harness.eventually import eventually
from headway.coordinator.connections import running_connections
from headway.sagas import Saga
from playwright.async_api import Page, expect

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def refused(site) -> None:
    """Submissions that cannot be accepted: one for a saga that is to come, two that are junk."""
    connections = running_connections(site.shell.folder / ".headway")
    assert connections is not None
    made = site.shell.run("tokens", "create", "clerk", "--role", "submit", "--json")
    assert made.code == 0, made.err
    headers = {"Headway-Token": made.json["token"]}
    connection = await nats.connect(connections.nats_url)
    try:
        stream = connection.jetstream()
        await stream.publish(
            "hw.tasks.early", json.dumps({"fate": "fine"}).encode(), headers=headers
        )
        await stream.publish("hw.tasks.order", b'{"fate": "fi', headers=headers)
        await stream.publish("hw.tasks.order", bytes(range(256)), headers=headers)
    finally:
        await connection.close()

    async with asking(site.url, site.token) as api:

        async def listed() -> bool:
            return len(await letters(api)) >= 3

        await eventually(listed)


async def letters(api: Asking) -> list[dict[str, Any]]:
    """Those that nobody has dealt with."""
    return list((await api.read("dead.list"))["letters"])


async def test_a_letter_shows_why_it_was_refused_and_the_original(page: Page, api: Asking) -> None:
    await page.goto("/dead")
    row = page.get_by_role("row").filter(has_text="unexpected end of data")
    await row.get_by_role("link").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("the body is not JSON")
    await expect(dialog.get_by_label("Message", exact=True)).to_have_text('{"fate": "fi')
    await expect(dialog).to_contain_text("would be refused again")
    await expect(dialog.get_by_role("button", name="Replay")).to_have_count(0)
    await expect(page).to_have_url(re.compile(r"\?letter=\d+$"))
    await page.keyboard.press("Escape")
    await expect(page).to_have_url(re.compile(r"/dead$"))


async def test_a_body_that_is_no_text_is_shown_in_base64(page: Page) -> None:
    await page.goto("/dead")
    await page.get_by_role("row").filter(has_text="surrogates").get_by_role("link").click()
    await expect(page.get_by_label("Message in base64")).to_contain_text("AAECAwQF")


async def test_a_letter_is_replayed_once_its_cause_is_mended(page: Page, api: Asking) -> None:
    early = Saga("early", version=1).step("look", "shop.reserve", read_only=True)
    await api.act("saga.register", **json.loads(early.define().to_json()))
    await page.goto("/dead")
    await page.get_by_role("row").filter(has_text="hw.tasks.early").get_by_role("link").click()
    dialog = page.get_by_role("dialog", name=re.compile("^Letter"))
    await dialog.get_by_role("button", name="Replay").click()
    question = page.get_by_role("dialog", name=re.compile("^Replay letter"))
    await expect(question).to_contain_text("published again on hw.tasks.early")
    await question.get_by_label("Note (optional)").fill("the saga is there now")
    await question.get_by_role("button", name="Replay").click()
    await expect(dialog).to_contain_text("Replayed")
    await expect(dialog).to_contain_text("by console: the saga is there now")

    async def begun() -> bool:
        return len((await api.read("list", saga="early"))["tasks"]) == 1

    await eventually(begun)


async def test_a_letter_is_dropped_and_leaves_the_list_but_for_those_dealt_with(
    page: Page, api: Asking
) -> None:
    await page.goto("/dead")
    row = page.get_by_role("row").filter(has_text="surrogates")
    await row.get_by_role("link").click()
    await page.get_by_role("dialog").get_by_role("button", name="Drop").click()
    question = page.get_by_role("dialog", name=re.compile("^Drop letter"))
    await question.get_by_role("button", name="Drop").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Dropped")
    await page.keyboard.press("Escape")
    await expect(row).to_have_count(0)
    await page.get_by_label("With those dealt with").check()
    await expect(row).to_contain_text("Dropped")
    assert "surrogates" not in json.dumps(await letters(api))


async def test_letters_are_narrowed_by_kind(page: Page) -> None:
    await page.goto("/dead")
    await page.get_by_label("Kind").select_option("event")
    await expect(page).to_have_url(re.compile(r"\?kind=event$"))
    await expect(page.get_by_text("No letter of that kind")).to_be_visible()


async def test_long_lists_are_paged(page: Page, api: Asking) -> None:
    letter = (await letters(api))[0]

    async def answer(route) -> None:
        cursor = "cursor=" in route.request.url
        await route.fulfill(
            json={
                "letters": [{**letter, "sequence": 7 if cursor else 900}],
                "cursor": None if cursor else "899",
            }
        )

    await page.route("**/api/dead.list*", answer)
    await page.goto("/dead")
    await page.get_by_role("link", name="Older").click()
    await expect(page).to_have_url(re.compile(r"\?cursor=899$"))
    await expect(page.get_by_role("link", name="7", exact=True)).to_be_visible()
    await expect(page.get_by_role("link", name="Older")).to_be_hidden()
    await page.get_by_role("link", name="Newest").click()
    await expect(page.get_by_role("link", name="900")).to_be_visible()


async def test_without_letters_it_says_what_would_be_here(page: Page) -> None:
    await page.route(
        "**/api/dead.list*", lambda route: route.fulfill(json={"letters": [], "cursor": None})
    )
    await page.goto("/dead")
    await expect(page.get_by_text("Nothing was refused")).to_be_visible()


async def test_a_letter_that_is_not_there_says_so(page: Page) -> None:
    await page.goto("/dead?letter=123456")
    await expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()


async def test_dead_letters_are_accessible_and_fit(page: Page) -> None:
    await page.goto("/dead")
    row = page.get_by_role("row").filter(has_text="unexpected end of data")
    await expect(row).to_be_visible()
    assert await flaws(page) == []
    await row.get_by_role("link").click()
    await expect(page.get_by_label("Message", exact=True)).to_be_visible()
    assert await flaws(page) == []
